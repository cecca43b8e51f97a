"""MaxMinBySpeed: max-min fairness that knows how fast each job is on each type of GPU, as Gavel (OSDI 2020).

A job's level is what it gets, in steps a second, divided by what an equal mix of all types would give it, times its
GPUs. A linear program makes the lowest level as high as possible. Many shares do that when a job cannot use more; of
those a second program takes the ones with the highest sum of levels, so that no GPU idles while a job could use it.

Jobs with the same speeds and GPUs get the same shares, so that the programs have a row for each class of jobs and not
for each job. Nothing is lost by it: the mean of any shares that are best is as good for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fairlead.lab.sharing.rounds import SharePolicy, Shares, SharingJob

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLACK = 1e-7
"""By how much of it the second program may lower the lowest level: programs are solved to such a precision."""


JobClass: TypeAlias = "tuple[tuple[float, ...], int]"
"""The speeds of a job and its GPUs."""


class MaxMinBySpeed(SharePolicy):
    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        counts = Counter((job.speeds, job.gpus) for job in jobs)
        levels, numbers = self._levels(tuple(counts)), np.array(list(counts.values()), dtype=np.float64)
        limits, bounds = self._limits(counts)
        lowest, _ = _solved(levels, numbers, limits, bounds, None)
        _, shares = _solved(levels, numbers, limits, bounds, lowest * (1 - _SLACK))
        by_type = shares.reshape(len(counts), len(self.capacity)).clip(0.0, 1.0)
        by_class = {one: tuple(row) for one, row in zip(counts, by_type.tolist(), strict=True)}
        return {job.id: by_class[job.speeds, job.gpus] for job in jobs}

    def _levels(self, classes: Sequence[JobClass]) -> NDArray[np.float64]:
        """By class and type: the level that a job has which runs there all the time."""
        speeds = np.array([speeds for speeds, _ in classes])
        equal = speeds @ (np.array(self.capacity) / self.gpus)
        gpus = np.array([gpus for _, gpus in classes])
        found: NDArray[np.float64] = speeds * (gpus / equal)[:, None]
        return found

    def _limits(self, counts: Counter[JobClass]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows of `shares @ row <= bound`: nobody runs more than all the time, and no type has more GPUs than there
        are."""
        types = len(self.capacity)
        own = np.kron(np.eye(len(counts)), np.ones(types))
        wanted = [gpus * number for (_, gpus), number in counts.items()]
        used = np.kron(np.array(wanted, dtype=np.float64), np.eye(types))
        return np.vstack([own, used]), np.concatenate([np.ones(len(counts)), np.array(self.capacity, dtype=np.float64)])


def _solved(
    levels: NDArray[np.float64],
    numbers: NDArray[np.float64],
    limits: NDArray[np.float64],
    bounds: NDArray[np.float64],
    least: float | None,
) -> tuple[float, NDArray[np.float64]]:
    """The lowest level and the shares: of those with the highest lowest level, or, given a lowest level, of those with
    the highest sum over all jobs, of which there are so many in each class."""
    from scipy.optimize import linprog

    classes, types = levels.shape
    own = -np.kron(np.eye(classes), np.ones(types)) * levels.reshape(-1)
    if least is None:
        goal = np.concatenate([np.zeros(classes * types), [-1.0]])
        rows = np.vstack([np.hstack([limits, np.zeros((len(limits), 1))]), np.hstack([own, np.ones((classes, 1))])])
        found = linprog(goal, rows, np.concatenate([bounds, np.zeros(classes)]), method="highs")
        return float(found.x[-1]), found.x[:-1]
    goal = -(levels * numbers[:, None]).reshape(-1)
    found = linprog(goal, np.vstack([limits, own]), np.concatenate([bounds, np.full(classes, -least)]), method="highs")
    return least, found.x
