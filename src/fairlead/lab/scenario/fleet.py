"""The objects that a cluster begins with: nodes, racks as HyperNodes, devices, queues and priority classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.cluster.kubelets.simulated_nodes import simulated_node
from fairlead.core.model import kinds
from fairlead.core.model.quantity import parse_quantity
from fairlead.volcano.kinds import VC_HYPER_NODE, VC_QUEUE

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.lab.scenario.jobs import LabJob
    from fairlead.lab.scenario.records import ClusterSpec, QueueSpec, ShapeSpec

RACK = "fairlead.io/rack"
DEVICE_DRIVER = "gpu.example.com"


def nodes_of(cluster: ClusterSpec, *, now: float) -> list[Doc]:
    """All nodes that shapes and the trace give, with the labels of their zones and racks."""
    docs = [_shaped(shape, number, now) for shape in cluster.nodes for number in range(shape.count)]
    if cluster.trace is not None:
        from fairlead.lab.scenario.traces import nodes_of_trace

        docs += nodes_of_trace(cluster.trace, now=now)
    for number, doc in enumerate(docs):
        labels = doc["metadata"]["labels"]
        if cluster.zones:
            labels["topology.kubernetes.io/zone"] = f"zone-{number % cluster.zones}"
        if cluster.racks:
            labels[RACK] = f"rack-{number % cluster.racks}"
    return docs


def largest_node(cluster: ClusterSpec, resource: str) -> float:
    """How much of a resource the largest of the cluster's nodes has. A snapshot's nodes are not looked at."""
    amounts = (doc["status"]["allocatable"].get(resource) for doc in nodes_of(cluster, now=0.0))
    return max((parse_quantity(amount).nanos / 1e9 for amount in amounts if amount is not None), default=0.0)


def _shaped(shape: ShapeSpec, number: int, now: float) -> Doc:
    resources = {"cpu": "8", "memory": "32Gi", "pods": "110"} | dict(shape.resources)
    return simulated_node(
        f"{shape.name}-{number}",
        cpu=resources.pop("cpu"),
        memory=resources.pop("memory"),
        pods=resources.pop("pods"),
        extra=resources,
        labels=shape.labels,
        taints=shape.taints,
        now=now,
    )


def device_slices(cluster: ClusterSpec) -> Iterator[Doc]:
    """A ResourceSlice for each node whose shape has devices, and the class that they are of."""
    if any(shape.devices for shape in cluster.nodes):
        selector = {"cel": {"expression": f"device.driver == '{DEVICE_DRIVER}'"}}
        yield _object(kinds.DEVICE_CLASS, DEVICE_DRIVER, {"selectors": [selector]})
    for shape in cluster.nodes:
        for number in range(shape.count if shape.devices else 0):
            name = f"{shape.name}-{number}"
            spec = {
                "driver": DEVICE_DRIVER,
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": f"gpu-{at}"} for at in range(shape.devices)],
            }
            yield _object(kinds.RESOURCE_SLICE, f"{name}-gpus", spec)


def hyper_nodes(cluster: ClusterSpec, nodes: Sequence[Doc]) -> Iterator[Doc]:
    """Each rack as a HyperNode of the first tier, and the cluster as one of the second."""
    if not (cluster.hypernodes and cluster.racks):
        return
    for number in range(cluster.racks):
        members = [
            {"type": "Node", "selector": {"exactMatch": {"name": doc["metadata"]["name"]}}}
            for doc in nodes
            if doc["metadata"]["labels"][RACK] == f"rack-{number}"
        ]
        yield _object(VC_HYPER_NODE, f"rack-{number}", {"tier": 1, "members": members})
    racks = [{"type": "HyperNode", "selector": {"exactMatch": {"name": f"rack-{at}"}}} for at in range(cluster.racks)]
    yield _object(VC_HYPER_NODE, "all-racks", {"tier": 2, "members": racks})


def queue_object(queue: QueueSpec) -> Doc:
    """A queue as a Queue of Volcano's."""
    spec: Doc = {"weight": queue.weight, "reclaimable": True}
    for name in ("deserved", "capability"):
        if amounts := getattr(queue, name):
            spec[name] = dict(amounts)
    if queue.dequeue_strategy != "traverse":
        spec["dequeueStrategy"] = queue.dequeue_strategy
    if queue.parent:
        spec["parent"] = queue.parent
    if queue.guarantee:
        spec["guarantee"] = {"resource": dict(queue.guarantee)}
    return _object(VC_QUEUE, queue.name, spec)


def priority_name(priority: int) -> str:
    """The name of the class of a priority; empty for 0, which needs none."""
    return f"priority-{'minus-' if priority < 0 else ''}{abs(priority)}" if priority else ""


def priority_classes(jobs: Iterable[LabJob]) -> Iterator[Doc]:
    """A PriorityClass for each priority that jobs have."""
    for value in sorted({job.priority for job in jobs if job.priority}):
        doc = _object(kinds.PRIORITY_CLASS, priority_name(value), {})
        del doc["spec"]
        yield {**doc, "value": value}


def _object(kind: kinds.Kind, name: str, spec: Doc) -> Doc:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec}
