"""Pod: one pod as scheduling sees it. Identity, place and state of its own; the rest in a shape it shares.

Compiled once from a document, which is not kept: a pod costs some hundred bytes, and the core never parses twice.
Pods compare by identity; two versions of one pod are two Pods, and `pod_changes` says what lies between them.
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Mapping
from functools import cache, lru_cache
from sys import intern
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.family import brought, tables
from fairlead.core.model.device_claims import ClaimEntry, claim_entries
from fairlead.core.model.documents import EMPTY, MALFORMED, ModelError, malformed
from fairlead.core.model.events import ASSIGNED_POD, UNSCHEDULABLE_POD, ActionType, ClusterEvent
from fairlead.core.model.pod_volumes import PodVolume, VolumeSource
from fairlead.core.model.records import record
from fairlead.core.model.shape import PodShape, Shapes, compile_shape
from fairlead.core.model.taints import Taint, Toleration, first_untolerated, is_tolerated, tolerates
from fairlead.core.model.terms import AffinityTerm, SpreadConstraint
from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind

__all__ = [
    "AffinityTerm", "GroupRef", "ModelError", "Owner", "Pod", "PodShape", "PodVolume", "Shapes", "SpreadConstraint",
    "Taint", "Toleration", "VolumeSource", "compile_pod", "compile_shape", "first_untolerated", "is_tolerated",
    "pod_changes", "pod_events", "tolerates",
]  # fmt: skip

NATIVE_GROUP_API = "scheduling.k8s.io"
COSCHEDULING_GROUP_API = "scheduling.x-k8s.io"
OWNER_GROUP_API = "scheduling.fairlead.io"
"""What stands for an API where pods are a group because of their owner."""
GANG_ANNOTATION = "scheduling.fairlead.io/gang"
_OWNER_LABELS = (
    ("jobset.sigs.k8s.io/jobset-name", "", "jobset"),
    ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index", "leaderworkerset"),
    ("ray.io/cluster", "", "raycluster"),
    ("training.kubeflow.org/job-name", "", "trainingjob"),
)
"""Labels by which controllers mark what belongs together: the name, a part of it, and what to call it."""
_GROUP_SIZE_ANNOTATION = "leaderworkerset.sigs.k8s.io/size"
COSCHEDULING_GROUP_LABEL = "scheduling.x-k8s.io/pod-group"
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_CLAIM_STATUSES = frozenset({"resourceClaimStatuses", "extendedResourceClaimStatus"})
_NANOS_PER_MILLI = 10**6


class Owner(NamedTuple):
    """The controlling owner."""

    api_version: str
    kind: str
    name: str
    uid: str


class GroupRef(NamedTuple):
    """The group that a pod belongs to: the API group its PodGroup is of, its name in the pod's namespace, and all of
    that as one key."""

    api: str
    name: str
    key: str


class ReportedAs(NamedTuple):
    """The object that events and patches of a status are about, where a pod only stands for it."""

    kind: Kind
    namespace: str
    name: str


@lru_cache(maxsize=16384)
def group_ref(api: str, namespace: str, name: str) -> GroupRef:
    """One GroupRef for all members."""
    return GroupRef(api, name, f"{api}:{namespace}/{name}")


@record(frozen=True, slots=True, eq=False)
class Pod:
    """Times are seconds since the epoch. `group_ref` is the group that the core holds together, in any of its APIs;
    `group` is the name of a group that plugins of a family hold together, empty for none. `first_owner` is the name of
    the first owner, in control or not. `scheduled_since` is when its condition PodScheduled became true,
    `initialized_since` the same of Initialized. `claim_statuses` is an encoding that core/model/device_claims.py reads.
    `reported_as` is the object for which the pod stands, where the API has no such pod; None if it stands for itself.
    Annotations leave out what kubectl keeps there for itself."""

    uid: str
    namespace: str
    name: str
    key: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    shape: PodShape
    scheduler_name: str
    node_name: str
    nominated_node: str
    created: float
    start_time: float | None
    deletion_time: float | None
    phase: str
    gates: tuple[str, ...]
    owner: Owner | None
    first_owner: str
    group: str
    group_ref: GroupRef | None
    disruption_target: bool
    scheduled_condition: tuple[str, str, str] | None
    scheduled_since: float | None
    claim_statuses: bytes
    resource_version: str
    generation: int
    resource_claims: tuple[ClaimEntry, ...] = ()
    initialized_since: float | None = None
    reported_as: ReportedAs | None = None

    @property
    def terminating(self) -> bool:
        """Whether its deletion has begun."""
        return self.deletion_time is not None

    @property
    def request(self) -> dict[str, int]:
        """What it requests, by resource, in base units: thousandths of a core, bytes, pieces."""
        return self.shape.request

    @property
    def priority(self) -> int:
        """Its priority as a number."""
        return self.shape.priority

    @property
    def finished(self) -> bool:
        """Whether it has ended and holds nothing any more."""
        return self.phase in ("Succeeded", "Failed")

    def __repr__(self) -> str:
        return f"<Pod {self.key}{' on ' + self.node_name if self.node_name else ''}>"


def compile_pod(document: Mapping[str, Any], shapes: Shapes, before: Pod | None = None) -> Pod:
    """The pod of a document; raises ModelError if the document cannot be used. `before` is an earlier version of the
    pod, with which it shares what did not change."""
    try:
        return _compile(document, shapes, before)
    except MALFORMED as error:
        raise malformed("Pod", document, error) from error


_METADATA = (
    "uid", "namespace", "labels", "annotations", "creationTimestamp", "deletionTimestamp", "ownerReferences",
    "resourceVersion", "generation",
)  # fmt: skip
_SPEC = ("nodeName", "schedulingGates", "schedulingGroup")
_STATUS = ("phase", "nominatedNodeName", "startTime", "conditions")


def _compile(document: Mapping[str, Any], shapes: Shapes, before: Pod | None) -> Pod:
    metadata, spec, status = document["metadata"], document["spec"], document.get("status") or EMPTY
    uid, namespace, labels, annotations, created, deleted, owners, version, generation = map(metadata.get, _METADATA)
    node_name, gates, native = map(spec.get, _SPEC)
    phase, nominated, started, conditions = map(status.get, _STATUS)
    namespace, name = intern(namespace or ""), metadata["name"]
    if annotations and _LAST_APPLIED in annotations:
        annotations = {key: value for key, value in annotations.items() if key != _LAST_APPLIED}
    if before is not None and (labels or EMPTY) == before.labels and (annotations or EMPTY) == before.annotations:
        labels, annotations = before.labels, before.annotations
        group = before.group
        grouped = before.group_ref is not None or owners
    else:
        labels = shapes.share(labels) if labels else EMPTY
        annotations = shapes.share(annotations) if annotations else EMPTY
        grouped = labels or annotations
        group = _named_group(labels, annotations) if grouped else ""
    native = (native.get("podGroupName") or "") if native else ""
    shape = shapes.of(document)
    preempted, scheduled, scheduled_since, initialized_since = _read(conditions) if conditions else _NO_CONDITIONS
    return Pod(  # in the order of its fields: by their names it takes twice as long, and every change makes one
        uid or "",
        namespace,
        name,
        f"{namespace}/{name}",
        labels,
        annotations,
        shape,
        shape.scheduler_name,
        intern(node_name) if node_name else "",
        nominated or "",
        seconds_of(created) if created else 0.0,
        seconds_of(started) if started else None,
        seconds_of(deleted) if deleted else None,
        intern(phase) if phase else "Pending",
        tuple(gate["name"] for gate in gates) if gates else (),
        _controller(owners) if owners else None,
        intern(owners[0]["name"]) if owners else "",
        group,
        _group_ref(namespace, native, labels, annotations, owners) if native or grouped else None,
        preempted,
        scheduled,
        scheduled_since,
        b"" if _CLAIM_STATUSES.isdisjoint(status) else _claim_statuses(status),
        version or "",
        generation or 0,
        claim_entries(spec) if shape.claims else (),
        initialized_since,
    )


def _controller(owners: list[Mapping[str, Any]]) -> Owner | None:
    for owner in owners:
        if owner.get("controller"):
            return _shared_owner(owner["apiVersion"], owner["kind"], owner["name"], owner.get("uid") or "")
    return None


@lru_cache(maxsize=16384)
def _shared_owner(api_version: str, kind: str, name: str, uid: str) -> Owner:
    """One Owner for all pods it owns: fifty thousand pods have some hundred owners."""
    return Owner(api_version, kind, name, uid)


def _group_ref(
    namespace: str,
    native: str,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
    owners: list[Mapping[str, Any]] | None,
) -> GroupRef | None:
    if native:
        return group_ref(NATIVE_GROUP_API, namespace, native)
    if annotations:
        for annotation, api in _group_annotations():
            if name := annotations.get(annotation):
                return group_ref(api, namespace, name)
    if name := labels.get(COSCHEDULING_GROUP_LABEL):
        return group_ref(COSCHEDULING_GROUP_API, namespace, name)
    wanted = annotations.get(GANG_ANNOTATION)
    if wanted and (wanted == "auto" or gang_size(annotations)):
        name = owned_group_name(labels, _controller(owners) if owners else None)
        return group_ref(OWNER_GROUP_API, namespace, name) if name else None
    return None


def group_key(document: Mapping[str, Any]) -> str:
    """The key of the group that a pod's document names; without one the uid of its controller, or the empty text."""
    metadata, native = document["metadata"], document["spec"].get("schedulingGroup")
    labels, annotations = metadata.get("labels") or EMPTY, metadata.get("annotations") or EMPTY
    owners = metadata.get("ownerReferences")
    named = (native.get("podGroupName") or "") if native else ""
    ref = _group_ref(metadata.get("namespace") or "", named, labels, annotations, owners)
    if ref is not None:
        return ref.key
    owner = _controller(owners) if owners else None
    return _named_group(labels, annotations) or (owner.uid if owner is not None else "")


@cache
def _group_annotations() -> tuple[tuple[str, str], ...]:
    return tuple(tables("group_annotations").items())


@cache
def _group_readers() -> tuple[Callable[[Mapping[str, str], Mapping[str, str]], str], ...]:
    return tuple(brought("group_of"))


def _named_group(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The group that labels and annotations name in the words of a family."""
    for read in _group_readers():
        if name := read(labels, annotations):
            return name
    return ""


def gang_size(annotations: Mapping[str, str], *, auto: bool = False) -> int:
    """How many pods of one owner must start together, as far as the pod itself says: a number of its own, or (`auto`)
    that of its LeaderWorkerSet. 0 if it does not."""
    wanted = annotations.get(GANG_ANNOTATION, "auto" if auto else "")
    size = annotations.get(_GROUP_SIZE_ANNOTATION, "") if wanted == "auto" else wanted
    return int(size) if size.isascii() and size.isdigit() else 0


def owned_group_name(labels: Mapping[str, str], owner: Owner | None) -> str:
    """What the group of an owner's pods is called; the empty text if there is no owner."""
    for label, part, title in _OWNER_LABELS:
        if name := labels.get(label):
            return f"{title}-{name}-{labels[part]}" if part and part in labels else f"{title}-{name}"
    return f"{owner.kind.lower()}-{owner.name}" if owner is not None else ""


_Conditions = tuple[bool, tuple[str, str, str] | None, float | None, float | None]
_NO_CONDITIONS: _Conditions = (False, None, None, None)


def _read(conditions: list[Mapping[str, Any]]) -> _Conditions:
    """Whether the scheduler has already chosen the pod as a victim, what its first PodScheduled says, and since when
    it is scheduled and initialized. Conditions are read once: every change of a pod brings them."""
    preempted, scheduled, scheduled_since, initialized_since = _NO_CONDITIONS
    since_known = initialized_known = False
    for condition in conditions:
        kind = condition.get("type")
        if kind == "PodScheduled":
            status = condition.get("status")
            if scheduled is None:
                scheduled = status or "", condition.get("reason") or "", condition.get("message") or ""
            if status == "True" and not since_known:
                since_known, scheduled_since = True, _since(condition)
        elif kind == "Initialized":
            if condition.get("status") == "True" and not initialized_known:
                initialized_known, initialized_since = True, _since(condition)
        elif kind == "DisruptionTarget":
            preempted = preempted or (
                condition.get("status") == "True" and condition.get("reason") == "PreemptionByScheduler"
            )
    return preempted, scheduled, scheduled_since, initialized_since


def _since(condition: Mapping[str, Any]) -> float | None:
    since = condition.get("lastTransitionTime")
    return seconds_of(since) if since else None


def _claim_statuses(status: Mapping[str, Any]) -> bytes:
    claims, extended = status.get("resourceClaimStatuses"), status.get("extendedResourceClaimStatus")
    return marshal.dumps((claims, extended), 2) if claims or extended else b""


_UPDATED = (ActionType.UPDATE,)
_UPDATES = {resource: [ClusterEvent(resource, ActionType.UPDATE)] for resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)}


def pod_changes(old: Pod, new: Pod) -> tuple[ActionType, ...]:
    """What changed between two versions of a pod, as far as plugins can register for it; the generic update if
    nothing of that kind did."""
    found = []
    if old.labels is not new.labels and old.labels != new.labels:
        found.append(ActionType.UPDATE_POD_LABEL)
    if old.shape is not new.shape and _scaled_down(old.shape, new.shape):
        found.append(ActionType.UPDATE_POD_SCALE_DOWN)
    if old.gates and not new.gates:
        found.append(ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.shape.tolerations) != len(new.shape.tolerations):
        found.append(ActionType.UPDATE_POD_TOLERATION)
    if old.claim_statuses != new.claim_statuses:
        found.append(ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return tuple(found) or _UPDATED


def pod_events(old: Pod, new: Pod) -> list[ClusterEvent]:
    """The same as events, in the words that plugins listen to."""
    resource = ASSIGNED_POD if new.node_name else UNSCHEDULABLE_POD
    changes = pod_changes(old, new)
    return _UPDATES[resource] if changes is _UPDATED else [ClusterEvent(resource, action) for action in changes]


def _scaled_down(old: PodShape, new: PodShape) -> bool:
    """Whether a request went away or became smaller in thousandths."""
    for resource, amount in old.exact_request.items():
        left = new.exact_request.get(resource)
        if left is None or -(-amount // _NANOS_PER_MILLI) > -(-left // _NANOS_PER_MILLI):
            return True
    return False
