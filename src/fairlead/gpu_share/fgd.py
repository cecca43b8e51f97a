"""FgdScore: fragmentation gradient descent. A pod goes where it raises the fragmentation of its node the least.

The score is int(100 sigmoid(d / 1000)) for a fragmentation that falls by d thousandths of a GPU. That it is a whole
number matters: it makes ties, and ties that go to the first node pack better than exact differences do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.state.nodes import Nodes
from fairlead.gpu_share.fragmentation import FragmentationMeasure, GpuSums, TypicalPod
from fairlead.gpu_share.gpu_shares import MOST_GPUS, GpuRequest, GpuShares, gpu_request, gpu_shares_of
from fairlead.gpu_share.packing import GpuScore
from fairlead.gpu_share.share import fitting_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle


class _RowSums:
    """The measure, and its sums of every row, which are computed again only where GPUs have changed since: most rows
    are asked about for many kinds of pods before one of them is placed there."""

    def __init__(self, typical: Sequence[TypicalPod], shares: GpuShares) -> None:
        self.measure = FragmentationMeasure(typical, shares)
        self.made_for = _extent(shares)
        self._free = np.zeros_like(shares.free)
        self._sums = self.measure.sums(self._free)

    def of_rows(self, rows: NDArray[np.intp], free: NDArray[np.int64]) -> GpuSums:
        """The sums of some rows, which have so much free on each GPU now."""
        changed = (self._free[rows] != free).any(axis=1)
        if changed.any():
            where, now = rows[changed], free[changed]
            fresh = self.measure.sums(now)
            self._free[where], self._sums.small[where], self._sums.enough[where] = now, fresh.small, fresh.enough
        return self._sums.of_rows(rows)


class FgdScore(GpuScore):
    name = "FGDScore"

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self._typical = tuple(typical)
        self._row_sums: _RowSums | None = None

    def _sums(self, shares: GpuShares) -> _RowSums:
        """The sums that are kept; made again when nodes of a new model have come, or the table has grown."""
        kept = self._row_sums
        if kept is None or kept.made_for != _extent(shares):
            kept = self._row_sums = _RowSums(self._typical, shares)
        return kept

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        request, shares = gpu_request(cycle.pod.annotations), gpu_shares_of(cycle.cluster)
        scores = np.zeros(len(nodes), dtype=np.int64)
        fits = np.flatnonzero(fitting_rows(shares, nodes, request))
        rows = nodes.positions()[fits]
        if len(rows):
            scores[fits] = self._scores(cycle, shares, rows, request).max(axis=1)
        return scores

    def choose(self, cycle: Cycle, shares: GpuShares, row: int, request: GpuRequest) -> int:
        """The GPU of a row that a pod shares (a GpuChoice): the first with the highest score."""
        return int(self._scores(cycle, shares, np.array([row]), request)[0].argmax())

    def _scores(
        self, cycle: Cycle, shares: GpuShares, rows: NDArray[np.intp], request: GpuRequest
    ) -> NDArray[np.int64]:
        """The score of each row, for each GPU that the pod may share there; in one column if it shares none. A GPU with
        too little has -1, and so has one with as much free as another before it."""
        kept, free, model = self._sums(shares), shares.free[rows], shares.model[rows]
        measure, sums, idle = kept.measure, kept.of_rows(rows, free), free.sum(axis=1)
        cpu = Nodes(cycle.cluster.table, rows).free("cpu")
        before = measure.by_sums(sums, idle, cpu, model)
        left = cpu - cycle.pod.shape.request.get("cpu", 0)
        if not request.shared:
            # Whole GPUs are too small for no class and large enough for each.
            taken = GpuSums(sums.small, sums.enough - request.count)
            return _as_score(before - measure.by_sums(taken, idle - request.total, left, model))[:, None]
        row, gpu = np.nonzero((free >= request.milli) & ~_as_one_before(free))
        shared = measure.after_sharing(sums.of_rows(row), free[row, gpu], request.milli)
        after = measure.by_sums(shared, idle[row] - request.milli, left[row], model[row])
        scores = np.full(free.shape, -1, dtype=np.int64)
        scores[row, gpu] = _as_score(before[row] - after)
        return scores


def _extent(shares: GpuShares) -> tuple[GpuShares, int, int]:
    return shares, len(shares.models), len(shares.free)


def _as_one_before(free: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which GPUs of each row have as much free as another before them."""
    same: NDArray[np.bool_] = np.logical_and(free[:, :, None] == free[:, None, :], _BEFORE).any(axis=2)
    return same


_BEFORE = np.tri(MOST_GPUS, k=-1, dtype=np.bool_)


def _as_score(fall: NDArray[np.float64]) -> NDArray[np.int64]:
    scores: NDArray[np.int64] = (100 / (1 + np.exp(-fall / 1000))).astype(np.int64)
    return scores
