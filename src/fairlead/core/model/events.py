"""What happened in the cluster, in the words by which plugins register for it.

An event has a resource and an action. Actions are bits, so that one registration may cover several; an incoming event
matches if bits intersect and its own number is not larger, which is what keeps a generic Update (all update bits at
once) from waking those who listen to one aspect only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntFlag

POD = "Pod"
ASSIGNED_POD = "AssignedPod"
UNSCHEDULABLE_POD = "UnschedulablePod"
NODE = "Node"
PERSISTENT_VOLUME = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM = "PersistentVolumeClaim"
CSI_NODE = "storage.k8s.io/CSINode"
CSI_DRIVER = "storage.k8s.io/CSIDriver"
CSI_STORAGE_CAPACITY = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS = "storage.k8s.io/StorageClass"
VOLUME_ATTACHMENT = "storage.k8s.io/VolumeAttachment"
RESOURCE_CLAIM = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS = "resource.k8s.io/DeviceClass"
POD_GROUP = "scheduling.k8s.io/PodGroup"
ANY = "*"


class ActionType(IntFlag):
    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


_TITLES = {
    int(action): "".join(word.capitalize() for word in str(action.name).split("_"))
    for action in ActionType.__members__.values()
} | {0: ""}


@dataclass(frozen=True, slots=True)
class ClusterEvent:
    """Something happened to a kind of object. `label` is how metrics and logs name it; `action` is a plain int of
    ActionType bits, because events are matched often."""

    resource: str
    action: int
    label: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "action", int(self.action))
        if not self.label:
            object.__setattr__(self, "label", self.resource + _TITLES.get(self.action, ""))

    @property
    def is_wildcard(self) -> bool:
        return self.resource == ANY and self.action == ActionType.ALL

    def match(self, incoming: ClusterEvent) -> bool:
        """Whether a registration for this event covers an incoming one."""
        if self.is_wildcard:
            return True
        return (
            self._covers_resource(incoming.resource)
            and self.action & incoming.action != 0
            and incoming.action <= self.action
        )

    def _covers_resource(self, resource: str) -> bool:
        if self.resource in (resource, ANY):
            return True
        return self.resource == POD and resource in (ASSIGNED_POD, UNSCHEDULABLE_POD)


UNSCHEDULABLE_TIMEOUT = ClusterEvent(ANY, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE = ClusterEvent(ANY, ActionType.ALL, "ForceActivate")
ASSIGNED_POD_ADD = ClusterEvent(ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_DELETE = ClusterEvent(ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULABLE_POD_ADD = ClusterEvent(UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULABLE_POD_UPDATE = ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE)
NODE_ADD = ClusterEvent(NODE, ActionType.ADD)
NODE_DELETE = ClusterEvent(NODE, ActionType.DELETE)
