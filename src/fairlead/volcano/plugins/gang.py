"""gang: a job starts with its minimum or not at all, and does not lose it to evictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.group import GroupCondition
from fairlead.volcano.records.tasks import ALLOCATED_CLASS, TaskStatus
from fairlead.volcano.rounds.tiers import GangEvictionContext, InvalidJob, TierPlugin, Vote

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, Round, SubJob, Task

NOT_ENOUGH_TASKS = "NotEnoughTasks"
NOT_ENOUGH_PODS_OF_TASK = "NotEnoughPodsOfTask"
NOT_ENOUGH_RESOURCES = "NotEnoughResources"
_RUNNING, _BOUND = int(TaskStatus.RUNNING), int(TaskStatus.BOUND)


class GangTierPlugin(TierPlugin):
    name = "gang"
    protects = "its job would have fewer pods than its minimum"

    def job_valid(self, job: Job) -> InvalidJob | None:
        if not job.roles_valid():
            return InvalidJob(NOT_ENOUGH_PODS_OF_TASK, "Not enough valid pods of each task for gang-scheduling")
        if not job.sub_groups_valid():
            return InvalidJob(NOT_ENOUGH_PODS_OF_TASK, "Not enough valid sub-groups for gang-scheduling")
        if job.counts.valid < job.min_available:
            numbers = f"valid: {job.counts.valid}, min: {job.min_available}"
            return InvalidJob(NOT_ENOUGH_TASKS, f"Not enough valid tasks for gang-scheduling, {numbers}")
        return None

    # ---- order ----

    def open(self, round: Round) -> None:
        self._completes_first = not round.quirks.half_started_jobs_wait

    def job_order(self, left: Job, right: Job) -> float:
        """A job that is not ready comes first; of two, one of whose tasks some run already."""
        if left.is_ready or right.is_ready or not self._completes_first:
            return left.is_ready - right.is_ready
        return _has_started(right) - _has_started(left)

    def sub_job_order(self, left: SubJob, right: SubJob) -> float:
        return int(left.is_ready) - int(right.is_ready)

    # ---- ready, pipelined, starving ----

    def job_ready(self, job: Job) -> bool:
        return job.is_ready and job.roles_ready() and job.sub_groups_ready()

    def sub_job_ready(self, sub_job: SubJob) -> bool:
        return sub_job.is_ready

    def job_pipelined(self, job: Job) -> Vote:
        pipelined = job.is_pipelined and job.roles_pipelined() and job.sub_groups_pipelined()
        return Vote.PERMIT if pipelined else Vote.REJECT

    def sub_job_pipelined(self, sub_job: SubJob) -> Vote:
        return Vote.PERMIT if sub_job.is_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return job.is_starving

    # ---- victims ----

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        """In the order given, a job may lose tasks while more than its minimum are ready."""
        left: dict[str, int] = {}
        victims = []
        for task in candidates:
            job = task.job
            if job is None:
                continue
            ready = left.setdefault(job.uid, job.counts.ready)
            if ready > job.min_available:
                left[job.uid] = ready - 1
                victims.append(task)
        return victims

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self.preemptable(evictor, candidates)

    def unified_evictable(self, eviction: GangEvictionContext, candidates: Sequence[Task]) -> list[Task]:
        """All candidates: evictions for whole gangs keep to minimums by themselves."""
        return list(candidates)

    # ---- the end ----

    def close(self, round: Round) -> None:
        for job in round.jobs.values():
            if job.tasks and (round.quirks.ending_pods_reset_phase or job.is_ready or not job.is_only_ending):
                condition = _ready(round) if job.is_ready else _not_ready(round, job)
                job.conditions[condition.type] = condition


def _ready(round: Round) -> GroupCondition:
    return GroupCondition(
        type="Scheduled",
        status="True",
        transition_id=round.uid,
        transition_time=round.now,
        reason="tasks in gang are ready to be scheduled",
        message="",
    )


def _not_ready(round: Round, job: Job) -> GroupCondition:
    schedulable = sum(
        task.last is not None and task.last.status in ALLOCATED_CLASS for task in job.in_status(TaskStatus.PENDING)
    )
    missing = job.min_available - (job.counts.ready + schedulable)
    return GroupCondition(
        type="Unschedulable",
        status="True",
        transition_id=round.uid,
        transition_time=round.now,
        reason=NOT_ENOUGH_RESOURCES,
        message=f"{missing}/{len(job.tasks)} tasks in gang unschedulable: {job.fit_error()}",
    )


def _has_started(job: Job) -> bool:
    """Whether some of a job's tasks have a node for good: the others are needed before anything else is begun."""
    by_status = job.counts.by_status
    return bool(by_status[_RUNNING] or by_status[_BOUND])
