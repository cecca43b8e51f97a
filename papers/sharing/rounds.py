"""The round mechanism: in each round, those jobs run that are furthest behind the shares a policy gave them.

A policy is asked again when jobs have come or ended. It gives each job a share of its time on each type of GPU. In a
round, pairs of job and type go in the order of share divided by the time received since; a job runs on one type at a
time, on all its GPUs or not at all. A round lasts until its last slice ends, and nothing starts inside it. Stopping
costs nothing.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

ROUND = 360.0

Shares: TypeAlias = "Mapping[int, tuple[float, ...]]"
"""Of each job, by id: the share of its time on each type."""


@dataclass(slots=True)
class SharingJob:
    """A job of so many steps on `gpus` GPUs; `speeds` are its steps a second on each type, on all of them;
    0 means that it cannot run there."""

    id: int
    arrival: float
    steps: float
    speeds: tuple[float, ...]
    gpus: int = 1
    left: float = field(init=False)
    fair_seconds: float = 0.0
    """How long an equal share of the cluster would have taken for what it has done."""
    received: list[float] = field(default_factory=list)
    """Seconds on each type since the shares were last made."""
    end: float | None = None

    def __post_init__(self) -> None:
        self.left = self.steps


class SharePolicy(ABC):
    def __init__(self, capacity: Sequence[int]) -> None:
        self.capacity = tuple(capacity)
        """GPUs of each type."""
        self.gpus = sum(capacity)

    def equal_share(self, job: SharingJob, jobs: int) -> float:
        """The share of its time that a job could run if the GPUs were divided equally among so many jobs."""
        return min(1.0, self.gpus / jobs / job.gpus)

    @abstractmethod
    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        """The shares of all unfinished jobs, which are in the order of arrival."""


def run_rounds(policy: SharePolicy, jobs: Sequence[SharingJob], watched: range) -> float:
    """The mean completion time of the watched jobs; the run ends when they have ended."""
    wanted = [job for job in jobs if job.id in watched]
    if len(wanted) < len(watched):
        raise ValueError(f"jobs {watched.start} to {watched.stop - 1} are watched, and there are only {len(jobs)} jobs")
    play_rounds(policy, jobs, wanted)
    times = [job.end - job.arrival for job in wanted if job.end is not None]
    return math.fsum(times) / len(times)


def play_rounds(
    policy: SharePolicy, jobs: Sequence[SharingJob], wanted: Sequence[SharingJob], *, seconds: float = ROUND
) -> None:
    """Play rounds of so many seconds until all wanted jobs have their `end`."""
    coming = sorted(jobs, key=lambda job: job.arrival)
    active: list[SharingJob] = []
    now, arrived, changed, since = 0.0, 0, True, 0.0
    shares: Shares = {}
    while any(job.end is None for job in wanted):
        while arrived < len(coming) and coming[arrived].arrival <= now:
            active.append(coming[arrived])
            arrived += 1
            changed = True
        if not active:
            now = coming[arrived].arrival
            continue
        if changed:
            shares, since, changed = policy.shares(active, now), 0.0, False
            for job in active:
                job.received = [0.0] * len(policy.capacity)
        end = _round(policy, active, shares, now, since, seconds)
        since += end - now
        now = end
        if any(job.end is not None for job in active):
            active = [job for job in active if job.end is None]
            changed = True


def _round(
    policy: SharePolicy, active: Sequence[SharingJob], shares: Shares, now: float, since: float, longest: float
) -> float:
    """Run one round and return when it ends."""
    end = now
    for job, kind in _chosen(policy.capacity, active, shares, since):
        needed = job.left / job.speeds[kind]
        seconds = min(longest, needed)
        job.received[kind] += seconds
        job.fair_seconds += seconds / policy.equal_share(job, len(active))
        job.left -= seconds * job.speeds[kind]
        if needed <= longest:
            job.left, job.end = 0.0, now + seconds
        end = max(end, now + seconds)
    return end


def _chosen(
    capacity: Sequence[int], active: Sequence[SharingJob], shares: Shares, since: float
) -> list[tuple[SharingJob, int]]:
    """Who runs on which type in the next round."""
    behind = []
    for job in active:
        for kind, share in enumerate(shares[job.id]):
            if share > 0 and job.speeds[kind]:
                received = job.received[kind]
                urgency = share * since / received if received else math.inf
                behind.append((-urgency, -share, job.id, kind, job))
    behind.sort(key=lambda entry: entry[:4])
    free, chosen, running = list(capacity), [], set()
    for _, _, id, kind, job in behind:
        if free[kind] >= job.gpus and id not in running:
            free[kind] -= job.gpus
            running.add(id)
            chosen.append((job, kind))
    return chosen
