"""A street of nodes by name, and what one plugin says of each: for tests that spell their clusters out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from fairlead.framework.cycle import Cycle
from fairlead.framework.plugin import Plugin, takes_part
from fairlead.model import kinds
from fairlead.model.flow import Change, Happened
from fairlead.model.kinds import Kind
from fairlead.model.pod import Pod, compile_pod
from fairlead.model.reasons import SKIP
from fairlead.state.cluster import Cluster
from fairlead.state.nodes import Nodes
from tests.property.neighbourhoods import HOST, LONG_AGO, ZONE, Neighbourhood

Doc = dict[str, Any]
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def pod(name: str, labels: Mapping[str, str] | None = None, *, namespace: str = "default", **spec: Any) -> Doc:
    metadata = {"name": name, "uid": name, "namespace": namespace, "labels": dict(labels or {})}
    return {"metadata": metadata, "spec": {"containers": [{"name": "c"}], **spec}}


def term(key: str, labels: Mapping[str, str] | None, **more: Any) -> Doc:
    return {"topologyKey": key, "labelSelector": None if labels is None else {"matchLabels": dict(labels)}, **more}


def near(*terms: Doc) -> Doc:
    return {"podAffinity": {REQUIRED: list(terms)}}


def apart(*terms: Doc) -> Doc:
    return {"podAntiAffinity": {REQUIRED: list(terms)}}


def rather(weight: int, wanted: Doc) -> Doc:
    return {"podAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": wanted}]}}


def rather_not(weight: int, unwanted: Doc) -> Doc:
    return {"podAntiAffinity": {PREFERRED: [{"weight": weight, "podAffinityTerm": unwanted}]}}


def spread(key: str, labels: Mapping[str, str] | None, *, skew: int = 1, hard: bool = True, **more: Any) -> Doc:
    when = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {**term(key, labels), "maxSkew": skew, "whenUnsatisfiable": when, **more}


class Street:
    def __init__(self) -> None:
        self.cluster = Cluster()
        self.namespace("default")

    def put(self, kind: Kind, document: Doc, happened: Happened = Happened.ADDED) -> None:
        self.cluster.apply(Change(happened, kind, document))
        assert not self.cluster.refused, self.cluster.refused

    def namespace(self, name: str, **labels: str) -> None:
        self.put(kinds.NAMESPACE, {"metadata": {"name": name, "labels": labels}})

    def node(self, name: str, zone: str | None = None, *, host: bool = True, taint: str = "", **labels: str) -> None:
        carried = {**labels, **({HOST: name} if host else {}), **({ZONE: zone} if zone is not None else {})}
        taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
        self.put(kinds.NODE, {"metadata": {"name": name, "labels": carried}, "spec": {"taints": taints}})

    def pod_state(self, document: Doc, node: str, *, terminating: bool = False) -> None:
        """A pod that is on a node already."""
        metadata = {**document["metadata"], **({"deletionTimestamp": LONG_AGO} if terminating else {})}
        self.put(kinds.POD, {"metadata": metadata, "spec": {**document["spec"], "nodeName": node}})

    def pod_states(self, node: str, count: int, labels: Mapping[str, str], **more: Any) -> None:
        for number in range(count):
            self.pod_state(pod(f"{node}-{number}", labels, **more), node)

    def compiled(self, document: Doc) -> Pod:
        return compile_pod(document, self.cluster.shapes)

    # ---- asking ----

    def prepared(self, plugin: Plugin, document: Doc) -> tuple[Neighbourhood, Cycle, Any]:
        place = Neighbourhood(self.cluster, self.compiled(document))
        cycle = place.cycle(plugin)
        return place, cycle, plugin.prepare(cycle) if takes_part(plugin, "prepare") else None

    def refusals(self, plugin: Plugin, document: Doc) -> dict[str, str]:
        """The refused nodes and why."""
        place, cycle, status = self.prepared(plugin, document)
        assert status is None, status
        return self.named(place.refusals(plugin, cycle))

    def judged(self, plugin: Plugin, document: Doc) -> dict[str, str]:
        """What the filter alone says, whatever came of looking at the pod."""
        place, cycle, _ = self.prepared(plugin, document)
        return self.named(place.refusals(plugin, cycle))

    def named(self, by_row: Mapping[int, str]) -> dict[str, str]:
        return {self.cluster.table.name(row): said for row, said in by_row.items() if said}

    def row(self, node: str) -> int:
        return self.cluster.table.row_of[node]

    def scores(self, plugin: Plugin, document: Doc, *nodes: str) -> dict[str, int] | None:
        """Normalised scores of the feasible nodes (all, if none are named); None if the plugin steps aside."""
        names = list(nodes) or list(self.cluster.table.row_of)
        cycle = Neighbourhood(self.cluster, self.compiled(document)).cycle(plugin)
        feasible = Nodes(self.cluster.table, np.array([self.row(name) for name in names], dtype=np.int32))
        status = plugin.prepare_scores(cycle, feasible) if takes_part(plugin, "prepare_scores") else None
        if status is SKIP:
            return None
        assert status is None, status
        values = plugin.score(cycle, feasible)
        if isinstance(values, int):
            return dict.fromkeys(names, values)
        if takes_part(plugin, "normalise"):
            values = plugin.normalise(cycle, feasible, values)
        return dict(zip(names, values.tolist(), strict=True))
