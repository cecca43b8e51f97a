"""One run: every arrival is tried once with the scheduler's own attempt, and what it does to the cluster is recorded.

Ties go to the node with the smallest name. As in the original each seed names the nodes anew: nodes get their rows in
the order that the seed drew, and the generator of the attempts always draws the first. The policy Random draws on with
the original's generator. Its runs are not repeated by that, because the original draws among nodes in the order in
which parallel workers find them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.engine.cycle.attempt import Committed, attempt
from fairlead.core.engine.cycle.choice import FirstOfEquals
from fairlead.core.engine.cycle.placement import Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.gpu_share.fragmentation import FragmentationMeasure, TypicalPod, typical_pods
from fairlead.gpu_share.gpu_shares import MOST_GPUS, WHOLE, gpu_shares_of
from papers.fragmentation.go_random import GoRandom
from papers.fragmentation.policies import RANDOM, SCARCITY, policy_profile

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.profile import Profile
    from papers.fragmentation.trace import Arrivals, TracePod

COLUMNS = 131
"""Arrival ratios from 0 to 130 %."""


@dataclass(frozen=True)
class FragmentationCurves:
    """At each arrival ratio in whole percents: GPU allocated, and fragmented, in percents of all GPU, and fragmented in
    percents of what is idle."""

    allocated: NDArray[np.float64]
    fragmented: NDArray[np.float64]
    fragmented_idle: NDArray[np.float64]


class _Recorder:
    """The state of the one row that each placement changed, from which the curves are computed at the end."""

    def __init__(self, cluster: Cluster, arrivals: int) -> None:
        self.cluster = cluster
        self.shares = gpu_shares_of(cluster)
        self.arrived = np.zeros(arrivals + 1, dtype=np.int64)
        self.row = np.full(arrivals + 1, -1, dtype=np.int64)
        self.free = np.zeros((arrivals + 1, MOST_GPUS), dtype=np.int64)
        self.cpu = np.zeros(arrivals + 1, dtype=np.int64)
        self.first_free = self.shares.free[: cluster.table.high].copy()
        self.first_cpu = self._cpu_left()

    def _cpu_left(self) -> NDArray[np.int64]:
        table = self.cluster.table
        left: NDArray[np.int64] = table.allocatable_column("cpu") - table.requested_column("cpu")
        return left[: table.high]

    def note(self, number: int, asked: int, row: int) -> None:
        self.arrived[number + 1] = self.arrived[number] + asked
        if row >= 0:
            table = self.cluster.table
            self.row[number + 1] = row
            self.free[number + 1] = self.shares.free[row]
            self.cpu[number + 1] = table.allocatable_column("cpu")[row] - table.requested_column("cpu")[row]

    def curves(self, measure: FragmentationMeasure) -> FragmentationCurves:
        total = int(self.first_free.sum())
        model = self.shares.model[: len(self.first_cpu)]
        first = measure.of(self.first_free, self.first_cpu, model)
        placed = np.flatnonzero(self.row >= 0)
        after = np.concatenate(
            [
                measure.of(self.free[part], self.cpu[part], model[self.row[part]])
                for part in np.array_split(placed, max(1, len(placed) // 1000))
            ]
        )
        idle_now, waste_now = self.first_free.sum(axis=1), first.copy()
        idle = np.full(len(self.row), total, dtype=np.float64)
        waste = np.full(len(self.row), first.sum())
        steps = np.zeros((2, len(self.row)))
        for number, value in zip(placed.tolist(), after.tolist(), strict=True):
            row = int(self.row[number])
            left = int(self.free[number].sum())
            steps[:, number] = left - idle_now[row], value - waste_now[row]
            idle_now[row], waste_now[row] = left, value
        idle += steps[0].cumsum()
        waste += steps[1].cumsum()
        ratio = np.rint(self.arrived / total * 100).astype(np.int64)
        allocated = np.round((total - idle) / total * 100, 2)
        fragmented = waste / total * 100
        of_idle = np.divide(waste * 100, idle, out=np.zeros_like(waste), where=idle > 0)
        return FragmentationCurves(*(_by_ratio(ratio, values) for values in (allocated, fragmented, of_idle)))


def _by_ratio(ratio: NDArray[np.int64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The mean of all records of a ratio; of its neighbours where there are none."""
    counts = np.bincount(ratio, minlength=COLUMNS)[:COLUMNS]
    sums = np.bincount(ratio, weights=values, minlength=COLUMNS)[:COLUMNS]
    known = np.flatnonzero(counts)
    return np.interp(np.arange(COLUMNS), known, sums[known] / counts[known])


class _GoDraws(Random):
    """The numbers of a GoRandom, for those who ask a Random."""

    def __init__(self, numbers: GoRandom) -> None:
        super().__init__(0)
        self._numbers = numbers

    def randrange(self, start: int, stop: int | None = None, step: int = 1) -> int:
        return self._numbers.intn(start) if stop is None else start + self._numbers.intn(stop - start)


def _draws(arriving: Arrivals, draw: int) -> Random:
    """The generator of Random's run with this number: of the first one that of the arrivals, which goes on."""
    numbers = arriving.rng.copy()
    for _ in range(draw):
        numbers = GoRandom(numbers.int63())
    return _GoDraws(numbers)


def place_all(policy: str, trace: Sequence[TracePod], arriving: Arrivals, draw: int = 0) -> FragmentationCurves:
    """Try all arrivals with a policy. The typical pods are those of the trace. Runs of Random differ by `draw`."""
    typical = typical_pods((pod.cpu, pod.gpu) for pod in trace)
    rng = _draws(arriving, draw) if policy == RANDOM else FirstOfEquals()
    with_gpus = typical_pods((pod.cpu, pod.gpu) for pod in trace if pod.gpu.count)
    profile = policy_profile(policy, with_gpus if policy == SCARCITY else typical)
    return place_with(profile, typical, arriving, rng)


def place_with(profile: Profile, typical: Sequence[TypicalPod], arriving: Arrivals, rng: Random) -> FragmentationCurves:
    """Try all arrivals with a profile; the generator breaks ties."""
    cluster = Cluster()
    for node in arriving.nodes:
        _apply(cluster, kinds.NODE, node.document())
    recorder = _Recorder(cluster, len(arriving.pods))
    evaluator, search = Evaluator(profile), Search()
    for number, pod in enumerate(arriving.pods):
        document = pod.document(number)
        compiled = _apply(cluster, kinds.POD, document)
        cycle = Cycle(pod=compiled, cluster=cluster, profile=profile, now=0.0, rng=rng, effects=Effects())
        answer = attempt(cycle, evaluator, search)
        placed = isinstance(answer, Committed)
        recorder.note(number, pod.gpu.total, answer.placed.row if isinstance(answer, Committed) else -1)
        if not placed:
            cluster.apply(Change(Happened.DELETED, kinds.POD, document))
    return recorder.curves(FragmentationMeasure(typical, gpu_shares_of(cluster)))


def _apply(cluster: Cluster, kind: kinds.Kind, document: dict[str, Any]) -> Any:
    applied = cluster.apply(Change(Happened.ADDED, kind, document))
    assert applied is not None, cluster.refused[-1]
    return applied.new


def unallocated_at_full_arrival(curves: FragmentationCurves) -> float:
    """GPU that nobody has, in percents, when as much has been asked for as there is."""
    return 100 - float(curves.allocated[100])


__all__ = ["WHOLE", "FirstOfEquals", "FragmentationCurves", "place_all", "place_with", "unallocated_at_full_arrival"]
