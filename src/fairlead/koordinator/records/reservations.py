"""Reservation: room that is held for pods which are to come. It is scheduled like a pod, by its *reserve pod*.

The reserve pod is made from the reservation's template; its name and uid are the reservation's uid. What the pods that
own a reservation use of it is taken off what the reserve pod holds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import EMPTY, compiler, created_at, moment, read_units
from fairlead.core.model.durations import parse_duration
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.quantity import counted, nanos_to_units
from fairlead.core.model.selectors import selector_from_document
from fairlead.core.model.taints import Taint, parse_taints
from fairlead.core.model.times import timestamp
from fairlead.koordinator.records.bands import SUB_PRIORITY_LABEL

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.requirements import LabelSelector

PREFIX = "scheduling.koordinator.sh/"
RESERVE_POD = PREFIX + "reserve-pod"
RESERVATION_NAME = PREFIX + "reservation-name"
RESERVATION_NODE = PREFIX + "reservation-node"
ALLOCATED = PREFIX + "reservation-allocated"
AFFINITY = PREFIX + "reservation-affinity"
EXACT_MATCH = PREFIX + "exact-match-reservation"
IGNORED_LABEL = PREFIX + "reservation-ignored"
ORDER_LABEL = PREFIX + "reservation-order"
RESTRICTED_OPTIONS = PREFIX + "reservation-restricted-options"
IS_PRE_ALLOCATION = PREFIX + "is-pre-allocation"
PRE_ALLOCATION_REQUIRED_LABEL = PREFIX + "pre-allocation-required"
BY_OWNERS, IN_CLUSTER = "Default", "Cluster"
"""Which running pods a reservation with preAllocation may take over: its owners, or all that are marked for it."""
PENDING, AVAILABLE, SUCCEEDED, FAILED = "Pending", "Available", "Succeeded", "Failed"
ALIGNED, RESTRICTED, NO_POLICY = "Aligned", "Restricted", ""
_HIGHEST_PRIORITY = 2**31 - 1
_TTL = 24 * 3600.0


@dataclass(frozen=True, slots=True, eq=False)
class OwnerMatcher:
    """Pods that may use a reservation: all that is given must match."""

    object: Mapping[str, Any] | None
    controller: Mapping[str, Any] | None
    selector: LabelSelector | None

    def matches(self, pod: Pod) -> bool:
        return self._is_object(pod) and self._is_controlled(pod) and self._is_selected(pod)

    def _is_selected(self, pod: Pod) -> bool:
        return self.selector is None or self.selector.matches(pod.labels)

    def _is_object(self, pod: Pod) -> bool:
        wanted = self.object
        if wanted is None:
            return True
        facts = (("uid", pod.uid), ("name", pod.name), ("namespace", pod.namespace), ("apiVersion", "v1"))
        return all(not wanted.get(key) or wanted[key] == value for key, value in facts)

    def _is_controlled(self, pod: Pod) -> bool:
        wanted = self.controller
        if wanted is None:
            return True
        if wanted.get("namespace") and wanted["namespace"] != pod.namespace:
            return False
        owner = pod.owner
        if owner is None:
            return False
        facts = (
            ("uid", owner.uid),
            ("name", owner.name),
            ("kind", owner.kind),
            ("apiVersion", owner.api_version),
        )
        return all(not wanted.get(key) or wanted[key] == value for key, value in facts)


@dataclass(frozen=True, slots=True, eq=False)
class KoordReservation:
    """`held` are the amounts of the template, or those that the status shows once it is available. `names` are the
    resources that owners are charged for. `reserve_pod` is the document of its reserve pod."""

    name: str
    uid: str
    labels: Mapping[str, str]
    phase: str
    node: str
    held: Mapping[str, int]
    names: tuple[str, ...]
    owners: tuple[OwnerMatcher, ...]
    once: bool
    policy: str
    unschedulable: bool
    taints: tuple[Taint, ...]
    order: int
    reserve_pod: Doc = field(repr=False)
    created: float = 0.0
    ttl: float = _TTL
    expires: float | None = None
    terminating: bool = False
    pre_allocation: bool = False
    pre_mode: str = BY_OWNERS
    takes_several: bool = False
    """Whether a reservation with preAllocation may take over several pods."""
    shown: Doc = field(default_factory=dict, repr=False)
    """Its status as the object shows it."""
    inner: Mapping[str, int] = field(default_factory=dict)
    """What is kept back inside of it."""

    def matches(self, pod: Pod) -> bool:
        return any(owner.matches(pod) for owner in self.owners)


@compiler("Reservation")
def compile_reservation(document: Mapping[str, Any]) -> KoordReservation:
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    labels, annotations = metadata.get("labels") or EMPTY, metadata.get("annotations") or EMPTY
    held = counted(read_units(status.get("allocatable"), "status.allocatable"))
    held = held or _template_amounts(spec.get("template") or {})
    order = labels.get(ORDER_LABEL, "")
    policy = spec.get("allocatePolicy") or NO_POLICY
    pre_policy = spec.get("preAllocationPolicy") or {}
    return KoordReservation(
        name=metadata["name"],
        uid=metadata.get("uid") or metadata["name"],
        labels=labels,
        phase=status.get("phase") or PENDING,
        node=status.get("nodeName") or "",
        held=held,
        names=_names(held, annotations, policy),
        owners=_owners(json.dumps(spec.get("owners") or (), sort_keys=True)),
        once=spec.get("allocateOnce") is not False,
        policy=policy,
        unschedulable=bool(spec.get("unschedulable")) or bool(metadata.get("deletionTimestamp")),
        taints=parse_taints(spec.get("taints")),
        order=int(order) if order.lstrip("-").isdecimal() else 0,
        reserve_pod=reserve_pod(document, held),
        created=created_at(metadata),
        ttl=_TTL if spec.get("ttl") is None else parse_duration(str(spec["ttl"])),
        expires=moment(spec, "expires"),
        terminating=bool(metadata.get("deletionTimestamp")),
        pre_allocation=bool(spec.get("preAllocation")),
        pre_mode=pre_policy.get("mode") or BY_OWNERS,
        takes_several=bool(pre_policy.get("enableMultiple")),
        shown=status,
    )


def _names(held: Mapping[str, int], annotations: Mapping[str, str], policy: str) -> tuple[str, ...]:
    """The resources that owners are charged for; an annotation narrows those of a Restricted reservation."""
    names = tuple(sorted(held))
    text = annotations.get(RESTRICTED_OPTIONS)
    if policy != RESTRICTED or not text:
        return names
    wanted = json.loads(text).get("resources") or ()
    return tuple(name for name in names if name in wanted) if wanted else names


@lru_cache(maxsize=4096)
def _owners(text: str) -> tuple[OwnerMatcher, ...]:
    """The owners that a document lists. Equal documents give the same object, by which reservations can be grouped."""
    return tuple(_owner(owner) for owner in json.loads(text))


def _owner(owner: Mapping[str, Any]) -> OwnerMatcher:
    selector = owner.get("labelSelector")
    return OwnerMatcher(
        owner.get("object"),
        owner.get("controller"),
        None if selector is None else selector_from_document(selector),
    )


def _template_amounts(template: Mapping[str, Any]) -> dict[str, int]:
    from fairlead.core.model.requests import pod_requests

    exact = pod_requests(template.get("spec") or {}, {}).exact
    return {name: nanos_to_units(name, nanos) for name, nanos in exact.items()}


def reserve_pod(document: Mapping[str, Any], held: Mapping[str, int]) -> Doc:
    """The document of a reservation's reserve pod. One that has ended is a pod that has ended."""
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    template = spec.get("template") or {}
    inner, pod_spec = template.get("metadata") or {}, dict(template.get("spec") or {})
    uid = metadata.get("uid") or metadata["name"]
    labels = {**(inner.get("labels") or {}), **(metadata.get("labels") or {})}
    annotations = {**(inner.get("annotations") or {}), **(metadata.get("annotations") or {}), RESERVE_POD: "true"}
    annotations[RESERVATION_NAME] = metadata["name"]
    if spec.get("preAllocation"):
        annotations[IS_PRE_ALLOCATION] = "true"
    wanted_node = pod_spec.pop("nodeName", "")
    if wanted_node:
        annotations[RESERVATION_NODE] = wanted_node
    if status.get("nodeName"):
        pod_spec["nodeName"] = status["nodeName"]
    if pod_spec.get("priority") is None:
        own = labels.get(SUB_PRIORITY_LABEL, "")
        pod_spec["priority"] = int(own) if own.lstrip("-").isdecimal() else _HIGHEST_PRIORITY
    pod_spec.setdefault("schedulerName", "koord-scheduler")
    pod_spec.setdefault("containers", [])
    phase = {SUCCEEDED: "Succeeded", FAILED: "Failed"}.get(status.get("phase") or "", "Pending")
    return {
        "metadata": {
            "name": uid,
            "namespace": inner.get("namespace") or "default",
            "uid": uid,
            "labels": labels,
            "annotations": annotations,
            "creationTimestamp": metadata.get("creationTimestamp"),
            "deletionTimestamp": metadata.get("deletionTimestamp"),
            "resourceVersion": metadata.get("resourceVersion") or "",
        },
        "spec": pod_spec,
        "status": {"phase": phase, "conditions": _refused(status)},
    }


def _refused(status: Mapping[str, Any]) -> list[Doc]:
    """What a reservation says of a failed attempt, as a pod would say it."""
    conditions = status.get("conditions") or ()
    return [
        {**said, "type": "PodScheduled"}
        for said in conditions
        if said.get("type") == "Scheduled" and said.get("status") == "False"
    ]


def refusal_patch(pod: Pod, now: float, reason: str, message: str) -> Write | None:
    """The patch by which a reservation says that its reserve pod found no place; None if it says so already."""
    shown = pod.reported_as
    if shown is None or pod.scheduled_condition == ("False", reason, message):
        return None
    at = timestamp(now)
    condition = {
        "type": "Scheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "lastProbeTime": at,
        "lastTransitionTime": at,
    }
    body = {"status": {"phase": PENDING, "conditions": [condition]}}
    return Write(Verb.PATCH, shown.kind, shown.namespace, shown.name, body, subresource="status")


def is_reserve_pod(pod: Pod) -> bool:
    return RESERVE_POD in pod.annotations


def reservation_of(pod: Pod) -> str:
    """The uid of the reservation that a pod uses, as its annotation says; empty if none."""
    text = pod.annotations.get(ALLOCATED)
    if not text:
        return ""
    try:
        return str(json.loads(text).get("uid") or "")
    except (ValueError, AttributeError):
        return ""
