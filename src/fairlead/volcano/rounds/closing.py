"""Closing a round: what it says of every group, pod and queue, as values; volcano/rounds/writes.py writes them.

phase      Unknown     something runs, and this round found the gang unschedulable
           Completed   as many as the minimum have been scheduled, and all of them have ended
           Running     as many as the minimum have been scheduled; pods that are still ending count (not in the
                       original: `ending_pods_reset_phase`)
           Inqueue     it was let in and waits
           Pending     otherwise, so that a job that fell below its minimum has to be let in again
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.records.round_figures import CLOSED, Span
from fairlead.volcano.records.tasks import COMPLETED_CLASS, TaskStatus

if TYPE_CHECKING:
    from fairlead.core.model.group import GroupCondition
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

SCHEDULABLE = "Schedulable"
UNSCHEDULABLE = "Unschedulable"
_ROOT_QUEUE = "root"
_PENDING, _ALLOCATED, _PIPELINED = TaskStatus.PENDING, TaskStatus.ALLOCATED, TaskStatus.PIPELINED
_RUNNING, _SUCCEEDED, _FAILED = TaskStatus.RUNNING, TaskStatus.SUCCEEDED, TaskStatus.FAILED
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


@dataclass(frozen=True, slots=True)
class GroupReport:
    """What a group's status should be. `changed` says whether that differs from what it is."""

    job: Job
    phase: str
    counted: tuple[int, int, int]
    conditions: tuple[GroupCondition, ...]
    changed: bool


@dataclass(frozen=True, slots=True)
class PodReport:
    """What a pod's PodScheduled=False condition should say, and the node that it is promised, if any."""

    task: Task
    reason: str
    message: str
    nominated: str


@dataclass(frozen=True, slots=True)
class Closing:
    groups: tuple[GroupReport, ...]
    pods: tuple[PodReport, ...]
    allocated: dict[str, Amounts]
    """By queue, what its jobs have, those of its descendants included."""


def close_round(round: Round) -> Closing:
    meter = round.meter
    for plugin in round.tiers.plugins.values():
        began = meter.clock() if meter is not None else 0.0
        plugin.close(round)
        if meter is not None:
            meter.lapsed(Span.PLUGIN, plugin.name, CLOSED, since=began)
    groups = tuple(_report_group(round, job) for job in round.jobs.values())
    pods = tuple(report for job in round.jobs.values() for report in _report_pods(round, job))
    return Closing(groups, pods, _allocated_by_queue(round))


# ---- groups ----


def _report_group(round: Round, job: Job) -> GroupReport:
    counts = job.counts
    phase = _phase(round, job)
    counted = (counts.by_status[_RUNNING], counts.by_status[_SUCCEEDED], counts.by_status[_FAILED])
    conditions = tuple(job.conditions.values())
    group = job.group
    changed = (phase, counted) != (group.phase, group.counted) or said_of(conditions) != said_of(group.conditions)
    return GroupReport(job, phase, counted, conditions, changed)


def said_of(conditions: tuple[GroupCondition, ...]) -> list[tuple[str, ...]]:
    """Conditions without their times and round: two rounds that say the same are equal here."""
    return [(condition.type, condition.status, condition.reason, condition.message) for condition in conditions]


def _phase(round: Round, job: Job) -> str:
    counts = job.counts
    unschedulable = job.conditions.get("Unschedulable")
    found = unschedulable is not None and unschedulable.status == "True" and unschedulable.transition_id == round.uid
    if found and counts.by_status[_RUNNING]:
        return "Unknown"
    scheduled = job.scheduled + (0 if round.quirks.ending_pods_reset_phase else job.ending_in_place)
    if scheduled >= job.min_available:
        completed = sum(counts.of(status) for status in COMPLETED_CLASS)
        return "Completed" if completed == scheduled else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"


# ---- pods ----


def _report_pods(round: Round, job: Job) -> Iterator[PodReport]:
    waiting = [task for task in job.in_status(_ALLOCATED, _PENDING, _PIPELINED) if not task.gated]
    of_job = job.fit_error() if waiting else ""
    return (_report_pod(round, task, of_job) for task in waiting)


def _report_pod(round: Round, task: Task, of_job: str) -> PodReport:
    """The words of a pod's condition, from its last attempt or else from its status."""
    last = task.last
    status, row = (task.status, task.row) if last is None else (last.status, last.row)
    evicted = task.eviction_occurred if last is None else last.eviction_occurred
    node = round.cluster.table.name(row) if row >= 0 else ""
    possibly = f"Pod {task.key} can possibly be assigned to {node}, once"
    if status is _ALLOCATED:
        return PodReport(task, SCHEDULABLE, f"{possibly} minAvailable is satisfied", "")
    if status is _PIPELINED:
        message = f"{possibly} resource is released and minAvailable is satisfied"
        return PodReport(task, UNSCHEDULABLE, message, node if evicted else "")
    assert task.job is not None
    errors = task.job.fit_errors.get(task.uid)
    return PodReport(task, UNSCHEDULABLE, of_job if errors is None else errors.message, "")


# ---- queues ----


def _allocated_by_queue(round: Round) -> dict[str, Amounts]:
    allocated = {name: Amounts() for name in round.queues}
    lines: dict[str, list[str]] = {}
    for job in round.jobs.values():
        if not job.allocated.nothing:
            if job.queue not in lines:
                lines[job.queue] = list(_line(round, job.queue))
            for name in lines[job.queue]:
                allocated[name].add(job.allocated)
    return allocated


def _line(round: Round, name: str) -> Iterator[str]:
    """A queue and, where there is a root, its ancestors; a parent that is missing ends the line."""
    seen: set[str] = set()
    queue: QueueState | None = round.queues[name]
    while queue is not None and queue.name not in seen:
        yield queue.name
        seen.add(queue.name)
        if _ROOT_QUEUE not in round.queues or queue.name == _ROOT_QUEUE:
            return
        queue = round.queues.get(queue.queue.parent or _ROOT_QUEUE)
