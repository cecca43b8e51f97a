"""NodeDeclaredFeatures: a pod that needs a feature of the kubelet goes only where the node declares it."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Hint, Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.nodes import Nodes

KNOWN = (
    "ExtendWebSocketsToKubelet",
    "InPlacePodLevelResourcesVerticalScaling",
    "InPlacePodVerticalScalingInitContainers",
    "RestartAllContainersOnContainerExits",
    "UserNamespacesHostNetworkSupport",
)


class NodeDeclaredFeatures(CachedPlugin):
    name = "NodeDeclaredFeatures"
    scope = Scope.STATIC
    reads = frozenset({"spec"})
    _REASON = Reason(name, "node(s) didn't match Pod's required features", final=True)

    def events(self) -> Sequence[Interest]:
        nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_DECLARED_FEATURE)
        return Interest(nodes, _after_node_change), Interest(ClusterEvent(POD, ActionType.UPDATE), _after_pod_change)

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.shape.required_features)

    def cache_key(self, pod: Pod) -> Hashable:
        return pod.shape.required_features

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if cycle.pod.shape.required_features else SKIP

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        """Nodes have few distinct lists of features, so each list is checked once and the answer is gathered by
        code."""
        required = cycle.pod.shape.required_features
        lacking = np.array([not required <= declared(listed) for listed in nodes.table.features.sets], dtype=np.bool_)
        return (Reject(self._REASON, lacking[nodes.take(nodes.table.feature_code)]),)


def declared(features: Sequence[str]) -> frozenset[str]:
    """The known ones among the features that a node lists. The original merges two sorted lists, so a node that does
    not list its features in order may be missing some."""
    found, known, listed = set(), 0, 0
    while known < len(KNOWN) and listed < len(features):
        if KNOWN[known] == features[listed]:
            found.add(KNOWN[known])
            known, listed = known + 1, listed + 1
        elif KNOWN[known] < features[listed]:
            known += 1
        else:
            listed += 1
    return frozenset(found)


def _after_node_change(pod: Pod, old: object, new: object) -> Hint:
    unchanged = isinstance(old, Node) and isinstance(new, Node) and old.features == new.features
    return Hint.SKIP if unchanged else Hint.QUEUE


def _after_pod_change(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(new, Pod) or not isinstance(old, Pod) or new.uid != pod.uid:
        return Hint.SKIP
    return Hint.QUEUE if old.shape.required_features != new.shape.required_features else Hint.SKIP
