"""tdm: time division. Nodes of a revocable zone are open to preemptable pods at certain hours, and taken back after.

A zone's hours are `HH:MM-HH:MM` in local time; an end that is not after the start is on the next day (in the original
the zone closes at midnight then: `tdm_closes_at_midnight`). Outside the hours no pod is placed there, and preemptable
pods that still run there are evicted, a few of each job at a time.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, tzinfo
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Reason, Reject
from fairlead.volcano.plugins.sla import positive_duration
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.tiers import TierPlugin, Vote

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, Round, Task

_ZONE = "volcano.sh/revocable-zone"
_ZONE_ARGUMENT = "tdm.revocable-zone."
_BEST = 100.0
_MINUTE = 60.0
_HOURS = re.compile(r"(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})")
_NOT_OPEN = Reason("tdm", "not allow to dispatch to revocable node", final=True)


class TimeDivision(TierPlugin):
    """`zones` are the hours by zone, in the time of `clock` (None for that of the machine). Evictions come at most once
    in `period` seconds."""

    name = "tdm"
    protects = "only preemptable pods outside revocable zones go, for pods that are not preemptable"
    timed = True

    def __init__(self, zones: Mapping[str, str], *, period: float = _MINUTE, clock: tzinfo | None = None) -> None:
        self._zones = zones
        self._period = period
        self._clock = clock
        self._last_evicted: float | None = None

    @classmethod
    def of(cls, arguments: Arguments) -> TimeDivision:
        zones = {
            name.replace(_ZONE_ARGUMENT, "", 1): str(hours)
            for name, hours in arguments.items()
            if _ZONE_ARGUMENT in name
        }
        return cls(zones, period=positive_duration(arguments.text("tdm.evict.period")) or _MINUTE)

    def open(self, round: Round) -> None:
        self._round = round
        self._closed: dict[str, str] = {}

    # ---- nodes ----

    def predicate(self, task: Task, nodes: Nodes) -> Iterator[Reject]:
        codes, names = nodes.label(_ZONE), self._round.cluster.table.label(_ZONE).values
        open_now = codes >= 0
        for code, zone in enumerate(names):
            closed = self._why_closed(zone)
            if zone == "" or closed:
                open_now &= codes != code
            if zone != "" and closed:
                yield Reject(Reason("tdm", closed, final=True), codes == code)
        if not task.revocable_zone:
            yield Reject(_NOT_OPEN, open_now)

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        names = self._round.cluster.table.label(_ZONE).values
        liked = [bool(zone and task.revocable_zone and not self._why_closed(zone)) for zone in names]
        return np.array([*liked, False], dtype=np.float64)[nodes.label(_ZONE)] * _BEST

    def _why_closed(self, zone: str) -> str:
        """Why a zone cannot be used now; empty if it can."""
        if zone not in self._closed:
            self._closed[zone] = self._judge(zone)
        return self._closed[zone]

    def _judge(self, zone: str) -> str:
        hours = self._zones.get(zone)
        if hours is None:
            return f"revocable zone {zone} not support"
        found = _HOURS.fullmatch(hours.strip())
        if found is None:
            return f"revocable zone {hours} format error"
        now = datetime.fromtimestamp(int(self._round.now), self._clock)
        begin, until = (int(found[1]), int(found[2])), (int(found[3]), int(found[4]))
        start = now.replace(hour=begin[0], minute=begin[1], second=0)
        end = now.replace(hour=until[0], minute=until[1], second=0)
        if begin >= until:
            is_open = start <= now or (now <= end and not self._round.quirks.tdm_closes_at_midnight)
        else:
            is_open = start <= now <= end
        return "" if is_open else f"current time beyond revocable zone {zone}:{hours}"

    # ---- jobs ----

    def job_order(self, left: Job, right: Job) -> float:
        return int(left.preemptable) - int(right.preemptable)

    def job_pipelined(self, job: Job) -> Vote:
        return Vote.PERMIT if job.is_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return not job.preemptable and job.counts.of(TaskStatus.PENDING) > 0

    # ---- victims ----

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Preemptable pods on nodes of no zone; an evictor that could itself be preempted gets nothing."""
        if evictor.preemptable or evictor.revocable_zone:
            return []
        table = self._round.cluster.table
        column = table.label(_ZONE)
        return _some_of_each_job(
            task
            for task in candidates
            if task.preemptable and task.status is TaskStatus.RUNNING and column.codes[task.row] < 0
        )

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        now = self._round.now
        if self._last_evicted is not None and self._last_evicted + self._period > now:
            return []
        self._last_evicted = now
        return [victim for zone in self._zones if self._why_closed(zone) for victim in self._left_behind(zone)]

    def _left_behind(self, zone: str) -> list[Task]:
        column = self._round.cluster.table.label(_ZONE)
        rows = self._round.rows[column.codes[self._round.rows] == column.code(zone)]
        return _some_of_each_job(
            task
            for row in rows.tolist()
            for task in self._round.resources.tasks_on(row)
            if task.preemptable and task.status is TaskStatus.RUNNING
        )


def _some_of_each_job(tasks: Iterator[Task]) -> list[Task]:
    by_job: dict[str, list[Task]] = {}
    for task in tasks:
        if task.job is not None:
            by_job.setdefault(task.job.uid, []).append(task)
    victims = []
    for listed in by_job.values():
        assert listed[0].job is not None
        victims += listed[: most_evicted(listed[0].job)]
    return victims


def most_evicted(job: Job) -> int:
    """How many tasks of a job may go at once, as its budget says; else one."""
    annotations, running = job.group.annotations, job.counts.of(TaskStatus.RUNNING)
    least, most = annotations.get("volcano.sh/jdb-min-available"), annotations.get("volcano.sh/jdb-max-unavailable")
    if least is None and most is not None:
        ended = job.counts.of(TaskStatus.SUCCEEDED) + job.counts.of(TaskStatus.FAILED)
        return max(0, _number(most, len(job.tasks)) - (len(job.tasks) - ended - running))
    if least is not None and running >= _number(least, len(job.tasks)):
        return running - _number(least, len(job.tasks))
    return 1


def _number(text: str, whole: int) -> int:
    """A number, or a percentage of the whole, rounded up; 0 for anything else."""
    digits = text.removesuffix("%")
    if not digits.isdigit():
        return 0
    return ceil(int(digits) * whole / 100) if text.endswith("%") else int(digits)
