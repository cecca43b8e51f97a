"""DeviceCounts: how many devices of a class each node sees and how many of them are in use, for scores by resources.

NodeResourcesFit and NodeResourcesBalancedAllocation may be configured to score by an extended resource. Where a device
class serves it and a node's device plugin does not, the node's amount is the number of devices that the class's
selectors accept. As in the original, all devices that slices offer to the node count, also those of pools that are
incomplete.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model import kinds
from fairlead.kube.claims.devices import devices_of
from fairlead.kube.claims.extended import may_be_served
from fairlead.kube.claims.selecting import Selecting, SelectorTrouble

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from fairlead.core.model.devices import CompileSelector, Device, DeviceClass
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes


class DeviceCounts:
    """Counts for one plugin. Without `compile_selector` a class with selectors has no devices: the original's
    NodeResourcesBalancedAllocation cannot evaluate them."""

    def __init__(self, resources: Iterable[str], compile_selector: CompileSelector | None = None) -> None:
        self._servable = frozenset(resource for resource in resources if may_be_served(resource))
        self.possible = bool(self._servable)
        """Whether a class may serve a resource that is scored. Those of most configurations (cpu, memory) none can."""
        self._selecting = None if compile_selector is None else Selecting(compile_selector)

    def class_of(self, cluster: Cluster, resource: str) -> DeviceClass | None:
        """The class that serves a resource which is scored; None if none does."""
        if resource not in self._servable or not cluster.object_index.of(kinds.DEVICE_CLASS):
            return None
        devices = devices_of(cluster)
        found: DeviceClass | None = devices.classes.get(devices.extended.class_of(resource))
        return found

    def epoch(self, cluster: Cluster) -> int:
        """Another number when counts may have changed; always 0 if no resource that is scored has a class."""
        if not self.possible or not any(self.class_of(cluster, resource) for resource in self._servable):
            return 0
        return 1 + devices_of(cluster).version

    def amounts(
        self, cluster: Cluster, nodes: Nodes, resource: str, used: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """What each node has of a resource, and how much is in use: as the node says, or devices of the class."""
        capacity = nodes.allocatable(resource)
        serving = self.class_of(cluster, resource)
        if serving is None:
            return capacity, used
        if self._selecting is not None:
            self._selecting.begin()
        capacity, used = capacity.copy(), used.copy()
        for at in np.flatnonzero(capacity == 0).tolist():
            capacity[at], used[at] = self._count(cluster, int(nodes.positions()[at]), serving)
        return capacity, used

    def _count(self, cluster: Cluster, row: int, serving: DeviceClass) -> tuple[int, int]:
        devices = devices_of(cluster)
        total = taken = 0
        try:
            for device in devices.devices_for(row):
                if self._is_of(serving, device):
                    total += 1
                    taken += devices.uses.in_use(device.id) or devices.uses.is_shared_out(device.id)
        except SelectorTrouble:
            return 0, 0
        return total, taken

    def _is_of(self, serving: DeviceClass, device: Device) -> bool:
        if self._selecting is None:
            return not serving.selectors
        return all(self._selecting.accepts(expression, device) for expression in serving.selectors)
