"""binpack: prefers nodes that a pod would fill up: the weighted share of each resource that would then be used, by
row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.amounts import EPSILON
from fairlead.volcano.rounds.arguments import resource_weights
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_BEST = 100
_FEW_ROWS = 32
_REMEMBERED = 512


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
        self._usage = round.resources
        self._known: dict[int, _Known] = {}

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        """Equal tasks share one request, so after each placement only a single row is scored again."""
        resources, rows = self._usage, nodes.row_numbers()
        if len(rows) <= _FEW_ROWS:
            return self._scores(task.request, rows)
        known = self._known.get(id(task.request))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            everywhere = np.arange(len(resources.allocatable["cpu"]), dtype=np.int32)
            known = self._known[id(task.request)] = _Known(task.request, self._scores(task.request, everywhere))
        elif touched := resources.touched_since(known.mark):
            self._score_again(known, touched)
        known.mark = resources.mark
        return known.scores[rows]

    def _score_again(self, known: _Known, rows: set[int]) -> None:
        """Score the rows that changed. For few rows plain numbers are cheaper than arrays."""
        if len(rows) <= _FEW_ROWS:
            for row in rows:
                known.scores[row] = self._score_at(known.request, row)
        else:
            again = np.fromiter(rows, dtype=np.int32, count=len(rows))
            known.scores[again] = self._scores(known.request, again)

    def _score_at(self, request: Amounts, row: int) -> float:
        """What `_scores` says, of one row."""
        resources, score, weighed = self._usage, 0.0, 0
        for name, amount in request.items():
            weight = self._weights.get(name)
            if weight is None or amount < EPSILON:
                continue
            weighed += weight
            column = resources.allocatable.get(name)
            room = 0.0 if column is None else column.item(row)
            if room and weight:
                used = resources.used[name].item(row) + amount
                if used > room:
                    return 0.0
                score += used * weight / room
        return (score / weighed if weighed > 0 else score) * (_BEST * self._weight)

    def _scores(self, request: Amounts, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """A node that has none of a resource gets nothing for it, and one that has too little gets nothing at all."""
        resources = self._usage
        score = np.zeros(len(rows), dtype=np.float64)
        too_small = np.zeros(len(rows), dtype=np.bool_)
        weighed = 0
        for name in request.names():
            weight = self._weights.get(name)
            if weight is None:
                continue
            weighed += weight
            room = resources.column(resources.allocatable, name)[rows]
            counts = (room != 0) & (weight != 0)
            used = resources.column(resources.used, name)[rows] + request.get(name)
            too_small |= counts & (used > room)
            score += np.divide(used * weight, room, out=np.zeros_like(score), where=counts)
        if weighed > 0:
            score /= weighed
        score *= _BEST * self._weight
        score[too_small] = 0.0
        return score


class _Known:
    """The scores of all rows for one request, as of a mark of the round's resources. It holds the request, so that no
    other object can get its id."""

    __slots__ = ("mark", "request", "scores")

    def __init__(self, request: Amounts, scores: NDArray[np.float64]) -> None:
        self.request = request
        self.scores = scores
        self.mark = 0
