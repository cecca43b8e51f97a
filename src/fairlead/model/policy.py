"""What administrators lay down: queues, priority classes, disruption budgets; and which workloads select which pods.

Amounts are in base units. Of a queue's limits, None means that none was given, and a resource that a limit does not
name is not limited by it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.model.documents import EMPTY, compiler, created_at, read_units
from fairlead.model.selectors import NOTHING, SelectorError, selector_from_document, selector_from_map

if TYPE_CHECKING:
    from fairlead.model.selectors import LabelSelector

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


@dataclass(frozen=True, slots=True)
class PriorityClass:
    name: str
    value: int
    global_default: bool
    preemption_policy: str


@compiler("PriorityClass")
def compile_priority_class(document: Mapping[str, Any]) -> PriorityClass:
    return PriorityClass(
        name=document["metadata"]["name"],
        value=document.get("value") or 0,
        global_default=bool(document.get("globalDefault")),
        preemption_policy=document.get("preemptionPolicy") or "PreemptLowerPriority",
    )


@dataclass(frozen=True, slots=True)
class DisruptionBudget:
    """How many more pods may be disrupted, and which ones are known to be going already."""

    namespace: str
    name: str
    selector: LabelSelector
    disruptions_allowed: int
    disrupted_pods: frozenset[str]

    def covers(self, namespace: str, labels: Mapping[str, str]) -> bool:
        """Whether a pod counts against the budget when it is chosen as a victim. Pods without labels never do, and an
        empty selector covers nothing here."""
        if namespace != self.namespace or not labels or self.selector.empty:
            return False
        return self.selector.matches(labels)


@compiler("PodDisruptionBudget")
def compile_disruption_budget(document: Mapping[str, Any]) -> DisruptionBudget:
    """A selector that cannot be parsed covers nothing, as for the original."""
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    try:
        selector = selector_from_document(spec.get("selector"))
    except SelectorError:
        selector = NOTHING
    return DisruptionBudget(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        selector=selector,
        disruptions_allowed=status.get("disruptionsAllowed") or 0,
        disrupted_pods=frozenset(status.get("disruptedPods") or ()),
    )


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    """What a namespace may use, and what it uses. Fractions of anything but cpu are rounded up."""

    namespace: str
    name: str
    hard: Mapping[str, int]
    used: Mapping[str, int]


@compiler("ResourceQuota")
def compile_quota(document: Mapping[str, Any]) -> NamespaceQuota:
    metadata, status = document["metadata"], document.get("status") or {}
    return NamespaceQuota(
        namespace=metadata.get("namespace") or "",
        name=metadata["name"],
        hard=read_units(status.get("hard"), "status.hard"),
        used=read_units(status.get("used"), "status.used"),
    )


@dataclass(frozen=True, slots=True)
class WorkloadSelector:
    """What a Service, ReplicationController, ReplicaSet or StatefulSet selects. `labels` is the plain map of the first
    two (None if there is none, and then nothing is selected)."""

    namespace: str
    api_version: str
    kind: str
    name: str
    selector: LabelSelector
    labels: tuple[tuple[str, str], ...] | None = None


@compiler("workload")
def compile_workload_selector(document: Mapping[str, Any]) -> WorkloadSelector:
    """A set whose selector cannot be parsed says nothing about its pods, as for the original."""
    metadata, kind = document["metadata"], document.get("kind") or ""
    chosen = (document.get("spec") or {}).get("selector")
    labels = None
    if kind in ("Service", "ReplicationController"):
        labels = None if chosen is None else tuple(sorted(chosen.items()))
        selector = NOTHING if chosen is None else selector_from_map(chosen)
    else:
        try:
            selector = selector_from_document(chosen)
        except SelectorError:
            selector = NOTHING
    return WorkloadSelector(
        namespace=metadata.get("namespace") or "",
        api_version=document.get("apiVersion") or "",
        kind=kind,
        name=metadata["name"],
        selector=selector,
        labels=labels,
    )
