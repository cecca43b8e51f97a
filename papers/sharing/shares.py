"""Policies that share GPUs in time: first come, first served; max-min fairness (LAS); finish-time fairness (Themis).

Blind policies take all types for equally fast and give every job the same mix of them. `FirstComeShares` can also look
at speeds, and then gives a job the type on which it is fastest among those that are free; max-min fairness that looks
at speeds is in max_min.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from papers.sharing.max_min import MaxMinBySpeed
from papers.sharing.rounds import SharePolicy, Shares, SharingJob

if TYPE_CHECKING:
    from numpy.typing import NDArray

_PRECISION = 1e-4


class FirstComeShares(SharePolicy):
    """Jobs get their GPUs in the order of arrival; nobody overtakes. They keep them to the end, but with an eye to
    speeds all choose again when a job has come or ended, so that the oldest move to the types that suit them best."""

    def __init__(self, capacity: Sequence[int], *, by_speed: bool = False) -> None:
        super().__init__(capacity)
        self._by_speed = by_speed
        self._types: dict[int, int] = {}

    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        kept = () if self._by_speed else jobs
        self._types = {job.id: self._types[job.id] for job in kept if job.id in self._types}
        free = list(self.capacity)
        for job in jobs:
            if job.id in self._types:
                free[self._types[job.id]] -= job.gpus
        for job in (job for job in jobs if job.id not in self._types):
            kinds = [kind for kind, count in enumerate(free) if count >= job.gpus and job.speeds[kind]]
            if not kinds:
                break
            kind = max(kinds, key=lambda kind: (job.speeds[kind], -kind)) if self._by_speed else kinds[0]
            self._types[job.id] = kind
            free[kind] -= job.gpus
        return {job.id: self._only(self._types.get(job.id)) for job in jobs}

    def _only(self, kind: int | None) -> tuple[float, ...]:
        return tuple(float(other == kind) for other in range(len(self.capacity)))


class BlindShares(SharePolicy):
    """A share for each job, spread in proportion to their numbers over the types that it can run on."""

    def spread(self, job: SharingJob, share: float) -> tuple[float, ...]:
        counts = [count if speed else 0 for count, speed in zip(self.capacity, job.speeds, strict=True)]
        return tuple(share * count / sum(counts) for count in counts)


class MaxMinShares(BlindShares):
    """The same GPU time for all that can use it: those that attained the least go first (LAS)."""

    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        level = self._level(sorted(job.gpus for job in jobs))
        return {job.id: self.spread(job, min(1.0, level / job.gpus)) for job in jobs}

    def _level(self, wanted: Sequence[int]) -> float:
        """The most GPUs that any job gets in the mean, if those that want less get what they want."""
        left = float(self.gpus)
        for at, gpus in enumerate(wanted):
            equal = left / (len(wanted) - at)
            if equal < gpus:
                return equal
            left -= gpus
        return float(wanted[-1])


class FinishTimeShares(BlindShares):
    """The shares with which the worst ratio of finish time to fair finish time is lowest. The fair finish time is that
    with an equal share of the cluster all along; speeds are those of the first type."""

    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        seconds = np.array([job.left / job.speeds[0] for job in jobs])
        equal = np.array([self.equal_share(job, len(jobs)) for job in jobs])
        fair = np.array([job.fair_seconds for job in jobs]) + seconds / equal
        waited = now - np.array([job.arrival for job in jobs])
        gpus = np.array([job.gpus for job in jobs])

        def for_bound(worst: float) -> NDArray[np.float64] | None:
            """Shares with which no ratio is above a bound; None if there are none."""
            left = worst * fair - waited
            if (left < seconds).any():
                return None
            needed: NDArray[np.float64] = seconds / left
            return None if needed @ gpus > self.gpus else needed

        low, high = 0.0, 1.0
        while (found := for_bound(high)) is None:
            low, high = high, 2 * high
        while high - low > _PRECISION * high:
            middle = (low + high) / 2
            better = for_bound(middle)
            if better is None:
                low = middle
            else:
                high, found = middle, better
        return {job.id: self.spread(job, share) for job, share in zip(jobs, found.tolist(), strict=True)}


SHARE_POLICIES: Mapping[str, Callable[[Sequence[int]], SharePolicy]] = {
    "fifo": FirstComeShares,
    "fifo_perf": partial(FirstComeShares, by_speed=True),
    "max_min_fairness": MaxMinShares,
    "max_min_fairness_perf": MaxMinBySpeed,
    "finish_time_fairness": FinishTimeShares,
}
