"""Koordinator's profile at 5,000 nodes: plain pods, a tree of quotas, loads of all nodes, reservations, shared GPUs.

As in `scheduling`, changes and replies are handed to `Scheduler.step` as a runtime would, and only the time inside
`step` counts. Koordinator's own published figure is 45.6 pods/s, under the limit of its client.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from benchmarks.row import Row
from benchmarks.scheduling import NODES, START, basic_nodes, basic_pods
from fairlead.assembly.loading import read_config
from fairlead.assembly.registry import PluginRegistry
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Write
from fairlead.core.model.times import timestamp
from fairlead.koordinator.kinds import KOORD_DEVICE, KOORD_ELASTIC_QUOTA, KOORD_NODE_METRIC, KOORD_RESERVATION

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler

PODS = 5_000
QUOTAS, GPU_NODES, RESERVATIONS = 1_000, 1_000, 2_000
BARS = {"Basic": 3_000, "1000Quotas": 2_000, "Load": 2_000, "2000Reservations": 1_000, "SharedGPUs": 1_000}
_QUOTA = "quota.scheduling.koordinator.sh/"
_GPU = "koordinator.sh/gpu"


def rows_of_koordinator() -> tuple[str, ...]:
    return tuple(f"Koordinator{name}/5000Nodes" for name in BARS)


def bench_koordinator() -> Iterable[Row]:
    for name, make in _CASES.items():
        before, pods, during = make()
        spent, used = _run(before, pods, during)
        note = f"core only, every node scored; {used / len(pods) * 1e6:,.0f} µs CPU per pod"
        value = len(pods) / spent
        yield Row(f"Koordinator{name}/5000Nodes", value, "pods/s", BARS[name], nodes=NODES, pods=len(pods), note=note)


During = Callable[[int], list[Change]]
"""What the watch shows beside pods when so many are bound."""
Case = tuple[list[Change], list[Doc], During]


def _run(before: Sequence[Change], pods: Sequence[Doc], during: During) -> tuple[float, float]:
    """Seconds and CPU seconds inside `step` until all pods are bound."""
    config = read_config("koordinator", capabilities=PluginRegistry().capabilities)
    scheduler = SchedulerAssembly(config).scheduler()
    _settle(scheduler, before)
    by_name = {doc["metadata"]["name"]: doc for doc in pods}
    changes: list[Change] = [Change(Happened.ADDED, kinds.POD, doc) for doc in pods]
    replies: list[Reply] = []
    bound, spent, used = 0, 0.0, 0.0
    while bound < len(pods):
        start, start_cpu = time.perf_counter(), time.process_time()
        writes = scheduler.step(START + 60 + spent, changes, replies)
        spent, used = spent + time.perf_counter() - start, used + time.process_time() - start_cpu
        if not (writes or changes or replies):
            raise AssertionError(f"{len(pods) - bound} pods were not placed: {scheduler.backlog.queues.summary()}")
        bindings = [write for write in writes if write.subresource == "binding"]
        replies = [Reply(write, write.body) for write in writes]
        changes = during(bound)
        for write in writes:
            if write.kind is kinds.POD and write.name in by_name and write.body.get("metadata", {}).get("annotations"):
                doc = by_name[write.name]
                by_name[write.name] = {**doc, "metadata": {**doc["metadata"], **write.body["metadata"]}}
        changes += [Change(Happened.MODIFIED, kinds.POD, _bound(by_name[write.name], write)) for write in bindings]
        bound += len(bindings)
    return spent, used


def _settle(scheduler: Scheduler, changes: Sequence[Change]) -> None:
    """What is there before the pods come, with reservations as they stand once they are available."""
    scheduler.step(START, changes, ())


def _bound(doc: Doc, write: Write) -> Doc:
    return {**doc, "spec": {**doc["spec"], "nodeName": write.body["target"]["name"]}}


def _pods(count: int, change: Callable[[int, Doc], None] = lambda number, doc: None) -> list[Doc]:
    pods = []
    for number, doc in enumerate(basic_pods(count)):
        made = {**doc, "metadata": {**doc["metadata"], "labels": {}}, "spec": {**doc["spec"]}}
        made["spec"]["schedulerName"] = "koord-scheduler"
        change(number, made)
        pods.append(made)
    return pods


def _nothing(bound: int) -> list[Change]:
    return []


def _object(kind: kinds.Kind, name: str, spec: Doc, status: Doc | None = None, **metadata: object) -> Change:
    meta = {"name": name, "uid": f"{kind.kind}-{name}", "creationTimestamp": "2026-01-01T00:00:00Z", **metadata}
    if kind.namespaced:
        meta["namespace"] = "default"
    doc = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec, "status": status or {}}
    return Change(Happened.ADDED, kind, doc)


def _basic() -> Case:
    return basic_nodes(NODES), _pods(PODS), _nothing


def _quotas() -> Case:
    """A hundred parents with nine children each; pods are of the children in turn."""
    changes = basic_nodes(NODES)
    leaves = []
    for parent in range(QUOTAS // 10):
        amounts = {"min": {"cpu": "100", "memory": "800Gi"}, "max": {"cpu": "20000", "memory": "160000Gi"}}
        labels = {_QUOTA + "is-parent": "true"}
        changes.append(_object(KOORD_ELASTIC_QUOTA, f"p{parent}", amounts, labels=labels))
        for child in range(9):
            name = f"p{parent}-{child}"
            leaves.append(name)
            amounts = {"min": {"cpu": "10", "memory": "80Gi"}, "max": {"cpu": "20000", "memory": "160000Gi"}}
            changes.append(_object(KOORD_ELASTIC_QUOTA, name, amounts, labels={_QUOTA + "parent": f"p{parent}"}))

    def label(number: int, doc: Doc) -> None:
        doc["metadata"]["labels"][_QUOTA + "name"] = leaves[number % len(leaves)]

    return changes, _pods(PODS, label), _nothing


def _metric(number: int, at: float) -> Change:
    usage = {"resources": {"cpu": f"{number % 2000}m", "memory": "4Gi"}}
    status = {"updateTime": timestamp(at), "nodeMetric": {"nodeUsage": usage}}
    change = _object(KOORD_NODE_METRIC, f"node-{number}", {}, status)
    return Change(Happened.MODIFIED, change.kind, change.doc)


def _load() -> Case:
    """Every node reports once a minute: a share of them with every step."""
    changes = basic_nodes(NODES) + [_metric(number, START) for number in range(NODES)]

    def during(bound: int) -> list[Change]:
        first = bound % NODES
        return [_metric(number % NODES, START + 60) for number in range(first, first + NODES // 60)]

    return changes, _pods(PODS), during


def _reservations() -> Case:
    changes = basic_nodes(NODES)
    container = {"name": "c", "resources": {"requests": {"cpu": "1", "memory": "4Gi"}}}
    spec = {
        "template": {"spec": {"containers": [container]}},
        "allocateOnce": False,
        "ttl": "0s",
    }
    for number in range(RESERVATIONS):
        owners = [{"labelSelector": {"matchLabels": {"app": f"a{number % 20}"}}}]
        status = {"phase": "Available", "nodeName": f"node-{number}", "allocatable": {"cpu": "1", "memory": "4Gi"}}
        changes.append(_object(KOORD_RESERVATION, f"r{number}", {**spec, "owners": owners}, status))

    def label(number: int, doc: Doc) -> None:
        doc["metadata"]["labels"]["app"] = f"a{number % 40}"

    return changes, _pods(PODS // 2, label), _nothing


def _gpus() -> Case:
    """Eight GPUs on every fifth node; pods ask for a quarter of one."""
    changes = basic_nodes(NODES)
    offered = {_GPU: "800", "koordinator.sh/gpu-core": "800", "koordinator.sh/gpu-memory-ratio": "800"}
    one = {
        "koordinator.sh/gpu-core": "100",
        "koordinator.sh/gpu-memory-ratio": "100",
        "koordinator.sh/gpu-memory": "16Gi",
    }
    for number in range(GPU_NODES):
        doc = changes[number].doc
        for part in ("capacity", "allocatable"):
            doc["status"][part] = {**doc["status"].get(part, {}), **offered}
        devices = [{"type": "gpu", "id": f"g{at}", "minor": at, "health": True, "resources": one} for at in range(8)]
        changes.append(_object(KOORD_DEVICE, f"node-{number}", {"devices": devices}))

    def ask(number: int, doc: Doc) -> None:
        container = {**doc["spec"]["containers"][0], "resources": {"requests": {_GPU: "25"}, "limits": {_GPU: "25"}}}
        doc["spec"]["containers"] = [container]

    return changes, _pods(PODS // 2, ask), _nothing


_CASES: dict[str, Callable[[], Case]] = {
    "Basic": _basic, "1000Quotas": _quotas, "Load": _load, "2000Reservations": _reservations, "SharedGPUs": _gpus,
}  # fmt: skip
