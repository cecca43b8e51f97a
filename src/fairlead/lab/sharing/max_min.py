"""MaxMinBySpeed: max-min fairness that knows how fast each job is on each type of GPU, as Gavel (OSDI 2020).

A job's level is what it gets, in steps a second, divided by what an equal mix of all types would give it, times its
GPUs. A linear program makes the lowest level as high as possible. Many shares do that when a job cannot use more; of
those a second program takes the ones with the highest sum of levels, so that no GPU idles while a job could use it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.lab.sharing.rounds import SharePolicy, Shares, SharingJob

if TYPE_CHECKING:
    from numpy.typing import NDArray

_SLACK = 1e-7
"""By how much of it the second program may lower the lowest level: programs are solved to such a precision."""


class MaxMinBySpeed(SharePolicy):
    def shares(self, jobs: Sequence[SharingJob], now: float) -> Shares:
        levels = self._levels(jobs)
        limits, bounds = self._limits(jobs)
        lowest, _ = _solved(levels, limits, bounds, None)
        _, shares = _solved(levels, limits, bounds, lowest * (1 - _SLACK))
        by_type = shares.reshape(len(jobs), len(self.capacity)).clip(0.0, 1.0)
        return {job.id: tuple(row) for job, row in zip(jobs, by_type.tolist(), strict=True)}

    def _levels(self, jobs: Sequence[SharingJob]) -> NDArray[np.float64]:
        """By job and type: the level that a job has which runs there all the time."""
        speeds = np.array([job.speeds for job in jobs])
        equal = speeds @ (np.array(self.capacity) / self.gpus)
        gpus = np.array([job.gpus for job in jobs])
        found: NDArray[np.float64] = speeds * (gpus / equal)[:, None]
        return found

    def _limits(self, jobs: Sequence[SharingJob]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Rows of `shares @ row <= bound`: nobody runs more than all the time, and no type has more GPUs than there
        are."""
        types = len(self.capacity)
        own = np.kron(np.eye(len(jobs)), np.ones(types))
        used = np.kron(np.array([job.gpus for job in jobs], dtype=np.float64), np.eye(types))
        return np.vstack([own, used]), np.concatenate([np.ones(len(jobs)), np.array(self.capacity, dtype=np.float64)])


def _solved(
    levels: NDArray[np.float64], limits: NDArray[np.float64], bounds: NDArray[np.float64], least: float | None
) -> tuple[float, NDArray[np.float64]]:
    """The lowest level and the shares: of those with the highest lowest level, or, given a lowest level, of those with
    the highest sum."""
    from scipy.optimize import linprog

    jobs, types = levels.shape
    own = -np.kron(np.eye(jobs), np.ones(types)) * levels.reshape(-1)
    if least is None:
        goal = np.concatenate([np.zeros(jobs * types), [-1.0]])
        rows = np.vstack([np.hstack([limits, np.zeros((len(limits), 1))]), np.hstack([own, np.ones((jobs, 1))])])
        found = linprog(goal, rows, np.concatenate([bounds, np.zeros(jobs)]), method="highs")
        return float(found.x[-1]), found.x[:-1]
    goal = -levels.reshape(-1)
    found = linprog(goal, np.vstack([limits, own]), np.concatenate([bounds, np.full(jobs, -least)]), method="highs")
    return least, found.x
