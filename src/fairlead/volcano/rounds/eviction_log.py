"""EvictionLog: whom a job's evictions concerned, and by which rule each of them had to go or was protected.

Actions ask tier plugins which tasks of a node may be evicted. The log keeps these votes, for a bounded number of tasks
per job, and the evictions that were committed. It only listens: nothing that is decided depends on it.

Invariant: what is kept of a job is from the last round that looked for victims for it; evictions stay until the job is
gone, because explanations name them also after the job has started.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.explanation import ProtectedPod

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task
    from fairlead.volcano.rounds.tier_plugin import GangEvictionContext, TierPlugin
    from fairlead.volcano.rounds.tiers import VictimVote

_NAMED = 100
"""How many tasks are kept per job."""


@dataclass(slots=True)
class _OfJob:
    round: int
    judged: dict[str, ProtectedPod] = field(default_factory=dict)
    evicted: dict[str, ProtectedPod] = field(default_factory=dict)


class EvictionLog:
    def __init__(self) -> None:
        self._jobs: dict[str, _OfJob] = {}
        self._round = 0
        self.overused: set[str] = set()
        """Queues for which the last round reclaimed nothing, because they have all that they deserve."""

    def begin(self) -> None:
        """A round begins."""
        self._round += 1
        self.overused.clear()

    def wants(self, job: Job | None) -> bool:
        """Whether another vote about tasks that could be evicted for a job would be kept."""
        if job is None:
            return False
        found = self._jobs.get(job.uid)
        return found is None or found.round != self._round or len(found.judged) < _NAMED

    def judged(
        self,
        evictor: Task | GangEvictionContext,
        candidates: Sequence[Task],
        votes: Sequence[VictimVote],
        victims: Sequence[Task],
    ) -> None:
        job = evictor.job
        assert job is not None
        kept = self._of(job)
        going = {task.uid for task in victims}
        deciding = [vote for vote in votes if vote.tier == votes[-1].tier]
        for task in candidates[:_NAMED]:
            rule = f"may go: {_allowed(deciding)}" if task.uid in going else _protected(task, deciding)
            kept.judged[task.key] = ProtectedPod(task.key, priority_beside(task, job), rule)

    def committed(self, victim: Task, action: str, job: Job) -> None:
        """A task is being evicted for a job."""
        kept = self._of(job)
        said = kept.judged.pop(victim.key, None)
        rule = f"evicted by {action}" + (f": {said.rule.removeprefix('may go: ')}" if said is not None else "")
        kept.evicted[victim.key] = ProtectedPod(victim.key, priority_beside(victim, job), rule)

    def for_whom(self, victim: Task) -> tuple[str, str]:
        """The group that a task was evicted for and the rule that allowed it; empty if no job asked for it."""
        for uid, kept in self._jobs.items():
            found = kept.evicted.get(victim.key)
            if found is not None:
                return uid, found.rule
        return "", ""

    def closed(self, round: Round) -> None:
        """A round has ended: forget jobs that are gone, and votes about jobs that look for no victims any more."""
        self._jobs = {uid: kept for uid, kept in self._jobs.items() if uid in round.jobs}
        for kept in self._jobs.values():
            if kept.round != self._round:
                kept.judged.clear()

    def about(self, job: Job) -> Iterator[ProtectedPod]:
        """Those who had to go for a job, then those who might have."""
        kept = self._jobs.get(job.uid)
        if kept is not None:
            yield from kept.evicted.values()
            yield from kept.judged.values()

    def _of(self, job: Job) -> _OfJob:
        kept = self._jobs.setdefault(job.uid, _OfJob(self._round))
        if kept.round != self._round:
            kept.round = self._round
            kept.judged.clear()
        return kept

    def note_overused(self, queue: QueueState) -> None:
        self.overused.add(queue.name)


def priority_beside(task: Task, job: Job) -> int:
    """The priority by which a task counts when room is made for a job: its job's, or its own within that job."""
    return task.priority if task.job is None or task.job is job else task.job.priority


def _allowed(votes: Sequence[VictimVote]) -> str:
    return f"allowed by {', '.join(dict.fromkeys(vote.plugin.name for vote in votes))}"


def _protected(task: Task, votes: Sequence[VictimVote]) -> str:
    against = [vote.plugin for vote in votes if task.uid not in vote.allowed]
    return "; ".join(dict.fromkeys(map(_protection, against))) or "no plugin lets it go"


def _protection(plugin: TierPlugin) -> str:
    return f"protected by {plugin.name}" + (f": {plugin.protects}" if plugin.protects else "")
