"""Nominator: which pods are nominated to which node, while their victims leave or their binding is prepared.

A nomination is made in memory first and appears in `status.nominatedNodeName` later, so memory wins over a status that
is still empty. `on_node` returns the newest version of each nominated pod. A pod that is in no queue, because it is
being scheduled at this moment, is replaced by a stub that requests nothing and has priority 0, as in the original.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.model.pod import Shapes, compile_pod

if TYPE_CHECKING:
    from fairlead.model.pod import Pod


@dataclass(slots=True, eq=False)
class Promise:
    """A nominated pod; `stub` replaces it while it is in no queue, and is made when first needed."""

    pod: Pod
    stub: Pod | None = None


class Nominator:
    """`seen(uid)` returns the newest version of a pod from the watch, None if it is gone; `queued(key)` returns the
    version that waits in a queue."""

    def __init__(self, seen: Callable[[str], Pod | None], queued: Callable[[str], Pod | None]) -> None:
        self._seen = seen
        self._queued = queued
        self._nodes: dict[str, dict[str, Promise]] = {}
        self._node_of: dict[str, str] = {}
        self._nobody = compile_pod({"metadata": {"name": "", "uid": ""}, "spec": {"containers": []}}, Shapes())
        self._changed: set[str] = set()

    def take_changed(self) -> set[str]:
        """Names of the nodes whose nominations have changed since the last call."""
        changed, self._changed = self._changed, set()
        return changed

    def __len__(self) -> int:
        return len(self._node_of)

    @property
    def nodes(self) -> Collection[str]:
        """Names of the nodes that pods are nominated to."""
        return self._nodes.keys()

    def nominate(self, pod: Pod, node_name: str | None = None) -> None:
        """Nominate a pod to a node, instead of an earlier one. None takes the node of the pod's own status; the empty
        string clears the nomination. A pod that is gone or has a node is not nominated."""
        self.clear(pod.uid)
        node_name = pod.nominated_node if node_name is None else node_name
        if not node_name:
            return
        seen = self._seen(pod.uid)
        if seen is None or seen.node_name:
            return
        self._node_of[pod.uid] = node_name
        self._changed.add(node_name)
        self._nodes.setdefault(node_name, {})[pod.uid] = Promise(pod)

    def clear(self, uid: str) -> None:
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            self._changed.add(node_name)
            promises = self._nodes[node_name]
            del promises[uid]
            if not promises:
                del self._nodes[node_name]

    def update(self, old: Pod, new: Pod) -> None:
        """Take in a new version of a pod. If neither version's status nominates a node, a nomination in memory stays;
        otherwise the new status counts."""
        kept = None if old.nominated_node or new.nominated_node else self._node_of.get(old.uid)
        self.clear(old.uid)
        self.nominate(new, kept)

    def node_of(self, uid: str) -> str:
        """The node that a pod is nominated to, or the empty string."""
        return self._node_of.get(uid, "")

    def on_node(self, name: str) -> list[Pod]:
        """Pods that are nominated to a node, in the order of their nominations."""
        return [self._queued(promise.pod.key) or self._stub(promise) for promise in self._nodes.get(name, {}).values()]

    def _stub(self, promise: Promise) -> Pod:
        if promise.stub is None:
            pod = promise.pod
            promise.stub = replace(self._nobody, namespace=pod.namespace, name=pod.name, key=pod.key, uid=pod.uid)
        return promise.stub
