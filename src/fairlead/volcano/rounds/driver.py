"""RoundDriver: when rounds begin, go on and end, so that a Volcano profile runs beside the others.

    waiting ──the period is over, and something changed──▶ running ──all actions done──▶ waiting
                                                          │    ▲
                                                   a slice is over, other profiles have a turn

Between two slices the table shows the cluster as it is: what the round only tries is hidden, and shown again when the
round goes on. What was committed stays: its pods are assumed, and bound like any other pod. A round over a cluster that
did not change would decide the same again, so none is run unless a plugin's answers depend on the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.framework.cycle import Cycle
from fairlead.core.model.figures import Lapse
from fairlead.volcano.kinds import VC_NODE_SHARD
from fairlead.volcano.records.round_figures import Span
from fairlead.volcano.records.tasks import TaskStatus, status_of
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.closing import close_round
from fairlead.volcano.rounds.job import Job, Task
from fairlead.volcano.rounds.narrowing import Narrowing
from fairlead.volcano.rounds.opening import CarriedOver, RoundContext, open_round
from fairlead.volcano.rounds.pace import RoundPace
from fairlead.volcano.rounds.requests import TaskRequests
from fairlead.volcano.rounds.settings import rounds_of
from fairlead.volcano.rounds.shards import NodeShards
from fairlead.volcano.rounds.tally import RoundTally, assumed
from fairlead.volcano.rounds.writes import RoundWriter

if TYPE_CHECKING:
    from fairlead.core.engine.modes import SchedulerParts
    from fairlead.core.framework.meter import Meter
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Write
    from fairlead.volcano.records.round_figures import RoundFigures
    from fairlead.volcano.rounds.closing import Closing, PodReport
    from fairlead.volcano.rounds.eviction_log import EvictionLog
    from fairlead.volcano.rounds.round import Round


@dataclass(slots=True)
class _Slices:
    """How far the round under way has come: the generator of its actions (None between two rounds), the seconds spent
    in it so far, and up to where changes of rows were known when it was suspended."""

    actions: Iterator[None] | None = None
    spent: float = 0.0
    content_mark: int = 0


class RoundDriver:
    def __init__(self, profile: Profile, parts: SchedulerParts) -> None:
        self._parts = parts
        self.profile = profile
        self.rounds = rounds_of(profile)
        self._writer = RoundWriter(profile.name, parts.recorder)
        self._tally = RoundTally()
        shards = parts.cluster.object_index.of(VC_NODE_SHARD)
        self._shards = NodeShards(shards, self.rounds.partition, parts.guard.complaints)
        self._narrowing = Narrowing(parts.cluster, parts.guard.quarantine)
        self._pace = RoundPace()
        self._slices = _Slices()
        self.round: Round | None = None
        self._closed: Round | None = None
        self.last: Closing | None = None
        """What the last round came to."""
        self.counted = 0
        self._carried = CarriedOver()
        self._cycles: dict[str, Cycle] = {}

    @property
    def latest(self) -> Round | None:
        """The round under way or, between two, the one that was closed last. Explanations read it."""
        return self.round or self._closed

    @property
    def evictions(self) -> EvictionLog:
        """Whom the jobs' evictions concerned."""
        return self._tally.evictions

    def noticed(self, now: float) -> None:
        """The cluster changed: a round is due."""
        self._pace.noticed(now)

    def wake_at(self, now: float) -> float | None:
        if self._slices.actions is not None:
            return now
        pace = self._pace
        if pace.changed or self._goes_by_the_clock():
            return pace.next_at
        ends = self._parts.guard.quarantine.next_end(pace.opened_at)
        return None if ends is None else max(ends, pace.next_at or ends)

    def _goes_by_the_clock(self) -> bool:
        return any(enabled.plugin.timed for tier in self.rounds.tiers for enabled in tier)

    def reconfigure(self, profile: Profile) -> None:
        """Another configuration, from the next round on."""
        self.profile, self.rounds = profile, rounds_of(profile)
        self._shards.partition = self.rounds.partition
        self._pace.changed = True

    def why(self, uid: str) -> PodReport | None:
        """What the last round said of a pod that waits."""
        reports = self.last.pods if self.last is not None else ()
        return next((report for report in reports if report.task.uid == uid), None)

    # ---- going on ----

    def step(self, now: float, interrupted_by: Sized = ()) -> tuple[list[tuple[Task, int]], list[Write]]:
        """One slice of the round, if it is time: the placements to be bound, and what else is to be written. The slice
        ends after one attempt if `interrupted_by` holds something by then."""
        binds, writes = self._go_on(now, interrupted_by)
        if self._slices.actions is None:
            writes += self._shards.writes()
        return binds, writes

    def _go_on(self, now: float, interrupted_by: Sized) -> tuple[list[tuple[Task, int]], list[Write]]:
        at = self.wake_at(now)
        if at is None or at > now:
            return [], []
        meter = self._parts.output.meter
        began = meter.clock() if meter is not None else 0.0
        try:
            if self._slices.actions is None:
                self._open(now)
            else:
                self._resume()
            writes = self._run_slice(interrupted_by)
        except Exception as error:
            writes = self._break_off(error, now)
        if meter is not None:
            self._count_time(meter, meter.clock() - began)
        round = self.round
        if round is None:
            self._pace.ended(now, self.rounds.period)
            return [], writes
        binds, round.outcome.binds = round.outcome.binds, []
        if meter is not None:
            meter.lapses.extend(assumed((task for task, _ in binds), now))
        for task, reason in round.outcome.evictions:
            writes += self._writer.eviction(round, task, reason, self.evictions.for_whom(task))
        round.outcome.evictions = []
        writes += map(self._writer.gate_removal, round.outcome.let_through.values())
        round.outcome.let_through = {}
        self._cycles = round.cycles
        if self._slices.actions is None:
            self.round, self._closed = None, round
            self._pace.ended(now, self.rounds.period)
        return binds, writes

    def _count_time(self, meter: Meter, spent: float) -> None:
        """Add the time of a slice; a round takes as long as its slices together."""
        self._slices.spent += spent
        if self._slices.actions is None:
            meter.lapses.append(Lapse(Span.ROUND, (), self._slices.spent))
            self._slices.spent = 0.0

    def figures(self) -> RoundFigures:
        """Figures about queues and jobs as of the round that was closed last."""
        return self._tally.figures(self._closed)

    def _open(self, now: float) -> None:
        self._pace.opened(now)
        self.counted += 1
        parts, meter = self._parts, self._parts.output.meter
        began = meter.clock() if meter is not None else 0.0
        self.round = open_round(
            parts.cluster,
            self.rounds,
            uid=f"{self.profile.name}-{self.counted}-{parts.rng.getrandbits(64):016x}",
            now=now,
            rng=parts.rng,
            carried=self._carried_over(now),
            context=RoundContext(parts.effects, witness=self._tally.begin(now, meter), meter=meter),
        )
        self._tally.follow(self.round.outcome)
        if meter is not None:
            meter.lapsed(Span.OPENING, since=began)
        if parts.guard.quarantine.held:
            self._leave_out_quarantined(self.round)
        self._slices.actions = run_actions(self.round)

    def _carried_over(self, now: float) -> CarriedOver:
        carried, own, left_out = self._carried, self._shards.own(), self._narrowing.left_out(now)
        promised = {} if self.rounds.quirks.forgets_promised_hyper_nodes else carried.promised
        return replace(carried, promised=promised, own_nodes=own, left_out=left_out)

    def _run_slice(self, interrupted_by: Sized) -> list[Write]:
        round = self.round
        assert round is not None
        assert self._slices.actions is not None
        for _ in range(self.rounds.slice):
            round.attempting = None
            if next(self._slices.actions, _END) is _END:
                return self._close(round) + self._search_on(round.now)
            if interrupted_by:
                break
        self._suspend(round)
        return []

    def _break_off(self, error: Exception, now: float) -> list[Write]:
        """A plugin or an action failed. What was committed stands, and the next round comes without the job that was
        being tried, at once; if nobody was, it comes without half of those who could be to blame. The pods of other
        profiles never notice."""
        quarantine = self._parts.guard.quarantine
        words = f"{type(error).__name__}: {error}"
        self._parts.guard.complaints.append(f"a round of {self.profile.name}: {words} (round {self.counted})")
        self._slices.actions = None
        self._pace.changed = True
        round = self.round
        task = None if round is None else round.attempting
        if round is not None:
            round.overlay.hide()
        if task is None or task.job is None:
            quarantine.raised["opening a round" if round is None else "a round"] += 1
            self._narrowing.failed(self.rounds.partition, error, now)
            self._pace.broken_off = self._narrowing.searching
            return []
        reason = quarantine.put(task.job.uid, "a job of a round", error, now=now, fingerprint=_looks(task.job))
        self._pace.broken_off = True
        pods = self._parts.cluster.pods
        return self._writer.raised((pods[uid].seen for uid in task.job.tasks if uid in pods), reason, now)

    def _search_on(self, now: float) -> list[Write]:
        """A round came to its end: go on with the search for whom rounds fail over, if there is one. When the culprit
        is found, its pods say why they wait."""
        if not self._narrowing.searching:
            return []
        culprit = self._narrowing.succeeded(now)
        self._pace.broken_off = self._pace.changed = True
        if culprit is None:
            return []
        key, reason = culprit
        self._parts.guard.complaints.append(f"rounds of {self.profile.name} failed over {key}: {reason}")
        return self._writer.raised(self._narrowing.pods_of(key), reason, now)

    def _leave_out_quarantined(self, round: Round) -> None:
        for uid in [uid for uid in self._parts.guard.quarantine.held if uid in round.jobs]:
            if self._parts.guard.quarantine.reason(uid, round.now, _looks(round.jobs[uid])):
                del round.jobs[uid]

    def _close(self, round: Round) -> list[Write]:
        self._slices.actions = None
        self._carried = replace(self._carried, first_row=round.search.first_row, promised=_promises_of(round))
        self.last = close_round(round)
        self._tally.closed(round)
        round.overlay.hide()
        writes = self._writer.closing(round, self.last)
        self._pace.changed |= self._writer.written.holding
        return writes

    def failed(self, write: Write) -> None:
        """A write of a round failed."""
        self._writer.written.failed(write)

    def cycle_of(self, task: Task, now: float) -> Cycle:
        """The cycle in which the filters of a task that is to be bound left their notes, for the plugins that prepare
        the binding."""
        cycle = self._cycles.pop(task.uid, None)
        if cycle is None:
            parts = self._parts
            return Cycle(
                pod=task.pod,
                cluster=parts.cluster,
                profile=self.profile,
                now=now,
                rng=parts.rng,
                effects=parts.effects,
            )
        cycle.profile = self.profile
        return cycle

    def fitting(self, task: Task) -> int:
        """How many nodes were feasible for a task that was just placed."""
        return 1 if self.latest is None else self.latest.search.fitting.pop(task.uid, 1)

    # ---- interruptions ----

    def _suspend(self, round: Round) -> None:
        round.overlay.hide()
        self._slices.content_mark = self._parts.cluster.table.content.mark

    def _resume(self) -> None:
        """Take in what changed on rows while the round was suspended, and show again what it tries."""
        round = self.round
        assert round is not None
        touched = self._parts.cluster.table.content.since(self._slices.content_mark)
        rows = set(range(len(round.resources.on))) if touched is None else set(touched)
        requests = TaskRequests(self._parts.cluster, self.rounds)
        for row in rows:
            if row < len(round.resources.on):
                _bring_up_to_date(round, row, requests)
        round.overlay.show()


_END = object()


def _looks(job: Job) -> object:
    """What shows whether a job has changed since it raised."""
    return frozenset((task.uid, id(task.pod.shape)) for task in job.tasks.values())


def _promises_of(round: Round) -> dict[str, str]:
    """The hypernodes in which room was made for sub-jobs that wait for it."""
    return {
        sub_job.uid: sub_job.nominated_hyper_node
        for job in round.jobs.values()
        for sub_job in job.sub_jobs.values()
        if sub_job.nominated_hyper_node
    }


def _bring_up_to_date(round: Round, row: int, requests: TaskRequests) -> None:
    """Book pods that came to a row, and take off those that left it, while the round was suspended."""
    resources, here = round.resources, {pod.uid: pod for pod in round.cluster.table.pods[row]}
    for task in resources.tasks_on(row):
        promised = task.status in (TaskStatus.ALLOCATED, TaskStatus.PIPELINED)
        if task.uid not in here and not promised:
            resources.take_off(task, row)
    known = {task.uid for task in resources.tasks_on(row)}
    for uid, pod in here.items():
        if uid not in known:
            resources.put(Task(pod, requests.of(pod), status_of(pod), row), row)
