"""binpack: likes nodes that a pod would fill up. Over rows: the weighted share of each resource that is then used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.tiers import TierPlugin
from fairlead.plugins.volcano.arguments import resource_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.plugins.volcano.arguments import Arguments
    from fairlead.state.nodes import Nodes

_BEST = 100


class BinPack(TierPlugin):
    """`weights` are what the resources weigh; one that is not in it does not count. A `weight` of 0 turns it off."""

    name = "binpack"

    def __init__(self, *, weight: int = 1, weights: Mapping[str, int] | None = None) -> None:
        self._weight = weight
        self._weights = {"cpu": 1, "memory": 1} if weights is None else weights

    @classmethod
    def of(cls, arguments: Arguments) -> BinPack:
        return cls(weight=arguments.whole("binpack.weight", 1), weights=resource_weights(arguments, "binpack"))

    def open(self, round: Round) -> None:
        self._books = round.books

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        """A node that has none of a resource gets nothing for it, and one that has too little gets nothing at all."""
        books, rows = self._books, nodes.row_numbers()
        score = np.zeros(len(rows), dtype=np.float64)
        too_small = np.zeros(len(rows), dtype=np.bool_)
        weighed = 0
        for name in task.request.names():
            weight = self._weights.get(name)
            if weight is None:
                continue
            weighed += weight
            room = books.column(books.allocatable, name)[rows]
            counts = (room != 0) & (weight != 0)
            used = books.column(books.used, name)[rows] + task.request.get(name)
            too_small |= counts & (used > room)
            score += np.divide(used * weight, room, out=np.zeros_like(score), where=counts)
        if weighed > 0:
            score /= weighed
        score *= _BEST * self._weight
        score[too_small] = 0.0
        return score
