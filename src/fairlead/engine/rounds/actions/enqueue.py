"""enqueue: which waiting groups are let in. Only their pods are then created, and scheduled.

One group per turn of a queue, queues in their own live order, so that queues take turns by what they already have.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.framework.goheap import Heap

if TYPE_CHECKING:
    from fairlead.framework.round import Job, QueueState, Round

NAME = "enqueue"


def execute(round: Round) -> Iterator[None]:
    tiers = round.tiers
    queues: Heap[QueueState] = Heap(tiers.queue_first)
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
            job.phase = "Inqueue"
        queues.push(queue)
        yield
