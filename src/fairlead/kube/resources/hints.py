"""What may turn a refusal by NodeResourcesFit around, and what certainly does not."""

from __future__ import annotations

from collections.abc import Callable

from fairlead.core.framework.plugin import Hint
from fairlead.core.model.devices import IMPLICIT_PREFIX, DeviceClass
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod
from fairlead.kube.claims.extended import may_be_served


def after_node_change(pod: Pod, old: object, new: object, has_class: Callable[[str], bool]) -> Hint:
    """`has_class` says whether a device class serves a resource on nodes that have none of it."""

    def served(resource: str) -> bool:
        return may_be_served(resource) and has_class(resource)

    if not isinstance(new, Node) or not _fits_empty(pod, new, served):
        return Hint.SKIP
    if not isinstance(old, Node):
        return Hint.QUEUE
    wanted = [resource for resource, amount in pod.shape.fit_request.items() if amount > 0]
    grew = any(new.allocatable.get(r, 0) > old.allocatable.get(r, 0) for r in ("pods", *wanted))
    by_devices = any(new.allocatable.get(r, 0) <= 0 and served(r) for r in wanted)
    return Hint.QUEUE if grew or by_devices else Hint.SKIP


def after_pod_change(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(new, Pod):
        gone = isinstance(old, Pod) and bool(old.node_name or old.nominated_node)
        return Hint.QUEUE if gone else Hint.SKIP
    if new.uid == pod.uid:
        return Hint.QUEUE
    if not new.node_name or not isinstance(old, Pod):
        return Hint.SKIP
    wanted = pod.shape.fit_request
    freed = any(
        amount > 0 and new.shape.request.get(resource, 0) < old.shape.request.get(resource, 0)
        for resource, amount in wanted.items()
    )
    return Hint.QUEUE if freed else Hint.SKIP


def _fits_empty(pod: Pod, node: Node, served: Callable[[str], bool]) -> bool:
    """Whether a pod would fit a node if nothing else were on it."""
    if node.allocatable.get("pods", 0) < 1:
        return False
    return all(
        amount <= node.allocatable.get(r, 0) or (node.allocatable.get(r, 0) <= 0 and served(r))
        for r, amount in pod.shape.fit_request.items()
        if amount > 0
    )


def after_class(pod: Pod, old: object, new: object) -> Hint:
    """A class that serves something the pod requests, by its own name or by one that it claims."""
    if not isinstance(new, DeviceClass):
        return Hint.SKIP
    if isinstance(old, DeviceClass):
        if old.extended == new.extended:
            return Hint.SKIP
    elif pod.shape.fit_request.get(IMPLICIT_PREFIX + new.name):
        return Hint.QUEUE
    return Hint.QUEUE if new.extended and pod.shape.fit_request.get(new.extended) else Hint.SKIP
