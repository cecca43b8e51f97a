"""priority: higher priorities first, of jobs, of sub-jobs and of tasks; and lower ones are evicted for higher ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.rounds.tiers import GangEvictionContext, TierPlugin

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, SubJob, Task


class Priority(TierPlugin):
    name = "priority"
    protects = "its priority is not lower"

    def task_order(self, left: Task, right: Task) -> float:
        return right.priority - left.priority

    def job_order(self, left: Job, right: Job) -> float:
        return right.priority - left.priority

    def sub_job_order(self, left: SubJob, right: SubJob) -> float:
        return right.priority - left.priority

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Of other jobs, those of a lower job priority; of its own, those of a lower task priority."""
        own = evictor.job
        assert own is not None
        return [
            task
            for task in candidates
            if task.job is not None
            and (task.priority < evictor.priority if task.job is own else task.job.priority < own.priority)
        ]

    def unified_evictable(self, eviction: GangEvictionContext, candidates: Sequence[Task]) -> list[Task]:
        if eviction.kind == "gangreclaim":
            return list(candidates)
        return [task for task in candidates if task.job is not None and task.job.priority < eviction.job.priority]

    def job_starving(self, job: Job) -> bool:
        return job.counts.ready + job.counts.waiting < len(job.tasks)
