"""DeviceRows: the devices of each node, and what the pods on it hold of them.

What a pod holds stands in its annotation once it is bound; between Reserve and that moment it is kept here (`given`).

Invariant: what is held of a device is the sum over the pods on the row; a trial that takes a pod away frees its share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.model import kinds
from fairlead.model.koordinator.cards import VirtualFunction
from fairlead.model.quantity import BINARY_SI, Quantity, format_quantity, read_quantity, to_units
from fairlead.plugins.koordinator.devices.request import MEMORY

if TYPE_CHECKING:
    from fairlead.model.koordinator.cards import NodeDevices
    from fairlead.model.pod import Pod
    from fairlead.state.cluster import Cluster
    from fairlead.state.reservations import ReservationState

ALLOCATED = "scheduling.koordinator.sh/device-allocated"

Amounts = Mapping[str, int]
Held = dict[str, dict[int, dict[str, int]]]
"""Amounts by type and minor."""


@dataclass(frozen=True, slots=True)
class GivenDevice:
    """A device that a pod is given, as much of it as `amounts`, and the virtual function that goes with it."""

    minor: int
    amounts: Amounts
    function: VirtualFunction | None = None


Given = Mapping[str, tuple[GivenDevice, ...]]
"""What a pod is given, by type."""


@dataclass(slots=True)
class DeviceHoldings:
    """What is held on one node: amounts by type and minor, and virtual functions (their bus ids) by type and minor."""

    amounts: Held = field(default_factory=dict)
    functions: dict[str, dict[int, set[str]]] = field(default_factory=dict)

    def add(self, given: Given) -> None:
        for kind, devices in given.items():
            for device in devices:
                own = self.amounts.setdefault(kind, {}).setdefault(device.minor, {})
                for name, amount in device.amounts.items():
                    own[name] = own.get(name, 0) + amount
                if device.function is not None:
                    self.functions.setdefault(kind, {}).setdefault(device.minor, set()).add(device.function.bus)


class DeviceRows:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._shelf = cluster.object_index.of(kinds.KOORD_DEVICE)
        self._content_mark = -1
        self._holdings: dict[int, DeviceHoldings] = {}
        self.given: dict[str, Given] = {}
        """What pods hold that are placed and whose annotation does not say it yet, by uid."""

    def catch_up(self) -> None:
        log = self._cluster.table.content
        touched = log.since(self._content_mark) if self._content_mark >= 0 else None
        self._content_mark = log.mark
        if touched is None:
            self._holdings.clear()
        else:
            for row in touched:
                self._holdings.pop(row, None)

    def devices(self, row: int) -> NodeDevices | None:
        """The Device object of a row's node."""
        found: NodeDevices | None = self._shelf.get(self._cluster.table.name(row))
        return found

    def rows_with_devices(self) -> Iterator[int]:
        """Rows whose nodes have a Device object."""
        row_of = self._cluster.table.row_of
        return (row_of[name] for name in self._shelf if name in row_of)

    def holdings(self, row: int) -> DeviceHoldings:
        self.catch_up()
        found = self._holdings.get(row)
        if found is None:
            found = self._holdings[row] = DeviceHoldings()
            for pod in self._cluster.table.pods[row]:
                held = self.held_by(pod)
                if held:
                    found.add(held)
        return found

    def held_by(self, pod: Pod) -> Given | None:
        """What a pod holds, by its annotation, or by what it was given lately; a reserve pod holds what its owners
        have left."""
        state = self._cluster.reservations.by_uid.get(pod.uid)
        if state is not None:
            return self.left_of(self._cluster, state)
        return held_devices(pod) or self.given.get(pod.uid)

    def left_of(self, cluster: Cluster, state: ReservationState) -> Given | None:
        """What is left of the devices that a reservation holds."""
        pod_state = cluster.pods.get(state.record.uid)
        if pod_state is None:
            return None
        whole = held_devices(pod_state.seen) or self.given.get(pod_state.seen.uid)
        if not whole or not state.owners:
            return whole
        used = DeviceHoldings()
        for uid in state.owners:
            if uid in cluster.pods and (held := held_devices(cluster.pods[uid].seen) or self.given.get(uid)):
                used.add(held)
        return {
            kind: tuple(_less(d, used.amounts.get(kind, {}).get(d.minor, {})) for d in ds) for kind, ds in whole.items()
        }

    def give(self, pod: Pod, row: int, given: Given) -> None:
        self.given[pod.uid] = given
        self._holdings.pop(row, None)
        if len(self.given) > 1024 + 2 * len(self._cluster.pods):
            self.given = {uid: devices for uid, devices in self.given.items() if uid in self._cluster.pods}

    def take_back(self, pod: Pod, row: int) -> None:
        self.given.pop(pod.uid, None)
        self._holdings.pop(row, None)


def _less(device: GivenDevice, used: Amounts) -> GivenDevice:
    left = {name: max(0, amount - used.get(name, 0)) for name, amount in device.amounts.items()}
    return GivenDevice(device.minor, left, device.function)


def held_devices(pod: Pod) -> Given | None:
    """What a pod's annotation says that it holds; None if it says nothing that can be read."""
    text = pod.annotations.get(ALLOCATED)
    if not text:
        return None
    try:
        return {kind: tuple(_device(one) for one in devices or ()) for kind, devices in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        return None


def _device(written: Mapping[str, object]) -> GivenDevice:
    amounts, extension = written.get("resources") or {}, written.get("extension") or {}
    assert isinstance(amounts, Mapping)
    assert isinstance(extension, Mapping)
    functions = extension.get("vfs") or ()
    function = next((VirtualFunction(vf.get("minor") or 0, vf.get("busID") or "") for vf in functions), None)
    minor = written.get("minor") or 0
    assert isinstance(minor, int)
    return GivenDevice(
        minor, {name: to_units(name, read_quantity(amount)) for name, amount in amounts.items()}, function
    )


def allocation_text(given: Given, devices: NodeDevices) -> str:
    """The annotation that says what a pod was given."""
    ids = {(kind, device.minor): device.id for kind, listed in devices.by_type.items() for device in listed}
    document = {}
    for kind, parts in given.items():
        document[kind] = [_written(part, ids.get((kind, part.minor), "")) for part in parts]
    return json.dumps(document, separators=(",", ":"))


def _written(part: GivenDevice, identity: str) -> dict[str, object]:
    entry: dict[str, object] = {"minor": part.minor, "resources": {n: _text(n, a) for n, a in part.amounts.items()}}
    if identity:
        entry["id"] = identity
    if part.function is not None:
        function: dict[str, object] = {"busID": part.function.bus}
        if part.function.minor:
            function["minor"] = part.function.minor
        entry["extension"] = {"vfs": [function]}
    return entry


def _text(name: str, amount: int) -> str:
    """An amount as the original writes it: memory in powers of two, the rest in powers of ten."""
    return str(Quantity(amount * 10**9, BINARY_SI)) if name == MEMORY else format_quantity(amount, name)
