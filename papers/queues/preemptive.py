"""Policies that sort all unfinished jobs at every event and run those that fit, from the top, whoever ran before."""

from __future__ import annotations

from collections.abc import Callable

from papers.queues.pool import GpuPool, PoolPolicy, QueueJob


def run_in_order(pool: GpuPool, jobs: list[QueueJob]) -> None:
    """Let jobs run in an order, each that fits what those before it leave; the others wait, or wait again."""
    free, chosen = pool.size, set()
    for job in jobs:
        if job.gpus <= free:
            free -= job.gpus
            chosen.add(job.id)
    for job in [job for job in pool.running.values() if job.id not in chosen]:
        pool.preempt(job)
    for job in jobs:
        if job.id in chosen and job.running_since is None:
            pool.start(job)


class SortedPreemptive(PoolPolicy):
    """The lowest key first. The list keeps its order from event to event, so that equal keys do too."""

    def __init__(self, pool: GpuPool, key: Callable[[QueueJob, int], int]) -> None:
        super().__init__(pool)
        self._key = key
        self._jobs: list[QueueJob] = []

    def arrived(self, job: QueueJob) -> None:
        self._jobs.append(job)

    def ended(self, job: QueueJob) -> None:
        self._jobs.remove(job)

    def schedule(self) -> None:
        self._jobs.sort(key=lambda job: self._key(job, self.pool.now))
        run_in_order(self.pool, self._jobs)
