"""NodeAgents: what Koordinator's agent and manager report of nodes, for simulated nodes.

Every minute a simulated node reports a NodeMetric: the use of its pods, of the system, and of both together. A pod uses
what its annotation says (`fairlead.io/usage: cpu=500m,memory=1Gi`), else what it requests; the system uses what the
same annotation of the node says, else nothing. A node with GPUs (nvidia.com/gpu) has a Device object, with two GPUs to
a PCIe switch and the switches spread over two NUMA nodes, and the amounts by which GPUs are shared. The CPUs of a node
are in its NodeResourceTopology (node_topologies.py). From the metrics follow batch and mid resources
(koordinator/records/overcommit.py), which are written to the node's status; the ConfigMap slo-controller-config says
how much is offered (koordinator/records/colocation.py).

Real nodes are left alone: Koordinator's own agent and manager write for them. Nobody runs this controller unless a
scheduler has a plugin of Koordinator's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import create, namespaced_name, patch_status
from fairlead.cluster.kubelets.simulated_nodes import fails_from, is_simulated
from fairlead.core.model.documents import read_units
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, NODE, POD
from fairlead.core.model.quality import quality_of_service
from fairlead.core.model.quantity import format_quantity, read_quantity
from fairlead.core.model.requests import pod_requests
from fairlead.core.model.times import timestamp
from fairlead.koordinator.agents.node_topologies import node_topology
from fairlead.koordinator.kinds import KOORD_DEVICE, KOORD_NODE_METRIC, KOORD_NODE_TOPOLOGY
from fairlead.koordinator.records.bands import BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY, PROD, band_by, class_by
from fairlead.koordinator.records.colocation import CONFIG_KEY, CONFIG_NAME, CONFIG_NAMESPACE, normalised, strategy_of
from fairlead.koordinator.records.node_reservation import reserved_amounts
from fairlead.koordinator.records.overcommit import (
    RESOURCES,
    ColocationStrategy,
    NodeLoad,
    PodLoad,
    batch_resources,
    differs,
    mid_resources,
    total,
)

USAGE = "fairlead.io/usage"
GPU_MEMORY = "fairlead.io/gpu-memory"
INTERVAL = 60.0
_WINDOW = 300
_GPU = "nvidia.com/gpu"
_OWN = frozenset({BATCH_CPU, BATCH_MEMORY, MID_CPU, MID_MEMORY})
_CORE = {BATCH_CPU: "cpu", MID_CPU: "cpu", BATCH_MEMORY: "memory", MID_MEMORY: "memory"}
_POLICY = {"metricCollectPolicy": {"aggregateDurationSeconds": _WINDOW, "reportIntervalSeconds": int(INTERVAL)}}

Key = tuple[str, str]


@dataclass(frozen=True, slots=True)
class _PodUse:
    node: str
    name: Key
    load: PodLoad

    @property
    def used(self) -> Mapping[str, int]:
        return self.load.usage or {}


class NodeAgents(Reconciler[str]):
    name = "koordinator-node-agents"
    watches: Sequence[Watch] = (Watch(NODE), Watch(POD))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._pods: dict[Key, _PodUse] = {}
        self._on_node: dict[str, dict[Key, None]] = {}
        self._known: set[str] = set()
        self._written: dict[str, float] = {}  # node -> when its batch and mid resources were last written

    def observe(self, change: Change) -> None:
        if change.kind is POD:
            self._observe_pod(change)
            return
        name = change.doc["metadata"]["name"]
        if change.gone:
            self._known.discard(name)
            self._written.pop(name, None)
        elif name not in self._known and is_simulated(change.doc):
            self._known.add(name)
            self.queue.add(name)

    def _observe_pod(self, change: Change) -> None:
        key = namespaced_name(change.doc)
        old = self._pods.pop(key, None)
        if old is not None:
            self._on_node[old.node].pop(key, None)
        node = change.doc["spec"].get("nodeName")
        over = (change.doc.get("status") or {}).get("phase") in ("Succeeded", "Failed")
        if node and not over and not change.gone:
            self._pods[key] = _PodUse(node, key, _load(change.doc))
            self._on_node.setdefault(node, {})[key] = None

    def visit(self, key: str, now: float) -> Iterable[Write]:
        node = self.view.get(NODE, "", key)
        if node is None or not is_simulated(node):
            return
        self.queue.add_at(key, now + INTERVAL)
        silent = fails_from(node)
        if silent is not None and silent <= now:
            return
        device = _device(node)
        if device is not None and self.view.get(KOORD_DEVICE, "", key) is None:
            yield create(KOORD_DEVICE, device)
        topology = node_topology(node) if self.view.get(KOORD_NODE_TOPOLOGY, "", key) is None else None
        if topology is not None:
            yield create(KOORD_NODE_TOPOLOGY, topology)
        metric = self.view.get(KOORD_NODE_METRIC, "", key)
        if metric is None:
            metadata = {"name": key}
            head = {"apiVersion": KOORD_NODE_METRIC.api_version, "kind": KOORD_NODE_METRIC.kind}
            yield create(KOORD_NODE_METRIC, {**head, "metadata": metadata, "spec": _POLICY})
            self.queue.add(key)  # visited again once it is there
            return
        pods = [self._pods[one] for one in self._on_node.get(key, ())]
        system = _said(node) or {}
        yield patch_status(KOORD_NODE_METRIC, metric, _report(pods, system, now))
        yield from self._amounts(node, pods, system, now)

    def _amounts(self, node: Doc, pods: Sequence[_PodUse], system: Mapping[str, int], now: float) -> Iterable[Write]:
        """Write what the node gives of its own names, if that moved or was last written too long ago."""
        name, status = node["metadata"]["name"], node["status"]
        given = read_units(status.get("allocatable"), "status.allocatable")
        capacity = read_units(status.get("capacity"), "status.capacity")
        load = NodeLoad(
            capacity=capacity,
            system=system,
            reserved=_reserved(node, capacity, given),
            used=total([system, *(pod.used for pod in pods)]),
            prod_reclaimable=_reclaimable(pods),
            pods=tuple(pod.load for pod in pods),
            vanished={},
        )
        strategy = self._strategy(node)
        if strategy is None:
            return
        wanted = {**_offered(node, load, strategy), **_gpu_amounts(node)}
        old = {resource: given[resource] for resource in (*_OWN, *wanted) if resource in given}
        gone = old.keys() - wanted.keys()
        late = now - self._written.get(name, float("-inf")) >= strategy.update_after
        if old == wanted or not (late or gone or differs(old, wanted, strategy)):
            return
        self._written[name] = now
        spelt: Doc = {resource: _spelt(resource, amount) for resource, amount in wanted.items()}
        spelt |= dict.fromkeys(sorted(gone))
        yield patch_status(NODE, node, {"capacity": spelt, "allocatable": spelt})

    def _strategy(self, node: Doc) -> ColocationStrategy | None:
        """How much of a node is offered; None, and nothing is written, if the configuration cannot be used."""
        config = self.view.get(CONFIG_MAP, CONFIG_NAMESPACE, CONFIG_NAME)
        text = None if config is None else (config.get("data") or {}).get(CONFIG_KEY) or ""
        metadata = node["metadata"]
        return strategy_of(text, metadata.get("labels") or {}, metadata.get("annotations") or {})


def _offered(node: Doc, load: NodeLoad, strategy: ColocationStrategy) -> dict[str, int]:
    """Batch and mid resources, none if the strategy is not enabled."""
    if not strategy.enabled:
        return {}
    batch, notes = batch_resources(load, strategy), node["metadata"].get("annotations") or {}
    return {**batch, BATCH_CPU: normalised(batch[BATCH_CPU], notes), **mid_resources(load, strategy)}


def _spelt(resource: str, amount: int) -> str:
    return str(amount) if resource in _OWN and resource.endswith("cpu") else format_quantity(amount, resource)


def _said(doc: Doc) -> dict[str, int] | None:
    """What an annotation says that an object uses; None if it says nothing that can be read."""
    text = (doc["metadata"].get("annotations") or {}).get(USAGE)
    if not text:
        return None
    try:
        pairs = dict(part.strip().split("=", 1) for part in text.split(","))
        return read_units(pairs, USAGE)
    except (ValueError, KeyError):
        return None


def _load(pod: Doc) -> PodLoad:
    labels, spec = pod["metadata"].get("labels") or {}, pod["spec"]
    exact = pod_requests(spec, {}).exact
    asked = {"cpu": 0, "memory": 0}
    for resource, nanos in exact.items():
        plain = _CORE.get(resource, resource)
        if plain in asked:
            per_unit = 10**9 if resource != "cpu" else 10**6
            asked[plain] += nanos // per_unit
    request = {name: asked[name] for name in asked if name in exact}
    band = band_by(labels, spec.get("priority"), quality_of_service(spec))
    said = _said(pod)
    return PodLoad(band, class_by(labels), request, asked if said is None else said)


def _reserved(node: Doc, capacity: Mapping[str, int], allocatable: Mapping[str, int]) -> dict[str, int]:
    """What the kubelet or an annotation keeps of a node, whichever is more."""
    annotated = reserved_amounts(node["metadata"].get("annotations") or {})
    return {
        name: max(0, capacity.get(name, 0) - allocatable.get(name, 0), annotated.get(name, 0)) for name in RESOURCES
    }


def _reclaimable(pods: Iterable[_PodUse]) -> dict[str, int]:
    """What prod pods request and leave unused."""
    return total(
        {name: max(0, amount - pod.used.get(name, 0)) for name, amount in pod.load.request.items()}
        for pod in pods
        if pod.load.band == PROD
    )


def _resources(amounts: Mapping[str, int]) -> Doc:
    return {"resources": {name: format_quantity(amounts.get(name, 0), name) for name in ("cpu", "memory")}}


def _report(pods: Sequence[_PodUse], system: Mapping[str, int], now: float) -> Doc:
    """A NodeMetric's status. All percentiles are the present use: a simulated pod's use does not waver."""
    used = _resources(total([system, *(pod.used for pod in pods)]))
    percentiles = dict.fromkeys(("avg", "p50", "p90", "p95", "p99"), used)
    return {
        "updateTime": timestamp(now),
        "nodeMetric": {
            "nodeUsage": used,
            "systemUsage": _resources(system),
            "aggregatedNodeUsages": [{"duration": f"{_WINDOW // 60}m0s", "usage": percentiles}],
        },
        "podsMetric": [
            {
                "namespace": pod.name[0],
                "name": pod.name[1],
                "podUsage": _resources(pod.used),
                "priority": pod.load.band,
                "qos": pod.load.service_class,
            }
            for pod in pods
        ],
        "prodReclaimableMetric": {"resource": _resources(_reclaimable(pods))},
    }


# ---- devices ----


def _gpus(node: Doc) -> tuple[int, int]:
    """How many GPUs a node has, and the bytes of each."""
    count = ((node.get("status") or {}).get("capacity") or {}).get(_GPU, "0")
    text = (node["metadata"].get("annotations") or {}).get(GPU_MEMORY, "80Gi")
    return read_quantity(count).nanos // 10**9, read_quantity(text).nanos // 10**9


def _gpu_amounts(node: Doc) -> dict[str, int]:
    count, memory = _gpus(node)
    if not count:
        return {}
    percent = 100 * count
    return {
        "koordinator.sh/gpu": percent,
        "koordinator.sh/gpu-core": percent,
        "koordinator.sh/gpu-memory-ratio": percent,
        "koordinator.sh/gpu-memory": memory * count,
        "koordinator.sh/gpu.shared": percent,
    }


def _device(node: Doc) -> Doc | None:
    """The Device object of a node with GPUs."""
    (count, memory), name = _gpus(node), node["metadata"]["name"]
    if not count:
        return None
    resources = {
        "koordinator.sh/gpu-core": "100",
        "koordinator.sh/gpu-memory-ratio": "100",
        "koordinator.sh/gpu-memory": format_quantity(memory, "memory"),
    }
    devices = [
        {
            "type": "gpu",
            "id": f"GPU-{name}-{minor}",
            "minor": minor,
            "moduleID": minor,
            "health": True,
            "resources": resources,
            "topology": {
                "socketID": 2 * minor // count,
                "nodeID": 2 * minor // count,
                "pcieID": str(minor // 2),
                "busID": f"0000:{minor:02x}:00.0",
            },
        }
        for minor in range(count)
    ]
    head = {"apiVersion": KOORD_DEVICE.api_version, "kind": KOORD_DEVICE.kind, "metadata": {"name": name}}
    return {**head, "spec": {"devices": devices}}
