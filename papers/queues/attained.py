"""Least attained service in steps, as in Tiresias: jobs sink from queue to queue with the service they had.

A running job that has reached its queue's limit moves to the end of the next queue, one queue at each event. Queues are
served in order. After that every queue is reordered, running jobs first.
"""

from __future__ import annotations

from papers.queues.pool import GpuPool, PoolPolicy, QueueJob
from papers.queues.preemptive import run_in_order

LIMITS = (3250, 7200)
"""Seconds, or GPU seconds, of service after which a job leaves the first and the second queue."""


class AttainedService(PoolPolicy):
    """`by_gpus` counts service in GPU seconds."""

    def __init__(self, pool: GpuPool, *, by_gpus: bool = False, limits: tuple[int, ...] = LIMITS) -> None:
        super().__init__(pool)
        self._limits = limits
        self._by_gpus = by_gpus
        self._queues: list[list[QueueJob]] = [[] for _ in (*limits, None)]

    def arrived(self, job: QueueJob) -> None:
        self._queues[0].append(job)

    def ended(self, job: QueueJob) -> None:
        next(queue for queue in self._queues if job in queue).remove(job)

    def _service(self, job: QueueJob) -> int:
        return job.attained(self.pool.now) * (job.gpus if self._by_gpus else 1)

    def schedule(self) -> None:
        sinking = [
            (number, job)
            for number, limit in enumerate(self._limits)
            for job in self._queues[number]
            if job.running_since is not None and self._service(job) >= limit
        ]
        for number, job in sinking:
            self._queues[number].remove(job)
            self._queues[number + 1].append(job)
        run_in_order(self.pool, [job for queue in self._queues for job in queue])
        for queue in self._queues:
            queue.sort(key=lambda job: job.running_since is None)

    def wake_at(self) -> int | None:
        """When the first running job reaches its limit. By GPUs the original divides what is left of the limit, less
        the seconds and not the GPU seconds that the job ran, by its GPUs; each look reorders the queues, so that the
        instants matter."""
        instants = [
            (limit - job.attained(self.pool.now)) // (job.gpus if self._by_gpus else 1)
            for limit, queue in zip(self._limits, self._queues, strict=False)
            for job in queue
            if job.running_since is not None
        ]
        return self.pool.now + max(min(instants), 1) if instants else None
