"""preempt: make room for a starving job by evicting others of its queue, or less important tasks of its own.

First between jobs, a whole job's evictions kept or undone together; then within each job, task by task. What is evicted
only becomes free later, so a preemptor is pipelined: promised its place in this round, and placed in a later one.

Normally nodes are tried by score and the first that works is taken. With `enableTopologyAwarePreemption` evictions are
thought through on many nodes, all predicates included, and the least harmful is taken
(volcano/rounds/actions/preempt_dry_run.py).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import TYPE_CHECKING

from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.records.tasks import PREEMPTABLE_CLASS
from fairlead.volcano.rounds.actions.making_room import (
    NEVER,
    Prospects,
    Starving,
    refusals_at,
    suffice,
    waiting_tasks,
)
from fairlead.volcano.rounds.actions.preempt_dry_run import DryRun
from fairlead.volcano.rounds.goheap import Heap
from fairlead.volcano.rounds.node_search import NodeSearch, by_preference, prioritize, without_final
from fairlead.volcano.rounds.transaction import Transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

NAME = "preempt"


def execute(round: Round) -> Iterator[None]:
    return _Preemption(round).run()


class _Preemption:
    def __init__(self, round: Round) -> None:
        self._round = round
        self._search = NodeSearch(round, keep_errors=round.argument(NAME, "predicateErrorCacheEnable", True))
        self._dry_run = DryRun(round) if round.argument(NAME, "enableTopologyAwarePreemption", False) else None
        self._prospects = Prospects(round, _may_go)

    def run(self) -> Iterator[None]:
        starving = Starving(self._round, with_topology=False)
        queues: Heap[QueueState] = Heap(self._round.tiers.queue_first)
        for name in starving.jobs:
            queues.push(starving.queues[name])
        while queues:
            queue = queues.pop()
            jobs = starving.jobs[queue.name]
            while jobs:
                job = jobs.pop()
                if self._between_jobs(job, starving.tasks(job)):
                    jobs.push(job)
                yield
            for job in self._round.choices.walk("starving", starving.by_queue[queue.name]):
                self._within(job)
                yield

    # ---- whom ----

    def _between_jobs(self, job: Job, tasks: Heap[Task]) -> bool:
        """Evict for a whole job. True if the job is to have another turn, which finds nothing to do: the original gives
        one to a job whose last task got its place (`retries_satisfied_jobs`)."""
        round = self._round
        transaction = Transaction(round)
        assigned = False
        self._prospects.start_over()
        while tasks and round.tiers.job_starving(job):
            task = tasks.pop()
            assigned = self._preempt(task, transaction, _of_other_jobs(task), (job.queue,))
        if not round.tiers.job_pipelined(job):
            self._prospects.take_back(transaction)
            return False
        transaction.commit()
        return assigned and round.quirks.retries_satisfied_jobs

    def _within(self, job: Job) -> None:
        """Evict less important tasks of the same job, each for itself."""
        tasks = waiting_tasks(self._round, job)
        self._prospects.start_over()
        while tasks:
            task = tasks.pop()
            transaction = Transaction(self._round)
            if not self._preempt(task, transaction, _of_same_job(task), (job.queue,)):
                self._prospects.take_back(transaction)
                return
            transaction.commit()

    # ---- for whom ----

    def _preempt(
        self, task: Task, transaction: Transaction, may_go: Callable[[Task], bool], queues: Collection[str]
    ) -> bool:
        round = self._round
        if not self._eligible(task) or round.tiers.pre_predicate(task) is not None:
            return False
        rows = without_final(task, round.rows)
        rows, _ = self._search.find(task, rows, fit=False, for_preemption=True)
        return any(
            len(group) > 0 and self._preempt_on(task, group, transaction, may_go, queues)
            for group in by_preference(round, rows)
        )

    def _preempt_on(
        self,
        task: Task,
        rows: NDArray[np.int32],
        transaction: Transaction,
        may_go: Callable[[Task], bool],
        queues: Collection[str],
    ) -> bool:
        """On some rows, each of which predicates allow or would allow after evictions."""
        round = self._round
        if self._dry_run is not None:
            rows = rows[self._prospects.promising(task, rows, queues, at_least_one=False)]
            trial = self._dry_run.preempt(task, rows, may_go)
            if trial is None:
                return False
            self._prospects.keep(trial, transaction)
            return True
        scores = prioritize(round, task, rows)
        promising = self._prospects.promising(task, rows, queues, at_least_one=False)
        for row in round.choices.ranked(task, rows[promising], scores[promising]):
            if self._try_row(task, row, transaction, may_go):
                return True
        return False

    def _eligible(self, task: Task) -> bool:
        """Whether a task may preempt. One that is nominated to a node where less important pods are being evicted
        already waits for them; so does one that predicates allow there."""
        if task.pod.shape.preemption_policy == NEVER:
            return False
        promised = task.pod.nominated_node
        if not promised:
            return True
        table = self._round.cluster.table
        row = table.row_of.get(promised, -1)
        errors = refusals_at(self._round, task, row) if row >= 0 else None
        if errors is None:
            return False
        if len(errors.final_rows()):
            return True
        return not any(
            pod.priority < task.pod.priority and pod.terminating and pod.disruption_target for pod in table.pods[row]
        )

    # ---- where ----

    def _try_row(self, task: Task, row: int, transaction: Transaction, may_go: Callable[[Task], bool]) -> bool:
        """Evict from one row, least important first, until the task fits. All is taken back if it does not."""
        round = self._round
        suspects = [other for other in round.resources.tasks_on(row) if may_go(other)]
        victims = round.tiers.preemptable(task, round.choices.suspects(task, row, suspects))
        if not suffice(round, task, row, victims):
            self._prospects.refuse(task, row)
            return False
        round.witness.preempting(len(victims))
        heap = round.victims_heap(victims, task)
        trial = Transaction(round)
        evicted = Amounts()
        fits = self._fits(task, row)
        while heap and not fits:
            victim = heap.pop()
            trial.evict(victim, NAME, task)
            evicted.add(victim.request)
            fits = self._fits(task, row)
        if not fits or not trial.pipeline(task, row, eviction_occurred=not evicted.empty):
            self._prospects.take_back(trial)
            return False
        self._prospects.keep(trial, transaction)
        return True

    def _fits(self, task: Task, row: int) -> bool:
        """Whether the queue and the row have room now, and predicates agree, which the original does not ask again
        (`skips_predicates_after_evictions`)."""
        round = self._round
        assert task.job is not None
        if not round.tiers.allocatable(round.queues[task.job.queue], task):
            return False
        if not round.resources.fits_future_at(task.request, row):
            return False
        if round.quirks.skips_predicates_after_evictions:
            return True
        return round.tiers.pre_predicate(task) is None and refusals_at(round, task, row) is None


def _may_go(task: Task) -> bool:
    return task.status in PREEMPTABLE_CLASS and task.preemptable


def _of_other_jobs(preemptor: Task) -> Callable[[Task], bool]:
    own = preemptor.job
    assert own is not None

    def may_go(task: Task) -> bool:
        return (
            _may_go_for(preemptor, task)
            and task.job is not None
            and task.job is not own
            and task.job.queue == own.queue
        )

    return may_go


def _of_same_job(preemptor: Task) -> Callable[[Task], bool]:
    return lambda task: _may_go_for(preemptor, task) and task.job is preemptor.job


def _may_go_for(preemptor: Task, task: Task) -> bool:
    """Whether a task may be evicted for another: a task that requests nothing evicts only such tasks."""
    return _may_go(task) and (task.best_effort or not preemptor.best_effort)
