"""Recorded decisions about resource claims: what stood before a pod was tried, what it was given, what stood after.

Allocations are compared on the node that the recorded scheduler chose: results, configurations and node selectors in
order. Identifiers of shares and times differ from run to run and are left out; quantities compare by value. Writes are
answered as a real API server answers them, as far as recordings show it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds
from fairlead.core.model.device_claims import EXTENDED_ANNOTATION
from fairlead.core.model.flow import Change, Happened, Reply, Verb
from fairlead.core.model.quantity import parse_quantity
from fairlead.errors import ApiError, Conflict, Invalid

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Doc, Write
    from fairlead.core.model.reasons import Status
    from fairlead.core.state.cluster import Cluster
    from fairlead.kube.claims.plan import ClaimPlan, Reservation
    from fairlead.kube.claims.plugin import DynamicResources

Difference = tuple[str, Any, Any]
_ROUNDS = 20
"""So many times writes are answered before an errand counts as stuck; none takes half of it."""


class ClaimReplay:
    """The claims of one recorded cluster."""

    def __init__(
        self, cluster: Cluster, objects: Sequence[Doc], existing: Sequence[Doc], namespaces: Container[str]
    ) -> None:
        """`namespaces` are those of the pods that are decided."""
        self._cluster = cluster
        self._claims = {
            doc["metadata"]["name"]: doc
            for doc in objects
            if doc["kind"] == kinds.RESOURCE_CLAIM.kind and doc["metadata"].get("namespace") in namespaces
        }
        self._uids = {doc["metadata"]["name"]: doc["metadata"].get("uid") for doc in existing}
        self._version = 10**9

    def before(self, decision: Doc) -> None:
        """Claims that were made for the pod before it was tried."""
        metadata = decision["pod"]["metadata"]
        self._uids[metadata["name"]] = metadata.get("uid")
        for doc in decision.get("created") or ():
            self._put(doc)

    def after(self, decision: Doc) -> None:
        """Leave the claims as the recorded scheduler and the controllers left them."""
        if "allocations" not in decision:
            return
        pod, gone = decision["pod"]["metadata"], decision.get("node") is None
        given = decision["allocations"]
        for name, doc in list(self._claims.items()):
            owners = [owner.get("uid") for owner in doc["metadata"].get("ownerReferences") or ()]
            if gone and name not in given and pod.get("uid") in owners:
                self._cluster.apply(Change(Happened.DELETED, kinds.RESOURCE_CLAIM, doc))
                del self._claims[name]
        for name, stands in given.items():
            self._put(self._allocated(name, stands, decision))
        for name, doc in list(self._claims.items()):
            if name not in given and (doc.get("status") or {}).get("allocation"):
                self._put({**doc, "status": {}})

    def _allocated(self, name: str, stands: Doc, decision: Doc) -> Doc:
        doc = self._claims.get(name) or _extended_claim(name, stands, decision["pod"]["metadata"])
        allocation = stands["allocation"]
        before = doc.get("status") or {}
        status: Doc = {"allocation": allocation}
        if stands.get("reservedFor"):
            status["reservedFor"] = [
                {"resource": "pods", "name": pod, "uid": self._uids.get(pod) or pod} for pod in stands["reservedFor"]
            ]
        if _plain(before.get("allocation")) == _plain(allocation) and before.get("devices"):
            status["devices"] = before["devices"]
        if "binding" in decision and not status.get("devices"):
            status["devices"] = _conditions(allocation, met=decision["binding"])
        return {**doc, "status": status}

    def _put(self, doc: Doc) -> Doc:
        self._version += 1
        metadata = {**doc["metadata"], "resourceVersion": str(self._version)}
        doc = {**doc, "metadata": metadata}
        happened = Happened.MODIFIED if metadata["name"] in self._claims else Happened.ADDED
        self._claims[metadata["name"]] = doc
        self._cluster.apply(Change(happened, kinds.RESOURCE_CLAIM, doc))
        return doc

    # ---- what the pod is given ----

    def differences(self, decision: Doc, cycle: Cycle, plugin: DynamicResources) -> Iterator[Difference]:
        """Compare what the pod would be given on the recorded node with what it was."""
        row = self._cluster.table.row_of.get(decision.get("node") or "")
        plan: ClaimPlan | None = cycle.notes.get(plugin.name)
        if row is None or plan is None or plan.empty:
            return
        plugin.reserve(cycle, row)
        reserved = plan.reserved
        if reserved is None:
            yield "allocations", sorted(decision["allocations"]), None
            return
        yield from self._compared(decision["allocations"], reserved, decision.get("extended"))
        plugin.unreserve(cycle, row)

    def _compared(self, given: Doc, reserved: Reservation, extended: Doc | None) -> Iterator[Difference]:
        for claim, allocation in reserved.allocations:
            expected, got = _plain((given.get(claim.name) or {}).get("allocation")), _plain(allocation.document)
            if expected != got:
                yield f"allocations.{claim.name}", expected, got
        if (extended is None) != (reserved.extended is None):
            yield "extended", extended, reserved.extended and list(reserved.extended.mappings)
        if extended is None or reserved.extended is None or reserved.extended_allocation is None:
            return
        stands = given.get(extended["resourceClaimName"]) or {}
        pairs: tuple[tuple[str, Any, Any], ...] = (
            ("extended.requestMappings", extended["requestMappings"], list(reserved.extended.mappings)),
            ("extended.spec", stands.get("spec"), reserved.extended.document),
            ("extended.allocation", _plain(stands.get("allocation")), _plain(reserved.extended_allocation.document)),
        )
        for name, expected, got in pairs:
            if expected != got:
                yield name, expected, got

    # ---- writing it down ----

    def write_down(self, decision: Doc, cycle: Cycle, plugin: DynamicResources, row: int) -> str:
        """Perform the errand of a pod that was reserved a place; returns what PreBind says, empty if it succeeds."""
        plugin.reserve(cycle, row)
        errand = plugin.pre_bind(cycle, row)
        said: Status | list[Write] | None = None
        if errand is not None:
            writes = errand.start(cycle.now)
            for _ in range(_ROUNDS):
                replies = [Reply(write, *self._answer(write)) for write in writes]
                said = errand.progress(cycle.now, self._cluster, replies)
                writes = said if isinstance(said, list) else []
                if said is not None and not isinstance(said, list):
                    break
                if not writes:
                    self._report_conditions(decision)
        plugin.unreserve(cycle, row)
        if said is None or isinstance(said, list):
            return "" if errand is None else "the errand does not end"
        return "" if said.ok else f'running PreBind plugin "{plugin.name}": {said.message}'

    def _answer(self, write: Write) -> tuple[Doc | None, ApiError | None]:
        if write.kind is kinds.POD:
            return {}, None
        if write.verb is Verb.CREATE:
            name = f"{write.body['metadata']['generateName']}xxxxx"
            made = {**write.body, "metadata": {**write.body["metadata"], "name": name, "uid": name}}
            return self._put(made), None
        doc = self._claims[write.name]
        if write.body["metadata"].get("resourceVersion") not in (None, doc["metadata"]["resourceVersion"]):
            return None, Conflict("the object has been modified")
        if not write.subresource:
            return self._put({**doc, "metadata": {**doc["metadata"], **write.body["metadata"]}}), None
        before, after = (doc.get("status") or {}).get("allocation"), write.body["status"].get("allocation")
        if before is not None and after is not None and before != after:
            words = f'ResourceClaim.resource.k8s.io "{write.name}" is invalid: status.allocation: Invalid value: '
            return None, Invalid(words + "field is immutable")
        users = [user["uid"] for user in write.body["status"].get("reservedFor") or ()]
        for at, uid in enumerate(users):
            if uid in users[:at]:
                words = f'ResourceClaim.resource.k8s.io "{write.name}" is invalid: status.reservedFor[{at}]: '
                return None, Invalid(words + f'Duplicate value: "{uid}"')
        return self._put({**doc, "status": {**(doc.get("status") or {}), **write.body["status"]}}), None

    def _report_conditions(self, decision: Doc) -> None:
        """The driver says of all devices that wait what it said then."""
        for doc in list(self._claims.values()):
            allocation = (doc.get("status") or {}).get("allocation")
            if allocation and not doc["status"].get("devices") and "binding" in decision:
                devices = _conditions(allocation, met=decision["binding"])
                if devices:
                    self._put({**doc, "status": {**doc["status"], "devices": devices}})


def _extended_claim(name: str, stands: Doc, pod: Doc) -> Doc:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": pod["name"], "uid": pod.get("uid"), "controller": True}
    return {
        "kind": kinds.RESOURCE_CLAIM.kind,
        "apiVersion": kinds.RESOURCE_CLAIM.api_version,
        "metadata": {
            "name": name,
            "namespace": pod["namespace"],
            "uid": name,
            "annotations": {EXTENDED_ANNOTATION: "true"},
            "ownerReferences": [owner],
        },
        "spec": stands["spec"],
    }


def _conditions(allocation: Doc, *, met: bool) -> list[Doc]:
    field = "bindingConditions" if met else "bindingFailureConditions"
    return [
        {
            "driver": result["driver"],
            "pool": result["pool"],
            "device": result["device"],
            "conditions": [{"type": name, "status": "True", "reason": "Ready"} for name in result[field]],
        }
        for result in allocation["devices"]["results"]
        if result.get(field)
    ]


def _plain(allocation: Mapping[str, Any] | None) -> Doc | None:
    """An allocation without what differs from run to run, quantities as numbers."""
    if allocation is None:
        return None
    devices = dict(allocation.get("devices") or {})
    devices["results"] = [
        {
            name: {key: parse_quantity(value).nanos for key, value in value.items()}
            if name == "consumedCapacity"
            else value
            for name, value in result.items()
            if name != "shareID"
        }
        for result in devices.get("results") or ()
    ]
    return {**{name: value for name, value in allocation.items() if name != "allocationTimestamp"}, "devices": devices}


def failed_in_filter(message: str | None) -> bool:
    """Whether a decision failed because a filter could not judge a node."""
    return " filter plugin: " in (message or "")


def failed_in_prebind(message: str | None) -> bool:
    """Whether a decision failed after its node was chosen."""
    return (message or "").startswith("running PreBind plugin ")


def same_error(recorded: str, ours: str) -> bool:
    """Whether two texts are the same up to a dump of an object, which nobody reads."""
    return recorded.partition("Invalid value: ")[0] == ours.partition("Invalid value: ")[0]


def same_gate(recorded: str | None, ours: str | None) -> bool:
    """Whether the same keeps a pod from the queue. While a claim is not created yet the original does not look again
    if what came was no better, so any refusal agrees with that."""
    if recorded is not None and recorded.endswith("ResourceClaim not created yet"):
        return ours is not None
    return recorded == ours
