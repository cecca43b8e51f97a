"""usage: nodes that are really busy are avoided, whatever is requested of them.

How busy nodes are comes from outside, as averages over ten minutes in percent (`Usage`); without that, or where it is
older than five minutes, nothing is said.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairlead.framework.tiers import TierPlugin
from fairlead.model.reasons import Reason, Reject

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.plugins.volcano.arguments import Arguments
    from fairlead.state.nodes import Nodes

_BEST = 100.0
_FRESH = 300.0
_BUSY_CPU = Reason("usage", "the CPU load of the node exceeds the upper limit.", final=True)
_BUSY_MEMORY = Reason("usage", "the memory load of the node exceeds the upper limit.", final=True)


@dataclass(frozen=True, slots=True)
class NodeUsage:
    """How busy a node was on average, in percent, and when that was found out."""

    cpu: float
    memory: float
    measured: float


class UsageSource(Protocol):
    def usage(self) -> Mapping[str, NodeUsage]:
        """By node name, what is known now."""
        ...


class Unmeasured:
    """Nothing is known of any node."""

    def usage(self) -> Mapping[str, NodeUsage]:
        return {}


class Usage(TierPlugin):
    """Above a threshold, in percent, a node is refused; below, the weights say how much each kind of load counts."""

    name = "usage"
    timed = True

    def __init__(
        self,
        source: UsageSource | None = None,
        *,
        weight: int = 5,
        weights: tuple[int, int] = (1, 1),
        thresholds: tuple[float, float] = (80.0, 80.0),
    ) -> None:
        self._source = source or Unmeasured()
        self._weight = weight
        self._weights = weights
        self._thresholds = thresholds

    @classmethod
    def of(cls, arguments: Arguments, source: UsageSource | None = None) -> Usage:
        thresholds = arguments.mapping("thresholds")
        return cls(
            source,
            weight=arguments.whole("usage.weight", 5),
            weights=(arguments.whole("cpu.weight", 1), arguments.whole("memory.weight", 1)),
            thresholds=(float(thresholds.whole("cpu", 80)), float(thresholds.whole("mem", 80))),
        )

    def open(self, round: Round) -> None:
        table = round.cluster.table
        self._cpu, self._memory = np.zeros(table.capacity), np.zeros(table.capacity)
        self._known = np.zeros(table.capacity, dtype=np.bool_)
        for name, usage in self._source.usage().items():
            row = table.row_of.get(name)
            if row is not None and round.now - usage.measured <= _FRESH:
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
