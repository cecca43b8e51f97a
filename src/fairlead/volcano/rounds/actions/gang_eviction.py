"""Evicting whole gangs for a whole gang: what gangpreempt and gangreclaim have in common.

For a starving job, hypernode by hypernode: gather the bundles that may go there, add them up until they could be
enough, and try: evict them, and pipeline every waiting task of the job, sub-job by sub-job. All of it is taken back;
the first trial that got the job its minimum is then done again for good. Nothing is evicted that does not get a gang
going.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, ClassVar

from fairlead.volcano.records.amounts import Amounts, total_of
from fairlead.volcano.rounds.actions.bundles import Bundle, allowed_only, bundles_of, in_order
from fairlead.volcano.rounds.actions.making_room import Starving
from fairlead.volcano.rounds.actions.worksheet import Worksheet, worksheet_of
from fairlead.volcano.rounds.goheap import Heap
from fairlead.volcano.rounds.node_search import NodeSearch, best, by_preference, without_final
from fairlead.volcano.rounds.tiers import GangEvictionContext, Purpose
from fairlead.volcano.rounds.transaction import Operation, Transaction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.volcano.rounds.round import Job, QueueState, Round, SubJob, Task

_DOMAINS = 8


class GangEviction(ABC):
    """One of the two actions. What differs: which queues may take, who may go, and in which order."""

    name: ClassVar[str]

    def __init__(self, round: Round) -> None:
        self._round = round
        most = round.argument(self.name, "maxDomains", _DOMAINS)
        self._most_domains = most if most > 0 else _DOMAINS
        self._allow_whole = round.argument(self.name, "allowWholeBundle", True)
        self._keep_errors = round.argument("allocate", "predicateErrorCacheEnable", True)

    @abstractmethod
    def _may_take(self, queue: QueueState) -> bool: ...

    @abstractmethod
    def _wants_room(self, queue: QueueState, waiting: list[Task]) -> bool: ...

    @abstractmethod
    def _may_go(self, task: Task, victim: Job, job: Job) -> bool: ...

    @abstractmethod
    def _goes_before(self, job: Job) -> Callable[[Job, Job], bool]:
        """Which of two victim jobs loses its tasks first."""

    def run(self) -> Iterator[None]:
        round = self._round
        starving = Starving(round)
        queues: Heap[QueueState] = Heap(round.tiers.queue_first, starving.queues.values())
        while queues:
            queue = queues.pop()
            if not self._may_take(queue):
                continue
            jobs = starving.jobs.get(queue.name)
            while jobs:
                self._make_room(jobs.pop(), queue)
                yield

    def _make_room(self, job: Job, queue: QueueState) -> None:
        transaction = Transaction(self._round)
        places = self._plan(job, queue, transaction)
        if not self._round.tiers.job_pipelined(job):
            transaction.discard()
            return
        transaction.commit()
        for uid, hyper_node in places.items():
            job.sub_jobs[uid].nominated_hyper_node = hyper_node

    def _plan(self, job: Job, queue: QueueState, transaction: Transaction) -> dict[str, str]:
        """Apply what gets a job going. The hypernode of each sub-job; none if nothing gets it going."""
        waiting = self._waiting(job)
        if not waiting or not self._wants_room(queue, waiting):
            return {}
        need = total_of(task.request for task in waiting)
        for domain in self._domains(job):
            room = self._room_in(domain)
            victims: list[Task] = []
            for bundle in self._bundles(job, need, domain):
                victims += bundle.tasks
                room.add(bundle.freed())
                if need.less_equal(room):
                    found = self._try(job, queue, domain, victims)
                    if found is not None and transaction.recover(found.operations):
                        return found.places
        return {}

    # ---- for whom ----

    def _waiting(self, job: Job) -> list[Task]:
        """Tasks that want a place: of a job that is ready, those of its first sub-job that has any."""
        sheet = self._sheet(job)
        waiting: list[Task] = []
        while sheet.sub_jobs:
            heap = sheet.tasks[sheet.sub_jobs.pop().uid]
            while heap:
                waiting.append(heap.pop())
            if self._round.tiers.job_ready(job):
                break
        return waiting

    def _sheet(self, job: Job) -> Worksheet:
        return worksheet_of(self._round, job, gated=False)

    # ---- where ----

    def _domains(self, job: Job) -> Iterator[str]:
        round = self._round
        gradients = round.tiers.gradient_for_job(job, round.topology.root, Purpose.EVICT)
        if not any(gradients) and not job.has_hard_topology:
            gradients = [[round.topology.root]]
        return islice(self._one_by_one(job, gradients), self._most_domains)

    def _one_by_one(self, job: Job, gradients: Iterable[list[str]]) -> Iterator[str]:
        for gradient in gradients:
            yield from self._round.choices.hyper_nodes(job, gradient)

    def _room_in(self, domain: str) -> Amounts:
        """What is idle or about to be, over all nodes of a hypernode."""
        resources, rows = self._round.resources, self._round.rows_of(domain)
        room = Amounts()
        for name in resources.idle:
            room.set(name, float((resources.idle[name][rows] + resources.releasing[name][rows]).sum()))
        return room

    # ---- whom ----

    def _bundles(self, job: Job, need: Amounts, domain: str) -> list[Bundle]:
        """Bundles that may go, first ones first."""
        round = self._round
        before = self._goes_before(job)
        made = [bundle for victim, tasks in self._candidates(job, domain) for bundle in bundles_of(victim, tasks)]
        ordered = in_order(made, need, before)
        if not ordered:
            return []
        listed = [task for bundle in ordered for task in bundle.tasks]
        allowed = {
            task.uid for task in round.tiers.unified_evictable(GangEvictionContext(self.name, job, domain), listed)
        }
        left = in_order(allowed_only(ordered, allowed), need, before)
        return [bundle for bundle in left if bundle.safe or self._allow_whole]

    def _candidates(self, job: Job, domain: str) -> Iterable[tuple[Job, list[Task]]]:
        by_job: dict[str, tuple[Job, list[Task]]] = {}
        for row in self._round.rows_of(domain).tolist():
            for task in self._round.resources.tasks_on(row):
                victim = task.job
                if victim is not None and task.preemptable and _lets_go(victim) and self._may_go(task, victim, job):
                    by_job.setdefault(victim.uid, (victim, []))[1].append(task)
        return by_job.values()

    # ---- trying ----

    def _try(self, job: Job, queue: QueueState, domain: str, victims: list[Task]) -> _Plan | None:
        """A dry run: all is taken back, sub-job by sub-job, whether it worked or not."""
        chain = [Transaction(self._round)]
        for victim in victims:
            chain[0].evict(victim, self.name, claimant=job)
        places = self._place_sub_jobs(job, queue, domain, chain)
        plan = None
        if places is not None:
            plan = _Plan(tuple(operation for link in chain for operation in link.save()), places)
        for link in reversed(chain):
            link.discard()
        return plan

    def _place_sub_jobs(
        self, job: Job, queue: QueueState, domain: str, chain: list[Transaction]
    ) -> dict[str, str] | None:
        """The hypernode of each sub-job, until the job has its minimum; None if it does not come to that. Each
        sub-job's placements are added to the chain."""
        round = self._round
        was_ready = round.tiers.job_ready(job)
        sheet = self._sheet(job)
        places: dict[str, str] = {}
        while sheet.sub_jobs:
            sub_job = sheet.sub_jobs.pop()
            found = self._place(sub_job, queue, sheet.tasks[sub_job.uid], domain)
            if found is None:
                return None
            chain.append(found[0])
            places[sub_job.uid] = found[1]
            if round.tiers.job_pipelined(job):
                return places
            if was_ready:
                return None
        return None

    def _place(
        self, sub_job: SubJob, queue: QueueState, tasks: Heap[Task], domain: str
    ) -> tuple[Transaction, str] | None:
        """All tasks of a sub-job within a hypernode of the domain."""
        gradients = self._round.tiers.gradient_for_sub_job(sub_job, domain, Purpose.EVICT)
        for name in self._one_by_one(sub_job.job, gradients):
            rows = self._round.rows_of(name)
            if not len(rows):
                continue
            trial = Transaction(self._round)
            if self._pipeline_all(sub_job, queue, tasks.copy(), trial, rows):
                return trial, name
            trial.discard()
        return None

    def _pipeline_all(
        self, sub_job: SubJob, queue: QueueState, tasks: Heap[Task], trial: Transaction, rows: NDArray[np.int32]
    ) -> bool:
        search = NodeSearch(self._round, keep_errors=self._keep_errors)
        while tasks:
            if not self._pipeline(tasks.pop(), queue, trial, rows, search):
                return False
        tiers = self._round.tiers
        return len(trial) > 0 and (tiers.sub_job_ready(sub_job) or tiers.sub_job_pipelined(sub_job))

    def _pipeline(
        self, task: Task, queue: QueueState, trial: Transaction, rows: NDArray[np.int32], search: NodeSearch
    ) -> bool:
        round = self._round
        rows = without_final(task, rows)
        if not len(rows) or not round.tiers.allocatable(queue, task) or round.tiers.pre_predicate(task) is not None:
            return False
        rows, _ = search.find(task, rows, fit=True, for_preemption=True)
        if not len(rows):
            return False
        idle = round.resources.fits_idle(task.request, rows)
        row = best(round, task, by_preference(round, rows[idle] if idle.any() else rows)[0])
        return trial.pipeline(task, row, eviction_occurred=True)


@dataclass(frozen=True, slots=True)
class _Plan:
    """What gets a job going, and the hypernode of each sub-job."""

    operations: tuple[Operation, ...]
    places: dict[str, str]


def _lets_go(victim: Job) -> bool:
    """A job whose group does not say whether it may be preempted lets its tasks decide."""
    return victim.preemptable or not victim.says_preemptable
