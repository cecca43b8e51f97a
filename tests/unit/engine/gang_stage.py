"""Gangs on a stage: groups and members as documents, and a Stage whose scheduler knows what a gang is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fairlead.framework.plugin import Plugin
from fairlead.model import kinds
from fairlead.model.flow import Doc, Happened
from fairlead.model.kinds import Kind
from fairlead.plugins.gang import GangScheduling
from fairlead.plugins.hypernodes import PodGroupPodsCount, TopologyPlacementGenerator
from fairlead.plugins.preemption import DefaultPreemption
from tests.unit.engine.stage import Stage, node, pod

RACK = "example.com/rack"


def group(
    name: str, minimum: int = 0, *, key: str = "", priority: int = 0, whole: bool = False, uid: str = "",
    kind: Kind = kinds.POD_GROUP,
) -> Doc:  # fmt: skip
    """A native PodGroup: a gang of at least `minimum`, or basic without one."""
    spec: Doc = {"schedulingPolicy": {"gang": {"minCount": minimum}} if minimum else {"basic": {}}}
    if key:
        spec["schedulingConstraints"] = {"topology": [{"key": key}]}
    if priority:
        spec["priority"] = priority
    if whole:
        spec["disruptionMode"] = "PodGroup" if kind is kinds.POD_GROUP else {"all": {}}
    metadata = {"name": name, "namespace": "default", "uid": uid or f"uid-{name}", "generation": 1}
    return {"apiVersion": kind.api_version, "kind": "PodGroup", "metadata": metadata, "spec": spec}


def member(name: str, of: str, *, cpu: str = "1", on: str = "", priority: int = 0, **spec: Any) -> Doc:
    return pod(name, cpu=cpu, on=on, priority=priority, schedulingGroup={"podGroupName": of}, **spec)


def members(of: str, count: int, *, cpu: str = "1", **spec: Any) -> list[Doc]:
    return [member(f"{of}-{i}", of, cpu=cpu, **spec) for i in range(count)]


def racks(count: int, nodes_each: int, *, cpu: str = "4") -> list[Doc]:
    found = []
    for rack in range(count):
        for number in range(nodes_each):
            doc = node(f"r{rack}n{number}", cpu=cpu)
            doc["metadata"]["labels"][RACK] = f"r{rack}"
            found.append(doc)
    return found


def hyper_node(name: str, tier: int, *, nodes: str = "", of: tuple[str, ...] = (), title: str = "") -> Doc:
    """Nodes by a pattern of their names, and other HyperNodes."""
    inside: list[Any] = [{"type": "HyperNode", "selector": {"exactMatch": {"name": child}}} for child in of]
    if nodes:
        inside.append({"type": "Node", "selector": {"regexMatch": {"pattern": nodes}}})
    spec = {"tier": tier, "members": inside} | ({"tierName": title} if title else {})
    return {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name}, "spec": spec}


def gang_stage(*more: Plugin, nodes: int = 0, gang: GangScheduling | None = None, **options: Any) -> Stage:
    plugins = (gang or GangScheduling(), TopologyPlacementGenerator(), PodGroupPodsCount(), DefaultPreemption(), *more)
    return Stage(*plugins, nodes=nodes, **options)


def confirm(stage: Stage, docs: Sequence[Doc]) -> None:
    """The watch shows every bind that was sent."""
    binds = stage.binds()
    for doc in docs:
        target = binds.get(doc["metadata"]["name"])
        if target is not None:
            shown = {**doc, "spec": {**doc["spec"], "nodeName": target}}
            stage.tell(shown, happened=Happened.MODIFIED)
