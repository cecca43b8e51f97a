"""Nominator: which pods are nominated to which node, while their victims leave or their binding is prepared.

A nomination is made in memory first and appears in `status.nominatedNodeName` later, or never if its patch is lost. So
memory wins over a status that is older than its last decision: one that is still empty, or that names a node which this
scheduler wrote to the pod before. (kube-scheduler forgets a nomination at the next attempt if the watch is late, and
evicts a second time.) `on_node` returns the newest version of each nominated pod. A pod that is in no queue, because it
is being scheduled at this moment, is replaced by a stub that requests nothing and has priority 0, as in the original.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.core.model.pod import Shapes, compile_pod

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod


@dataclass(slots=True, eq=False)
class Promise:
    """A nominated pod; `stub` replaces it while it is in no queue, and is made when first needed."""

    pod: Pod
    stub: Pod | None = None


@dataclass(slots=True, eq=False)
class AnnouncedNomination:
    """What this scheduler has decided about a pod's nomination: its last decision (the empty string is none), all nodes
    that it has ever written to the pod, whether the watch has shown the last decision, and the node that was written to
    the pod while it had a place there, which it gave back."""

    latest: str = ""
    nodes: set[str] = field(default_factory=set)
    shown: bool = False
    place: str = ""


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
        self._announced: dict[str, AnnouncedNomination] = {}

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

    def nominate(self, pod: Pod, node_name: str, *, place: str = "") -> None:
        """Nominate a pod to a node, instead of an earlier one; the empty string clears the nomination. A pod that is
        gone or has a node is not nominated. `place` is the node that was written to the pod while it waited there for
        permission, which was refused: a status that names it comes too late."""
        announced = self._announced.get(pod.uid)
        if announced is None and (node_name or pod.nominated_node or place):
            announced = self._announced[pod.uid] = AnnouncedNomination(nodes={pod.nominated_node})
        if announced is not None:
            announced.latest, announced.shown, announced.place = node_name, False, place
            announced.nodes.update((node_name, place) if place else (node_name,))
        self._promise(pod, node_name)

    def observe(self, pod: Pod) -> None:
        """Take in what the watch shows of a pod. Its status counts unless it is older than a decision made here; an
        empty status after the decision was shown is somebody else's."""
        announced, shown = self._announced.get(pod.uid), pod.nominated_node
        if announced is None:
            self._promise(pod, shown)
        elif shown == announced.latest:
            announced.shown = True
            self._promise(pod, shown)
        elif shown in announced.nodes and (shown or not announced.shown):
            self._promise(pod, announced.latest)
        else:
            del self._announced[pod.uid]
            self._promise(pod, shown)

    def _promise(self, pod: Pod, node_name: str) -> None:
        self.clear(pod.uid)
        seen = self._seen(pod.uid) if node_name else None
        if seen is not None and not seen.node_name:
            self._node_of[pod.uid] = node_name
            self._changed.add(node_name)
            self._nodes.setdefault(node_name, {})[pod.uid] = Promise(pod)

    def clear(self, uid: str) -> None:
        """Give up the room that a pod was promised, because it gets a place or another decision follows."""
        node_name = self._node_of.pop(uid, None)
        if node_name is not None:
            self._changed.add(node_name)
            promises = self._nodes[node_name]
            del promises[uid]
            if not promises:
                del self._nodes[node_name]

    def forget(self, uid: str) -> None:
        """A pod does not wait any more."""
        self.clear(uid)
        self._announced.pop(uid, None)

    def has_promised(self, uid: str) -> bool:
        """Whether the last decision made here was to nominate a pod, whatever its status shows and even if it has got a
        place since."""
        announced = self._announced.get(uid)
        return announced is not None and bool(announced.latest)

    def had_place(self, pod: Pod) -> bool:
        """Whether the node in a pod's status was no promise but a place that it had and gave back. Its room is free
        since then, and pods that missed it have been woken."""
        announced = self._announced.get(pod.uid)
        return announced is not None and bool(announced.place) and announced.place == pod.nominated_node

    def as_nominated(self, pod: Pod) -> Pod:
        """The pod with the node that it is nominated to here in its status."""
        node_name = self._node_of.get(pod.uid, "")
        return pod if pod.nominated_node == node_name else replace(pod, nominated_node=node_name)

    def node_of(self, uid: str) -> str:
        """The node that a pod is nominated to, or the empty string."""
        return self._node_of.get(uid, "")

    def on_node(self, name: str, in_flight: Collection[str] = ()) -> list[Pod]:
        """Pods that are nominated to a node, in the order of their nominations. `in_flight` are uids of pods that are
        being scheduled, although the entry in which they waited knows another member of their gang as such."""
        return [
            (None if uid in in_flight else self._queued(promise.pod.key)) or self._stub(promise)
            for uid, promise in self._nodes.get(name, {}).items()
        ]

    def _stub(self, promise: Promise) -> Pod:
        if promise.stub is None:
            pod = promise.pod
            promise.stub = replace(self._nobody, namespace=pod.namespace, name=pod.name, key=pod.key, uid=pod.uid)
        return promise.stub
