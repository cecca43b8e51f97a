"""What one plugin says of each node of a small cluster: its refusals, its scores, and which events wake a pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.plugin import Hint, Plugin, takes_part
from fairlead.core.framework.profile import profile_of
from fairlead.core.framework.verdicts import VerdictCodes
from fairlead.core.model import kinds
from fairlead.core.model.events import ActionType, ClusterEvent
from fairlead.core.model.flow import Doc
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod, compile_pod
from fairlead.core.model.reasons import SKIP, Code, Status
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from tests.support.documents import HOST, ZONE, compiled, deleting, node, plain_pod
from tests.support.scenario import Scenario

Answer = str | tuple[str, tuple[str, ...]] | dict[str, tuple[tuple[str, ...], bool] | None]
"""`skip`, a refusal or error of the pod as a whole, or by node its reasons and whether they are final."""


class PluginScenario(Scenario):
    """Nodes by name with pods on them, and what one plugin says of each node."""

    def __init__(self) -> None:
        super().__init__()
        self.namespace("default")

    def namespace(self, name: str, **labels: str) -> None:
        self.put(kinds.NAMESPACE, {"metadata": {"name": name, "labels": labels}})

    def node(self, name: str, zone: str | None = None, *, host: bool = True, taint: str = "", **labels: str) -> None:
        carried = {**labels, **({HOST: name} if host else {}), **({ZONE: zone} if zone is not None else {})}
        taints = [{"key": taint, "effect": "NoSchedule"}] if taint else []
        self.put(kinds.NODE, node(name, carried, taints=taints, allocatable={}))

    def put_on(self, document: Doc, node_name: str, *, terminating: bool = False) -> None:
        """A pod that is on a node already."""
        placed = {**document, "spec": {**document["spec"], "nodeName": node_name}}
        self.put(kinds.POD, deleting(placed) if terminating else placed)

    def fill(self, node_name: str, count: int, labels: Mapping[str, str], **more: Any) -> None:
        """So many pods with these labels on a node."""
        for number in range(count):
            self.put_on(plain_pod(f"{node_name}-{number}", labels, **more), node_name)

    # ---- asking ----

    def prepared(self, plugin: Plugin, document: Doc) -> tuple[PendingPod, Cycle, Any]:
        pending = PendingPod(self.cluster, self.compiled(document))
        cycle = pending.cycle(plugin)
        return pending, cycle, plugin.pre_filter(cycle) if takes_part(plugin, "pre_filter") else None

    def refusals(self, plugin: Plugin, document: Doc) -> dict[str, str]:
        """The refused nodes and why."""
        pending, cycle, status = self.prepared(plugin, document)
        assert status is None, status
        return self.named(pending.refusals(plugin, cycle))

    def judged(self, plugin: Plugin, document: Doc) -> dict[str, str]:
        """What the filter alone says, whatever came of PreFilter."""
        pending, cycle, _ = self.prepared(plugin, document)
        return self.named(pending.refusals(plugin, cycle))

    def named(self, by_row: Mapping[int, str]) -> dict[str, str]:
        return {self.cluster.table.name(row): said for row, said in by_row.items() if said}

    def scores(self, plugin: Plugin, document: Doc, *nodes: str) -> dict[str, int] | None:
        """Normalised scores of the feasible nodes (all, if none are named); None if the plugin steps aside."""
        names = list(nodes) or list(self.cluster.table.row_of)
        cycle = PendingPod(self.cluster, self.compiled(document)).cycle(plugin)
        feasible = Nodes(self.cluster.table, np.array([self.row(name) for name in names], dtype=np.int32))
        status = plugin.pre_score(cycle, feasible) if takes_part(plugin, "pre_score") else None
        if status is SKIP:
            return None
        assert status is None, status
        values = plugin.score(cycle, feasible)
        if isinstance(values, int):
            return dict.fromkeys(names, values)
        if takes_part(plugin, "normalize_score"):
            values = plugin.normalize_score(cycle, feasible, values)
        return dict(zip(names, values.tolist(), strict=True))


@dataclass
class PendingPod:
    """A cluster and a pod that is to be placed in it."""

    cluster: Cluster
    pod: Pod

    def nodes(self) -> dict[int, Node]:
        return dict(self.cluster.table.alive_rows())

    def pods_on(self, row: int) -> list[Pod]:
        return list(self.cluster.table.pods[row])

    def namespace_labels(self, name: str) -> dict[str, str]:
        record = self.cluster.object_index.of(kinds.NAMESPACE).get(name)
        return dict(record.labels) if record is not None else {}

    def cycle(self, plugin: Plugin) -> Cycle:
        profile = profile_of("test", [plugin])
        return Cycle(pod=self.pod, cluster=self.cluster, profile=profile, now=0.0, rng=Random(0), effects=Effects())

    def refusals(self, plugin: Plugin, cycle: Cycle) -> dict[int, str]:
        """What a plugin's filter says of each row: empty, or the reasons, with a mark if they are final."""
        said = verdicts(plugin, cycle)
        return {row: _text(said[self.cluster.table.name(row)]) for row in self.nodes()}


def _text(verdict: tuple[tuple[str, ...], bool] | None) -> str:
    return "" if verdict is None else "; ".join(verdict[0]) + (" (final)" if verdict[1] else "")


def answer_of(plugin: Plugin, cluster: Cluster, document: Doc) -> tuple[Answer, Cycle]:
    """What a plugin says of a pod: PreFilter first, then the filter."""
    pending = PendingPod(cluster, compile_pod(document, cluster.shapes))
    cycle = pending.cycle(plugin)
    if not plugin.concerns(pending.pod):
        return "skip", cycle
    prepared = plugin.pre_filter(cycle)
    if isinstance(prepared, Status):
        return ("skip" if prepared.code is Code.SKIP else (prepared.code.label, prepared.reasons)), cycle
    return verdicts(plugin, cycle), cycle


def verdicts(plugin: Plugin, cycle: Cycle) -> dict[str, tuple[tuple[str, ...], bool] | None]:
    """By node, the filter's reasons and whether they are final; None if it lets the pod in."""
    table = cycle.cluster.table
    codes = VerdictCodes([plugin.name])
    column = codes.refusals(plugin.name, plugin.filter(cycle, Nodes(table)), table.high)
    found: dict[str, tuple[tuple[str, ...], bool] | None] = {}
    for name, row in table.row_of.items():
        code = 0 if column is None else int(column[row])
        verdict = codes.verdict(code) if code else None
        found[name] = (verdict.reasons, verdict.final) if verdict is not None else None
    return found


def hint(
    plugin: Plugin, resource: str, action: ActionType, pod: Pod, *, old: object = None, new: object = None
) -> Hint | None:
    """What an event means for a pod that the plugin refused; None if the plugin does not listen to it."""
    return event_hint(plugin, ClusterEvent(resource, action), pod, old, new)


def event_hint(
    plugin: Plugin, event: ClusterEvent, waiting: Pod | Doc, old: object = None, new: object = None
) -> Hint | None:
    """As `hint`, with the event as one value and the pod as a document if that is at hand."""
    pod = waiting if isinstance(waiting, Pod) else compiled(waiting)
    for interest in plugin.events() or ():
        if interest.event.match(event):
            return Hint.QUEUE if interest.hint is None else interest.hint(pod, old, new)
    return None
