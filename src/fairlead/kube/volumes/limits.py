"""NodeVolumeLimits: a node can attach only so many volumes of a driver.

As in the original, a volume that is still attached to a node where no pod uses it counts as attached and, for a pod
that uses it, also as new.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Hint, Interest, Plugin
from fairlead.core.model.events import (
    CSI_NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VOLUME_ATTACHMENT,
    ActionType,
    ClusterEvent,
)
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status
from fairlead.core.model.storage import Claim, CsiNode, VolumeAttachment
from fairlead.kube.volumes.attached import UnclearError
from fairlead.kube.volumes.csi_migration import INLINE_DISKS, driver_of_inline
from fairlead.kube.volumes.node_limits import UNLIMITED
from fairlead.kube.volumes.pod_claims import claim_not_found, claim_uses, uses_claims
from fairlead.kube.volumes.storage import storage_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.nodes import Nodes
    from fairlead.kube.volumes.attached import AttachedVolumes
    from fairlead.kube.volumes.csi_migration import Identity


class NodeVolumeLimits(Plugin):
    name = "NodeVolumeLimits"
    _TOO_MANY = Reason(name, "node(s) exceed max volume count")

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(CSI_NODE, ActionType.ADD)),
            Interest(ClusterEvent(CSI_NODE, ActionType.UPDATE), _after_csi_node_update),
            Interest(ClusterEvent(POD, ActionType.DELETE), _after_pod_deletion),
            Interest(ClusterEvent(PERSISTENT_VOLUME_CLAIM, ActionType.ADD), after_claim_used),
            Interest(ClusterEvent(VOLUME_ATTACHMENT, ActionType.DELETE), _after_detaching),
        )

    def concerns(self, pod: Pod) -> bool:
        return attaches(pod)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        return None if attaches(cycle.pod) else SKIP

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        attached = storage_of(cycle.cluster).attached
        attached.catch_up()
        try:
            new = attached.identities_of(cycle.pod)
        except LookupError as missing:
            text = f"looking up PVC {cycle.pod.namespace}/{missing.args[0]}: {claim_not_found(missing.args[0])}"
            return (Reject(Reason(self.name, text, final=True), nodes.all()),)
        except UnclearError as error:
            return (Reject(Reason(self.name, str(error), error=True), nodes.all()),)
        if not new:
            return ()
        errors = self._errors(nodes, attached) if attached.unclear else ()
        too_many = nodes.none()
        for driver, count in Counter(driver for driver, _ in new).items():
            too_many |= self._exceeded(nodes, attached, driver, [i for i in new if i[0] == driver], count)
        return (*errors, Reject(self._TOO_MANY, too_many)) if too_many.any() else errors

    def _exceeded(
        self, nodes: Nodes, attached: AttachedVolumes, driver: str, new: Iterable[Identity], count: int
    ) -> NDArray[np.bool_]:
        """Rows where the pod's volumes would exceed the driver's limit; volumes that are in use there are not counted
        twice."""
        limit = nodes.take(attached.limits.of(driver))
        limited: NDArray[np.bool_] = limit != UNLIMITED
        if not limited.any():
            return limited
        added = np.full(len(nodes), count, dtype=np.int64)
        for identity in new:
            rows = attached.rows_using(identity)
            if rows:
                added -= nodes.mask_of(rows)
        return limited & (added > 0) & (nodes.take(attached.count(driver)) + added > limit)

    def _errors(self, nodes: Nodes, attached: AttachedVolumes) -> tuple[Reject, ...]:
        """Rows that cannot be judged, because the volumes of a pod there cannot be determined."""
        return tuple(
            Reject(Reason(self.name, next(iter(complaints.values())), error=True), nodes.mask_of([row]))
            for row, complaints in attached.unclear.items()
            if row in nodes.row_numbers() and attached.limits.are_set(row)
        )


def attaches(pod: Pod) -> bool:
    """Whether a pod has a volume that may have to be attached."""
    return uses_claims(pod) or any(volume.source in INLINE_DISKS for volume in pod.shape.volumes)


def after_claim_used(pod: Pod, old: object, new: object) -> Hint:
    """Queue if an added or changed claim is one of the pod's, named in its spec or ephemeral."""
    used = isinstance(new, Claim) and any(use.key == new.key for use in claim_uses(pod))
    return Hint.QUEUE if used else Hint.SKIP


def _after_csi_node_update(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(old, CsiNode) or not isinstance(new, CsiNode):
        return Hint.QUEUE
    grew = any((most or 0) > (old.drivers.get(driver) or 0) for driver, most in new.drivers.items())
    return Hint.QUEUE if grew else Hint.SKIP


def _after_pod_deletion(pod: Pod, old: object, new: object) -> Hint:
    gone = isinstance(old, Pod) and bool(old.node_name or old.nominated_node) and attaches(old)
    return Hint.QUEUE if gone else Hint.SKIP


def _after_detaching(pod: Pod, old: object, new: object) -> Hint:
    if uses_claims(pod, ephemeral=False):
        return Hint.QUEUE
    drivers = {driver_of_inline(volume) for volume in pod.shape.volumes if volume.source in INLINE_DISKS}
    return Hint.QUEUE if isinstance(old, VolumeAttachment) and old.attacher in drivers else Hint.SKIP
