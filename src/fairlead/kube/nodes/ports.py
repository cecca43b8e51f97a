"""NodePorts: two pods cannot have the same port of a host."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint, Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status, Verdict
from fairlead.core.state.ports import ANY_IP, HostPort

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.nodes import Nodes


class NodePorts(CachedPlugin):
    name = "NodePorts"
    scope = Scope.COUNTED
    reads = frozenset({"spec"})
    _REASON = Reason(name, "node(s) didn't have free ports for the requested pod ports")

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE), _after_pod_deletion),
            Interest(ClusterEvent(NODE, ActionType.ADD)),
        )

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.shape.host_ports)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.pod.shape.host_ports else SKIP

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        taken: set[int] = set()
        for wanted in cycle.pod.shape.host_ports:
            taken |= cycle.cluster.ports.taken(wanted)
        return (Reject(self._REASON, nodes.mask_of(taken)),) if taken else ()

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        taken = any(row in cycle.cluster.ports.taken(wanted) for wanted in cycle.pod.shape.host_ports)
        return Verdict(self.name, (self._REASON.text,), final=False) if taken else None


def _after_pod_deletion(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(old, Pod) or not (old.node_name or old.nominated_node):
        return Hint.SKIP
    wanted = pod.shape.host_ports
    return Hint.QUEUE if any(conflict(a, b) for a in wanted for b in old.shape.host_ports) else Hint.SKIP


def conflict(wanted: HostPort, used: HostPort) -> bool:
    """Whether two ports of one host are the same; an unspecified address stands for every one."""
    return wanted[1:] == used[1:] and (wanted[0] == used[0] or ANY_IP in (wanted[0], used[0]))
