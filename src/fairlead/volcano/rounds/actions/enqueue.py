"""enqueue: which waiting groups are let in. Only their pods are then created, and scheduled.

One group per turn of a queue, queues in their own live order, so that queues take turns by what they already have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from fairlead.volcano.rounds.goheap import Heap

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, QueueState, Round

NAME = "enqueue"


def execute(round: Round) -> Iterator[None]:
    tiers = round.tiers
    order = _KnownOrder(tiers.queue_first)
    queues: Heap[QueueState] = Heap(order.first)
    waiting: dict[str, Heap[Job]] = {}
    for job in round.choices.walk("jobs", list(round.jobs.values())):
        if job.queue not in waiting:
            waiting[job.queue] = Heap(tiers.job_first)
            queues.push(round.queues[job.queue])
        if job.is_pending:
            waiting[job.queue].push(job)
    while queues:
        queue = queues.pop()
        jobs = waiting[queue.name]
        if not jobs:
            continue
        job = jobs.pop()
        if job.min_resources is None or tiers.job_enqueueable(job):
            tiers.job_enqueued(job)
            order.forget()
            job.phase = "Inqueue"
        queues.push(queue)
        yield


class _KnownOrder:
    """The order of queues, asked once for each pair until a group is let in. A group that is not changes nothing, and a
    backlog has thousands of those."""

    def __init__(self, first: Callable[[QueueState, QueueState], bool]) -> None:
        self._first = first
        self._known: dict[tuple[str, str], bool] = {}

    def first(self, left: QueueState, right: QueueState) -> bool:
        key = (left.name, right.name)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._first(left, right)
        return known

    def forget(self) -> None:
        self._known.clear()
