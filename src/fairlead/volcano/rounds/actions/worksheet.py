"""Worksheet: the tasks of a job that are still to be placed, sub-job by sub-job, in the order of their turn."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.goheap import Heap

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, Round, SubJob, Task


class Worksheet:
    """`sub_jobs` are those with tasks left; `tasks` has a heap of theirs, by sub-job."""

    def __init__(self, sub_jobs: Heap[SubJob], tasks: dict[str, Heap[Task]]) -> None:
        self.sub_jobs = sub_jobs
        self.tasks = tasks

    @property
    def empty(self) -> bool:
        return not self.sub_jobs or all(not heap for heap in self.tasks.values())

    def copy(self) -> Worksheet:
        return Worksheet(self.sub_jobs.copy(), {uid: heap.copy() for uid, heap in self.tasks.items()})

    def adopt(self, other: Worksheet) -> None:
        self.sub_jobs, self.tasks = other.sub_jobs, other.tasks


def worksheet_of(round: Round, job: Job, *, gated: bool = True) -> Worksheet:
    """The worksheet of a job. Sub-jobs without which the job cannot start come first. Tasks that request nothing are
    left to backfill. `gated` also lists tasks that only wait for their queue's gate."""
    tiers = round.tiers
    required = _required(round, job)

    def first(left: SubJob, right: SubJob) -> bool:
        if (left.uid in required) != (right.uid in required):
            return left.uid in required
        return tiers.sub_job_first(left, right)

    sub_jobs: Heap[SubJob] = Heap(first)
    tasks: dict[str, Heap[Task]] = {}
    for sub_job in job.sub_jobs.values():
        heap = Heap(tiers.task_first, _placeable(sub_job, gated=gated))
        if heap:
            tasks[sub_job.uid] = heap
            sub_jobs.push(sub_job)
    return Worksheet(sub_jobs, tasks)


def _placeable(sub_job: SubJob, *, gated: bool) -> Iterable[Task]:
    for task in sub_job.in_status(TaskStatus.PENDING):
        if not task.best_effort and (not task.gated or (gated and task.waits_for_queue)):
            yield task


def _required(round: Round, job: Job) -> set[str]:
    """Of each policy, the first sub-jobs that are not ready, as many as its minimum still lacks."""
    required: set[str] = set()
    for policy in job.group.sub_groups:
        own = [sub_job for sub_job in job.sub_jobs.values() if sub_job.policy == policy.name]
        unready = [sub_job for sub_job in own if not round.tiers.sub_job_ready(sub_job)]
        lacking = policy.minimum - (len(own) - len(unready))
        waiting = Heap(round.tiers.sub_job_first, unready)
        while lacking > 0 and waiting:
            required.add(waiting.pop().uid)
            lacking -= 1
    return required
