"""AllocateClaims: write a pod's allocations and reservations down, claim by claim; then wait for binding conditions.

A claim gets a finalizer first, so that nobody deletes it under the pod, then its allocation and the reservation in one
write that names the version it was worked out from. If somebody else wrote the claim meanwhile, it is tried again once
the watch shows what they did. A write whose answer is lost may have been performed: it is sent again, because devices
that were given up in doubt could be given to two pods. The claim of extended resources is created first, and the pod's
status names it at last.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from fairlead.core.framework.plugin import ReplyErrand
from fairlead.core.model import kinds
from fairlead.core.model.device_claims import EXTENDED_ANNOTATION, EXTENDED_NAME, FINALIZER, compile_resource_claim
from fairlead.core.model.flow import Doc, PatchType, Verb, Write
from fairlead.core.model.reasons import SUCCESS, Status, failed
from fairlead.core.model.times import timestamp
from fairlead.errors import Conflict, Unreachable
from fairlead.kube.claims.conditions import failure_of, is_ready

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.device_claims import Allocation, ResourceClaim
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.kube.claims.devices import DeviceIndex
    from fairlead.kube.claims.plan import Reservation

_TRIES = 5
_POLL = 5.0


class _ClaimWrites:
    """The writes of one claim. `claim` is the newest state that is known."""

    __slots__ = ("allocation", "claim", "done", "extended", "pending", "tries", "waits_for_newer")

    def __init__(self, claim: ResourceClaim, allocation: Allocation | None, *, extended: bool = False) -> None:
        self.claim = claim
        self.allocation = allocation
        self.extended = extended
        self.pending: Write | None = None
        self.tries = 0
        self.waits_for_newer = ""
        self.done = False


class AllocateClaims(ReplyErrand):
    __slots__ = (
        "_claims", "_compatible", "_creating", "_deadline", "_devices", "_now", "_patching_pod", "_pod", "_reserved",
        "_timeout", "_unsent", "created",
    )  # fmt: skip

    def __init__(
        self, pod: Pod, reserved: Reservation, devices: DeviceIndex, *, binding_timeout: float, compatible: bool
    ) -> None:
        self._pod = pod
        self._reserved = reserved
        self._devices = devices
        self._timeout = binding_timeout
        self._compatible = compatible
        self._now = 0.0
        self._creating: Write | None = None
        self._patching_pod: Write | None = None
        self._unsent: Write | None = None
        self._claims: list[_ClaimWrites] = []
        self._deadline: float | None = None
        self.created = ""
        """The name of the claim that was made for extended resources."""

    # ---- Errand ----

    def start(self, now: float) -> list[Write]:
        self._now = now
        left = list(self._reserved.allocations)
        for claim in self._reserved.claims:
            allocation = None
            for at, (other, given) in enumerate(left):
                if other is claim:
                    allocation = given
                    del left[at]
                    break
            if allocation is not None or not claim.is_reserved_for(self._pod.uid):
                self._claims.append(self._writes_of(claim, allocation))
        if self._reserved.extended is not None:
            self._creating = self._creation(self._reserved.extended.document)
            return [self._creating]
        return self._next_writes()

    def _writes_of(self, claim: ResourceClaim, allocation: Allocation | None) -> _ClaimWrites:
        """A claim that is only promised to a member of the same gang is written with what was promised, unless the
        other member has done so already."""
        now = self._devices.claims.get(claim.key)
        if allocation is None and now is not None and now.allocation is None:
            return _ClaimWrites(now, claim.allocation)
        return _ClaimWrites(claim if allocation is not None or now is None else now, allocation)

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | list[Write] | None:
        self._now = now
        if not replies and self.waits_for_replies():
            return None
        for reply in replies:
            trouble = self._on_reply(reply)
            if trouble:
                return failed(trouble)
        trouble = self._refresh()
        if trouble:
            return failed(trouble)
        writes = self._next_writes()
        if writes:
            return writes
        if self._creating or self._patching_pod:
            return None
        for one in self._claims:
            if not one.done:
                return None
        return self._conditions(now)

    def wake_at(self) -> float | None:
        return self._deadline

    def waits_for_replies(self) -> bool:
        outstanding = self._creating is not None or self._patching_pod is not None
        for one in self._claims:
            if one.waits_for_newer:
                return False
            outstanding = outstanding or one.pending is not None
        return outstanding

    # ---- replies ----

    def _on_reply(self, reply: Reply) -> str:
        """Take in a reply; returns what went wrong."""
        write = reply.write
        if write is self._creating:
            self._creating = None
            if reply.error is not None:
                about = f"{self._pod.namespace}/{EXTENDED_NAME}"
                return f"create claim for extended resources {about}: {reply.error.message}"
            return self._made(reply.doc or {})
        if write is self._patching_pod:
            self._patching_pod = None
            if reply.error is not None:
                return f"update pod {self._pod.key} ExtendedResourceClaimStatus: {reply.error.message}"
            return ""
        for one in self._claims:
            if write is one.pending:
                one.pending = None
                return self._on_claim_reply(one, reply)
        return ""

    def _made(self, document: Doc) -> str:
        claim = compile_resource_claim(document)
        self.created = claim.name
        self._claims.append(_ClaimWrites(claim, self._reserved.extended_allocation, extended=True))
        return ""

    def _on_claim_reply(self, one: _ClaimWrites, reply: Reply) -> str:
        if reply.error is not None:
            if isinstance(reply.error, Conflict) and one.tries < _TRIES:
                one.waits_for_newer = one.claim.resource_version
                return ""
            if isinstance(reply.error, Unreachable) and one.tries < _TRIES:
                one.tries += 1
                return ""
            return f"add reservation to claim {one.claim.key}: {reply.error.message}"
        one.claim = self._as_written(one.claim, reply.doc) if reply.doc else one.claim
        return self._finish(one) if reply.write.subresource else ""

    def _finish(self, one: _ClaimWrites) -> str:
        """The API has the allocation and the reservation; returns what went wrong after that."""
        self._devices.arrived(one.claim, self._reserved.held[-1] if one.extended else one.claim.key)
        one.done = True
        return self._patch_pod() if one.extended else ""

    def _as_written(self, claim: ResourceClaim, document: Doc) -> ResourceClaim:
        """The claim as the API answered it: the record that the watch has brought already, if it has."""
        seen, version = self._devices.claims.seen(claim.key), document["metadata"].get("resourceVersion")
        return seen if version and seen is not None and seen.resource_version == version else claim.later(document)

    def _patch_pod(self) -> str:
        extended = self._reserved.extended
        assert extended is not None
        if not extended.mappings:
            return f"nil or empty request mappings, no update of pod {self._pod.key} ExtendedResourceClaimStatus"
        status = {"requestMappings": list(extended.mappings), "resourceClaimName": self.created}
        body = {"status": {"extendedResourceClaimStatus": status}}
        self._patching_pod = Write(
            Verb.PATCH, kinds.POD, self._pod.namespace, self._pod.name, body=body, subresource="status"
        )
        self._unsent = self._patching_pod
        return ""

    def _refresh(self) -> str:
        """Claims that somebody else wrote: go on from what they are now."""
        for one in self._claims:
            if not one.waits_for_newer:
                continue
            newest = self._devices.claims.seen(one.claim.key)
            if newest is None:
                missing = f'resourceclaims.resource.k8s.io "{one.claim.name}" not found'
                return f"add reservation to claim {one.claim.key}: {missing}"
            if newest.resource_version != one.waits_for_newer:
                if self._was_performed(one, newest):
                    one.claim, one.waits_for_newer = newest, ""
                    if trouble := self._finish(one):
                        return trouble
                    continue
                if newest.allocation is not None and one.allocation is not None:
                    if self._compatible or not _same_devices(newest.allocation, one.allocation):
                        return f"claim {newest.key} got allocated elsewhere in the meantime"
                    one.allocation = None
                one.claim, one.waits_for_newer = newest, ""
        return ""

    def _was_performed(self, one: _ClaimWrites, newest: ResourceClaim) -> bool:
        """Whether a claim shows what a write says whose answer was lost."""
        shown, wanted = newest.allocation, one.allocation
        same = shown is not None and (wanted is None or _same_devices(shown, wanted))
        return same and newest.is_reserved_for(self._pod.uid)

    # ---- writes ----

    def _next_writes(self) -> list[Write]:
        writes: list[Write] = []
        for one in self._claims:
            if not (one.done or one.pending or one.waits_for_newer):
                one.pending = self._write_for(one)
                writes.append(one.pending)
        if self._unsent is not None:
            writes.append(self._unsent)
            self._unsent = None
        return writes

    def _write_for(self, one: _ClaimWrites) -> Write:
        claim = one.claim
        if not claim.protected:
            metadata = {"resourceVersion": claim.resource_version, "finalizers": [*claim.finalizers, FINALIZER]}
            return _patch(claim, {"metadata": metadata})
        one.tries += 1
        status: Doc = {}
        if one.allocation is not None:
            status["allocation"] = {**one.allocation.document, "allocationTimestamp": timestamp(self._now)}
        elif self._compatible and claim.allocation is not None and claim.allocation.allocated_at is None:
            status["allocation"] = {**claim.allocation.document, "allocationTimestamp": timestamp(self._now)}
        mine = {"resource": "pods", "name": self._pod.name, "uid": self._pod.uid}
        status["reservedFor"] = [*map(_user, claim.reserved_for), mine] if claim.reserved_for else [mine]
        body = {"metadata": {"resourceVersion": claim.resource_version}, "status": status}
        return _patch(claim, body, subresource="status")

    def _creation(self, spec: Doc) -> Write:
        pod = self._pod
        owner = {"apiVersion": "v1", "kind": "Pod", "name": pod.name, "uid": pod.uid, "controller": True}
        body = {
            "apiVersion": kinds.RESOURCE_CLAIM.api_version,
            "kind": kinds.RESOURCE_CLAIM.kind,
            "metadata": {
                "generateName": f"{pod.name}-extended-resources-",
                "namespace": pod.namespace,
                "annotations": {EXTENDED_ANNOTATION: "true"},
                "ownerReferences": [owner],
            },
            "spec": spec,
        }
        return Write(Verb.CREATE, kinds.RESOURCE_CLAIM, pod.namespace, "", body=body)

    # ---- binding conditions ----

    def _conditions(self, now: float) -> Status | None:
        """Wait until all devices are ready, looking when the watch shows something and at least every few seconds."""
        waiting = [claim for one in self._reserved.claims if (claim := self._devices.claims.get(one.key)) is not None]
        for claim in waiting:
            if claim.allocation is not None and claim.allocation.binds_late:
                return self._once_ready(waiting, now)
        return SUCCESS

    def _once_ready(self, waiting: Sequence[ResourceClaim], now: float) -> Status | None:
        for claim in waiting:
            if failure := failure_of(claim):
                return failed(failure)
        if all(map(is_ready, waiting)):
            return SUCCESS
        for claim in waiting:
            since = claim.allocation.allocated_at if claim.allocation is not None else None
            if since is not None and since + self._timeout < now and not is_ready(claim):
                return failed(f"device binding timeout for claim {claim.key}")
        self._deadline = now + _POLL
        return None


def _same_devices(one: Allocation, other: Allocation) -> bool:
    return [result.id for result in one.results] == [result.id for result in other.results]


def _user(user: Any) -> Doc:
    return {"resource": user.resource, "name": user.name, "uid": user.uid}


def _patch(claim: ResourceClaim, body: Doc, subresource: str = "") -> Write:
    return Write(Verb.PATCH, kinds.RESOURCE_CLAIM, claim.namespace, claim.name, body=body, subresource=subresource)


def deallocation(claim: ResourceClaim) -> Write:
    """Give a claim's devices back."""
    status = {"allocation": None, "reservedFor": None, "devices": None}
    return _patch(claim, {"metadata": {"resourceVersion": claim.resource_version}, "status": status}, "status")


def deletion(claim: ResourceClaim) -> list[Write]:
    """Delete a claim that the scheduler made, its finalizer first."""
    kept = [name for name in claim.finalizers if name != FINALIZER]
    return [
        _patch(claim, {"metadata": {"finalizers": kept}}),
        Write(Verb.DELETE, kinds.RESOURCE_CLAIM, claim.namespace, claim.name),
    ]


def give_up_reservations(cycle: Cycle, reserved: Reservation, devices: DeviceIndex) -> None:
    """The pod does not go there after all: take it off the claims that were reserved for it by this attempt. What this
    attempt allocated is given back with it, unless others count on it already; the original leaves it allocated for
    nobody. The claim of extended resources is deleted."""
    uid = cycle.pod.uid
    allocated = {claim.key for claim, _ in reserved.allocations} if not cycle.profile.compatible else set[str]()
    for claim in reserved.claims:
        now = devices.claims.get(claim.key)
        if now is None or claim.is_reserved_for(uid) or not now.is_reserved_for(uid):
            continue
        if now.key in allocated and all(user.uid == uid for user in now.reserved_for):
            cycle.effects.writes.append(deallocation(now))
            continue
        body = {"metadata": {"uid": now.uid}, "status": {"reservedFor": [{"$patch": "delete", "uid": uid}]}}
        cycle.effects.writes.append(
            Write(
                Verb.PATCH,
                kinds.RESOURCE_CLAIM,
                now.namespace,
                now.name,
                body=body,
                subresource="status",
                patch_type=PatchType.STRATEGIC,
            )
        )
    if reserved.extended is not None:
        for claim in devices.claims_owned_by(uid):
            if claim.extended:
                cycle.effects.writes += deletion(claim)
