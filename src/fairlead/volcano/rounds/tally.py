"""RoundTally: what is counted over the rounds of a profile, and how its queues and jobs stand, for metrics.

It is the Witness of every round. Counts of a job are dropped with the job. Figures are made when they are requested,
from the round that was closed last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Protocol, cast

from fairlead.core.model import kinds
from fairlead.core.model.figures import Lapse
from fairlead.core.model.flow import Happened
from fairlead.core.model.times import seconds_of
from fairlead.volcano.records.round_figures import (
    ASSUMED,
    BIND,
    BOUND,
    PRE_BIND,
    PRE_BOUND,
    WATCHED,
    JobFigures,
    QueueFigures,
    RoundFigures,
    Span,
)
from fairlead.volcano.records.tasks import ALLOCATED_CLASS, TaskStatus
from fairlead.volcano.rounds.eviction_log import EvictionLog
from fairlead.volcano.rounds.round import Witness

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.framework.meter import Meter
    from fairlead.core.model.flow import Change
    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.rounds.round import Job, QueueState, Round, RoundOutcome, Task
    from fairlead.volcano.rounds.tiers import GangEvictionContext, TierPlugin, VictimVote

_PLACING = ("allocate", "backfill")
_GANG, _PROPORTION, _CAPACITY, _DRF = "gang", "proportion", "capacity", "drf"


class _Account(Protocol):
    allocated: Amounts
    request: Amounts
    inqueue: Amounts
    deserved: Amounts
    capability: Amounts
    limit: Amounts
    share: float


class _Shares(Protocol):
    def share(self, job: Job) -> float: ...


class RoundTally(Witness):
    def __init__(self) -> None:
        self.victims = 0
        self.preemptions = 0
        self.evicting: Counter[str] = Counter()
        """Transactions that were kept and evict somebody, by action."""
        self.evictions = EvictionLog()
        self._outcome: RoundOutcome | None = None
        self._listed: tuple[int, int] = (0, 0)
        self._meter: Meter | None = None
        self._now = 0.0
        self._action = ""
        self._placed_at: dict[str, float] = {}
        self._retries: Counter[str] = Counter()

    # ---- what happens ----

    def begin(self, now: float, meter: Meter | None) -> RoundTally:
        """A round begins."""
        self._now, self._meter = now, meter
        self.evictions.begin()
        return self

    def action(self, name: str) -> None:
        self._action = name

    def placed(self, task: Task, *, pipelined: bool) -> None:
        if task.job is not None and self._action in _PLACING:
            self._placed_at[task.job.uid] = self._now
            if self._meter is not None:
                self._meter.lapses.append(Lapse(Span.JOB, (), _age(task.job, self._now)))

    def follow(self, outcome: RoundOutcome) -> None:
        """Count the evictions of the round that has begun in its outcome."""
        self._outcome = outcome

    def committed(self) -> None:
        """A transaction evicts if the list of evictions has grown; the driver empties that list between slices."""
        assert self._outcome is not None
        evictions = self._outcome.evictions
        before = self._listed[1] if self._listed[0] == id(evictions) else 0
        self._listed = (id(evictions), len(evictions))
        if len(evictions) > before:
            self.evicting[self._action] += 1

    def preempting(self, victims: int) -> None:
        self.victims = victims
        self.preemptions += 1

    def overused(self, queue: QueueState) -> None:
        self.evictions.note_overused(queue)

    def wants_votes(self, evictor: Task | GangEvictionContext) -> bool:
        return self.evictions.wants(evictor.job)

    def judged(
        self,
        evictor: Task | GangEvictionContext,
        candidates: Sequence[Task],
        votes: Sequence[VictimVote],
        victims: Sequence[Task],
    ) -> None:
        self.evictions.judged(evictor, candidates, votes, victims)

    def eviction_kept(self, task: Task, action: str, job: Job) -> None:
        self.evictions.committed(task, action, job)

    def closed(self, round: Round) -> None:
        """Count another try for jobs that the round could not start, and drop jobs that are gone."""
        self.evictions.closed(round)
        for uid in [uid for uid in self._placed_at if uid not in round.jobs]:
            del self._placed_at[uid]
        for uid in [uid for uid in self._retries if uid not in round.jobs]:
            del self._retries[uid]
        if _GANG in round.tiers.plugins:
            self._retries.update(job.uid for job in round.jobs.values() if _is_short(job))

    # ---- how things stand ----

    def figures(self, round: Round | None) -> RoundFigures:
        if round is None:
            return RoundFigures(victims=self.victims, preemptions=self.preemptions, evicting=dict(self.evicting))
        return RoundFigures(
            queues=tuple(_queues(round)),
            jobs=tuple(self._job(round, job) for job in round.jobs.values()),
            unschedulable_jobs=sum(map(_is_short, round.jobs.values())) if _GANG in round.tiers.plugins else 0,
            victims=self.victims,
            preemptions=self.preemptions,
            evicting=dict(self.evicting),
        )

    def _job(self, round: Round, job: Job) -> JobFigures:
        drf: _Shares | None = cast("_Shares | None", round.tiers.plugins.get(_DRF))
        placed_at = self._placed_at.get(job.uid)
        return JobFigures(
            job.group.namespace,
            job.group.name,
            job.queue,
            job.group.created,
            lacking=_lacking(job) if _GANG in round.tiers.plugins and job.tasks else None,
            retries=self._retries[job.uid],
            share=None if drf is None else _share(drf, job),
            duration=None if placed_at is None else _age(job, placed_at),
            placed_at=placed_at,
        )


def _age(job: Job, now: float) -> float:
    return max(0.0, now - job.group.created)


def _is_short(job: Job) -> bool:
    return bool(job.tasks) and not job.is_ready and not job.is_only_ending


def _lacking(job: Job) -> int:
    """How many tasks of the minimum have no place and would not have got one, had the other tasks been placed."""
    if job.is_ready:
        return 0
    would_have = sum(
        task.last is not None and task.last.status in ALLOCATED_CLASS for task in job.in_status(TaskStatus.PENDING)
    )
    return job.min_available - job.counts.ready - would_have


def _share(drf: _Shares, job: Job) -> float | None:
    """A job's share; None if a newer round that does not have the job is under way."""
    try:
        return drf.share(job)
    except KeyError:
        return None


# ---- on the way to a node ----


def watched(changes: Iterable[Change], scheduler_names: Collection[str], now: float) -> Iterator[Lapse]:
    """The ages of pods without a node when this scheduler first saw them."""
    for change in changes:
        if change.kind is kinds.POD and change.happened is Happened.ADDED:
            spec, created = change.doc["spec"], change.doc["metadata"].get("creationTimestamp")
            if created and not spec.get("nodeName") and spec.get("schedulerName") in scheduler_names:
                yield Lapse(Span.TASK, (WATCHED,), max(0.0, now - seconds_of(created)))


def assumed(tasks: Iterable[Task], now: float) -> Iterator[Lapse]:
    for task in tasks:
        yield Lapse(Span.TASK, (ASSUMED,), max(0.0, now - task.created))


def bound(binding: Binding, now: float) -> Iterator[Lapse]:
    """How long a confirmed binding took, and how old its pod was at each stage."""
    created, since = binding.pod.created, binding.binds_since
    yield Lapse(Span.STAGE, (PRE_BIND,), since - binding.started)
    yield Lapse(Span.STAGE, (BIND,), now - since)
    yield Lapse(Span.TASK, (PRE_BOUND,), max(0.0, since - created))
    yield Lapse(Span.TASK, (BOUND,), max(0.0, now - created))


# ---- queues ----


def _queues(round: Round) -> Iterator[QueueFigures]:
    for name in (_PROPORTION, _CAPACITY):
        plugin = round.tiers.plugins.get(name)
        if plugin is not None:
            for queue in round.queues.values():
                yield _queue(plugin, queue)
            return


def _queue(plugin: TierPlugin, queue: QueueState) -> QueueFigures:
    """The figures of a queue; zeros if the plugin has no account of it, as proportion has none of queues without
    jobs."""
    account: _Account | None = getattr(plugin, "account", lambda _: None)(queue.name)
    if account is None:
        return QueueFigures(queue.name)
    limited = plugin.name == _CAPACITY
    return QueueFigures(
        queue.name,
        allocated=dict(account.allocated.items()),
        request=dict(account.request.items()),
        inqueue=dict(account.inqueue.items()),
        deserved=dict(account.deserved.items()),
        capacity=dict(account.capability.items()) if limited else None,
        real_capacity=dict(account.limit.items()) if limited else None,
        share=account.share,
        weight=None if limited else queue.queue.weight,
        overused=account.share > 1 if limited else account.deserved.less_equal(account.allocated),
    )
