"""ScarcityScore: a pod goes where it takes the least of what is scarce for typical pods with GPUs.

FGD asks of a node whether one more typical pod would find a place there. This score asks how many would: the room of a
class on a node is the GPU that pods of that class alone could still take there, with the cpu that is left. So cpu has a
price long before the last pod that needs it is refused, and pods without GPUs go where cpu is plentiful. The loss of
room of each class counts in proportion to how common the class is, divided by the room that it has on all nodes: room
for pods that only few nodes can host is dear, and pods that can run anywhere leave it to them. Losses are rounded down
to steps, because small differences between nodes are worth less than filling nodes in one order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Plugin
from fairlead.gpu_share.gpu_shares import WHOLE, GpuRequest, GpuShares, gpu_request, gpu_shares_of
from fairlead.gpu_share.share import fullest_of_each

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.nodes import Nodes
    from fairlead.core.state.table import NodeTable
    from fairlead.gpu_share.fragmentation import TypicalPod

_STEP = 250
"""Losses are distinguished in steps of so many thousandths of a GPU of room, of every class at once."""


class TypicalRoom:
    """The room of each class on each row, kept up to date row by row, and its sum over all rows."""

    def __init__(self, pods: Sequence[TypicalPod], shares: GpuShares) -> None:
        pods = [pod for pod in pods if pod.gpu.count]
        self._cpu = np.maximum([pod.cpu for pod in pods], 1)
        self._count = np.array([pod.gpu.count for pod in pods], dtype=np.int64)
        milli = np.array([pod.gpu.milli for pod in pods], dtype=np.int64)
        self._size = milli * self._count
        self._weight = np.array([pod.weight for pod in pods]) / np.sqrt(np.maximum(self._size, 1))
        """How common a class is; a large pod loses room in large pieces, and counts less."""
        self._allowed = np.array([shares.allowed(pod.gpu) for pod in pods]).T.reshape(-1, len(pods))
        left = np.arange(WHOLE + 1)[:, None]
        self._fitting = np.where(milli < WHOLE, left // np.minimum(milli, WHOLE), left == WHOLE)
        """For each amount that may be free on a GPU, how many pods of each class fit."""
        self._sums = np.zeros((0, len(pods)), dtype=np.int64)
        """Of each row: how many pods of each class its GPUs fit one by one."""
        self._free = np.zeros((0, 0), dtype=np.int64)
        self._left = np.zeros(0, dtype=np.int64)
        self._room = np.zeros((0, len(pods)), dtype=np.int64)

    def _room_for(
        self, fitting: NDArray[np.int64], cpu: NDArray[np.int64], model: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The room of each class on rows whose GPUs one by one fit so many, with so much cpu left."""
        pods = np.minimum(fitting // self._count, cpu[:, None] // self._cpu)
        room: NDArray[np.int64] = np.maximum(pods, 0) * self._size * self._allowed[model]
        return room

    def refresh(self, table: NodeTable, shares: GpuShares) -> None:
        """Compute anew what changed since the last time."""
        free = shares.free[: table.high]
        left = (table.allocatable_column("cpu") - table.requested_column("cpu"))[: table.high]
        if len(self._left) != len(left):
            changed = np.arange(len(left))
            self._room = np.zeros((len(left), len(self._size)), dtype=np.int64)
            self._sums = np.zeros_like(self._room)
        else:
            changed = np.flatnonzero((self._free != free).any(axis=1) | (self._left != left))
        self._sums[changed] = self._fitting[free[changed]].sum(axis=1)
        self._room[changed] = self._room_for(self._sums[changed], left[changed], shares.model[changed])
        self._free, self._left = free.copy(), left.copy()

    def losses(
        self, rows: NDArray[np.intp], request: GpuRequest, cpu: NDArray[np.int64], model: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """What each row loses by a pod with this request that leaves so much cpu there, in steps. The pod gets the
        fullest GPU that fits, or whole ones."""
        fitting = self._sums[rows]
        if request.shared:
            free = self._free[rows]
            had = free[np.arange(len(rows)), fullest_of_each(free, request)]
            fitting = fitting + self._fitting[np.maximum(had - request.milli, 0)] - self._fitting[had]
        elif request.count:
            fitting = fitting - request.count * self._fitting[WHOLE]
        prices = self._weight / np.maximum(self._room.sum(axis=0), 1)
        losses = (self._room[rows] - self._room_for(fitting, cpu, model)) @ prices
        steps: NDArray[np.int64] = np.floor(losses / (prices.sum() * _STEP)).astype(np.int64)
        return steps


class ScarcityScore(Plugin):
    """The hundred best places have scores of their own; all others score 0."""

    name = "ScarcityScore"

    def __init__(self, typical: Sequence[TypicalPod]) -> None:
        self._typical = tuple(typical)
        self._room: TypicalRoom | None = None
        self._models = -1

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        shares, table = gpu_shares_of(cycle.cluster), cycle.cluster.table
        if self._room is None or self._models != len(shares.models):
            self._models = len(shares.models)
            self._room = TypicalRoom(self._typical, shares)
        self._room.refresh(table, shares)
        rows = nodes.positions()
        cpu = nodes.free("cpu") - cycle.pod.shape.request.get("cpu", 0)
        return -self._room.losses(rows, gpu_request(cycle.pod.annotations), cpu, shares.model[rows])

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        best_first = np.unique(-raw, return_inverse=True)[1].reshape(-1)
        scores: NDArray[np.int64] = np.maximum(100 - best_first, 0).astype(np.int64)
        return scores
