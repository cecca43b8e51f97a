"""NodeAffinity: node selectors, required and preferred affinity of the pod, and what the administrator adds to it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Hint, Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import NODE, ActionType, ClusterEvent
from fairlead.core.model.node import Node
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status, failed, unresolvable
from fairlead.core.state.matching import rows_matching, rows_matching_term, rows_with_labels
from fairlead.kube.scoring import to_hundred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.selectors import NodeSelector, NodeSelectorTerm
    from fairlead.core.state.nodes import Nodes


class NodeAffinityPlugin(CachedPlugin):
    name = "NodeAffinity"
    scope = Scope.STATIC
    reads = frozenset({"spec"})
    _ENFORCED = Reason(name, "node(s) didn't match scheduler-enforced node affinity", final=True)
    _OWN = Reason(name, "node(s) didn't match Pod's node affinity/selector", final=True)

    def __init__(
        self,
        *,
        added_required: NodeSelector | None = None,
        added_preferred: Sequence[tuple[int, NodeSelectorTerm]] = (),
    ) -> None:
        self._added_required = added_required
        self._added_preferred = tuple(added_preferred)

    def events(self) -> Sequence[Interest]:
        event = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)
        return (Interest(event, self._after_node_change),)

    def cache_key(self, pod: Pod) -> Hashable:
        shape = pod.shape
        return (
            shape.node_selector,
            shape.required_node_affinity,
            shape.preferred_node_affinity,
            shape.preferred_error,
            shape.affinity_names,
        )

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        shape = cycle.pod.shape
        if not shape.has_required_affinity and self._added_required is None and shape.node_selector is None:
            return SKIP
        names = shape.affinity_names
        if names is not None and not names:
            return unresolvable("pod affinity terms conflict")
        return names

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        if self._added_required is not None:
            enforced = rows_matching(nodes, self._added_required)
            yield Reject(self._ENFORCED, ~enforced)
            yield Reject(self._OWN, enforced & ~rows_for(cycle.pod, nodes))
        else:
            yield Reject(self._OWN, ~rows_for(cycle.pod, nodes))

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        shape = cycle.pod.shape
        if shape.preferred_error:
            return failed(shape.preferred_error)
        return SKIP if shape.preferred_node_affinity is None and not self._added_preferred else None

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        total = np.zeros(len(nodes), dtype=np.int64)
        for weight, term in (*self._added_preferred, *(cycle.pod.shape.preferred_node_affinity or ())):
            total += weight * rows_matching_term(nodes, term)
        return total

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_hundred(raw)

    def _after_node_change(self, pod: Pod, old: object, new: object) -> Hint:
        """Whether a node change helps. As in the original, the old node is compared with the pod's own affinity only,
        so that a node which newly meets the administrator's added affinity alone wakes no pod."""
        added = self._added_required
        if not isinstance(new, Node) or (added is not None and not added.matches(new.labels, new.name)):
            return Hint.SKIP
        if not accepts(pod, new) or (isinstance(old, Node) and accepts(pod, old)):
            return Hint.SKIP
        return Hint.QUEUE


def rows_for(pod: Pod, nodes: Nodes) -> NDArray[np.bool_]:
    """Rows that meet a pod's node selector and required affinity."""
    shape = pod.shape
    found = rows_with_labels(nodes, shape.node_selector or ())
    if shape.required_node_affinity is not None:
        found &= rows_matching(nodes, shape.required_node_affinity)
    return found


def accepts(pod: Pod, node: Node) -> bool:
    """The same for one node."""
    return pod.shape.selects(node.labels, node.name)
