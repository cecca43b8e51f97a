"""backfill: place pods that request nothing wherever predicates allow, queue by queue.

Nothing is rolled back: what is placed stays, and is bound as soon as its job is ready.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.actions.placing import may_be_held
from fairlead.volcano.rounds.fit import FitErrors
from fairlead.volcano.rounds.goheap import Heap
from fairlead.volcano.rounds.node_search import NodeSearch, best, by_preference
from fairlead.volcano.rounds.transaction import allocate_now, unpipeline

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

NAME = "backfill"
_OVER_LIMIT = "queue resource quota insufficient: insufficient pods"


def execute(round: Round) -> Iterator[None]:
    for task in _in_turn(round):
        _place(round, task)
        yield


def _in_turn(round: Round) -> list[Task]:
    """Tasks of all queues in order, each queue drained before the next."""
    tiers = round.tiers
    queues: Heap[QueueState] = Heap(tiers.queue_first)
    jobs: dict[str, Heap[Job]] = {}
    tasks: dict[str, Heap[Task]] = {}
    for job in round.choices.walk("jobs", list(round.jobs.values())):
        if job.is_pending or tiers.job_valid(job) is not None:
            continue
        heap = Heap(tiers.task_first, _wanting(round, job))
        if heap:
            if job.queue not in jobs:
                jobs[job.queue] = Heap(tiers.job_first)
                queues.push(round.queues[job.queue])
            jobs[job.queue].push(job)
            tasks[job.uid] = heap
    turn: list[Task] = []
    while queues:
        waiting = jobs[queues.pop().name]
        while waiting:
            heap = tasks[waiting.pop().uid]
            while heap:
                turn.append(heap.pop())
    return turn


def _wanting(round: Round, job: Job) -> list[Task]:
    pending = [task for task in job.in_status(TaskStatus.PENDING) if task.best_effort and not task.gated]
    for task in list(job.in_status(TaskStatus.PIPELINED)):
        if task.best_effort:
            unpipeline(round, task)
            pending.append(task)
    return pending


def _queue_allows(round: Round, task: Task) -> bool:
    """Whether the queue of a pod that requests nothing lets one more pod in."""
    assert task.job is not None
    return round.tiers.allocatable(round.queues[task.job.queue], task) and may_be_held(round, task)


def _place(round: Round, task: Task) -> None:
    assert task.job is not None
    if not round.quirks.backfill_ignores_queues and not _queue_allows(round, task):
        task.job.note_errors(task, FitErrors(text=_OVER_LIMIT))
        return
    refusal = round.tiers.pre_predicate(task)
    if refusal is not None:
        errors = FitErrors()
        errors.add(refusal.message, round.rows, final=False)
        task.job.note_errors(task, errors)
        return
    rows, errors = NodeSearch(round, keep_errors=False).find(task, round.rows, fit=False)
    if not len(rows):
        task.job.note_errors(task, errors)
        return
    row = best(round, task, by_preference(round, rows)[0])
    not_bound = allocate_now(round, task, row)
    if not_bound is not None:
        errors = FitErrors()
        errors.add(not_bound, np.array([row], dtype=np.int32), final=False)
        task.job.note_errors(task, errors)
