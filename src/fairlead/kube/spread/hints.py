"""Queueing hints of PodTopologySpread: a pod was added, deleted or relabelled such that a count differs, or a node was
added, deleted or moved to another domain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod

if TYPE_CHECKING:
    from fairlead.kube.spread.rows import Effective


class SpreadHints:
    """`constraints` returns the hard constraints of a pod, or raises ValueError; then any event may help."""

    def __init__(self, constraints: Callable[[Pod], Sequence[Effective]]) -> None:
        self._constraints = constraints

    def after_pod_change(self, pod: Pod, old: object, new: object) -> Hint:
        if not _involved(pod, old) or not _involved(pod, new):
            return Hint.SKIP
        try:
            constraints = self._constraints(pod)
        except ValueError:
            return Hint.QUEUE
        if isinstance(old, Pod) and isinstance(new, Pod):
            return _queue_if(_update_matters(pod, old, new, constraints))
        changed = new if isinstance(new, Pod) else old
        return _queue_if(isinstance(changed, Pod) and any(of.selector.matches(changed.labels) for of in constraints))

    def after_node_change(self, pod: Pod, old: object, new: object) -> Hint:
        try:
            keys = [of.key for of in self._constraints(pod)]
        except ValueError:
            return Hint.QUEUE
        before, after = _domains(old, keys), _domains(new, keys)
        if before is None or after is None:
            return _queue_if(before is not after)
        return _queue_if(before != after or (isinstance(old, Node) and isinstance(new, Node) and _retainted(old, new)))


def _involved(pod: Pod, other: object) -> bool:
    """Whether a pod, if there is one, is this one or is (to be) on a node in its namespace."""
    if not isinstance(other, Pod) or other.uid == pod.uid:
        return True
    return bool(other.node_name or other.nominated_node) and other.namespace == pod.namespace


def _update_matters(pod: Pod, old: Pod, new: Pod, constraints: Sequence[Effective]) -> bool:
    tolerates_otherwise = new.uid == pod.uid and old.shape.tolerations != new.shape.tolerations
    if tolerates_otherwise and any(of.constraint.honor_taints for of in constraints):
        return True
    if old.labels == new.labels:
        return False
    return any(of.selector.matches(old.labels) != of.selector.matches(new.labels) for of in constraints)


def _domains(node: object, keys: Sequence[str]) -> list[str] | None:
    """A node's values of the keys; None if there is no node or it lacks one."""
    if not isinstance(node, Node) or any(key not in node.labels for key in keys):
        return None
    return [node.labels[key] for key in keys]


def _retainted(old: Node, new: Node) -> bool:
    return (old.taints, old.taints_added) != (new.taints, new.taints_added)


def _queue_if(condition: bool) -> Hint:
    return Hint.QUEUE if condition else Hint.SKIP
