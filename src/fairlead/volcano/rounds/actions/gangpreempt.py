"""gangpreempt: make room for a whole starving job by evicting bundles of jobs of lower priority in its queue."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.volcano.records.tasks import PREEMPTABLE_CLASS
from fairlead.volcano.rounds.actions.gang_eviction import GangEviction

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

NAME = "gangpreempt"


def execute(round: Round) -> Iterator[None]:
    return _GangPreemption(round).run()


class _GangPreemption(GangEviction):
    name = NAME

    def _may_take(self, queue: QueueState) -> bool:
        return True

    def _wants_room(self, queue: QueueState, waiting: list[Task]) -> bool:
        return True

    def _may_go(self, task: Task, victim: Job, job: Job) -> bool:
        return (
            task.status in PREEMPTABLE_CLASS
            and victim is not job
            and victim.queue == job.queue
            and victim.priority < job.priority
        )

    def _goes_before(self, job: Job) -> Callable[[Job, Job], bool]:
        return lambda left, right: not self._round.tiers.job_first(left, right)
