"""Node: what a node offers and says of itself, compiled once from its document.

Amounts are int64 base units, at most MOST_COUNTED of each. `node_changes` names the aspects in which two versions
differ, in the order in which the original reports them; an uncordoned node counts as one whose taints changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from fairlead.core.family import brought
from fairlead.core.model.documents import EMPTY, compiler, created_at, read_units
from fairlead.core.model.events import ActionType
from fairlead.core.model.quantity import counted
from fairlead.core.model.taints import Taint, parse_taints

__all__ = ["Node", "Taint", "compile_node", "node_changes", "zone_key"]


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """`allocatable` holds all resources, `pods` included, without what annotations keep of the node. `images` are
    (names, size in bytes). `features` are the declared ones as listed. `taints_added` are the times of the taints, good
    only for noticing that they changed."""

    name: str
    uid: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    allocatable: dict[str, int]
    taints: tuple[Taint, ...]
    taints_added: tuple[str, ...]
    unschedulable: bool
    images: tuple[tuple[tuple[str, ...], int], ...]
    features: tuple[str, ...]
    conditions: Mapping[str, str]
    zone_key: str
    created: float
    resource_version: str

    @property
    def ready(self) -> bool:
        return self.conditions.get("Ready") == "True"

    def __repr__(self) -> str:
        return f"<Node {self.name}>"


@compiler("Node")
def compile_node(document: Mapping[str, Any]) -> Node:
    """The node of a document; raises ModelError if the document cannot be used."""
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    labels, taints = metadata.get("labels") or EMPTY, spec.get("taints")
    annotations = metadata.get("annotations") or EMPTY
    allocatable = counted(read_units(status.get("allocatable"), "status.allocatable"))
    return Node(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        labels=labels,
        annotations=annotations,
        allocatable=_adjusted(allocatable, annotations) if annotations else allocatable,
        taints=parse_taints(taints),
        taints_added=tuple(taint.get("timeAdded") or "" for taint in taints or ()),
        unschedulable=bool(spec.get("unschedulable")),
        images=tuple(
            (tuple(image.get("names") or ()), image.get("sizeBytes") or 0) for image in status.get("images") or ()
        ),
        features=tuple(status.get("declaredFeatures") or ()),
        conditions={
            condition["type"]: condition.get("status") or "Unknown" for condition in status.get("conditions") or ()
        },
        zone_key=zone_key(labels),
        created=created_at(metadata),
        resource_version=metadata.get("resourceVersion") or "",
    )


@cache
def _adjusters() -> tuple[Callable[[dict[str, int], Mapping[str, str]], dict[str, int]], ...]:
    return tuple(brought("adjust_node"))


def _adjusted(allocatable: dict[str, int], annotations: Mapping[str, str]) -> dict[str, int]:
    """What can be allocated according to annotations of families."""
    for adjust in _adjusters():
        allocatable = adjust(allocatable, annotations)
    return allocatable


def zone_key(labels: Mapping[str, str]) -> str:
    """Region and zone in one text, empty if a node has neither. The old labels count before the new ones."""
    region = labels.get("failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", ""))
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    return f"{region}:\x00:{zone}" if region or zone else ""


def node_changes(old: Node, new: Node) -> tuple[ActionType, ...]:
    """What changed between two versions of a node, in order; empty if nothing that anybody listens to."""
    aspects = (
        (old.unschedulable and not new.unschedulable, ActionType.UPDATE_NODE_TAINT),
        (old.allocatable != new.allocatable, ActionType.UPDATE_NODE_ALLOCATABLE),
        (old.labels != new.labels, ActionType.UPDATE_NODE_LABEL),
        ((old.taints, old.taints_added) != (new.taints, new.taints_added), ActionType.UPDATE_NODE_TAINT),
        (old.conditions != new.conditions, ActionType.UPDATE_NODE_CONDITION),
        (old.annotations != new.annotations, ActionType.UPDATE_NODE_ANNOTATION),
        (old.features != new.features, ActionType.UPDATE_NODE_DECLARED_FEATURE),
    )
    return tuple(action for changed, action in aspects if changed)
