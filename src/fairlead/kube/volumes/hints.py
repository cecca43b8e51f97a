"""Events and queueing hints of VolumeBinding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Hint, Interest
from fairlead.core.model.events import (
    CSI_DRIVER,
    CSI_NODE,
    CSI_STORAGE_CAPACITY,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    STORAGE_CLASS,
    ActionType,
    ClusterEvent,
)
from fairlead.core.model.pod_volumes import VolumeSource
from fairlead.core.model.storage import CsiDriver, CsiNode, StorageCapacity, StorageClass
from fairlead.kube.volumes.limits import after_claim_used

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod

_ADD_OR_UPDATE = ActionType.ADD | ActionType.UPDATE


def binding_interests() -> Sequence[Interest]:
    return (
        Interest(ClusterEvent(STORAGE_CLASS, _ADD_OR_UPDATE), _after_class),
        Interest(ClusterEvent(PERSISTENT_VOLUME_CLAIM, _ADD_OR_UPDATE), after_claim_used),
        Interest(ClusterEvent(PERSISTENT_VOLUME, _ADD_OR_UPDATE)),
        Interest(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL)),
        Interest(ClusterEvent(CSI_NODE, _ADD_OR_UPDATE), _after_csi_node),
        Interest(ClusterEvent(CSI_DRIVER, ActionType.UPDATE), _after_driver),
        Interest(ClusterEvent(CSI_STORAGE_CAPACITY, _ADD_OR_UPDATE), _after_capacity),
    )


def _after_class(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(old, StorageClass) or not isinstance(new, StorageClass):
        return Hint.QUEUE
    return Hint.QUEUE if old.allowed_topologies != new.allowed_topologies else Hint.SKIP


def _after_csi_node(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(old, CsiNode) or not isinstance(new, CsiNode):
        return Hint.QUEUE
    return Hint.QUEUE if old.migrated != new.migrated else Hint.SKIP


def _after_driver(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(old, CsiDriver) or not isinstance(new, CsiDriver):
        return Hint.QUEUE
    inline = any(volume.source is VolumeSource.CSI and volume.name == new.name for volume in pod.shape.volumes)
    return Hint.QUEUE if inline and old.storage_capacity and not new.storage_capacity else Hint.SKIP


def _after_capacity(pod: Pod, old: object, new: object) -> Hint:
    if not isinstance(old, StorageCapacity) or not isinstance(new, StorageCapacity):
        return Hint.QUEUE
    before, after = old.largest_volume, new.largest_volume
    return Hint.QUEUE if after is not None and (before is None or after > before) else Hint.SKIP
