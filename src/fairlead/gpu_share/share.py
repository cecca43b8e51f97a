"""GpuShare: refuses nodes that lack GPUs for a pod, and gives it some when it is placed.

Which GPU of the node a pod shares is the policy's to say: the one with least left that is enough, any, or the one that
leaves the least fragmentation. Whole GPUs are the first that are free. The GPUs are written on the pod with its Binding
(`gpu-index`), so that the kubelet that starts it, and a scheduler that starts anew, knows them.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from fairlead.core.framework.plugin import Hint, Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Code, Reason, Reject, Status, Verdict
from fairlead.gpu_share.gpu_shares import (
    COUNT,
    INDEX,
    MILLI,
    MODEL,
    WHOLE,
    GpuRequest,
    GpuShares,
    gpu_request,
    gpu_request_error,
    gpu_shares_of,
)
from fairlead.kube.binder import DefaultBinder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.nodes import Nodes

GpuChoice: TypeAlias = "Callable[[Cycle, GpuShares, int, GpuRequest], int]"
"""Which GPU of a row a pod shares; one of them fits."""
_WORDS = (COUNT, MILLI, MODEL)
GPU_PARTS = frozenset(f"annotations.{word}" for word in _WORDS)
"""The annotations that these plugins read of a pod. Others, such as a run time, differ from pod to pod."""


def fullest(cycle: Cycle, shares: GpuShares, row: int, request: GpuRequest) -> int:
    """The GPU with the least left that is enough."""
    free = [milli if milli >= request.milli else WHOLE + 1 for milli in shares.free[row].tolist()]
    return free.index(min(free))


def fullest_of_each(free: NDArray[np.int64], request: GpuRequest) -> NDArray[np.intp]:
    """The GPU with the least left that is enough, for rows with so much free on each GPU."""
    fullest: NDArray[np.intp] = np.where(free >= request.milli, free, WHOLE + 1).argmin(axis=1)
    return fullest


def any_fitting(cycle: Cycle, shares: GpuShares, row: int, request: GpuRequest) -> int:
    fitting: list[int] = np.flatnonzero(shares.free[row] >= request.milli).tolist()
    return fitting[cycle.rng.randrange(len(fitting))]


def fitting_rows(shares: GpuShares, nodes: Nodes, request: GpuRequest) -> NDArray[np.bool_]:
    """Which rows have GPUs for a request, of a model that will do."""
    if not request.count:
        return nodes.all()
    return shares.fitting(nodes.positions(), request)


def gpu_cache_key(pod: Pod) -> Hashable:
    """What the answers of these plugins depend on of a pod."""
    return (*pod.shape.request.items(), gpu_request(pod.annotations))


def after_pod_with_gpus(pod: Pod, old: object, new: object) -> Hint:
    """A pod that goes helps if it had GPUs; a change helps if it is one of the waiting pod itself."""
    if isinstance(new, Pod):
        return Hint.QUEUE if new.uid == pod.uid else Hint.SKIP
    return Hint.QUEUE if isinstance(old, Pod) and gpu_request(old.annotations).count else Hint.SKIP


class GpuShare(CachedPlugin):
    name = "Open-Gpu-Share"
    scope = Scope.COUNTED
    reads = GPU_PARTS
    _REASON = Reason(name, "node(s) didn't have enough free GPU")

    def __init__(self, choice: GpuChoice = fullest) -> None:
        self._choice = choice

    def concerns(self, pod: Pod) -> bool:
        """Whether the pod says anything about GPUs; what cannot be understood is refused by `pre_filter`."""
        return any(word in pod.annotations for word in _WORDS)

    def events(self) -> Sequence[Interest]:
        nodes = ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE | ActionType.UPDATE_NODE_LABEL
        pods = ActionType.DELETE | ActionType.UPDATE
        return Interest(ClusterEvent(POD, pods), after_pod_with_gpus), Interest(ClusterEvent(NODE, nodes))

    def pre_filter(self, cycle: Cycle) -> Status | None:
        error = gpu_request_error(cycle.pod.annotations)
        return Status(Code.UNRESOLVABLE, (error,)) if error else None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        request = gpu_request(cycle.pod.annotations)
        if request.count:
            yield Reject(self._REASON, ~fitting_rows(gpu_shares_of(cycle.cluster), nodes, request))

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        request = gpu_request(cycle.pod.annotations)
        if not request.count or gpu_shares_of(cycle.cluster).fits(row, request):
            return None
        return Verdict(self.name, (self._REASON.text,), self._REASON.final)

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        request = gpu_request(cycle.pod.annotations)
        if request.count:
            shares = gpu_shares_of(cycle.cluster)
            gpus = self._gpus(cycle, shares, row, request)
            shares.take(cycle.pod.uid, row, gpus, request.milli)
            cycle.notes.setdefault(DefaultBinder.name, {})[INDEX] = "-".join(map(str, gpus))
        return None

    def _gpus(self, cycle: Cycle, shares: GpuShares, row: int, request: GpuRequest) -> Sequence[int]:
        if request.shared:
            return (self._choice(cycle, shares, row, request),)
        whole = [gpu for gpu, milli in enumerate(shares.free[row].tolist()) if milli == WHOLE]
        return whole[: request.count]

    def unreserve(self, cycle: Cycle, row: int) -> None:
        gpu_shares_of(cycle.cluster).give_back(cycle.pod.uid)
