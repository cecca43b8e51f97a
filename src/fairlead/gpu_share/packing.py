"""Four scores for pods with GPUs that the FGD paper compares with, each in columns and in its whole numbers.

`BestFitScore` leaves the least cpu and GPU, `DotProductScore` takes the node whose free amounts point least in the
direction of the pod, `GpuPackingScore` prefers used GPUs, then used nodes, and `GpuClusteringScore` nodes that run pods
of the same kind.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.gpu_share.gpu_shares import WHOLE, gpu_request, gpu_shares_of
from fairlead.gpu_share.share import GPU_PARTS, gpu_cache_key

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.nodes import Nodes

LARGEST_CPU = 128_000
LARGEST_GPU = 8_000
"""The cpu and GPU of the largest machine, in thousandths; the scores are relative to it."""


class GpuScore(CachedPlugin):
    """A score by what is counted on the row: free cpu, free GPUs, and pods by the kind of their request."""

    scope = Scope.COUNTED
    reads = frozenset({"spec"}) | GPU_PARTS

    def cache_key(self, pod: Pod) -> Hashable:
        return gpu_cache_key(pod)


class BestFitScore(GpuScore):
    name = "BestFitScore"

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        cpu = nodes.free("cpu") - cycle.pod.shape.request.get("cpu", 0)
        free = gpu_shares_of(cycle.cluster).free[nodes.positions()].sum(axis=1)
        gpu = free - gpu_request(cycle.pod.annotations).total
        left = cpu / LARGEST_CPU * 0.5 + gpu / LARGEST_GPU * 0.5
        scores: NDArray[np.int64] = np.clip((1.0 - left) * 100, 0, 100).astype(np.int64)
        return scores

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        low, high = int(raw.min()), int(raw.max())
        spread: NDArray[np.int64] = np.zeros_like(raw) if low == high else (raw - low) * 100 // (high - low)
        return spread


class DotProductScore(GpuScore):
    name = "DotProductScore"

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        cpu = nodes.free("cpu") / LARGEST_CPU * (cycle.pod.shape.request.get("cpu", 0) / LARGEST_CPU)
        free = gpu_shares_of(cycle.cluster).free[nodes.positions()].sum(axis=1)
        gpu = free / LARGEST_GPU * (gpu_request(cycle.pod.annotations).total / LARGEST_GPU)
        scores: NDArray[np.int64] = ((1.0 - (cpu + gpu) / 2) * 100).clip(0, 100).astype(np.int64)
        return scores


class GpuPackingScore(GpuScore):
    name = "GpuPackingScore"

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        request = gpu_request(cycle.pod.annotations)
        if not request.count:
            return 0
        shares = gpu_shares_of(cycle.cluster)
        free, gpus = shares.free[nodes.positions()], shares.gpus[nodes.positions()]
        whole = (free == WHOLE).sum(axis=1)
        fitting = np.sort(np.where(free >= request.milli, free, WHOLE + 1), axis=1)[:, : request.count]
        fits = fitting[:, -1] <= WHOLE
        new = (fitting == WHOLE).sum(axis=1)
        used = np.maximum(100 - (fitting * 100 // WHOLE).sum(axis=1) // 10, 50)
        scores = np.where(new > 0, np.maximum(50 - new, 33), used)
        scores = np.where(whole == gpus, np.maximum(33 - whole, whole), scores)
        chosen: NDArray[np.int64] = np.where(fits, scores, 0)
        return chosen


class GpuClusteringScore(GpuScore):
    name = "GpuClusteringScore"

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        request = gpu_request(cycle.pod.annotations)
        if not request.count:
            return 0
        shares, rows = gpu_shares_of(cycle.cluster), nodes.positions()
        kinds = shares.kinds[rows]
        same, different = kinds[:, request.kind] > 0, (kinds > 0).sum(axis=1)
        band = np.where(same, np.where(different == 1, 75, 50), np.where(different == 0, 25, 0))
        fuller: NDArray[np.int64] = 25 * (LARGEST_GPU - shares.free[rows].sum(axis=1)) // LARGEST_GPU + band
        return fuller
