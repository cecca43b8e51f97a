"""MaxMinBySpeed: max-min fairness that knows how fast each job is on each type of GPU, as Gavel (OSDI 2020).

A job's level is what it gets, in steps a second, divided by what an equal mix of all types would give it, times its
GPUs. A linear program makes the lowest level as high as possible. Many shares do that when a job cannot use more; of
those it takes the ones with the highest mean level, so that no GPU idles while a job could use it.

Jobs with the same speeds and GPUs get the same shares, so that the program has a row for each class of jobs and not
for each job. Nothing is lost by it: the mean of any shares that are best is as good for each of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from papers.sharing.rounds import SharePolicy, Shares, SharingJob

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEAN = 1e-3
"""How much the mean level counts beside the lowest: so little that no lowest level is given up for a higher mean."""

JobClass: TypeAlias = "tuple[tuple[float, ...], int]"
"""The speeds of a job and its GPUs."""


class MaxMinBySpeed(SharePolicy):
    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        counts = Counter((job.speeds, job.gpus) for job in jobs)
        levels, numbers = self._levels(tuple(counts)), np.array(list(counts.values()), dtype=np.float64)
        by_type = _solved(levels, numbers / len(jobs), *self._limits(counts)).clip(0.0, 1.0)
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
    levels: NDArray[np.float64], parts: NDArray[np.float64], limits: NDArray[np.float64], bounds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The shares by class and type; `parts` are the classes' parts of all jobs."""
    from scipy.optimize import linprog

    classes, types = levels.shape
    own = -np.kron(np.eye(classes), np.ones(types)) * levels.reshape(-1)
    goal = np.concatenate([-_MEAN * (levels * parts[:, None]).reshape(-1), [-1.0]])
    rows = np.vstack([np.hstack([limits, np.zeros((len(limits), 1))]), np.hstack([own, np.ones((classes, 1))])])
    found = linprog(goal, rows, np.concatenate([bounds, np.zeros(classes)]), method="highs")
    shares: NDArray[np.float64] = found.x[:-1].reshape(classes, types)
    return shares
