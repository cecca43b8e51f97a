"""allocate: place the pods of jobs that were let in, queue by queue and job by job.

A job is placed as far as it needs to be ready, and kept only if it is. Once it is, each turn places one pod more, so
that queues and jobs stay in step with their shares. Where the network or sub-groups matter, whole placements are tried
domain by domain (volcano/rounds/actions/domains.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.actions.domains import allocate_by_domain
from fairlead.volcano.rounds.actions.placing import allocate_tasks
from fairlead.volcano.rounds.actions.worksheet import Worksheet, worksheet_of
from fairlead.volcano.rounds.goheap import Heap

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, QueueState, Round

NAME = "allocate"


def execute(round: Round) -> Iterator[None]:
    return _Allocation(round).run()


class _Allocation:
    def __init__(self, round: Round) -> None:
        self._round = round
        self._keep_errors = round.argument(NAME, "predicateErrorCacheEnable", True)
        self._queues: Heap[QueueState] = Heap(round.tiers.queue_first)
        self._jobs: dict[str, Heap[Job]] = {}
        self._worksheets: dict[str, Worksheet] = {}

    def run(self) -> Iterator[None]:
        self._gather()
        round, tiers = self._round, self._round.tiers
        while self._queues:
            queue = self._queues.pop()
            if tiers.overused(queue):
                round.witness.overused(queue)
                continue
            jobs = self._jobs[queue.name]
            if not jobs:
                continue
            job = jobs.pop()
            before = len(round.outcome.binds)
            wants_more = self._allocate(job)
            round.attempting = None  # what raises from here on compares jobs
            if wants_more:
                jobs.push(job)
            if len(round.outcome.binds) > before or not self._in_strict_order(queue):
                self._queues.push(queue)
            yield
        yield from self._start_one_beyond()

    def _start_one_beyond(self) -> Iterator[None]:
        """If nothing could be placed, start one gang that needs more than its queue deserves: the first that fits, of
        the queues by priority, by age. A single pod counts as a gang only if its queue holds nothing. Otherwise two
        such queues would wait for each other on an empty cluster, as in the original
        (`large_gangs_wait_for_each_other`)."""
        round = self._round
        if round.quirks.large_gangs_wait_for_each_other or round.outcome.binds:
            return
        if any(job.counts.by_status[TaskStatus.PIPELINED] for job in round.jobs.values()):
            return
        holding = {job.queue for job in round.jobs.values() if not job.allocated.empty}
        refused = [job for job in round.beyond.refused.values() if job.min_available > 1 or job.queue not in holding]
        for job in sorted(refused, key=lambda job: (-round.queues[job.queue].queue.priority, job.created, job.uid)):
            if job.is_ready:
                continue
            self._worksheets[job.uid] = worksheet_of(round, job)
            round.beyond.trying = job
            self._allocate(job)
            round.beyond.trying = round.attempting = None
            if round.outcome.binds:
                return
            yield

    def _in_strict_order(self, queue: QueueState) -> bool:
        """Whether no job of a queue overtakes one that could not be placed; the original does not read the field
        (`ignores_fifo`)."""
        return queue.queue.dequeue_strategy == "fifo" and not self._round.quirks.ignores_fifo

    def _gather(self) -> None:
        round = self._round
        for job in round.choices.walk("jobs", list(round.jobs.values())):
            if job.is_pending:
                if "enqueue" in round.settings.actions:
                    continue
                job.phase = "Inqueue"
            if round.tiers.job_valid(job) is not None:
                continue
            if job.contains_topology and not round.topology.ready:
                continue
            worksheet = worksheet_of(round, job)
            if worksheet.empty:
                continue
            if job.queue not in self._jobs:
                self._jobs[job.queue] = Heap(round.tiers.job_first)
                self._queues.push(round.queues[job.queue])
            self._jobs[job.queue].push(job)
            self._worksheets[job.uid] = worksheet

    def _allocate(self, job: Job) -> bool:
        """Give a job its turn. Whether it wants another one."""
        worksheet = self._worksheets[job.uid]
        if job.has_hard_topology or job.has_sub_groups:
            return allocate_by_domain(self._round, job, worksheet, keep_errors=self._keep_errors)
        sub_job = job.sub_jobs[job.uid]
        heap = worksheet.tasks[sub_job.uid]
        transaction = allocate_tasks(
            self._round, sub_job, heap, self._round.topology.root, keep_errors=self._keep_errors
        )
        if transaction is None or not self._round.tiers.job_ready(job):
            return False
        transaction.commit()
        return bool(heap)
