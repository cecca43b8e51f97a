"""VolumeRestrictions: disks that two pods cannot share on one node, and claims that only one pod may use at all.

Whether a ReadWriteOncePod claim is in use does not depend on the node: the verdict is the same on every node, and an
eviction may help. As in the original, a trial counts pods by the names of their claims without regard to the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint, Interest, Plugin
from fairlead.core.model import kinds
from fairlead.core.model.events import NODE, PERSISTENT_VOLUME_CLAIM, POD, ActionType, ClusterEvent
from fairlead.core.model.pod import Pod
from fairlead.core.model.pod_volumes import VolumeSource
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status, unresolvable
from fairlead.core.model.storage import Claim
from fairlead.kube.volumes.disks import EXCLUSIVE, disks_conflict, exclusive_disks
from fairlead.kube.volumes.pod_claims import claim_not_found, claim_uses
from fairlead.kube.volumes.storage import storage_of

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.nodes import Nodes

ONE_POD = "ReadWriteOncePod"


@dataclass(slots=True)
class InUse:
    """The names of the pod's ReadWriteOncePod claims, and how many other pods use one of them."""

    names: frozenset[str]
    conflicts: int

    def copy(self) -> InUse:
        return replace(self)

    def count(self, pod: Pod, sign: int) -> None:
        self.conflicts += sign * sum(name in self.names for name in claims_named_by(pod))


class VolumeRestrictions(Plugin):
    name = "VolumeRestrictions"
    _DISK = Reason(name, "node(s) had no available disk")
    _IN_USE = Reason(
        name,
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode"
        " already in-use by another pod",
    )

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE), _after_pod_deletion),
            Interest(ClusterEvent(NODE, ActionType.ADD)),
            Interest(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_named),
        )

    def concerns(self, pod: Pod) -> bool:
        return any(v.source is VolumeSource.CLAIM or v.source in EXCLUSIVE for v in pod.shape.volumes)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        claims = cycle.cluster.object_index.of(kinds.PERSISTENT_VOLUME_CLAIM)
        one_pod_only: dict[str, str] = {}
        for use in claim_uses(cycle.pod):
            if use.ephemeral:
                continue
            claim: Claim | None = claims.get(use.key)
            if claim is None:
                return unresolvable(claim_not_found(use.name))
            if ONE_POD in claim.access_modes:
                one_pod_only[use.name] = use.key
        conflicts = sum(key in cycle.cluster.claims_in_use for key in one_pod_only.values())
        if not conflicts and not any(exclusive_disks(cycle.pod)):
            return SKIP
        cycle.notes[self.name] = InUse(frozenset(one_pod_only), conflicts)
        return None

    def add_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        cycle.notes[self.name].count(pod, 1)

    def remove_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        cycle.notes[self.name].count(pod, -1)

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        in_use: InUse = cycle.notes[self.name]
        taken: set[int] = set()
        for disk in exclusive_disks(cycle.pod):
            taken |= storage_of(cycle.cluster).disks.rows_in_conflict(disk)
        without_disk = nodes.mask_of(taken)
        yield Reject(self._DISK, without_disk)
        if in_use.conflicts > 0:
            yield Reject(self._IN_USE, ~without_disk)


def claims_named_by(pod: Pod) -> Iterable[str]:
    """The claims that a pod's spec names, once for each volume."""
    return (volume.name for volume in pod.shape.volumes if volume.source is VolumeSource.CLAIM)


def after_claim_named(pod: Pod, old: object, new: object) -> Hint:
    """Queue if the pod's spec names an added or changed claim."""
    named = isinstance(new, Claim) and new.namespace == pod.namespace and new.name in claims_named_by(pod)
    return Hint.QUEUE if named else Hint.SKIP


def _after_pod_deletion(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(old, Pod) or old.namespace != pod.namespace:
        return Hint.SKIP
    if any(disks_conflict(wanted, had) for wanted in exclusive_disks(pod) for had in exclusive_disks(old)):
        return Hint.QUEUE
    return Hint.QUEUE if set(claims_named_by(pod)) & set(claims_named_by(old)) else Hint.SKIP
