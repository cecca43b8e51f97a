"""Placing the tasks of a sub-job within a hypernode, one after the other, until it is ready.

A task that finds no node ends the attempt if the job cannot become ready without it. Its role is remembered: tasks of
the same role are not tried again in this round.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.fit import FitErrors
from fairlead.volcano.rounds.job import QUEUE_GATE
from fairlead.volcano.rounds.node_search import NodeSearch, best, by_preference
from fairlead.volcano.rounds.transaction import Transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.volcano.rounds.goheap import Heap
    from fairlead.volcano.rounds.round import Round, SubJob, Task


def may_be_held(round: Round, task: Task) -> bool:
    """Whether the limits of its queue let a task start now. If pods of the queue that are still ending stand in the
    way, the task is pipelined, as if its node were not free yet. The original does not wait for them
    (`ending_pods_free_quota`)."""
    if round.quirks.ending_pods_free_quota:
        return True
    assert task.job is not None
    return round.tiers.holdable(round.queues[task.job.queue], task)


def allocate_tasks(
    round: Round, sub_job: SubJob, heap: Heap[Task], hyper_node: str, *, keep_errors: bool
) -> Transaction | None:
    """Place tasks of a sub-job within a hypernode until it is ready. None if it comes to nothing; a transaction whose
    sub-job is only pipelined is returned too."""
    if not len(round.rows_of(hyper_node)):
        return None
    placing = _Placing(round, sub_job, hyper_node, NodeSearch(round, keep_errors=keep_errors))
    while heap:
        attempt = placing.place(heap.pop())
        if attempt is _Attempt.STOP or (attempt is _Attempt.PLACED and round.tiers.sub_job_ready(sub_job)):
            break
    if round.tiers.sub_job_ready(sub_job) or round.tiers.sub_job_pipelined(sub_job):
        return placing.transaction
    placing.transaction.discard()
    return None


class _Attempt(Enum):
    """The result of trying one task. Only after PLACED can the sub-job have become ready."""

    PLACED = "placed"
    SKIP = "not placed, and the next task is tried"
    STOP = "not placed, and the job cannot become ready without it"


class _Placing:
    """The placing of one sub-job's tasks, within one hypernode."""

    def __init__(self, round: Round, sub_job: SubJob, hyper_node: str, search: NodeSearch) -> None:
        self.transaction = Transaction(round)
        self._round = round
        self._sub_job = sub_job
        self._job = sub_job.job
        self._hyper_node = hyper_node
        self._rows = round.rows_of(hyper_node)
        self._search = search
        self._near = sub_job.allocated_hyper_node

    def place(self, task: Task) -> _Attempt:
        round = self._round
        if not round.tiers.allocatable(round.queues[self._job.queue], task):
            round.beyond.refused[self._job.uid] = self._job
            return _Attempt.SKIP
        if task.gated:
            if round.settings.opens_queue_gates and task.pod.annotations.get(QUEUE_GATE) == "true":
                round.outcome.let_through[task.uid] = task
            return _Attempt.SKIP
        if task.role and task.role in self._sub_job.failed_roles:
            text = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
            self._job.note_errors(task, FitErrors(text=text))
            return _Attempt.SKIP
        refusal = round.tiers.pre_predicate(task)
        if refusal is not None:
            errors = FitErrors()
            errors.add(refusal.message, self._rows, final=False)
            return self._failed(task, errors)
        rows, errors = self._feasible(task)
        if not len(rows):
            errors.hyper_node = "" if self._hyper_node == round.topology.root else self._hyper_node
            return self._failed(task, errors)
        return _Attempt.PLACED if self._put(task, rows) else _Attempt.SKIP

    # ---- where ----

    def _feasible(self, task: Task) -> tuple[NDArray[np.int32], FitErrors]:
        promised = self._round.cluster.table.row_of.get(task.pod.nominated_node, -1)
        if promised >= 0 and promised in self._rows and self._round.resources.fits_future_at(task.request, promised):
            rows, errors = self._search.find(task, np.array([promised], dtype=np.int32), fit=True)
            if len(rows):
                return rows, errors
        return self._search.find(task, self._rows, fit=True)

    def _put(self, task: Task, rows: NDArray[np.int32]) -> bool:
        """Onto the best row that has room now, else onto the best that will have."""
        round, resources = self._round, self._round.resources
        if self._sub_job.topology is not None:
            task.hyper_node = self._near
        idle = resources.fits_idle(task.request, rows)
        idle_rows = np.count_nonzero(idle)
        if idle_rows and may_be_held(round, task):
            now = rows if idle_rows == len(rows) else rows[idle]
            row = best(round, task, by_preference(round, now)[0])
            placed = self.transaction.allocate(task, row)
        else:
            row = best(round, task, by_preference(round, rows)[0])
            placed = self.transaction.pipeline(task, row, eviction_occurred=False)
        if placed and self._sub_job.topology is not None:
            leaf = round.topology.leaf_of(round.cluster.table.name(row))
            self._near = round.topology.lowest_common(self._near, leaf)
        return placed

    # ---- why not ----

    def _failed(self, task: Task, errors: FitErrors) -> _Attempt:
        self._job.note_errors(task, errors)
        return _Attempt.SKIP if self._can_go_on() else _Attempt.STOP

    def _can_go_on(self) -> bool:
        """NeedContinueAllocating: whether the job can still become ready without this task."""
        job, sub_job = self._job, self._sub_job
        if job.min_available == len(job.tasks) or sub_job.min_available >= len(sub_job.tasks):
            return False
        if job.has_sub_groups:
            return True
        failed = sub_job.failed_roles
        if job.min_available < job.role_total:
            hopeful = sum(task.role not in failed for task in job.in_status(TaskStatus.PENDING))
            return job.counts.ready + hopeful >= job.min_available
        return all(job.placed_in_role(role) >= least for role, least in job.role_minimums.items() if role in failed)
