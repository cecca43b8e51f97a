"""rescheduling: from time to time, pods are evicted from nodes that are too busy, if other nodes are idle enough.

Victims are named for the shuffle action. How busy nodes are comes from outside, as for the usage plugin. The only
strategy, lowNodeUtilization, needs nodes below all thresholds of `low` and others above any of `high` (in percent).
Several behaviours of the original are repaired; they are the fields of Quirks that begin with `rescheduling_`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.model.quality import BEST_EFFORT, BURSTABLE
from fairlead.core.model.usage import UsageBoard
from fairlead.volcano.plugins.sla import positive_duration
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.usage import NodeUsage
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_INTERVAL = 300.0
_STRATEGY = "lowNodeUtilization"
_DIMENSIONS = ("cpu", "memory", "pods")
_MEASURED = len(("cpu", "memory"))
"""How many of the dimensions the original knows of."""
_PERIOD, _STORED_PERIOD = "5m", "10m"


class Rescheduling(TierPlugin):
    """Victims are named at most once in `interval` seconds, and only if `active`: if a strategy is named that there is.
    Thresholds that are missing are 100."""

    name = "rescheduling"
    timed = True

    def __init__(
        self,
        board: UsageBoard | None = None,
        *,
        interval: float = _INTERVAL,
        period: str = _PERIOD,
        low: Mapping[str, float] | None = None,
        high: Mapping[str, float] | None = None,
        active: bool = True,
    ) -> None:
        self._board = board or UsageBoard()
        self._interval = interval
        self._period = period
        self._low, self._high = _thresholds(low), _thresholds(high)
        self._active = active
        self._last: float | None = None

    @classmethod
    def of(cls, arguments: Arguments, board: UsageBoard | None = None) -> Rescheduling:
        strategies = arguments.raw("strategies")
        listed = list(_named(strategies)) if isinstance(strategies, Sequence) and strategies else [{}]
        parameters = listed[0] if listed else {}
        return cls(
            board,
            interval=positive_duration(arguments.text("interval")) or _INTERVAL,
            period=arguments.text("metricsPeriod") or _PERIOD,
            low=parameters.get("thresholds"),
            high=parameters.get("targetThresholds"),
            active=bool(listed),
        )

    def open(self, round: Round) -> None:
        self._round = round

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        now = self._round.now
        if not self._active or (self._last is not None and self._last + self._interval > now):
            return []
        self._last = now
        return self._victims(tasks)

    def _victims(self, tasks: Sequence[Task]) -> list[Task]:
        round, rows = self._round, self._round.rows
        counted = _MEASURED if round.quirks.rescheduling_counts_no_pods else len(_DIMENSIONS)
        used = self._utilisation()[:, :counted]
        known = ~np.isnan(used[:, 0])
        low = known & (used < self._low[:counted]).all(axis=1) & ~round.cluster.table.unschedulable[rows]
        high = known & ~low & (used > self._high[:counted]).any(axis=1)
        if not low.any() or not high.any() or low.all():
            return []
        room = self._allocatable()[:, :counted]
        budget = ((self._high[:counted] - used) / 100.0 * room)[low].sum(axis=0)
        if not round.quirks.rescheduling_overspends:
            budget = np.maximum(0.0, budget)
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
        """Evict the least important pods until the node is no longer too busy, or the idle nodes have no room left."""
        victims = []
        limit = self._high[: len(room)] / 100.0 * room
        for task in self._movable(tasks, row):
            if not (used >= limit).any() or self._is_spent(budget):
                break
            request = np.array([task.request.get(name) for name in _DIMENSIONS[: len(room)]])
            used -= request
            budget -= request
            victims.append(task)
        return victims

    def _is_spent(self, budget: NDArray[np.float64]) -> bool:
        return bool((budget == 0 if self._round.quirks.rescheduling_overspends else budget <= 0).any())

    def _movable(self, tasks: Sequence[Task], row: int) -> list[Task]:
        """The tasks on a row that may be evicted, the least important first; the original finds them by their names
        alone (`rescheduling_confuses_names`)."""
        if not self._round.quirks.rescheduling_confuses_names:
            return sorted((task for task in tasks if task.row == row), key=_worth)
        first = {task.name: task for task in reversed(tasks)}
        here = sorted(self._round.resources.tasks_on(row), key=_worth)
        return [first[task.name] for task in here if task.name in first]

    def _utilisation(self) -> NDArray[np.float64]:
        """Percent by node and dimension; NaN for nodes whose usage is not known."""
        table, resources, rows = self._round.cluster.table, self._round.resources, self._round.rows
        unknown = 0.0 if self._round.quirks.rescheduling_takes_unknown_for_idle else np.nan
        used = np.full((table.capacity, len(_DIMENSIONS)), unknown)
        for name, known in self._measured().items():
            if name in table.row_of:
                used[table.row_of[name]] = known.cpu, known.memory, 0.0
        room, taken = resources.column(resources.allocatable, "pods"), resources.column(resources.used, "pods")
        pods = np.divide(taken * 100.0, room, out=np.zeros_like(room), where=room > 0)
        used[:, 2] = np.where(np.isnan(used[:, 0]), np.nan, pods)
        return used[rows]

    def _measured(self) -> Mapping[str, NodeUsage]:
        usage, now, quirks = self._board.usage(), self._round.now, self._round.quirks
        if quirks.rescheduling_reads_only_ten_minutes and self._period != _STORED_PERIOD:
            return {}
        if quirks.rescheduling_trusts_old_usage:
            return usage
        return {name: known for name, known in usage.items() if known.is_fresh(now)}

    def _allocatable(self) -> NDArray[np.float64]:
        resources, rows = self._round.resources, self._round.rows
        return np.stack([resources.column(resources.allocatable, name)[rows] for name in _DIMENSIONS], axis=1)


def _thresholds(given: Mapping[str, float] | None) -> NDArray[np.float64]:
    return np.array([float((given or {}).get(name, 100.0)) for name in _DIMENSIONS])


def _named(strategies: Sequence[Any]) -> Iterator[dict[str, dict[str, float]]]:
    """The thresholds of lowNodeUtilization, wherever it is listed; `pod` is another word for `pods`."""
    for strategy in strategies:
        if isinstance(strategy, Mapping) and strategy.get("name") == _STRATEGY:
            params = strategy.get("params") or {}
            yield {key: _numbers(params[key]) for key in ("thresholds", "targetThresholds") if key in params}


def _numbers(given: Any) -> dict[str, float]:
    if not isinstance(given, Mapping):
        return {}
    return {"pods" if name == "pod" else name: float(value) for name, value in given.items() if type(value) is int}


def _worth(task: Task) -> tuple[bool, int, int]:
    """The order of eviction: pods without priority, then by priority, then by quality of service."""
    shape = task.pod.shape
    quality = 0 if shape.quality == BEST_EFFORT else 1 if shape.quality == BURSTABLE else 2
    return shape.has_priority, shape.priority, quality
