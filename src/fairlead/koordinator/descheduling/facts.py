"""ClusterFacts: the pods, nodes and metrics that a descheduler reads, kept up to date by what the watch shows.

Invariant: `on_node` and `of_owner` hold exactly the pods of `pods` that are on that node and of that controller.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import condition, controller_of
from fairlead.core.model.documents import read_units
from fairlead.core.model.kinds import DEPLOYMENT, NODE, POD, REPLICA_SET, REPLICATION_CONTROLLER, STATEFUL_SET, Kind
from fairlead.core.model.node import Node, compile_node
from fairlead.core.model.pod import Pod, compile_pod
from fairlead.core.model.shape import Shapes
from fairlead.core.model.taints import first_untolerated
from fairlead.koordinator.kinds import KOORD_NODE_METRIC
from fairlead.koordinator.records.node_metrics import NodeMetric, compile_node_metric

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change, Doc, DocView

_RAW_ALLOCATABLE = "node.koordinator.sh/raw-allocatable"
_SCALED: Mapping[str, Kind] = {
    "ReplicaSet": REPLICA_SET, "StatefulSet": STATEFUL_SET, "ReplicationController": REPLICATION_CONTROLLER,
    "Deployment": DEPLOYMENT,
}  # fmt: skip
WORKLOADS: tuple[Kind, ...] = tuple(_SCALED.values())


class ClusterFacts:
    def __init__(self, view: DocView) -> None:
        self._view = view
        self._shapes = Shapes()
        self.pods: dict[str, Pod] = {}
        self.nodes: dict[str, Node] = {}
        self.metrics: dict[str, NodeMetric] = {}
        self.on_node: dict[str, dict[str, None]] = {}
        self.of_owner: dict[str, dict[str, None]] = {}
        self._ready: set[str] = set()

    def observe(self, change: Change) -> None:
        gone = change.gone
        if change.kind is POD:
            self._observe_pod(change.doc, gone=gone)
        elif change.kind is NODE:
            self.nodes.pop(change.doc["metadata"]["name"], None)
            if not gone:
                node = compile_node(change.doc)
                self.nodes[node.name] = node
        elif change.kind is KOORD_NODE_METRIC:
            self.metrics.pop(change.doc["metadata"]["name"], None)
            if not gone:
                metric = compile_node_metric(change.doc)
                self.metrics[metric.name] = metric

    def _observe_pod(self, doc: Doc, *, gone: bool) -> None:
        metadata = doc["metadata"]
        key = f"{metadata.get('namespace') or ''}/{metadata['name']}"
        old = self.pods.pop(key, None)
        if old is not None:
            self.on_node.get(old.node_name, {}).pop(key, None)
            if old.owner is not None:
                self.of_owner.get(old.owner.uid, {}).pop(key, None)
        self._ready.discard(key)
        if gone:
            return
        pod = self.pods[key] = compile_pod(doc, self._shapes)
        if pod.node_name:
            self.on_node.setdefault(pod.node_name, {})[key] = None
        if pod.owner is not None:
            self.of_owner.setdefault(pod.owner.uid, {})[key] = None
        if (condition(doc, "Ready") or {}).get("status") == "True":
            self._ready.add(key)

    # ---- pods of a node ----

    def running_on(self, node: str) -> list[Pod]:
        """The pods of a node that have not ended."""
        return [pod for key in self.on_node.get(node, ()) if not (pod := self.pods[key]).finished]

    def fits(self, pod: Pod, node: Node) -> bool:
        """Whether a pod could be scheduled there by its node selector, affinity, tolerations and requests."""
        shape = pod.shape
        if node.unschedulable or first_untolerated((one for one in node.taints if one.hard), shape.tolerations):
            return False
        if not shape.selects(node.labels, node.name):
            return False
        free = self.free(node)
        return all(amount <= free.get(name, 0) for name, amount in pod.request.items() if amount)

    def free(self, node: Node) -> dict[str, int]:
        """What a node has beyond the requests of its pods; fewer pods than it may hold count too."""
        left = dict(node.allocatable)
        running = self.running_on(node.name)
        left["pods"] = left.get("pods", 0) - len(running)
        for pod in running:
            for name, amount in pod.request.items():
                left[name] = left.get(name, 0) - amount
        return left

    # ---- workloads ----

    def workload(self, pod: Pod) -> tuple[list[Pod], int]:
        """The pods of a pod's workload and how many it wants: the Deployment's where the controller is one of its
        ReplicaSets; nothing and 0 for a controller whose size cannot be read."""
        owner = pod.owner
        kind = None if owner is None else _SCALED.get(owner.kind)
        found = None if owner is None or kind is None else self._view.get(kind, pod.namespace, owner.name)
        if owner is None or found is None or found["metadata"].get("uid") != owner.uid:
            return [], 0
        above = controller_of(found) if kind is REPLICA_SET else None
        if above is None or above["kind"] != "Deployment":
            return list(self._owned(owner.uid)), _replicas(found)
        deployment = self._view.get(DEPLOYMENT, pod.namespace, above["name"])
        if deployment is None:
            return [], 0
        sets = self._view.list(REPLICA_SET, pod.namespace)
        uids = [one["metadata"]["uid"] for one in sets if (controller_of(one) or {}).get("uid") == above["uid"]]
        return [one for uid in uids for one in self._owned(uid)], _replicas(deployment)

    def _owned(self, uid: str) -> Iterator[Pod]:
        return (self.pods[key] for key in self.of_owner.get(uid, ()))

    def unavailable(self, pods: Iterable[Pod]) -> set[str]:
        """Those that do not serve: ended, going or not ready."""
        return {pod.key for pod in pods if pod.finished or pod.terminating or pod.key not in self._ready}


def _replicas(workload: Doc) -> int:
    return int((workload.get("spec") or {}).get("replicas", 1))


def raw_allocatable(node: Node) -> Mapping[str, int]:
    """What a node really has: amplified amounts are said beside it."""
    text = node.annotations.get(_RAW_ALLOCATABLE)
    if not text:
        return node.allocatable
    try:
        return read_units(json.loads(text), _RAW_ALLOCATABLE)
    except (ValueError, AttributeError, TypeError):
        return node.allocatable
