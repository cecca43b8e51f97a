"""TaintToleration: refuses nodes with taints that a pod does not tolerate, or scores them lower (PreferNoSchedule).

Nodes share few distinct taint lists, so each list is checked once per pod shape and the answer is gathered by code.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Hint, Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Reason, Reject
from fairlead.core.model.taints import first_untolerated, is_tolerated
from fairlead.kube.scoring import to_hundred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.nodes import Nodes


class TaintToleration(CachedPlugin):
    name = "TaintToleration"
    scope = Scope.STATIC
    reads = frozenset({"spec"})
    _REASON = Reason(name, "node(s) had untolerated taint(s)", final=True)

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_TAINT), self._after_node_change),
            Interest(ClusterEvent(POD, ActionType.UPDATE_POD_TOLERATION), self._after_toleration_change),
        )

    def cache_key(self, pod: Pod) -> Hashable:
        return pod.shape.tolerations

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        tolerations = cycle.pod.shape.tolerations
        refused = [first_untolerated(taints, tolerations) is not None for taints in nodes.table.taints.sets]
        if not any(refused):
            return ()
        return (Reject(self._REASON, np.array(refused, dtype=np.bool_)[nodes.take(nodes.table.taint_code)]),)

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        """How many PreferNoSchedule taints are not tolerated."""
        soft = [t for t in cycle.pod.shape.tolerations if t.effect in ("", "PreferNoSchedule")]
        counts = [
            sum(taint.effect == "PreferNoSchedule" and not is_tolerated(taint, soft) for taint in taints)
            for taints in nodes.table.taints.sets
        ]
        return np.array(counts, dtype=np.int64)[nodes.take(nodes.table.taint_code)]

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_hundred(raw, reverse=True)

    def _after_node_change(self, pod: Pod, old: object, new: object) -> Hint:
        tolerations = pod.shape.tolerations
        if not isinstance(new, Node) or first_untolerated(new.taints, tolerations):
            return Hint.SKIP
        was_refused = not isinstance(old, Node) or first_untolerated(old.taints, tolerations)
        return Hint.QUEUE if was_refused else Hint.SKIP

    def _after_toleration_change(self, pod: Pod, old: object, new: object) -> Hint:
        return Hint.QUEUE if isinstance(new, Pod) and new.uid == pod.uid else Hint.SKIP
