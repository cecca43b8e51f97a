"""First come, first served, strictly or with skipping of jobs that do not fit."""

from __future__ import annotations

from papers.queues.pool import GpuPool, PoolPolicy, QueueJob


class FirstCome(PoolPolicy):
    """Starts jobs in the order of arrival. `skipping` goes on past a job that does not fit, which may starve it."""

    def __init__(self, pool: GpuPool, *, skipping: bool = False) -> None:
        super().__init__(pool)
        self.queue: list[QueueJob] = []
        self._skipping = skipping

    def arrived(self, job: QueueJob) -> None:
        self.queue.append(job)

    def schedule(self) -> None:
        left: list[QueueJob] = []
        for job in self.queue:
            if job.gpus <= self.pool.free and (self._skipping or not left):
                self.pool.start(job)
            else:
                left.append(job)
        self.queue = left
