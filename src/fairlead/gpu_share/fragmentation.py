"""How much of the idle GPU of a node typical pods cannot use: the fragmentation measure of the FGD paper.

For one typical pod, a node that could host it wastes the GPUs that are too small for it; any other node wastes all that
is idle. The measure is the mean over the typical pods, weighted by how common they are. Everything is computed in
columns over rows, GPUs and typical pods.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.gpu_share.gpu_shares import GpuRequest, GpuShares

_MANY_ROWS = 256
"""Of so many rows, sums over GPUs are formed GPU by GPU: arrays over rows, GPUs and amounts do not fit the processor's
caches, and adding along their middle axis is slow."""


@dataclass(frozen=True, slots=True)
class TypicalPod:
    """A class of pods and its share of all pods."""

    cpu: int
    gpu: GpuRequest
    weight: float


def typical_pods(pods: Iterable[tuple[int, GpuRequest]], share: float = 0.95) -> tuple[TypicalPod, ...]:
    """The most common classes of cpu and GPUs that together make up a share of all pods; their weights sum to 1. Of
    equally common ones the larger comes first, as in the original."""
    counts = Counter(pods)
    wanted, found = share * counts.total(), 0
    chosen: list[tuple[tuple[int, GpuRequest], int]] = []
    for pod, count in sorted(counts.items(), key=_by_frequency, reverse=True):
        if found >= wanted:
            break
        chosen.append((pod, count))
        found += count
    return tuple(TypicalPod(cpu, gpu, count / found) for (cpu, gpu), count in chosen)


def _by_frequency(entry: tuple[tuple[int, GpuRequest], int]) -> tuple[int, int, int, int, str]:
    (cpu, gpu), count = entry
    return count, cpu, gpu.milli, gpu.count, "|".join(gpu.models)


@dataclass(frozen=True, slots=True)
class GpuSums:
    """Of rows and classes of typical pods (a row of each for a node): the idle GPU that is too small for the class, in
    thousandths, and how many GPUs are large enough for it."""

    small: NDArray[np.int64]
    enough: NDArray[np.int64]

    def of_rows(self, rows: NDArray[np.intp]) -> GpuSums:
        return GpuSums(self.small[rows], self.enough[rows])


class FragmentationMeasure:
    """The measure for one set of typical pods, on nodes whose models have the codes of a GpuShares."""

    def __init__(self, pods: Sequence[TypicalPod], shares: GpuShares) -> None:
        with_gpu = [pod for pod in pods if pod.gpu.count]
        self._gpu = np.array([pod.gpu.milli for pod in with_gpu], dtype=np.int64)
        self._parts, self._part_of = np.unique(self._gpu, return_inverse=True)
        """How much of a GPU is wanted by any class, each amount once, and which of them each class wants."""
        self._count = np.array([pod.gpu.count for pod in with_gpu], dtype=np.int64)
        self._cpu = np.array([pod.cpu for pod in with_gpu], dtype=np.int64)
        self._weight = np.array([pod.weight for pod in with_gpu])
        self._others = sum(pod.weight for pod in pods if not pod.gpu.count)
        self._allowed = np.array([shares.allowed(pod.gpu) for pod in with_gpu]).T.reshape(-1, len(with_gpu))

    @property
    def classes(self) -> int:
        """How many typical pods want GPUs."""
        return len(self._gpu)

    def of(self, free: NDArray[np.int64], cpu: NDArray[np.int64], model: NDArray[np.int64]) -> NDArray[np.float64]:
        """The fragmentation of rows with so much free on each GPU, so much free cpu, and GPUs of a model. That of a row
        without idle GPU is 0."""
        idle = free.sum(axis=1)
        found, some = np.zeros(len(free)), np.flatnonzero(idle)
        found[some] = self.by_sums(self.sums(free[some]), idle[some], cpu[some], model[some])
        return found

    def sums(self, free: NDArray[np.int64]) -> GpuSums:
        """The sums of rows with so much free on each GPU. Classes that want the same of a GPU have the same."""
        if len(free) > _MANY_ROWS:
            small, enough = _sums_by_gpu(free, self._parts)
        else:
            small, enough = _too_small(free, self._parts).sum(axis=1), _large_enough(free, self._parts).sum(axis=1)
        return GpuSums(small.take(self._part_of, axis=1), enough.take(self._part_of, axis=1))

    def after_sharing(self, sums: GpuSums, free: NDArray[np.int64], milli: int) -> GpuSums:
        """The sums of rows when so much is taken of one GPU that has `free`."""
        left = free - milli
        return GpuSums(
            sums.small + (_too_small(left, self._gpu) - _too_small(free, self._gpu)),
            sums.enough + (_large_enough(left, self._gpu) - _large_enough(free, self._gpu)),
        )

    def by_sums(
        self, sums: GpuSums, idle: NDArray[np.int64], cpu: NDArray[np.int64], model: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """The fragmentation of rows by their sums, idle GPU, free cpu and model. Each row's is added up in the same
        order, however many rows there are: scores are rounded down, so equal rows must come out equal."""
        hosts = (sums.enough >= self._count) & ((cpu[:, None] >= self._cpu) & self._allowed[model])
        wasted: NDArray[np.float64] = (np.where(hosts, sums.small, idle[:, None]) * self._weight).sum(axis=1)
        return wasted + self._others * idle


def _sums_by_gpu(free: NDArray[np.int64], wanted: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """What the two functions below add up to over the GPUs of each row, one GPU after the other."""
    amounts, levels = free.T.astype(np.int32), wanted.astype(np.int32)
    small, enough = np.zeros((2, len(free), len(wanted)), dtype=np.int32)
    for gpu in amounts:
        of_row = gpu[:, None]
        large = of_row >= levels
        enough += large
        small += of_row * ~large
    return small.astype(np.int64), enough.astype(np.int64)


def _too_small(free: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """What is free on each GPU, for each amount that is wanted, where it is less than that."""
    spread = free[..., None]
    small: NDArray[np.int64] = spread * (spread < wanted)
    return small


def _large_enough(free: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """1 for each GPU and each amount that is wanted where as much is free."""
    return (free[..., None] >= wanted).astype(np.int64)
