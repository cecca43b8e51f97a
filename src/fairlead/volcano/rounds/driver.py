"""RoundDriver: when rounds begin, go on and end, so that a profile in Volcano's manner runs beside the others.

    waiting ──the period is over, and something changed──▶ running ──all actions done──▶ waiting
                                                          │    ▲
                                                   a slice is over, other profiles have a turn

Between two slices the table shows the cluster as it is: what the round only tries is hidden, and shown again when the
round goes on. What was committed stays: its pods are assumed, and bound like any other pod. A round over a cluster that
did not change would decide the same again, so none is run unless a plugin's answers depend on the time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sized
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
from fairlead.volcano.rounds.opening import CarriedOver, open_round
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


class RoundDriver:
    def __init__(self, profile: Profile, parts: SchedulerParts) -> None:
        self._complaints = parts.guard.complaints
        """Where it is said that a round broke off, and why."""
        self.quarantine = parts.guard.quarantine
        """The jobs over which rounds broke off, among others."""
        self.profile = profile
        self.rounds = rounds_of(profile)
        self._cluster, self._rng = parts.cluster, parts.rng
        self._effects, self._output = parts.effects, parts.output
        self._writer = RoundWriter(profile.name, parts.recorder)
        self._tally = RoundTally()
        self._spent = 0.0
        self._shards = NodeShards(parts.cluster.object_index.of(VC_NODE_SHARD), self.rounds.partition, self._complaints)
        self.round: Round | None = None
        self._closed: Round | None = None
        self.last: Closing | None = None
        """What the last round came to."""
        self.counted = 0
        self._running: Iterator[None] | None = None
        self._broken_off = False
        """Whether the next round comes at once, because this one went without somebody."""
        self._narrowing = Narrowing(parts.cluster, self.quarantine)
        self._cycles: dict[str, Cycle] = {}
        self._next_at: float | None = None
        self._changed = False
        self._opened_at = float("-inf")
        self._first_row = 0
        self._promised: dict[str, str] | None = None
        self._tasks: dict[str, Task] = {}
        self._content_mark = 0

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
        self._changed = True
        if self._next_at is None:
            self._next_at = now

    def wake_at(self, now: float) -> float | None:
        if self._running is not None:
            return now
        if self._changed or self._goes_by_the_clock():
            return self._next_at
        ends = self.quarantine.next_end(self._opened_at)
        return None if ends is None else max(ends, self._next_at or ends)

    def _goes_by_the_clock(self) -> bool:
        return any(enabled.plugin.timed for tier in self.rounds.tiers for enabled in tier)

    def reconfigure(self, profile: Profile) -> None:
        """Another configuration, from the next round on."""
        self.profile, self.rounds = profile, rounds_of(profile)
        self._shards.partition = self.rounds.partition
        self._changed = True

    def why(self, uid: str) -> PodReport | None:
        """What the last round said of a pod that waits."""
        reports = self.last.pods if self.last is not None else ()
        return next((report for report in reports if report.task.uid == uid), None)

    # ---- going on ----

    def step(self, now: float, interrupted_by: Sized = ()) -> tuple[list[tuple[Task, int]], list[Write]]:
        """One slice of the round, if it is time: the placements to be bound, and what else is to be written. The slice
        ends after one attempt if `interrupted_by` holds something by then."""
        binds, writes = self._go_on(now, interrupted_by)
        if self._running is None:
            writes += self._shards.writes()
        return binds, writes

    def _go_on(self, now: float, interrupted_by: Sized) -> tuple[list[tuple[Task, int]], list[Write]]:
        at = self.wake_at(now)
        if at is None or at > now:
            return [], []
        began = self._output.meter.clock() if self._output.meter is not None else 0.0
        try:
            if self._running is None:
                self._open(now)
            else:
                self._resume()
            writes = self._run_slice(interrupted_by)
        except Exception as error:
            writes = self._break_off(error, now)
        if self._output.meter is not None:
            self._count_time(self._output.meter, self._output.meter.clock() - began)
        round = self.round
        if round is None:
            self._set_next(now)
            return [], writes
        binds, round.outcome.binds = round.outcome.binds, []
        if self._output.meter is not None:
            self._output.meter.lapses.extend(assumed((task for task, _ in binds), now))
        for task, reason in round.outcome.evictions:
            writes += self._writer.eviction(round, task, reason, self.evictions.for_whom(task))
        round.outcome.evictions = []
        writes += map(self._writer.gate_removal, round.outcome.let_through.values())
        round.outcome.let_through = {}
        self._cycles = round.cycles
        if self._running is None:
            self.round, self._closed = None, round
            self._set_next(now)
        return binds, writes

    def _set_next(self, now: float) -> None:
        self._next_at = now if self._broken_off else now + self.rounds.period
        self._broken_off = False

    def _count_time(self, meter: Meter, spent: float) -> None:
        """Add the time of a slice; a round takes as long as its slices together."""
        self._spent += spent
        if self._running is None:
            meter.lapses.append(Lapse(Span.ROUND, (), self._spent))
            self._spent = 0.0

    def figures(self) -> RoundFigures:
        """Figures about queues and jobs as of the round that was closed last."""
        return self._tally.figures(self._closed)

    def _open(self, now: float) -> None:
        self._changed, self._opened_at = False, now
        self.counted += 1
        began = self._output.meter.clock() if self._output.meter is not None else 0.0
        self.round = open_round(
            self._cluster,
            self.rounds,
            uid=f"{self.profile.name}-{self.counted}-{self._rng.getrandbits(64):016x}",
            now=now,
            rng=self._rng,
            effects=self._effects,
            carried=self._carried_over(now),
            witness=self._tally.begin(now, self._output.meter),
            meter=self._output.meter,
        )
        self._tally.follow(self.round.outcome)
        if self._output.meter is not None:
            self._output.meter.lapsed(Span.OPENING, since=began)
        if self.quarantine.held:
            self._leave_out_quarantined(self.round)
        self._running = run_actions(self.round)

    def _carried_over(self, now: float) -> CarriedOver:
        promised = {} if self.rounds.quirks.forgets_promised_hyper_nodes else self._promised
        left_out = self._narrowing.left_out(now)
        return CarriedOver(self._first_row, promised, self._tasks, self._shards.own(), left_out)

    def _run_slice(self, interrupted_by: Sized) -> list[Write]:
        round = self.round
        assert round is not None
        assert self._running is not None
        for _ in range(self.rounds.slice):
            round.attempting = None
            if next(self._running, _END) is _END:
                return self._close(round) + self._search_on(round.now)
            if interrupted_by:
                break
        self._suspend(round)
        return []

    def _break_off(self, error: Exception, now: float) -> list[Write]:
        """A plugin or an action failed. What was committed stands, and the next round comes without the job that was
        being tried, at once; if nobody was, it comes without half of those who could be to blame. The pods of other
        profiles never notice."""
        words = f"{type(error).__name__}: {error}"
        self._complaints.append(f"a round of {self.profile.name}: {words} (round {self.counted})")
        self._running = None
        self._changed = True
        round = self.round
        task = None if round is None else round.attempting
        if round is not None:
            round.overlay.hide()
        if task is None or task.job is None:
            self.quarantine.raised["opening a round" if round is None else "a round"] += 1
            self._narrowing.failed(self.rounds.partition, error, now)
            self._broken_off = self._narrowing.searching
            return []
        reason = self.quarantine.put(task.job.uid, "a job of a round", error, now=now, fingerprint=_looks(task.job))
        self._broken_off = True
        pods = self._cluster.pods
        return self._writer.raised((pods[uid].seen for uid in task.job.tasks if uid in pods), reason, now)

    def _search_on(self, now: float) -> list[Write]:
        """A round came to its end: go on with the search for whom rounds fail over, if there is one. When the culprit
        is found, its pods say why they wait."""
        if not self._narrowing.searching:
            return []
        culprit = self._narrowing.succeeded(now)
        self._broken_off = self._changed = True
        if culprit is None:
            return []
        key, reason = culprit
        self._complaints.append(f"rounds of {self.profile.name} failed over {key}: {reason}")
        return self._writer.raised(self._narrowing.pods_of(key), reason, now)

    def _leave_out_quarantined(self, round: Round) -> None:
        for uid in [uid for uid in self.quarantine.held if uid in round.jobs]:
            if self.quarantine.reason(uid, round.now, _looks(round.jobs[uid])):
                del round.jobs[uid]

    def _close(self, round: Round) -> list[Write]:
        self._running = None
        self._first_row = round.search.first_row
        self._promised = _promises_of(round)
        self.last = close_round(round)
        self._tally.closed(round)
        round.overlay.hide()
        writes = self._writer.closing(round, self.last)
        self._changed |= self._writer.told.holding
        return writes

    def failed(self, write: Write) -> None:
        """A write of a round failed."""
        self._writer.told.failed(write)

    def cycle_of(self, task: Task, now: float) -> Cycle:
        """The cycle in which the filters of a task that is to be bound left their notes, for the plugins that prepare
        the binding."""
        cycle = self._cycles.pop(task.uid, None)
        if cycle is None:
            return Cycle(
                pod=task.pod, cluster=self._cluster, profile=self.profile, now=now, rng=self._rng, effects=self._effects
            )
        cycle.profile = self.profile
        return cycle

    def fitting(self, task: Task) -> int:
        """How many nodes were feasible for a task that was just placed."""
        return 1 if self.latest is None else self.latest.search.fitting.pop(task.uid, 1)

    # ---- interruptions ----

    def _suspend(self, round: Round) -> None:
        round.overlay.hide()
        self._content_mark = self._cluster.table.content.mark

    def _resume(self) -> None:
        """Take in what changed on rows while the round was suspended, and show again what it tries."""
        round = self.round
        assert round is not None
        touched = self._cluster.table.content.since(self._content_mark)
        rows = set(range(len(round.resources.on))) if touched is None else set(touched)
        requests = TaskRequests(self._cluster, self.rounds)
        for row in rows:
            if row < len(round.resources.on):
                _bring_up_to_date(round, row, requests)
        round.overlay.show()


_END = object()


def _looks(job: Job) -> object:
    """What tells whether a job has changed since it raised."""
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
