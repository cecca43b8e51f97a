"""usage: nodes that are really busy are avoided, whatever their pods request.

How busy nodes are comes from outside, as averages over ten minutes in percent (core/model/usage.py). Without usage, or
where it is older than five minutes, the plugin has no opinion.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Reason, Reject
from fairlead.core.model.usage import UsageBoard
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_BEST = 100.0
_BUSY_CPU = Reason("usage", "the CPU load of the node exceeds the upper limit.", final=True)
_BUSY_MEMORY = Reason("usage", "the memory load of the node exceeds the upper limit.", final=True)


class UsagePlugin(TierPlugin):
    """Above a threshold, in percent, a node is refused; below, the weights say how much each kind of load counts."""

    name = "usage"
    timed = True

    def __init__(
        self,
        board: UsageBoard | None = None,
        *,
        weight: int = 5,
        weights: tuple[int, int] = (1, 1),
        thresholds: tuple[float, float] = (80.0, 80.0),
    ) -> None:
        self._board = board or UsageBoard()
        self._weight = weight
        self._weights = weights
        self._thresholds = thresholds

    @classmethod
    def of(cls, arguments: Arguments, board: UsageBoard | None = None) -> UsagePlugin:
        thresholds = arguments.mapping("thresholds")
        return cls(
            board,
            weight=arguments.whole("usage.weight", 5),
            weights=(arguments.whole("cpu.weight", 1), arguments.whole("memory.weight", 1)),
            thresholds=(float(thresholds.whole("cpu", 80)), float(thresholds.whole("mem", 80))),
        )

    def open(self, round: Round) -> None:
        table = round.cluster.table
        self._cpu, self._memory = np.zeros(table.capacity), np.zeros(table.capacity)
        self._known = np.zeros(table.capacity, dtype=np.bool_)
        for name, usage in self._board.usage().items():
            row = table.row_of.get(name)
            if row is not None and usage.is_fresh(round.now):
                self._cpu[row], self._memory[row], self._known[row] = usage.cpu, usage.memory, True

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        known = nodes.take(self._known)
        busy = known & (nodes.take(self._cpu) > self._thresholds[0])
        yield Reject(_BUSY_CPU, busy)
        yield Reject(_BUSY_MEMORY, known & ~busy & (nodes.take(self._memory) > self._thresholds[1]))

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        cpu, memory = self._weights
        if cpu + memory == 0:
            return np.zeros(len(nodes), dtype=np.float64)
        idle = ((100.0 - nodes.take(self._cpu)) * cpu + (100.0 - nodes.take(self._memory)) * memory) / 100.0
        return np.where(nodes.take(self._known), idle / (cpu + memory) * _BEST * self._weight, 0.0)
