"""GpuShares: what is free on each GPU of each node, in thousandths, where pods share GPUs or take whole ones.

Requests and placements are in the annotations of Alibaba's open-gpu-share: `alibabacloud.com/gpu-count` and
`gpu-milli` are what a pod wants (so many GPUs, so much of each), `gpu-card-model` the models that will do, and
`gpu-index` the GPUs that it has got. A node has `alibabacloud.com/gpu-count` among its allocatable resources, and its
model as a label.

Invariant: `free[row]` is 1000 for each GPU of the node, less what the pods take that are on it and have their GPUs;
`largest[:, row]` is the same in descending order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.records import record

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

COUNT = "alibabacloud.com/gpu-count"
MILLI = "alibabacloud.com/gpu-milli"
MODEL = "alibabacloud.com/gpu-card-model"
INDEX = "alibabacloud.com/gpu-index"
WHOLE = 1000
MOST_GPUS = 8
"""GPUs of one node that are looked at."""
SHARED_KIND = 0
"""Pods that share a GPU are of kind 0, pods with n whole GPUs of kind n."""


@record(frozen=True, slots=True)
class GpuRequest:
    """GPUs that a pod wants: how many, how much of each in thousandths, and which models will do (none: any).

    Models are as the pod lists them: typical pods are counted by that text, as in FGD's own program."""

    count: int
    milli: int
    models: tuple[str, ...]

    @property
    def shared(self) -> bool:
        return self.count == 1 and self.milli < WHOLE

    @property
    def total(self) -> int:
        return self.count * self.milli

    @property
    def kind(self) -> int:
        return SHARED_KIND if self.shared else self.count


NO_GPU = GpuRequest(0, 0, ())


def gpu_request(annotations: Mapping[str, str]) -> GpuRequest:
    """What a pod's annotations request; nothing if they cannot be understood, which `gpu_request_error` reports."""
    parsed = _parsed(annotations.get(COUNT, ""), annotations.get(MILLI, ""), annotations.get(MODEL, ""))
    return NO_GPU if isinstance(parsed, str) else parsed


def gpu_request_error(annotations: Mapping[str, str]) -> str:
    """Which annotation cannot be understood, and why; empty if all can."""
    parsed = _parsed(annotations.get(COUNT, ""), annotations.get(MILLI, ""), annotations.get(MODEL, ""))
    return parsed if isinstance(parsed, str) else ""


@lru_cache(maxsize=4096)
def _parsed(count: str, milli: str, models: str) -> GpuRequest | str:
    if not count and not milli:
        return NO_GPU
    count, milli = count or "1", milli or str(WHOLE)
    if not count.isdecimal() or int(count) > MOST_GPUS:
        return f"annotation {COUNT}: {count!r} is no number from 0 to {MOST_GPUS}"
    if not milli.isdecimal() or not 0 < int(milli) <= WHOLE:
        return f"annotation {MILLI}: {milli!r} is no number from 1 to {WHOLE}"
    if int(count) > 1 and int(milli) < WHOLE:
        return f"annotation {MILLI}: {milli} of each of {count} GPUs; parts can be had of one GPU only"
    return GpuRequest(int(count), int(milli), tuple(filter(None, models.split("|")))) if int(count) else NO_GPU


@lru_cache(maxsize=4096)
def _indexes(text: str) -> tuple[int, ...]:
    """GPUs as the annotation lists them, `0-3`; none if it cannot be read."""
    numbers = text.split("-")
    readable = all(number.isdecimal() and int(number) < MOST_GPUS for number in numbers)
    return tuple(map(int, numbers)) if readable else ()


class GpuShares:
    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self.free: NDArray[np.int64] = np.zeros((cluster.table.capacity, MOST_GPUS), dtype=np.int64)
        self.largest: NDArray[np.int64] = np.zeros((MOST_GPUS, cluster.table.capacity), dtype=np.int64)
        """Line n has what is free on the GPU of each node that comes after n others in the order of that: whether a
        node has three GPUs with so much left is a look at line 2."""
        self.gpus: NDArray[np.int64] = np.zeros(cluster.table.capacity, dtype=np.int64)
        self.kinds: NDArray[np.int64] = np.zeros((cluster.table.capacity, MOST_GPUS + 1), dtype=np.int64)
        """How many pods of each kind are on a node."""
        self.model: NDArray[np.int64] = np.zeros(cluster.table.capacity, dtype=np.int64)
        self.models: dict[str, int] = {}
        """Codes of the models that nodes have; 0 is none."""
        self._allowed: dict[GpuRequest, NDArray[np.bool_]] = {}
        self._taken: dict[str, tuple[int, tuple[int, ...], int]] = {}
        for row in range(cluster.table.high):
            self.node_changed(row)

    # ---- changes ----

    def node_changed(self, row: int) -> None:
        self._widen(row)
        node = self._table.nodes[row]
        count = min(node.allocatable.get(COUNT, 0), MOST_GPUS) if node is not None else 0
        self.free[row] += np.where(np.arange(MOST_GPUS) < count, WHOLE, 0)
        self.free[row] -= np.where(np.arange(MOST_GPUS) < self.gpus[row], WHOLE, 0)
        self.gpus[row] = count
        self._add(row, (), 0)  # nothing is added; what is free is put in order again
        model = node.labels.get(MODEL) if node is not None else None
        if model and model not in self.models:
            self.models[model] = len(self.models) + 1
            self._allowed.clear()
        self.model[row] = self.models[model] if model else 0

    def occupied(self, pod: Pod, row: int) -> None:
        if not pod.annotations:
            return
        request = gpu_request(pod.annotations)
        if request.count:
            self._widen(row)
            self.kinds[row, request.kind] += 1
            index = pod.annotations.get(INDEX)
            if index and (gpus := _indexes(index)):
                self.take(pod.uid, row, gpus, request.milli)

    def vacated(self, pod: Pod, row: int) -> None:
        if not pod.annotations:
            return
        request = gpu_request(pod.annotations)
        if request.count:
            self.kinds[row, request.kind] -= 1
            self.give_back(pod.uid)

    def take(self, uid: str, row: int, gpus: Sequence[int], milli: int) -> None:
        """Give GPUs of a row to a pod."""
        if uid in self._taken:
            self.give_back(uid)
        self._add(row, gpus, -milli)
        self._taken[uid] = (row, tuple(gpus), milli)

    def give_back(self, uid: str) -> None:
        taken = self._taken.pop(uid, None)
        if taken is not None:
            row, gpus, milli = taken
            self._add(row, gpus, milli)

    def holders(self, row: int) -> dict[int, list[str]]:
        """Which pods (uids) have which GPUs of a row, for explanations."""
        found: dict[int, list[str]] = {}
        for uid, (taken, gpus, _) in self._taken.items():
            for gpu in gpus if taken == row else ():
                found.setdefault(gpu, []).append(uid)
        return found

    def _add(self, row: int, gpus: Sequence[int], milli: int) -> None:
        """Change what is free on some GPUs of a row."""
        here = self.free[row]
        free: list[int] = here.tolist()
        for gpu in gpus:
            free[gpu] += milli
            here[gpu] = free[gpu]
        free.sort(reverse=True)
        self.largest[:, row] = free

    def _widen(self, row: int) -> None:
        if row >= len(self.gpus):
            size = max(self._table.capacity, row + 1)
            for name in ("free", "gpus", "kinds", "model"):
                column = getattr(self, name)
                wider = np.zeros((size, *column.shape[1:]), dtype=np.int64)
                wider[: len(column)] = column
                setattr(self, name, wider)
            self.largest = np.pad(self.largest, ((0, 0), (0, size - self.largest.shape[1])))

    # ---- questions ----

    def allowed(self, request: GpuRequest) -> NDArray[np.bool_]:
        """For each code of a model, whether it will do for a request; to be read, not written."""
        allowed = self._allowed.get(request)
        if allowed is None:
            allowed = self._allowed[request] = np.zeros(len(self.models) + 1, dtype=np.bool_)
            codes = self.models.values() if not request.models else map(self.models.get, request.models)
            allowed[[code for code in codes if code is not None]] = True
            allowed[0] = not request.models
        return allowed

    def fits(self, row: int, request: GpuRequest) -> bool:
        """Whether a row has GPUs for a request that wants some, of a model that will do."""
        return self.largest.item(request.count - 1, row) >= request.milli and bool(
            self.allowed(request).item(self.model.item(row))
        )

    def fitting(self, rows: NDArray[np.intp], request: GpuRequest) -> NDArray[np.bool_]:
        """The same for many rows, as a mask."""
        enough: NDArray[np.bool_] = self.largest[request.count - 1].take(rows) >= request.milli
        enough &= self.allowed(request).take(self.model.take(rows))
        return enough


def gpu_shares_of(cluster: Cluster) -> GpuShares:
    return cluster.index(GpuShares, GpuShares)
