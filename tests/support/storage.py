"""Nodes, claims and volumes spelt out as documents, and what the volume plugins say of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.plugin import Plugin
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import Kind
from fairlead.core.model.pod import Pod
from fairlead.core.state.object_index import COMPILERS
from tests.support.documents import claim, compiled, meta, node, pod_with, volume
from tests.support.plugins import Answer, answer_of
from tests.support.scenario import Scenario


class StorageScenario(Scenario):
    """Nodes by name, some of them with labels; storage classes, claims, volumes and CSI objects by one word each."""

    def __init__(self, *nodes: str, **labelled: dict[str, str]) -> None:
        super().__init__()
        for name in nodes:
            self.node(name)
        for name, labels in labelled.items():
            self.node(name, labels)

    def node(self, name: str, labels: Mapping[str, str] | None = None) -> None:
        self.put(kinds.NODE, node(name, labels or {}, allocatable={"pods": "9"}))

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
        doc = pod_with(name, *volumes, on=on, namespace=namespace)
        if on:
            self.put(kinds.POD, doc)
        return self.compiled(doc)

    def says(self, plugin: Plugin, *volumes: Doc, name: str = "new") -> Answer:
        """What a plugin says of a pod with these volumes."""
        return self.asks(plugin, *volumes, name=name)[0]

    def asks(self, plugin: Plugin, *volumes: Doc, name: str = "new") -> tuple[Answer, Cycle]:
        return answer_of(plugin, self.cluster, pod_with(name, *volumes))


def record(kind: Kind, doc: Doc | None) -> Any:
    """What a document is compiled to."""
    if doc is None:
        return None
    return compiled(doc) if kind is kinds.POD else COMPILERS[kind](doc)
