"""DeviceClasses: nodes whose devices are equal for every pod, as one column of codes.

Two nodes are of one class if their devices have the same numbers, amounts, labels and places, the same is held of each,
and the labels of the nodes that name partitions agree. What a pod gets on one of them it gets on the other, so a pod is
judged once for each class (judgements) and not once for each node. A placement moves one node to another class.

Invariant: `codes[row]` is the class of what the row has now, or NO_DEVICES.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairlead.koordinator.records.cards import MODEL, PARTITION_POLICY, VENDOR

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.node import Node
    from fairlead.koordinator.devices.rows import DeviceHoldings
    from fairlead.koordinator.records.cards import NodeDevices, SharedDevice

NO_DEVICES = -1
_MANY = 1 << 16
"""So many classes are kept; then all are numbered anew, because most of them are of moments long gone."""


@dataclass(frozen=True, slots=True)
class NodeDeviceClass:
    """What is common to the nodes of a class: devices (those of the first such node), holdings, and labels."""

    devices: NodeDevices
    holdings: DeviceHoldings
    labels: Mapping[str, str]


class DeviceClasses:
    def __init__(self, capacity: int) -> None:
        self.codes: NDArray[np.int32] = np.full(capacity, NO_DEVICES, dtype=np.int32)
        self.listed: list[NodeDeviceClass] = []
        self.generation = 0
        """Raised when the classes are numbered anew."""
        self._code_of: dict[Hashable, int] = {}
        self._objects: dict[str, tuple[NodeDevices, int]] = {}
        """The Device object of a node by name, as it was seen last, and the number of what it lists."""
        self._listings: dict[Hashable, int] = {}

    def widen(self, capacity: int) -> None:
        wider = np.full(capacity, NO_DEVICES, dtype=np.int32)
        wider[: len(self.codes)] = self.codes
        self.codes = wider

    def is_full(self) -> bool:
        return len(self.listed) >= _MANY

    def renumber(self) -> None:
        """Forget all classes; every row is to be put again."""
        self.generation += 1
        self.listed.clear()
        self._code_of.clear()
        self._objects.clear()
        self._listings.clear()
        self.codes[:] = NO_DEVICES

    def put(self, row: int, node: Node | None, devices: NodeDevices | None, holdings: DeviceHoldings | None) -> None:
        """Find the class of a row."""
        if node is None or devices is None or holdings is None:
            self.codes[row] = NO_DEVICES
            return
        labels = node.labels
        named = tuple(labels.get(key, "") for key in (VENDOR, MODEL, PARTITION_POLICY))
        key = (self._listing(devices), named, holdings.key())
        code = self._code_of.get(key)
        if code is None:
            code = self._code_of[key] = len(self.listed)
            self.listed.append(NodeDeviceClass(devices, holdings, labels))
        self.codes[row] = code

    def _listing(self, devices: NodeDevices) -> int:
        """A number that equals that of any other Device object which lists the same."""
        seen = self._objects.get(devices.name)
        if seen is not None and seen[0] is devices:
            return seen[1]
        number = self._listings.setdefault(_listing_key(devices), len(self._listings))
        self._objects[devices.name] = (devices, number)
        return number


def _listing_key(devices: NodeDevices) -> Hashable:
    by_type = tuple((kind, tuple(map(_device_key, listed))) for kind, listed in devices.by_type.items())
    partitions = None if devices.partitions is None else tuple(devices.partitions.items())
    return by_type, partitions, devices.honors_partitions, devices.well_planned


def _device_key(device: SharedDevice) -> Hashable:
    functions = tuple((_items(labels), listed) for labels, listed in device.functions)
    return device.minor, _items(device.labels), _items(device.amounts), device.numa, device.pcie, functions


def _items(mapping: Mapping[str, object]) -> Iterable[tuple[str, object]]:
    return tuple(sorted(mapping.items()))
