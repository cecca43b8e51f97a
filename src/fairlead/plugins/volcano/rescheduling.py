"""rescheduling: from time to time, pods move from nodes that are too busy, if others have little to do.

Victims are named for the shuffle action. How busy nodes are comes from outside, as for the usage plugin. The one
strategy there is, lowNodeUtilization, needs nodes below all of `low` and others above any of `high` (in percent).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.framework.tiers import TierPlugin
from fairlead.plugins.volcano.sla import positive_duration
from fairlead.plugins.volcano.usage import Unmeasured

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Round, Task
    from fairlead.plugins.volcano.arguments import Arguments
    from fairlead.plugins.volcano.usage import UsageSource

_INTERVAL = 300.0
_DIMENSIONS = ("cpu", "memory", "pods")


class Rescheduling(TierPlugin):
    """Victims are named at most once in `interval` seconds. Thresholds that are missing are 100."""

    name = "rescheduling"
    timed = True

    def __init__(
        self,
        source: UsageSource | None = None,
        *,
        interval: float = _INTERVAL,
        low: Mapping[str, float] | None = None,
        high: Mapping[str, float] | None = None,
    ) -> None:
        self._source = source or Unmeasured()
        self._interval = interval
        self._low, self._high = _thresholds(low), _thresholds(high)
        self._last: float | None = None

    @classmethod
    def of(cls, arguments: Arguments, source: UsageSource | None = None) -> Rescheduling:
        parameters = _parameters(arguments.raw("strategies"))
        return cls(
            source,
            interval=positive_duration(arguments.text("interval")) or _INTERVAL,
            low=parameters.get("thresholds"),
            high=parameters.get("targetThresholds"),
        )

    def open(self, round: Round) -> None:
        self._round = round

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        now = self._round.now
        if self._last is not None and self._last + self._interval > now:
            return []
        self._last = now
        return self._victims(tasks)

    def _victims(self, tasks: Sequence[Task]) -> list[Task]:
        rows = self._round.rows
        used = self._utilisation()
        known = ~np.isnan(used[:, 0])
        low = known & (used < self._low).all(axis=1) & ~self._round.cluster.table.unschedulable[rows]
        high = known & (used > self._high).any(axis=1)
        if not low.any() or not high.any() or low.all():
            return []
        room = self._allocatable()
        budget = (np.maximum(0.0, (self._high - used) / 100.0 * room))[low].sum(axis=0)
        victims: list[Task] = []
        busiest_first = sorted(np.flatnonzero(high).tolist(), key=lambda at: -float(used[at, 0] + used[at, 1]))
        for at in busiest_first:
            victims += self._relieve(tasks, int(rows[at]), used[at] / 100.0 * room[at], room[at], budget)
        return victims

    def _relieve(
        self,
        tasks: Sequence[Task],
        row: int,
        used: NDArray[np.float64],
        room: NDArray[np.float64],
        budget: NDArray[np.float64],
    ) -> list[Task]:
        """Lesser pods go until the node is no longer too busy, or those with little to do have taken enough."""
        victims = []
        for task in sorted((task for task in tasks if task.row == row), key=_worth):
            if not (used >= self._high / 100.0 * room).any() or (budget <= 0).any():
                break
            request = np.array([task.request.get(name) for name in _DIMENSIONS])
            used -= request
            budget -= request
            victims.append(task)
        return victims

    def _utilisation(self) -> NDArray[np.float64]:
        """Percent by node and dimension; not a number for nodes that nothing is known of."""
        table, books, rows = self._round.cluster.table, self._round.books, self._round.rows
        used = np.full((table.capacity, len(_DIMENSIONS)), np.nan)
        for name, known in self._source.usage().items():
            if name in table.row_of:
                used[table.row_of[name]] = known.cpu, known.memory, 0.0
        room, taken = books.column(books.allocatable, "pods"), books.column(books.used, "pods")
        pods = np.divide(taken * 100.0, room, out=np.zeros_like(room), where=room > 0)
        used[:, 2] = np.where(np.isnan(used[:, 0]), np.nan, pods)
        return used[rows]

    def _allocatable(self) -> NDArray[np.float64]:
        books, rows = self._round.books, self._round.rows
        return np.stack([books.column(books.allocatable, name)[rows] for name in _DIMENSIONS], axis=1)


def _thresholds(given: Mapping[str, float] | None) -> NDArray[np.float64]:
    return np.array([float((given or {}).get(name, 100.0)) for name in _DIMENSIONS])


def _parameters(strategies: Any) -> dict[str, dict[str, float]]:
    """The thresholds of lowNodeUtilization, as the file has them; `pod` is another word for `pods`."""
    for strategy in strategies if isinstance(strategies, Sequence) else ():
        if isinstance(strategy, Mapping) and strategy.get("name") == "lowNodeUtilization":
            params = strategy.get("params") or {}
            return {key: _numbers(params[key]) for key in ("thresholds", "targetThresholds") if key in params}
    return {}


def _numbers(given: Mapping[str, Any]) -> dict[str, float]:
    return {"pods" if name == "pod" else name: float(value) for name, value in given.items()}


def _worth(task: Task) -> tuple[int, int]:
    """Lesser priority first, then those who were promised less."""
    return task.priority, _quality(task)


def _quality(task: Task) -> int:
    """BestEffort before the others; who is guaranteed what it uses cannot be told apart from who only asks for it."""
    return 0 if task.best_effort else 1
