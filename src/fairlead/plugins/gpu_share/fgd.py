"""FgdScore: fragmentation gradient descent. A pod goes where it raises the fragmentation of its node the least.

The score is int(100 sigmoid(d / 1000)) for a fragmentation that falls by d thousandths of a GPU. That it is a whole
number matters: it makes ties, and ties that go to the first node pack better than exact differences do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.plugins.gpu_share.fragmentation import FragmentationMeasure, TypicalPod
from fairlead.plugins.gpu_share.packing import GpuScore
from fairlead.plugins.gpu_share.share import fitting_rows
from fairlead.state.gpu_shares import WHOLE, GpuRequest, GpuShares, gpu_request, gpu_shares_of
from fairlead.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle


class FgdScore(GpuScore):
    name = "FGDScore"
    scores_in_range = True

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self._typical = tuple(typical)
        self._measure: FragmentationMeasure | None = None
        self._models = -1

    def measure(self, shares: GpuShares) -> FragmentationMeasure:
        """The measure, made again when nodes of a new model have come."""
        if self._measure is None or self._models != len(shares.models):
            self._models = len(shares.models)
            self._measure = FragmentationMeasure(self._typical, shares)
        return self._measure

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
        too little has -1."""
        measure, free, model = self.measure(shares), shares.free[rows], shares.model[rows]
        cpu = Nodes(cycle.cluster.table, rows).free("cpu")
        before = measure.of(free, cpu, model)[:, None]
        left = cpu - cycle.pod.shape.request.get("cpu", 0)
        if request.shared:
            after = measure.after_sharing(free, left, model, request.milli)
            return np.where(free >= request.milli, _as_score(before - after), -1)
        taken = (free == WHOLE) & ((free == WHOLE).cumsum(axis=1) <= request.count)
        return _as_score(before - measure.of(np.where(taken, 0, free), left, model)[:, None])


def _as_score(fall: NDArray[np.float64]) -> NDArray[np.int64]:
    scores: NDArray[np.int64] = (100 / (1 + np.exp(-fall / 1000))).astype(np.int64)
    return scores
