"""The sharding controller: a NodeShard for each scheduler that shares the cluster, by how busy nodes are.

It writes which nodes a scheduler shall have (`spec.nodesDesired`); each scheduler writes which it uses, and gives up a
node before another takes it (volcano/rounds/shards.py). Nodes are divided anew after every period, when one comes or
goes, and when the use of one has moved by more than half.

Schedulers are described by the ConfigMap volcano-sharding-configmap of volcano-system, or by flags where there is none.

Invariant: without either, pods and nodes are not looked at and nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import create, namespaced_name, patch
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import CONFIG_MAP, NODE, POD
from fairlead.core.model.quantity import read_quantity
from fairlead.errors import ConfigError
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.kinds import VC_NODE_SHARD
from fairlead.volcano.records.quirks import FIXED, Quirks
from fairlead.volcano.sharding.shard_policies import (
    CONFIG_KEY,
    ShardConfig,
    ShardNode,
    divide,
    is_worth_writing,
    read_shard_config,
)
from fairlead.volcano.topology.controller import SYSTEM_NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Callable

CONFIG_NAME = "volcano-sharding-configmap"
_ALL = "shards"
_MOVED = 0.5  # a change of a node's use that does not wait for the period
_MIRROR = "kubernetes.io/config.mirror"


class ShardingController(Reconciler[str]):
    """The one key stands for all shards: they are divided together."""

    name = "volcano-sharding-controller"
    component = "vc-controller-manager"
    watches: Sequence[Watch] = (
        Watch(CONFIG_MAP, namespace=SYSTEM_NAMESPACE, optional=True), Watch(NODE), Watch(POD), Watch(VC_NODE_SHARD),
    )  # fmt: skip

    def __init__(
        self,
        view: DocView,
        *,
        read_yaml: Callable[[str], Any],
        default: ShardConfig | None = None,
        announce: bool = True,
        quirks: Quirks = FIXED,
    ) -> None:
        super().__init__(view, announce=announce)
        self._read_yaml, self._quirks, self._default = read_yaml, quirks, default
        self._config = default
        self._source: Doc | None = None
        self._problem = ""
        self._pods: dict[tuple[str, str], tuple[str, int]] | None = None  # pod -> node and millicores, while we divide
        self._requested: dict[str, int] = {}  # node -> millicores
        self._divided: dict[str, float] = {}  # node -> its use when nodes were last divided
        self._few: set[str] = set()
        if default is not None:
            self.queue.add(_ALL)

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        settings = context.of(VolcanoSettings)
        return cls(
            context.view,
            read_yaml=context.read_yaml,
            default=settings.shards,
            announce=context.announce,
            quirks=settings.quirks,
        )

    # What changed

    @property
    def sees_plain_pods(self) -> bool:
        """Whether use of nodes is counted."""
        return self._pods is not None

    def observe(self, change: Change) -> None:
        gone = change.gone
        if change.kind is CONFIG_MAP:
            if namespaced_name(change.doc) == (SYSTEM_NAMESPACE, CONFIG_NAME):
                self._configure(None if gone else change.doc)
        elif self._config is None:
            return
        elif change.kind is POD:
            self._observe_pod(change.doc, gone=gone)
        elif change.kind is VC_NODE_SHARD or (self._config.follows_nodes and self._is_news(change.doc, gone=gone)):
            self.queue.add(_ALL)

    def _is_news(self, node: Doc, *, gone: bool) -> bool:
        return gone or node["metadata"]["name"] not in self._divided

    def _configure(self, source: Doc | None) -> None:
        text = ((source or {}).get("data") or {}).get(CONFIG_KEY)
        self._source, self._problem = source, ""
        try:
            self._config = self._default if text is None else read_shard_config(self._read_yaml(text))
        except ConfigError as error:
            self._problem = str(error)  # what was in force stays so
        if self._config is None:
            self._pods = None
        self.queue.add(_ALL)

    def _observe_pod(self, pod: Doc, *, gone: bool) -> None:
        if self._pods is None:
            return
        key = namespaced_name(pod)
        before = self._pods.pop(key, None)
        after = None if gone else _request(pod)
        for sign, said in ((-1, before), (1, after)):
            if said is not None:
                self._requested[said[0]] = self._requested.get(said[0], 0) + sign * said[1]
        if after is not None:
            self._pods[key] = after
        if before == after:
            return
        for node in {said[0] for said in (before, after) if said is not None}:
            doc = self.view.get(NODE, "", node)
            if doc is not None and abs(self._use(doc) - self._divided.get(node, 0.0)) > _MOVED:
                self.queue.add(_ALL)

    def _use(self, node: Doc) -> float:
        capacity = read_quantity(((node.get("status") or {}).get("capacity") or {}).get("cpu") or 0).milli()
        return min(1.0, self._requested.get(node["metadata"]["name"], 0) / capacity) if capacity > 0 else 0.0

    # Visits

    def visit(self, key: str, now: float) -> Iterator[Write]:
        if self._problem and self._source is not None:
            yield from self.event(CONFIG_MAP, self._source, "InvalidConfiguration", self._problem, warning=True)
            self._problem = ""
        if self._config is None:
            return
        self.queue.add_at(_ALL, now + self._config.period)
        if self._pods is None:
            self._count_pods()
        nodes = sorted(self.view.list(NODE), key=lambda node: str(node["metadata"]["name"]))
        known = [
            ShardNode(node["metadata"]["name"], self._use(node), node["metadata"].get("labels") or {}) for node in nodes
        ]
        self._divided = {node.name: node.use for node in known}
        shards = divide(self._config.schedulers, known, in_batches=self._quirks.node_limit_per_batch)
        for scheduler in self._config.schedulers:
            yield from self._shard(scheduler.name, shards[scheduler.name], scheduler.least)

    def _count_pods(self) -> None:
        self._pods, self._requested = {}, {}
        for pod in self.view.list(POD):
            self._observe_pod(pod, gone=False)

    def _shard(self, name: str, nodes: list[str], least: int) -> Iterator[Write]:
        shard = self.view.get(VC_NODE_SHARD, "", name)
        if shard is None:
            kind = VC_NODE_SHARD
            spec = {"nodesDesired": nodes}
            yield create(
                kind,
                {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": spec},
            )
            return
        if is_worth_writing((shard.get("spec") or {}).get("nodesDesired") or (), nodes):
            yield patch(VC_NODE_SHARD, shard, {"spec": {"nodesDesired": nodes}})
        if len(nodes) >= least:
            self._few.discard(name)
        elif name not in self._few:
            self._few.add(name)
            text = f"{len(nodes)} nodes for scheduler {name}, which shall have {least} at least"
            yield from self.event(VC_NODE_SHARD, shard, "TooFewNodes", text, warning=True)


def _request(pod: Doc) -> tuple[str, int] | None:
    """The node of a pod that takes up CPU there, and how many millicores its containers request."""
    node, phase = pod["spec"].get("nodeName"), (pod.get("status") or {}).get("phase")
    if not node or phase in ("Succeeded", "Failed") or _MIRROR in (pod["metadata"].get("annotations") or {}):
        return None
    asked = (
        ((container.get("resources") or {}).get("requests") or {}).get("cpu") or 0
        for container in pod["spec"].get("containers") or ()
    )
    return node, sum(read_quantity(amount).milli() for amount in asked)
