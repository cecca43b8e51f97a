"""A pool of equal GPUs and the jobs that want some of them, all at once, in whole seconds.

The pool is a node table with one row: a running job is a claim on it. A policy is asked at every event, after the jobs
that end have ended and those that arrive have arrived; it starts and stops jobs. Stopping costs nothing, and a job goes
on where it was stopped.

Invariant: running jobs never hold more than the pool has.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.lab.omega.transactions import OptimisticCommit

GPU = "nvidia.com/gpu"
_ROW = np.zeros(1, dtype=np.int64)


@dataclass(slots=True)
class QueueJob:
    """A job and how it fares. `estimate` is how long its user says that it runs."""

    id: int
    gpus: int
    submit: int
    duration: int
    estimate: int
    executed: int = 0
    """Seconds that it ran until it was last stopped."""
    running_since: int | None = None
    start: int | None = None
    end: int | None = None
    preemptions: int = 0

    def attained(self, now: int) -> int:
        """Seconds that it has run."""
        return self.executed + (0 if self.running_since is None else now - self.running_since)

    def remaining(self, now: int) -> int:
        return self.duration - self.attained(now)


class GpuPool:
    """Who runs, and how many GPUs are free."""

    def __init__(self, gpus: int) -> None:
        doc = {"metadata": {"name": "pool", "uid": "pool"}, "status": {"allocatable": {GPU: str(gpus)}}}
        self._cluster = Cluster()
        self._cluster.apply(Change(Happened.ADDED, kinds.NODE, doc))
        self.size = gpus
        self.free = gpus
        self.now = 0
        self.running: dict[int, QueueJob] = {}
        """By id, in the order of their last start."""

    def start(self, job: QueueJob) -> None:
        table = self._cluster.table
        result = OptimisticCommit().commit(self._cluster, table.version[:1], _ROW, {GPU: job.gpus})
        assert not result.conflicted, f"job {job.id} was started without {job.gpus} free GPUs"
        self.free -= job.gpus
        self.running[job.id] = job
        job.running_since = self.now
        if job.start is None:
            job.start = self.now

    def stop(self, job: QueueJob) -> None:
        """Take the GPUs of a job away; it has ended, or waits again."""
        self._cluster.table.release(_ROW, {GPU: job.gpus})
        self.free += job.gpus
        del self.running[job.id]
        job.executed = job.attained(self.now)
        job.running_since = None

    def preempt(self, job: QueueJob) -> None:
        self.stop(job)
        job.preemptions += 1


class PoolPolicy(ABC):
    """Decides which jobs run. The pool is the policy's to change in `schedule`, and only there."""

    arrivals_first = False
    """Whether arrivals of an instant are scheduled one by one before the jobs that end then give their GPUs back."""

    def __init__(self, pool: GpuPool) -> None:
        self.pool = pool

    @abstractmethod
    def arrived(self, job: QueueJob) -> None: ...

    def ended(self, job: QueueJob) -> None:  # noqa: B027 (not every policy needs to know)
        """A job has ended and given its GPUs back."""

    @abstractmethod
    def schedule(self) -> None:
        """Start and stop jobs; called once at every event."""

    def wake_at(self) -> int | None:
        """The next instant at which the policy wants to be asked though nothing arrives or ends."""
        return None


def play(policy: PoolPolicy, jobs: Sequence[QueueJob]) -> None:
    """Run all jobs to their ends. Of one instant, ends come first, then arrivals in the order of the list, unless the
    policy has it the other way round."""
    pool = policy.pool
    for job in jobs:
        if job.gpus > pool.size:
            raise ValueError(f"job {job.id} wants {job.gpus} GPUs, and the pool has {pool.size}")
    coming = deque(sorted(jobs, key=lambda job: job.submit))
    while coming or pool.running:
        pool.now = _next_event(policy, coming)
        if policy.arrivals_first:
            _arrive(policy, coming, one_by_one=True)
        for job in [job for job in pool.running.values() if job.remaining(pool.now) == 0]:
            pool.stop(job)
            job.end = pool.now
            policy.ended(job)
        _arrive(policy, coming, one_by_one=False)
        policy.schedule()


def _next_event(policy: PoolPolicy, coming: deque[QueueJob]) -> int:
    pool = policy.pool
    times = [job.remaining(pool.now) + pool.now for job in pool.running.values()]
    if coming:
        times.append(coming[0].submit)
    wake = policy.wake_at()
    return min(times if wake is None else [*times, wake])


def _arrive(policy: PoolPolicy, coming: deque[QueueJob], *, one_by_one: bool) -> None:
    while coming and coming[0].submit == policy.pool.now:
        policy.arrived(coming.popleft())
        if one_by_one:
            policy.schedule()
