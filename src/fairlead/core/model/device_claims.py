"""ResourceClaims: what a pod asks of devices, what it was given, and who uses it.

A claim's spec is compiled once and shared by all claims with an equal one: claims made from one template have the same
ClaimSpec object, so whatever is found out about one holds for all of them.
"""

from __future__ import annotations

import marshal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.model.devices import DeviceId, PoolId
from fairlead.core.model.documents import EMPTY, MALFORMED, FieldError, compiler, malformed
from fairlead.core.model.quantity import Quantity, QuantityError, read_quantity
from fairlead.core.model.records import record
from fairlead.core.model.selectors import NodeSelector, SelectorError, parse_node_selector
from fairlead.core.model.taints import Toleration, parse_tolerations
from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod

FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM_ANNOTATION = "resource.kubernetes.io/pod-claim-name"
EXTENDED_ANNOTATION = "resource.kubernetes.io/extended-resource-claim"
EXTENDED_NAME = "<extended-resources>"
"""What the claim of a pod's extended resources is called before it is created."""
MAX_RESULTS = 32
"""No claim gets more devices."""


@dataclass(frozen=True, slots=True, eq=False)
class DeviceRequest:
    """A request, or an alternative of one (then `parent` is the name of the request). `tolerations` as they are
    matched, `toleration_docs` as they go into results. `everything` is the mode All."""

    name: str
    parent: str
    device_class: str
    selectors: tuple[str | None, ...]
    everything: bool
    mode: str
    count: int
    admin: bool
    tolerations: tuple[Toleration, ...]
    toleration_docs: tuple[Mapping[str, Any], ...]
    capacity: Mapping[str, Quantity]

    @property
    def full_name(self) -> str:
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def request_name(self) -> str:
        """The name of the request that it is, or is an alternative of."""
        return self.parent or self.name


@dataclass(frozen=True, slots=True, eq=False)
class RequestSlot:
    """One entry of a claim's requests: a single request, or alternatives in order of preference."""

    name: str
    choices: tuple[DeviceRequest, ...]
    prioritised: bool


@dataclass(frozen=True, slots=True)
class AttributeConstraint:
    """All devices of the named requests (of all, if none is named) have the same value of an attribute, or, if
    `distinct`, different ones. `attribute` is empty if the kind of constraint is unknown."""

    requests: frozenset[str]
    attribute: str
    distinct: bool

    def concerns(self, request: DeviceRequest) -> bool:
        if not self.requests:
            return True
        return request.request_name in self.requests or (bool(request.parent) and request.full_name in self.requests)


@dataclass(frozen=True, slots=True, eq=False)
class ClaimSpec:
    """`requests` are those of all slots; `prioritised` says whether some of them are alternatives."""

    slots: tuple[RequestSlot, ...]
    constraints: tuple[AttributeConstraint, ...]
    configs: tuple[Mapping[str, Any], ...]
    requests: tuple[DeviceRequest, ...] = field(init=False)
    prioritised: bool = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "requests", tuple(request for slot in self.slots for request in slot.choices))
        object.__setattr__(self, "prioritised", any(slot.prioritised for slot in self.slots))


@record(frozen=True, slots=True, eq=False)
class AllocatedDevice:
    """One result of an allocation. `consumed` are amounts in nanos."""

    id: DeviceId
    pool: PoolId
    request: str
    admin: bool
    share: str
    consumed: Mapping[str, int]
    binding_conditions: tuple[str, ...]
    failure_conditions: tuple[str, ...]


@record(frozen=True, slots=True, eq=False)
class Allocation:
    """What a claim was given; `document` is that as it stands in the API."""

    results: tuple[AllocatedDevice, ...]
    allocated_at: float | None
    document: Mapping[str, Any]

    @property
    def selector(self) -> NodeSelector | None:
        """The nodes from which the devices can be used; None for all. It is read on request: of most
        allocations nobody does."""
        return self._selector[0]

    @property
    def selector_error(self) -> str:
        """Why the node selector cannot be read; empty if it can."""
        return self._selector[1]

    @property
    def _selector(self) -> tuple[NodeSelector | None, str]:
        found = self.document.get("nodeSelector")
        return (None, "") if found is None else _node_selector(marshal.dumps(found, 2))

    @property
    def binds_late(self) -> bool:
        return any(result.binding_conditions for result in self.results)


class Consumer(NamedTuple):
    """Somebody who uses a claim."""

    resource: str
    name: str
    uid: str


@record(frozen=True, slots=True, eq=False)
class ResourceClaim:
    """`conditions` are those of its devices: by device, the conditions that the driver reports."""

    namespace: str
    name: str
    key: str
    uid: str
    owner_uid: str
    annotations: Mapping[str, str]
    finalizers: tuple[str, ...]
    terminating: bool
    spec: ClaimSpec
    allocation: Allocation | None
    reserved_for: tuple[Consumer, ...]
    conditions: Mapping[DeviceId, Mapping[str, Mapping[str, Any]]]
    resource_version: str

    @property
    def protected(self) -> bool:
        """Whether it cannot be deleted while it is in use."""
        return FINALIZER in self.finalizers

    @property
    def extended(self) -> bool:
        """Whether the scheduler made it for extended resources of a pod."""
        return self.annotations.get(EXTENDED_ANNOTATION) == "true"

    def is_reserved_for(self, uid: str) -> bool:
        return any(consumer.uid == uid for consumer in self.reserved_for)

    def later(self, document: Mapping[str, Any]) -> ResourceClaim:
        """This claim as a later document shows it. What never changes of a claim, its spec above all, is not read
        again."""
        status: Mapping[str, Any] = document.get("status") or EMPTY
        annotations, finalizers, deleted, version = map(document["metadata"].get, _METADATA)
        allocation, users, conditions = map(status.get, _STATUS)
        return ResourceClaim(
            self.namespace,
            self.name,
            self.key,
            self.uid,
            self.owner_uid,
            annotations or EMPTY,
            tuple(finalizers) if finalizers else (),
            bool(deleted),
            self.spec,
            compile_allocation(allocation) if allocation is not None else None,
            _consumers(users) if users else (),
            _conditions(conditions) if conditions else _NO_CONDITIONS,
            version or "",
        )


_METADATA = ("annotations", "finalizers", "deletionTimestamp", "resourceVersion")
_STATUS = ("allocation", "reservedFor", "devices")


class ClaimEntry(NamedTuple):
    """One entry of a pod's resourceClaims: the name inside the pod, and the claim or the template."""

    name: str
    claim: str
    template: str


@lru_cache(maxsize=4096)
def _shared_entries(entries: tuple[ClaimEntry, ...]) -> tuple[ClaimEntry, ...]:
    return entries


def claim_entries(spec: Mapping[str, Any]) -> tuple[ClaimEntry, ...]:
    """The resourceClaims of a pod's spec."""
    found = spec.get("resourceClaims")
    if not found:
        return ()
    return _shared_entries(
        tuple(
            [
                ClaimEntry(one["name"], one.get("resourceClaimName") or "", one.get("resourceClaimTemplateName") or "")
                for one in found
            ]
        )
    )


def claims_made_for(pod: Pod) -> Mapping[str, str | None]:
    """The names of the claims that were made for a pod's templates, by entry; None if an entry needs none."""
    return _claims_made(pod.claim_statuses) if pod.claim_statuses else {}


@lru_cache(maxsize=16384)
def _claims_made(encoding: bytes) -> Mapping[str, str | None]:
    """A pod is asked when it comes and when it is tried, so the latest are kept."""
    listed = marshal.loads(encoding)[0]
    return {one["name"]: one.get("resourceClaimName") for one in listed or ()}


def extended_claim_of(pod: Pod) -> str:
    """The name of the claim that serves a pod's extended resources; empty if there is none."""
    status = marshal.loads(pod.claim_statuses)[1] if pod.claim_statuses else None
    return (status or {}).get("resourceClaimName") or ""


def later_resource_claim(before: ResourceClaim, document: Mapping[str, Any]) -> ResourceClaim:
    """The record of a claim that was known before: only what may have changed is read."""
    try:
        if before.uid and document["metadata"].get("uid") == before.uid:
            return before.later(document)
    except MALFORMED as error:
        raise malformed("ResourceClaim", document, error) from error
    return compile_resource_claim(document)


@compiler("ResourceClaim")
def compile_resource_claim(document: Mapping[str, Any]) -> ResourceClaim:
    metadata = document["metadata"]
    namespace, name = metadata.get("namespace") or "", metadata["name"]
    allocation, users, conditions = map((document.get("status") or EMPTY).get, _STATUS)
    owners = metadata.get("ownerReferences") or ()
    return ResourceClaim(
        namespace=namespace,
        name=name,
        key=f"{namespace}/{name}",
        uid=metadata.get("uid") or "",
        owner_uid=next((owner.get("uid") or "" for owner in owners if owner.get("controller")), ""),
        annotations=metadata.get("annotations") or EMPTY,
        finalizers=tuple(metadata.get("finalizers") or ()),
        terminating=bool(metadata.get("deletionTimestamp")),
        spec=claim_spec(document.get("spec") or {}),
        allocation=compile_allocation(allocation) if allocation is not None else None,
        reserved_for=_consumers(users) if users else (),
        conditions=_conditions(conditions) if conditions else _NO_CONDITIONS,
        resource_version=metadata.get("resourceVersion") or "",
    )


def _consumers(users: Sequence[Mapping[str, Any]]) -> tuple[Consumer, ...]:
    return tuple([Consumer(one.get("resource") or "", one.get("name") or "", one.get("uid") or "") for one in users])


_NO_CONDITIONS: Mapping[DeviceId, Mapping[str, Mapping[str, Any]]] = {}


def _conditions(devices: Sequence[Mapping[str, Any]]) -> Mapping[DeviceId, Mapping[str, Mapping[str, Any]]]:
    return {
        DeviceId(one["driver"], one["pool"], one["device"]): {
            condition["type"]: condition for condition in one.get("conditions") or ()
        }
        for one in devices
    }


def claim_spec(document: Mapping[str, Any]) -> ClaimSpec:
    """The compiled spec, one for all that are equal."""
    return _claim_spec(marshal.dumps(document, 2))  # type: ignore[arg-type]  # a dict, read only


@lru_cache(maxsize=4096)
def _claim_spec(encoding: bytes) -> ClaimSpec:
    devices = marshal.loads(encoding).get("devices") or {}
    return ClaimSpec(
        slots=tuple(_slot(one, f"spec.devices.requests[{at}]") for at, one in enumerate(devices.get("requests") or ())),
        constraints=tuple(
            AttributeConstraint(
                frozenset(one.get("requests") or ()),
                one.get("matchAttribute") or one.get("distinctAttribute") or "",
                bool(one.get("distinctAttribute")),
            )
            for one in devices.get("constraints") or ()
        ),
        configs=tuple(devices.get("config") or ()),
    )


def _slot(document: Mapping[str, Any], path: str) -> RequestSlot:
    name, alternatives = document["name"], document.get("firstAvailable")
    if alternatives:
        choices = tuple(_request(one, one["name"], name, path) for one in alternatives)
        return RequestSlot(name, choices, prioritised=True)
    return RequestSlot(name, (_request(document.get("exactly") or {}, name, "", path),), prioritised=False)


def _request(document: Mapping[str, Any], name: str, parent: str, path: str) -> DeviceRequest:
    mode = document.get("allocationMode") or "ExactCount"
    tolerations = document.get("tolerations") or ()
    count = document.get("count")
    return DeviceRequest(
        name=name,
        parent=parent,
        device_class=document.get("deviceClassName") or "",
        selectors=tuple((one.get("cel") or {}).get("expression") for one in document.get("selectors") or ()),
        everything=mode == "All",
        mode=mode,
        count=1 if count is None else count,
        admin=bool(document.get("adminAccess")) and not parent,
        tolerations=parse_tolerations(tolerations),
        toleration_docs=tuple(tolerations),
        capacity=_amounts((document.get("capacity") or {}).get("requests"), path),
    )


def _amounts(document: Mapping[str, Any] | None, path: str) -> dict[str, Quantity]:
    try:
        return {name: read_quantity(value) for name, value in (document or {}).items()}
    except QuantityError as error:
        raise FieldError(f"{path}.capacity", str(error)) from None


def compile_allocation(document: Mapping[str, Any]) -> Allocation:
    """The record of an allocation. A claim is seen several times with the same devices, from the moment they are
    reserved until the watch shows them, so the latest results are kept: equal ones are one object, by which readers
    see at once that nothing changed."""
    results = (document.get("devices") or {}).get("results") or ()
    when = document.get("allocationTimestamp")
    return Allocation(tuple([_result(one) for one in results]), seconds_of(when) if when else None, document)


@lru_cache(maxsize=16384)
def _node_selector(encoding: bytes) -> tuple[NodeSelector | None, str]:
    """Claims with devices of one node have equal selectors."""
    try:
        return parse_node_selector(marshal.loads(encoding), strict=True), ""
    except SelectorError as broken:
        return None, str(broken)
    except MALFORMED as error:
        return None, f"unreadable node selector ({type(error).__name__}: {error})"


def _result(one: Mapping[str, Any]) -> AllocatedDevice:
    """Most results name a request and a device and say nothing else."""
    if len(one) == _PLAIN and "request" in one:
        return _plain_result(one["request"], one["driver"], one["pool"], one["device"])
    return _any_result(marshal.dumps(one, 2))  # type: ignore[arg-type]  # a dict, read only


_PLAIN = 4


@lru_cache(maxsize=16384)
def _plain_result(request: str, driver: str, pool: str, device: str) -> AllocatedDevice:
    return AllocatedDevice(
        DeviceId(driver, pool, device),
        PoolId(driver, pool),
        request or "",
        admin=False,
        share="",
        consumed={},
        binding_conditions=(),
        failure_conditions=(),
    )


@lru_cache(maxsize=16384)
def _any_result(encoding: bytes) -> AllocatedDevice:
    one = marshal.loads(encoding)
    return AllocatedDevice(
        id=DeviceId(one["driver"], one["pool"], one["device"]),
        pool=PoolId(one["driver"], one["pool"]),
        request=one.get("request") or "",
        admin=bool(one.get("adminAccess")),
        share=one.get("shareID") or "",
        consumed={name: read_quantity(value).nanos for name, value in (one.get("consumedCapacity") or {}).items()},
        binding_conditions=tuple(one.get("bindingConditions") or ()),
        failure_conditions=tuple(one.get("bindingFailureConditions") or ()),
    )
