"""The FGD paper's runs on Alibaba's GPU trace: `expected_allo.csv.gz` and two more with curves per workload and policy.

The authors' arrivals and names of nodes are drawn again from their seeds, so that a run of theirs is repeated and each
seed compared with the same seed. The policy Random draws further while it runs, in an order that parallel workers of
the original make, which nobody can repeat: its mean is compared with that of all recorded runs. Means of ten such runs
scatter by nearly half a point, theirs and ours, so that further sets of runs are made if the first is beyond the
bounds, and a curve is said to differ if none of sixteen is within them.

GPU allocated, and fragmented, in percents of all GPU, must be within 0.5 at every arrival ratio; fragmented in percents
of idle GPU within 0.5, and within 2 where that curve is steep. With fewer than ten seeds the bounds are 0.8 and 2.5.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from fairlead.lab.omega.setup import ExperimentError, packed_or_not, read_rows
from papers.fragmentation.policies import POLICY_NAMES, RANDOM
from papers.fragmentation.run import COLUMNS, FragmentationCurves, place_all
from papers.fragmentation.trace import arrivals, read_nodes, read_pods

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from papers.reference.checks import CheckOptions, ReferenceCheck

_NODES = "openb_node_list_gpu_node.csv"
_CURVES = {
    "allocated": "expected_allo.csv.gz",
    "fragmented": "expected_frag.csv.gz",
    "fragmented_idle": "expected_frag_ratio.csv.gz",
}
_STEEP = range(75, 98)
"""Arrival ratios between which the fragmented share of idle GPU rises steeply."""
FIRST_SEED = 42
FEW_SEEDS, MANY_SEEDS = 3, 10
_SETS = 16
"""So many sets of Random's runs are made at the most; each has a run for each seed."""


def is_openb(directory: Path) -> bool:
    return (directory / _CURVES["allocated"]).is_file()


def openb_checks(directory: Path, options: CheckOptions) -> Iterator[ReferenceCheck]:
    count = options.seeds or (MANY_SEEDS if options.everything else FEW_SEEDS)
    recorded: dict[tuple[str, str], set[int]] = {}
    for row in read_rows(directory / _CURVES["allocated"], ("workload", "sc_policy", "seed")):
        recorded.setdefault((row["workload"], row["sc_policy"]), set()).add(int(row["seed"]))
    for (workload, policy), seeds in recorded.items():
        if policy not in POLICY_NAMES:
            known = ", ".join(POLICY_NAMES)
            raise ExperimentError(f"{directory / _CURVES['allocated']}: no policy {policy}; known are {known}")
        listed = tuple(sorted(seeds))
        yield OpenbCurves(directory, workload, policy, listed[:count], listed[count:])


@dataclass(frozen=True)
class OpenbCurves:
    """The curves of one workload and policy, as means over seeds."""

    directory: Path
    workload: str
    policy: str
    seeds: tuple[int, ...]
    other_seeds: tuple[int, ...] = ()
    """Seeds that were recorded too, and are run if Random differs."""

    @property
    def name(self) -> str:
        return f"{self.workload.removeprefix('openb_pod_list_')}/{self.policy}"

    def differences(self) -> list[str]:
        found: list[str] = []
        for runs in self._sets():
            found = self._beyond(self.played(runs))
            if not found:
                break
        return found

    def _sets(self) -> Iterator[list[tuple[int, int]]]:
        """Seeds and draws of the runs to be judged, and then, of Random, of those to be judged instead if they differ:
        all recorded seeds, with other draws."""
        yield [(seed, 0) for seed in self.seeds]
        if self.policy == RANDOM:
            for draw in range(0 if self.other_seeds else 1, _SETS):
                yield [(seed, draw) for seed in (*self.seeds, *self.other_seeds)]

    def played(self, runs: Iterable[tuple[int, int]]) -> list[FragmentationCurves]:
        """A run for each seed and number, by which Random's draws differ."""
        return [self._run(seed, draw) for seed, draw in runs]

    def _beyond(self, runs: list[FragmentationCurves]) -> list[str]:
        found = []
        for curve, gap in self.gaps(runs).items():
            beyond = gap - self._bounds(curve)
            if (beyond > 0).any():
                at = int(beyond.argmax())
                found.append(f"{curve} at {at} % arrival is {gap[at]:.2f} away from {self._recorded(curve)[at]:.2f}")
        return found

    def gaps(self, runs: list[FragmentationCurves]) -> dict[str, NDArray[np.float64]]:
        """How far the mean of each curve is from the recorded one, at each arrival ratio."""
        means = {curve: np.mean([getattr(run, curve) for run in runs], axis=0) for curve in _CURVES}
        return {curve: np.abs(mean - self._recorded(curve)) for curve, mean in means.items()}

    def _run(self, seed: int, draw: int) -> FragmentationCurves:
        nodes = read_nodes(packed_or_not(self.directory / _NODES))
        pods = read_pods(packed_or_not(self.directory / f"{self.workload}.csv"))
        return place_all(self.policy, pods, arrivals(pods, nodes, seed), draw)

    def _recorded(self, curve: str) -> NDArray[np.float64]:
        """The mean of the recorded runs with the same seeds; of Random, of all."""
        lines = [
            [float(row[str(ratio)]) for ratio in range(COLUMNS)]
            for row in read_rows(self.directory / _CURVES[curve])
            if (row["workload"], row["sc_policy"]) == (self.workload, self.policy)
            and (self.policy == RANDOM or int(row["seed"]) in self.seeds)
        ]
        if not lines:
            raise ExperimentError(f"{self.directory / _CURVES[curve]}: nothing about {self.workload}, {self.policy}")
        mean: NDArray[np.float64] = np.mean(lines, axis=0)
        return mean

    def _bounds(self, curve: str) -> NDArray[np.float64]:
        usual, steep = (0.5, 2.0) if len(self.seeds) >= MANY_SEEDS else (0.8, 2.5)
        bounds = np.full(COLUMNS, usual)
        if curve == "fragmented_idle":
            bounds[_STEEP.start : _STEEP.stop] = steep
        return bounds
