"""PodGroup: pods that belong together, whichever API says so, as one kind of record.

    scheduling.k8s.io       basic, or a gang with a minimum count; perhaps one topology key
    scheduling.x-k8s.io     a minimum of members and a time to wait
    APIs of families        read by `Family.group_readers`

What an API does not have is at its default here. The apiVersion of a document decides how it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from fairlead.core.family import families, resolve, tables
from fairlead.core.model.documents import EMPTY, FieldError, compiler, created_at, read_units
from fairlead.core.model.pod import COSCHEDULING_GROUP_API, NATIVE_GROUP_API
from fairlead.core.model.records import record

if TYPE_CHECKING:
    from fairlead.core.family import GroupReader
    from fairlead.core.model.selectors import LabelSelector

TOPOLOGY_KEY_ANNOTATION = "scheduling.fairlead.io/topology-key"
TOPOLOGY_MODE_ANNOTATION = "scheduling.fairlead.io/topology-mode"
SCHEDULED_CONDITIONS = {"v1alpha2": "PodGroupScheduled", "v1beta1": "PodGroupInitiallyScheduled"}
"""What the condition of a native group is called that says whether it was scheduled, by version of the API."""


class GroupPolicy(Enum):
    """Whether members start one by one, or not before the minimum can."""

    BASIC = "basic"
    GANG = "gang"


@dataclass(frozen=True, slots=True)
class NetworkTopology:
    """How close the members must be: `hard`, or if possible. The limit is a tier's number or its name."""

    hard: bool = True
    highest_tier: int | None = None
    highest_tier_name: str = ""

    @property
    def narrows(self) -> bool:
        """Whether it requests anything: a demand without a limit does not."""
        return not self.hard or self.highest_tier is not None or bool(self.highest_tier_name)


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """How members are divided further, by labels, with minimums and closeness of their own."""

    name: str
    size: int
    minimum: int
    selector: LabelSelector
    match_label_keys: tuple[str, ...]
    network_topology: NetworkTopology | None


@record(frozen=True, slots=True)
class GroupCondition:
    """What was last said of a group. `transition_id` is the round that said it."""

    type: str
    status: str
    transition_id: str
    transition_time: float
    reason: str
    message: str


@record(frozen=True, slots=True, eq=False)
class PodGroup:
    """`min_resources` is None where none are given, which is not the same as none being needed. `priority` counts only
    in the native API; the others have the class's. `timeout` is in seconds."""

    namespace: str
    name: str
    key: str
    uid: str
    api: str
    policy: GroupPolicy
    min_member: int
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    created: float
    resource_version: str
    phase: str = ""
    queue: str = ""
    priority_class: str = ""
    priority: int = 0
    min_resources: Mapping[str, int] | None = None
    topology_key: str = ""
    whole_disruption: bool = False
    task_minimums: Mapping[str, int] | None = None
    network_topology: NetworkTopology | None = None
    sub_groups: tuple[SubGroupPolicy, ...] = ()
    timeout: float | None = None
    terminating: bool = False
    conditions: tuple[GroupCondition, ...] = ()
    counted: tuple[int, int, int] = (0, 0, 0)
    """Members running, succeeded and failed, as last written, where the API says so."""
    topology_preferred: bool = False
    """One domain of the topology key if possible, else anywhere."""
    generation: int = 0
    version: str = ""
    scheduled_condition: tuple[str, str, str] | None = None
    """Status, reason and message of the condition that says whether a native group was scheduled, if it has one."""
    first_owner: str = ""
    """The name of the first owner, in control or not."""
    unknown: str = ""
    """Why it is not known yet how many members it needs."""
    minimum: int = field(init=False)
    """How many members must run for the group to be of any use."""

    def __post_init__(self) -> None:
        minimum = max(1, self.min_member) if self.policy is GroupPolicy.GANG else 1
        object.__setattr__(self, "minimum", minimum)

    @property
    def preferences(self) -> tuple[object, ...]:
        """What decides where its members may go and when they may start."""
        return self.policy, self.min_member, self.topology_key, self.topology_preferred, self.network_topology

    @property
    def stays_together(self) -> bool:
        """Whether members belong into one part of the cluster, by a label of nodes or by the network."""
        return bool(self.topology_key) or (self.network_topology is not None and self.network_topology.narrows)

    @property
    def may_preempt(self) -> bool:
        """Whether others may have to go for it. Groups of v1alpha2 that must be close together evict nobody, as in
        Kubernetes 1.36; those of 1.37 and of other APIs do."""
        return not (self.stays_together and self.api == NATIVE_GROUP_API and self.version == "v1alpha2")

    def __repr__(self) -> str:
        return f"<PodGroup {self.key}>"


@compiler("PodGroup")
def compile_group(document: Mapping[str, Any]) -> PodGroup:
    """The group of a document; raises ModelError if the document cannot be used."""
    metadata, spec, status = document["metadata"], document.get("spec") or {}, document.get("status") or {}
    api, _, version = (document.get("apiVersion") or "").partition("/")
    reader = _readers().get(api)
    if reader is None:
        raise FieldError("apiVersion", f"no PodGroup is known by {document.get('apiVersion')!r}")
    namespace, name = metadata.get("namespace") or "", metadata["name"]
    return PodGroup(
        namespace=namespace,
        name=name,
        key=f"{namespace}/{name}",
        uid=metadata.get("uid") or "",
        api=api,
        labels=metadata.get("labels") or EMPTY,
        annotations=metadata.get("annotations") or EMPTY,
        created=created_at(metadata),
        resource_version=metadata.get("resourceVersion") or "",
        phase=status.get("phase") or "",
        priority_class=spec.get("priorityClassName") or "",
        terminating=bool(metadata.get("deletionTimestamp")),
        generation=metadata.get("generation") or 0,
        first_owner=(metadata.get("ownerReferences") or [{}])[0].get("name") or "",
        version=version,
        scheduled_condition=_scheduled(status.get("conditions") or (), version),
        **(reader(document) | topology_preferences(metadata.get("annotations") or EMPTY, api)),
    )


def _scheduled(conditions: Iterable[Mapping[str, Any]], version: str) -> tuple[str, str, str] | None:
    for condition in conditions:
        if condition.get("type") == SCHEDULED_CONDITIONS.get(version):
            return condition.get("status") or "", condition.get("reason") or "", condition.get("message") or ""
    return None


def topology_preferences(annotations: Mapping[str, str], api: str) -> dict[str, Any]:
    """What annotations say for groups whose API has no field for it: a topology key, whether it is preferred or
    required, and what the families read beside. (A family's own groups have fields for what it reads of others.)"""
    found: dict[str, Any] = {}
    if key := annotations.get(TOPOLOGY_KEY_ANNOTATION):
        found["topology_key"] = key
    if annotations.get(TOPOLOGY_MODE_ANNOTATION) == "Preferred":
        found["topology_preferred"] = True
    for own, read in _preference_readers():
        if api not in own:
            found |= read(annotations)
    return found


@cache
def _preference_readers() -> tuple[tuple[Collection[str], GroupReader], ...]:
    """What reads the annotations of each family, with the API groups of the family's own groups."""
    return tuple(
        (resolve(family.group_readers) if family.group_readers else (), resolve(family.group_preferences))
        for family in families()
        if family.group_preferences
    )


@cache
def _readers() -> Mapping[str, GroupReader]:
    """Readers by API group: Kubernetes', coscheduling's, and those of the families."""
    return {NATIVE_GROUP_API: _read_native, COSCHEDULING_GROUP_API: _read_coscheduling} | tables("group_readers")


def _read_native(document: Mapping[str, Any]) -> dict[str, Any]:
    spec = document.get("spec") or {}
    gang = (spec.get("schedulingPolicy") or {}).get("gang")
    topology = (spec.get("schedulingConstraints") or {}).get("topology") or [{}]
    return {
        "policy": GroupPolicy.BASIC if gang is None else GroupPolicy.GANG,
        "min_member": 0 if gang is None else gang.get("minCount") or 0,
        "priority": spec.get("priority") or 0,
        "topology_key": topology[0].get("key") or "",
        "whole_disruption": _goes_as_a_whole(spec.get("disruptionMode")),
    }


def _goes_as_a_whole(mode: Any) -> bool:
    """`PodGroup` in v1alpha2; in v1beta1 the mode is a union of `single` and `all`."""
    return mode == "PodGroup" or (isinstance(mode, Mapping) and mode.get("all") is not None)


def _read_coscheduling(document: Mapping[str, Any]) -> dict[str, Any]:
    spec = document.get("spec") or {}
    return {
        "policy": GroupPolicy.GANG,
        "min_member": spec.get("minMember") or 0,
        "min_resources": optional_units(spec, "minResources"),
        "timeout": spec.get("scheduleTimeoutSeconds"),
    }


def optional_units(spec: Mapping[str, Any], field: str) -> dict[str, int] | None:
    """The amounts of a field in base units; None if it is not there, which is not the same as no amounts."""
    return None if spec.get(field) is None else read_units(spec[field], f"spec.{field}")
