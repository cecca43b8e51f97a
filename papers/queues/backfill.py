"""Backfilling: jobs may overtake as long as reservations, made from the users' estimates, are kept.

EASY reserves for the first waiting job only, conservative backfilling for all. Reservations are visible: a policy says
for which job it keeps GPUs from which instant on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING

from papers.queues.first_come import FirstCome

if TYPE_CHECKING:
    from papers.queues.pool import GpuPool, QueueJob


def estimated_end(job: QueueJob) -> int:
    assert job.running_since is not None
    return job.running_since + job.estimate


class EasyBackfill(FirstCome):
    """The first waiting job has a reservation; later ones start if they end before it, or leave it its GPUs.
    `shortest` tries those with the shortest estimates first."""

    arrivals_first = True

    def __init__(self, pool: GpuPool, *, shortest: bool = False) -> None:
        super().__init__(pool)
        self._shortest = shortest
        self.reserved: tuple[QueueJob, int] | None = None
        """The first waiting job and when it will start at the latest."""

    def schedule(self) -> None:
        super().schedule()
        self.reserved = None
        while self.queue and (candidate := self._candidate()) is not None:
            self.queue.remove(candidate)
            self.pool.start(candidate)

    def _candidate(self) -> QueueJob | None:
        """A job that may overtake the first; the reservation is computed anew after every start."""
        first, *others = self.queue
        instant, spare = self._reservation(first)
        self.reserved = (first, instant)
        if self._shortest:
            others.sort(key=lambda job: job.estimate)
        for job in others:
            in_time = self.pool.now + job.estimate <= instant
            if job.gpus <= self.pool.free and (in_time or job.gpus <= spare):
                return job
        return None

    def _reservation(self, first: QueueJob) -> tuple[int, int]:
        """When enough GPUs are free for the first job by estimated ends, and how many are left over then."""
        free = self.pool.free
        ends = sorted((estimated_end(job), job.gpus) for job in self.pool.running.values())
        for at, (instant, gpus) in enumerate(ends):
            free += gpus
            if free >= first.gpus and (at + 1 == len(ends) or ends[at + 1][0] > instant):
                return instant, free - first.gpus
        raise AssertionError("a job that fits the pool fits when all others have ended")


class FreeProfile:
    """How many GPUs are free from which instant on, by estimates and reservations."""

    def __init__(self, now: int, free: int) -> None:
        self._times = [now]
        self._free = [free]

    def earliest(self, gpus: int, seconds: int) -> int:
        """The first instant from which so many GPUs are free for so long."""
        return next(time for at, time in enumerate(self._times) if self._lasts(at, gpus, time + seconds))

    def _lasts(self, at: int, gpus: int, until: int) -> bool:
        end = bisect_left(self._times, until)
        return min(self._free[at:end], default=gpus) >= gpus

    def take(self, gpus: int, start: int, end: int) -> None:
        """Use GPUs from one instant to another."""
        for at in range(self._step(start), self._step(end)):
            self._free[at] -= gpus

    def _step(self, time: int) -> int:
        """The index of the step that begins at an instant, made if need be."""
        at = bisect_right(self._times, time) - 1
        if self._times[at] == time:
            return at
        self._times.insert(at + 1, time)
        self._free.insert(at + 1, self._free[at])
        return at + 1


class ConservativeBackfill(FirstCome):
    """Every job has a reservation from its arrival on. When a job ends, those that wait give theirs up one after the
    other, in the order of arrival, and each takes the earliest that there is."""

    arrivals_first = True

    def __init__(self, pool: GpuPool) -> None:
        super().__init__(pool)
        self.reserved: dict[int, int] = {}
        """When each waiting job will start at the latest, by its id."""
        self._compress = False

    def arrived(self, job: QueueJob) -> None:
        super().arrived(job)
        self._reserve(job, self._profile())

    def ended(self, job: QueueJob) -> None:
        self._compress = True

    def schedule(self) -> None:
        if self._compress:
            self._compress = False
            for job in self.queue:
                del self.reserved[job.id]
                self._reserve(job, self._profile())
        for job in [job for job in self.queue if self.reserved[job.id] == self.pool.now]:
            self.queue.remove(job)
            del self.reserved[job.id]
            self.pool.start(job)

    def wake_at(self) -> int | None:
        return min(self.reserved.values(), default=None)

    def _reserve(self, job: QueueJob, profile: FreeProfile) -> None:
        self.reserved[job.id] = profile.earliest(job.gpus, job.estimate)

    def _profile(self) -> FreeProfile:
        profile = FreeProfile(self.pool.now, self.pool.size)
        for gpus, start, end in self._uses():
            profile.take(gpus, start, end)
        return profile

    def _uses(self) -> Iterator[tuple[int, int, int]]:
        for job in self.pool.running.values():
            yield job.gpus, self.pool.now, estimated_end(job)
        for job in self.queue:
            if job.id in self.reserved:
                yield job.gpus, self.reserved[job.id], self.reserved[job.id] + job.estimate
