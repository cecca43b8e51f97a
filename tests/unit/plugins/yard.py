"""A yard of nodes, claims and volumes, spelt out as documents: for tests of what the volume plugins say."""

from __future__ import annotations

from typing import Any

from fairlead.framework.cycle import Cycle
from fairlead.framework.plugin import Hint, Interest, Plugin
from fairlead.model import kinds
from fairlead.model.events import ClusterEvent
from fairlead.model.flow import Happened
from fairlead.model.kinds import Kind
from fairlead.model.pod import Pod, compile_pod
from fairlead.state.cluster import Cluster
from fairlead.state.object_index import COMPILERS
from tests.property.storage_worlds import Answer, answer_of, meta, put

Doc = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
BOUND = "pv.kubernetes.io/bind-completed"
SELECTED = "volume.kubernetes.io/selected-node"


class Yard:
    def __init__(self, *nodes: str, **labelled: dict[str, str]) -> None:
        self.cluster = Cluster()
        for name in nodes:
            self.node(name)
        for name, labels in labelled.items():
            self.node(name, labels)

    def put(self, kind: Kind, doc: Doc, happened: Happened = Happened.ADDED) -> None:
        put(self.cluster, kind, doc, happened)
        assert not self.cluster.refused

    def node(self, name: str, labels: dict[str, str] | None = None) -> None:
        self.put(kinds.NODE, {"metadata": meta(name, labels=labels or {}), "status": {"allocatable": {"pods": "9"}}})

    def storage_class(
        self, name: str, provisioner: str = "csi.x", mode: str | None = "WaitForFirstConsumer", **more: Any
    ) -> None:
        doc = {"metadata": meta(name), "provisioner": provisioner, **more}
        self.put(kinds.STORAGE_CLASS, doc if mode is None else {**doc, "volumeBindingMode": mode})

    def claim(self, name: str, **how: Any) -> None:
        self.put(kinds.PERSISTENT_VOLUME_CLAIM, claim(name, **how))

    def volume(self, name: str, **how: Any) -> None:
        self.put(kinds.PERSISTENT_VOLUME, volume(name, **how))

    def csi_node(self, name: str, *, migrated: str = "", **limits: int | None) -> None:
        drivers = [
            {"name": driver.replace("_", "."), "allocatable": {} if count is None else {"count": count}}
            for driver, count in limits.items()
        ]
        annotations = {"storage.alpha.kubernetes.io/migrated-plugins": migrated}
        self.put(kinds.CSI_NODE, {"metadata": meta(name, annotations=annotations), "spec": {"drivers": drivers}})

    def pod(self, name: str, *volumes: Doc, on: str = "", namespace: str = "default") -> Pod:
        doc = pod(name, *volumes, on=on, namespace=namespace)
        if on:
            self.put(kinds.POD, doc)
        return compile_pod(doc, self.cluster.shapes)

    def says(self, plugin: Plugin, *volumes: Doc, name: str = "new") -> Answer:
        return self.asks(plugin, *volumes, name=name)[0]

    def asks(self, plugin: Plugin, *volumes: Doc, name: str = "new") -> tuple[Answer, Cycle]:
        return answer_of(plugin, self.cluster, pod(name, *volumes))


def claim(
    name: str,
    *,
    storage_class: str = "",
    to: str = "",
    asks: str = "1Gi",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    annotations: dict[str, str] | None = None,
    owner: str = "",
    version: str = "1",
    **more: Any,
) -> Doc:
    """A claim; `to` is the volume that it is completely bound to."""
    notes = {**(annotations or {}), **({BOUND: "yes"} if to else {})}
    metadata = meta(name, "default", annotations=notes, resourceVersion=version, **more)
    if owner:
        metadata["ownerReferences"] = [{"uid": owner, "controller": True}]
    spec = {"accessModes": list(modes), "storageClassName": storage_class, "volumeName": to}
    return {"metadata": metadata, "spec": {**spec, "resources": {"requests": {"storage": asks}}}}


def volume(
    name: str,
    *,
    storage_class: str = "",
    size: str = "5Gi",
    zones: tuple[str, ...] = (),
    labels: dict[str, str] | None = None,
    phase: str = "Available",
    version: str = "1",
    modes: tuple[str, ...] = ("ReadWriteOnce",),
    annotations: dict[str, str] | None = None,
    **source: Any,
) -> Doc:
    """A volume, by default one that any node can use."""
    metadata = meta(name, labels=labels or {}, resourceVersion=version, annotations=annotations or {})
    spec: Doc = {"capacity": {"storage": size}, "accessModes": list(modes), "storageClassName": storage_class, **source}
    if zones:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


def pod(name: str, *volumes: Doc, on: str = "", namespace: str = "default") -> Doc:
    listed = [{"name": f"v{index}", **one} for index, one in enumerate(volumes)]
    spec = {"containers": [{"name": "c"}], "volumes": listed, **({"nodeName": on} if on else {})}
    return {"metadata": meta(name, namespace), "spec": spec}


def named(claim_name: str) -> Doc:
    return {"persistentVolumeClaim": {"claimName": claim_name}}


EPHEMERAL: Doc = {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}


def hint(plugin: Plugin, event: ClusterEvent, waiting: Doc, old: Any = None, new: Any = None) -> Hint | None:
    """What a plugin's registration for an event says; None if it has none. Documents are compiled first."""
    compiled = Cluster()
    found: list[Interest] = [i for i in plugin.events() or () if i.event.match(event)]
    if not found:
        return None
    assert len(found) == 1
    if found[0].hint is None:
        return Hint.QUEUE
    shapes = compiled.shapes
    return found[0].hint(compile_pod(waiting, shapes), old, new)


def record(kind: Kind, doc: Doc | None) -> Any:
    if doc is None:
        return None
    return compile_pod(doc, Cluster().shapes) if kind is kinds.POD else COMPILERS[kind](doc)
