"""What may turn a refusal by DynamicResources around, and what certainly does not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint, Interest
from fairlead.core.model.device_claims import ResourceClaim
from fairlead.core.model.events import (
    ASSIGNED_POD,
    DEVICE_CLASS,
    NODE,
    POD,
    RESOURCE_CLAIM,
    RESOURCE_SLICE,
    ActionType,
    ClusterEvent,
)
from fairlead.core.model.pod import Pod
from fairlead.kube.claims.pod_claims import ClaimMissing, claims_of

if TYPE_CHECKING:
    from fairlead.kube.claims.devices import DeviceIndex

_ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE
_NODE_CHANGES = ActionType.ADD | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_ALLOCATABLE


def claim_interests(devices: Callable[[], DeviceIndex | None]) -> Sequence[Interest]:
    """`devices` gives the index once there is one: claims are looked up in it."""

    def after_claim(pod: Pod, old: object, new: object) -> Hint:
        index = devices()
        if index is None or not isinstance(new, ResourceClaim):
            return Hint.QUEUE
        try:
            own = claims_of(pod, index)
        except ClaimMissing:
            return Hint.SKIP
        if isinstance(old, ResourceClaim) and old.allocation is not None and new.allocation is None:
            return Hint.QUEUE
        if all(claim.key != new.key for claim in own):
            return Hint.SKIP
        return Hint.SKIP if isinstance(old, ResourceClaim) and _same_status(old, new) else Hint.QUEUE

    def after_pod(pod: Pod, old: object, new: object) -> Hint:
        index = devices()
        if not isinstance(new, Pod) or new.uid != pod.uid or index is None:
            return Hint.SKIP
        try:
            claims_of(new, index)
        except ClaimMissing:
            return Hint.SKIP
        return Hint.QUEUE

    def after_departure(pod: Pod, old: object, new: object) -> Hint:
        """A pod that evicted others for their devices is gated until they go. It comes back then, so that it gets
        their claims."""
        departs = isinstance(old, Pod) and old.shape.claims and old.priority < pod.priority
        return Hint.QUEUE if departs and pod.shape.claims else Hint.SKIP

    return (
        Interest(ClusterEvent(NODE, _NODE_CHANGES)),
        Interest(ClusterEvent(RESOURCE_CLAIM, _ADD_OR_UPDATE), after_claim),
        Interest(ClusterEvent(POD, ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM), after_pod),
        Interest(ClusterEvent(ASSIGNED_POD, ActionType.DELETE), after_departure),
        Interest(ClusterEvent(DEVICE_CLASS, _ADD_OR_UPDATE)),
        Interest(ClusterEvent(RESOURCE_SLICE, _ADD_OR_UPDATE)),
    )


def _same_status(old: ResourceClaim, new: ResourceClaim) -> bool:
    before = old.allocation.document if old.allocation is not None else None
    after = new.allocation.document if new.allocation is not None else None
    return before == after and old.reserved_for == new.reserved_for and old.conditions == new.conditions
