"""gangreclaim: make room for a whole starving job by evicting bundles from other queues that give back."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.actions.gang_eviction import GangEviction

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

NAME = "gangreclaim"


def execute(round: Round) -> Iterator[None]:
    return _GangReclaiming(round).run()


class _GangReclaiming(GangEviction):
    name = NAME

    def _may_take(self, queue: QueueState) -> bool:
        overused = self._round.tiers.overused(queue)
        if overused:
            self._round.witness.overused(queue)
        return not overused

    def _wants_room(self, queue: QueueState, waiting: list[Task]) -> bool:
        return self._round.tiers.preemptive(queue, waiting)

    def _may_go(self, task: Task, victim: Job, job: Job) -> bool:
        return (
            task.status is TaskStatus.RUNNING
            and victim.queue != job.queue
            and self._round.queues[victim.queue].queue.reclaimable
        )

    def _goes_before(self, job: Job) -> Callable[[Job, Job], bool]:
        queues, taker = self._round.queues, self._round.queues[job.queue]

        def before(left: Job, right: Job) -> bool:
            if left.queue == right.queue:
                return False
            return self._round.tiers.victim_queue_first(queues[left.queue], queues[right.queue], taker)

        return before
