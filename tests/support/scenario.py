"""Scenario: a cluster filled with documents. The helpers of all suites below the API stand on it.

    scenario = Scenario()
    scenario.put(kinds.NODE, node("a"), node("b"))
    scenario.put(kinds.POD, pod("web", on="a"))

What a test then asks decides which helper it takes: `PluginScenario` asks one plugin, `StorageScenario` a plugin about
volumes, `PreemptionScenario` a search for victims, `QueueScenario` the Backlog, `RoundScenario` a round of Volcano's
actions, and `SchedulerScenario` a whole Scheduler, step by step.
"""

from __future__ import annotations

from typing import Any, Self

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.model.kinds import Kind
from fairlead.core.model.pod import Pod, compile_pod
from fairlead.core.state.cluster import Cluster

REGISTRY = kinds.Registry()


class Scenario:
    """A Cluster, and one way to fill it: every document must be understood."""

    def __init__(self) -> None:
        self.cluster = Cluster()

    def put(self, kind: Kind, *docs: Doc, happened: Happened = Happened.ADDED) -> Self:
        for doc in docs:
            put(self.cluster, kind, doc, happened)
        return self

    def remove(self, kind: Kind, *docs: Doc) -> Self:
        return self.put(kind, *docs, happened=Happened.DELETED)

    def row(self, node_name: str) -> int:
        return self.cluster.table.row_of[node_name]

    def compiled(self, document: Doc) -> Pod:
        """The record of a pod that is not in the cluster yet."""
        return compile_pod(document, self.cluster.shapes)


def put(cluster: Cluster, kind: Kind, doc: Doc, happened: Happened = Happened.ADDED) -> Any:
    """Apply one document, and say what came of it."""
    applied = cluster.apply(Change(happened, kind, {"apiVersion": kind.api_version, "kind": kind.kind, **doc}))
    assert not cluster.refused, cluster.refused
    return applied


def kind_of(doc: Doc) -> Kind:
    kind = REGISTRY.by_kind(doc.get("apiVersion", "v1"), doc["kind"])
    assert kind is not None, doc
    return kind
