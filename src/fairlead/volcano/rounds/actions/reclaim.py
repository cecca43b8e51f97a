"""reclaim: make room for a starving job by evicting from other queues that have more than they are owed.

Which queues give is the plugins' to say (proportion, capacity). A queue only takes if it is not overused and the
plugins let it take more. Nodes are not scored: the first that works is taken.

A job whose network matters is given room in one hypernode at a time, nearest first as the plugins list them; the
original reclaims for such jobs anywhere, and then cannot place them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.actions.making_room import NEVER, Prospects, Starving, suffice
from fairlead.volcano.rounds.goheap import Heap
from fairlead.volcano.rounds.node_search import NodeSearch, by_preference, without_final
from fairlead.volcano.rounds.tiers import Purpose
from fairlead.volcano.rounds.transaction import Transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

NAME = "reclaim"


def execute(round: Round) -> Iterator[None]:
    return _Reclaiming(round).run()


class _Reclaiming:
    def __init__(self, round: Round) -> None:
        self._round = round
        self._keep_errors = round.argument(NAME, "predicateErrorCacheEnable", True)
        self._prospects = Prospects(round, _may_go)
        self._givers = [name for name, queue in round.queues.items() if queue.queue.reclaimable]

    def run(self) -> Iterator[None]:
        round = self._round
        starving = Starving(round)
        queues: Heap[QueueState] = Heap(round.tiers.queue_first, starving.queues.values())
        while queues:
            queue = queues.pop()
            if round.tiers.overused(queue):
                round.witness.overused(queue)
                continue
            jobs = starving.jobs.get(queue.name)
            while jobs:
                job = jobs.pop()
                self._reclaim_for(job, starving.tasks(job), queue)
                yield
                if jobs and round.quirks.retries_satisfied_jobs:
                    queues.push(queue)

    def _reclaim_for(self, job: Job, tasks: Heap[Task], queue: QueueState) -> None:
        for domain in self._domains(job):
            self._prospects.start_over()
            transaction = Transaction(self._round)
            left = tasks.copy()
            while left and self._round.tiers.job_starving(job):
                self._try_task(left.pop(), queue, transaction, self._round.rows_of(domain))
            if self._round.tiers.job_pipelined(job):
                transaction.commit()
                return
            self._prospects.take_back(transaction)

    def _domains(self, job: Job) -> Iterable[str]:
        """The hypernodes in which a job may get its room, one after the other."""
        round = self._round
        if round.quirks.reclaim_ignores_hyper_nodes or not job.has_hard_topology or not round.topology.ready:
            return [round.topology.root]
        gradients = round.tiers.gradient_for_job(job, round.topology.root, Purpose.EVICT)
        return dict.fromkeys(name for gradient in reversed(gradients) for name in gradient)

    def _try_task(self, task: Task, queue: QueueState, transaction: Transaction, rows: NDArray[np.int32]) -> None:
        round = self._round
        if task.pod.shape.preemption_policy == NEVER or not round.tiers.preemptive(queue, [task]):
            return
        if round.tiers.pre_predicate(task) is not None:
            return
        rows = without_final(task, rows)
        rows, _ = NodeSearch(round, keep_errors=self._keep_errors).find(task, rows, fit=False, for_preemption=True)
        round.search.scores = None
        others = [name for name in self._givers if name != queue.name]
        rows = np.concatenate(by_preference(round, rows))
        rows = rows[self._prospects.promising(task, rows, others, at_least_one=True)]
        for row in round.choices.ranked(task, rows, np.zeros(len(rows))):
            if self._try_row(task, row, queue, transaction):
                return

    # ---- where ----

    def _try_row(self, task: Task, row: int, queue: QueueState, transaction: Transaction) -> bool:
        round = self._round
        suspects = [other for other in round.resources.tasks_on(row) if self._gives(other, queue)]
        if not suspects:
            return False
        victims = round.tiers.reclaimable(task, round.choices.suspects(task, row, suspects))
        if not suffice(round, task, row, victims):
            self._prospects.refuse(task, row)
            return False
        heap = round.victims_heap(victims, task)
        room = round.resources.future_idle_at(row)
        trial = Transaction(round)
        while heap and not task.request.less_equal(room):
            victim = heap.pop()
            trial.evict(victim, NAME, task)
            room.add(victim.request)
        if not task.request.less_equal(room) or not trial.pipeline(task, row, eviction_occurred=len(trial) > 0):
            self._prospects.take_back(trial)
            return False
        self._prospects.keep(trial, transaction)
        return True

    def _gives(self, task: Task, taker: QueueState) -> bool:
        """Whether a task belongs to another queue that may be reclaimed from."""
        if task.job is None or not _may_go(task) or task.job.queue == taker.name:
            return False
        return self._round.queues[task.job.queue].queue.reclaimable


def _may_go(task: Task) -> bool:
    return task.status is TaskStatus.RUNNING and task.preemptable
