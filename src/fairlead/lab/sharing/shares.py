"""Policies that share GPUs in time: first come, first served; max-min fairness (LAS); finish-time fairness (Themis).

Blind policies take all types for equally fast and give every job the same mix of them. `FirstComeShares` can also look
at speeds, and then gives a job the type on which it is fastest among those that are free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from fairlead.lab.sharing.rounds import SharePolicy, Shares, SharingJob

_PRECISION = 1e-4


class FirstComeShares(SharePolicy):
    """Jobs get a GPU in the order of arrival and keep it to the end."""

    def __init__(self, capacity: Sequence[int], *, by_speed: bool = False) -> None:
        super().__init__(capacity)
        self._by_speed = by_speed
        self._types: dict[int, int] = {}

    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        self._types = {job.id: self._types[job.id] for job in jobs if job.id in self._types}
        free = list(self.capacity)
        for kind in self._types.values():
            free[kind] -= 1
        for job in jobs:
            kinds = [kind for kind, count in enumerate(free) if count]
            if job.id not in self._types and kinds:
                kind = max(kinds, key=lambda kind: (job.speeds[kind], -kind)) if self._by_speed else kinds[0]
                self._types[job.id] = kind
                free[kind] -= 1
        return {job.id: self._only(self._types.get(job.id)) for job in jobs}

    def _only(self, kind: int | None) -> tuple[float, ...]:
        return tuple(float(other == kind) for other in range(len(self.capacity)))


class BlindShares(SharePolicy):
    """A share for each job, spread over the types in proportion to their numbers."""

    def spread(self, share: float) -> tuple[float, ...]:
        return tuple(share * count / self.gpus for count in self.capacity)


class MaxMinShares(BlindShares):
    """The same share for all: those that attained the least go first (LAS)."""

    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        equal = self.spread(min(1.0, self.gpus / len(jobs)))
        return {job.id: equal for job in jobs}


class FinishTimeShares(BlindShares):
    """The shares with which the worst ratio of finish time to fair finish time is lowest. The fair finish time is that
    with an equal share of the cluster all along; speeds are those of the first type."""

    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        low, high = 0.0, 1.0
        while (found := self._for(jobs, now, high)) is None:
            low, high = high, 2 * high
        while high - low > _PRECISION * high:
            middle = (low + high) / 2
            better = self._for(jobs, now, middle)
            if better is None:
                low = middle
            else:
                high, found = middle, better
        return found

    def _for(self, jobs: Sequence[SharingJob], now: float, worst: float) -> Shares | None:
        """Shares with which no ratio is above a bound; None if there are none."""
        equal = min(1.0, self.gpus / len(jobs))
        needed: dict[int, float] = {}
        for job in jobs:
            seconds = job.left / job.speeds[0]
            left = worst * (job.fair_seconds + seconds / equal) - (now - job.arrival)
            if left < seconds:
                return None
            needed[job.id] = seconds / left
        if sum(needed.values()) > self.gpus:
            return None
        return {id: self.spread(share) for id, share in needed.items()}


SHARE_POLICIES: Mapping[str, Callable[[Sequence[int]], SharePolicy]] = {
    "fifo": FirstComeShares,
    "fifo_perf": partial(FirstComeShares, by_speed=True),
    "max_min_fairness": MaxMinShares,
    "finish_time_fairness": FinishTimeShares,
}
