"""The record of a Volcano Queue, with the node groups that it prefers or avoids.

Amounts are in base units. A limit that is None was not given, and a resource that a limit does not name is not limited
by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.documents import EMPTY, compiler, created_at, read_units

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class NodeGroupAffinity:
    """The node groups that a queue must, should, must not and should not use."""

    required: tuple[str, ...] = ()
    preferred: tuple[str, ...] = ()
    required_anti: tuple[str, ...] = ()
    preferred_anti: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Queue:
    """A share of the cluster. An empty `state` is not Open."""

    name: str
    uid: str
    weight: int
    capability: Mapping[str, int] | None
    deserved: Mapping[str, int] | None
    guarantee: Mapping[str, int] | None
    reclaimable: bool
    parent: str
    priority: int
    state: str
    affinity: NodeGroupAffinity | None
    dequeue_strategy: str
    allocated: Mapping[str, int] | None
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created: float
    resource_version: str
    terminating: bool

    @property
    def open(self) -> bool:
        return self.state == "Open"

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


@compiler("Queue")
def compile_queue(document: Mapping[str, Any]) -> Queue:
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    weight, reclaimable = spec.get("weight"), spec.get("reclaimable")
    return Queue(
        name=metadata["name"],
        uid=metadata.get("uid") or "",
        weight=1 if weight is None else weight,
        capability=_optional_units(spec.get("capability"), "spec.capability"),
        deserved=_optional_units(spec.get("deserved"), "spec.deserved"),
        guarantee=_optional_units((spec.get("guarantee") or {}).get("resource"), "spec.guarantee.resource"),
        reclaimable=True if reclaimable is None else bool(reclaimable),
        parent=spec.get("parent") or "",
        priority=spec.get("priority") or 0,
        state=status.get("state") or "",
        affinity=_node_groups(spec.get("affinity")),
        dequeue_strategy=spec.get("dequeueStrategy") or "traverse",
        allocated=_optional_units(status.get("allocated"), "status.allocated"),
        labels=metadata.get("labels") or EMPTY,
        annotations=metadata.get("annotations") or EMPTY,
        created=created_at(metadata),
        resource_version=metadata.get("resourceVersion") or "",
        terminating=bool(metadata.get("deletionTimestamp")),
    )


def _optional_units(resources: Mapping[str, Any] | None, path: str) -> dict[str, int] | None:
    return None if resources is None else read_units(resources, path)


def _node_groups(affinity: Mapping[str, Any] | None) -> NodeGroupAffinity | None:
    if affinity is None:
        return None
    toward, away = affinity.get("nodeGroupAffinity") or {}, affinity.get("nodeGroupAntiAffinity") or {}
    return NodeGroupAffinity(
        required=tuple(toward.get(_REQUIRED) or ()),
        preferred=tuple(toward.get(_PREFERRED) or ()),
        required_anti=tuple(away.get(_REQUIRED) or ()),
        preferred_anti=tuple(away.get(_PREFERRED) or ()),
    )
