"""Four small plugins: NodeName, NodeUnschedulable, PrioritySort (QueueSort) and SchedulingGates (PreEnqueue)."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint, Interest, Plugin, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Reason, Reject, Status, unresolvable
from fairlead.core.model.taints import UNSCHEDULABLE, is_tolerated

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes


class PrioritySort(Plugin):
    """Higher priority first; among equals, the pod that has waited longer."""

    name = "PrioritySort"

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        return (-pod.priority, since)


class SchedulingGates(Plugin):
    """A pod with gates does not enter the queue."""

    name = "SchedulingGates"

    def events(self) -> Sequence[Interest]:
        event = ClusterEvent(POD, ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        return (Interest(event, lambda pod, old, new: _queue_if(isinstance(new, Pod) and new.uid == pod.uid)),)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        if not pod.gates:
            return None
        return unresolvable(f"waiting for scheduling gates: [{' '.join(pod.gates)}]")


class NodeName(CachedPlugin):
    """`spec.nodeName` names the only node. Pods that name one are usually not scheduled at all, so this rarely
    refuses."""

    name = "NodeName"
    scope = Scope.STATIC
    reads = frozenset({"node"})
    _REASON = Reason(name, "node(s) didn't match the requested node name", final=True)

    def events(self) -> Sequence[Interest]:
        return (Interest(ClusterEvent(NODE, ActionType.ADD)),)

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.node_name)

    def cache_key(self, pod: Pod) -> Hashable:
        return pod.node_name

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        row = nodes.table.row_of.get(cycle.pod.node_name)
        return (Reject(self._REASON, ~nodes.mask_of(() if row is None else (row,))),)


class NodeUnschedulable(CachedPlugin):
    """A cordoned node takes only pods that tolerate it."""

    name = "NodeUnschedulable"
    scope = Scope.STATIC
    reads = frozenset({"spec"})
    _REASON = Reason(name, "node(s) were unschedulable", final=True)

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self._after_node_change),
            Interest(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), self._after_toleration_change),
        )

    def concerns(self, pod: Pod) -> bool:
        return not is_tolerated(UNSCHEDULABLE, pod.shape.tolerations)

    def cache_key(self, pod: Pod) -> Hashable:
        return pod.shape.tolerations

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        return (Reject(self._REASON, nodes.take(nodes.table.unschedulable)),)

    def _after_node_change(self, pod: Pod, old: object, new: object) -> Hint:
        if not isinstance(new, Node) or new.unschedulable:
            return Hint.SKIP
        return _queue_if(not isinstance(old, Node) or old.unschedulable)

    def _after_toleration_change(self, pod: Pod, old: object, new: object) -> Hint:
        return _queue_if(
            isinstance(new, Pod) and new.uid == pod.uid and is_tolerated(UNSCHEDULABLE, new.shape.tolerations)
        )


def _queue_if(condition: bool) -> Hint:
    return Hint.QUEUE if condition else Hint.SKIP
