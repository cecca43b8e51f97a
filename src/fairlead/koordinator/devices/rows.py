"""DeviceRows: the devices of each node, and what the pods on it hold of them.

What a pod holds stands in its annotation once it is bound; between Reserve and that moment GivenSinceReserve keeps
it.

Invariant: what is held of a device is the sum over the pods on the row; a trial that takes a pod away frees its share.
"""

from __future__ import annotations

import json
from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.core.model.quantity import BINARY_SI, Quantity, format_quantity, read_quantity, to_units
from fairlead.koordinator.devices.classes import DeviceClasses
from fairlead.koordinator.devices.request import MEMORY
from fairlead.koordinator.given import GivenSinceReserve
from fairlead.koordinator.kinds import KOORD_DEVICE
from fairlead.koordinator.records.cards import VirtualFunction
from fairlead.koordinator.reservations.holdings import reservations_of

if TYPE_CHECKING:
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.records.cards import NodeDevices
    from fairlead.koordinator.reservations.holdings import ReservationState

ALLOCATED = "scheduling.koordinator.sh/device-allocated"
_TEMPLATE = "gpuSharedResourceTemplate"

Amounts = Mapping[str, int]
Held = dict[str, dict[int, dict[str, int]]]
"""Amounts by type and minor."""


@dataclass(frozen=True, slots=True)
class GivenDevice:
    """A device that a pod is given, as much of it as `amounts`, the virtual function that goes with it, and the
    template by which it is shared."""

    minor: int
    amounts: Amounts
    function: VirtualFunction | None = None
    template: str = ""


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

    def key(self) -> Hashable:
        """Equal to that of any other holdings with which every pod would fare the same."""
        amounts = frozenset(
            (kind, minor, frozenset(own.items())) for kind, held in self.amounts.items() for minor, own in held.items()
        )
        functions = frozenset(
            (kind, minor, frozenset(own)) for kind, held in self.functions.items() for minor, own in held.items()
        )
        return amounts, functions


class DeviceRows:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._reservations = reservations_of(cluster)
        self._kind_index = cluster.object_index.of(KOORD_DEVICE)
        self._version = self._static_mark = self._content_mark = -1
        self._holdings: dict[int, DeviceHoldings] = {}
        self._unclassed: set[int] = set()
        """Rows that may be of another class now."""
        self._classes = DeviceClasses(cluster.table.capacity)
        self._given = GivenSinceReserve(cluster, held_devices)

    def catch_up(self) -> None:
        table, kind_index = self._cluster.table, self._kind_index
        marks = (table.static.mark, kind_index.version, table.content.mark)
        if marks == (self._static_mark, self._version, self._content_mark):
            return
        changed, objects = table.static.since(self._static_mark), kind_index.since(self._version)
        touched = table.content.since(self._content_mark)
        if self._content_mark < 0 or changed is None or objects is None or touched is None:
            self._unclassed.update(range(table.high))
            self._holdings.clear()
        else:
            self._unclassed.update(changed, touched)
            self._unclassed.update(table.row_of[name] for name in objects if name in table.row_of)
            for row in touched:
                self._holdings.pop(row, None)
        self._static_mark, self._version, self._content_mark = marks

    def classes(self) -> DeviceClasses:
        """The classes of all rows, as they are now."""
        self.catch_up()
        table, classes = self._cluster.table, self._classes
        if len(classes.codes) != table.capacity:
            classes.widen(table.capacity)
        if classes.is_full():
            classes.renumber()
            self._unclassed.update(range(table.high))
        for row in self._unclassed:
            devices = self.devices(row)
            classes.put(row, table.nodes[row], devices, None if devices is None else self.holdings(row))
        self._unclassed.clear()
        return classes

    def devices(self, row: int) -> NodeDevices | None:
        """The Device object of a row's node."""
        found: NodeDevices | None = self._kind_index.get(self._cluster.table.name(row))
        return found

    def rows_with_devices(self) -> Iterator[int]:
        """Rows whose nodes have a Device object."""
        row_of = self._cluster.table.row_of
        return (row_of[name] for name in self._kind_index if name in row_of)

    def node(self, row: int) -> Node | None:
        return self._cluster.table.nodes[row]

    def holders(self, row: int) -> Iterator[tuple[str, Given]]:
        """Who holds devices of a row, by `namespace/name` or the name of a reservation."""
        for pod in self._cluster.table.pods[row]:
            held = self.held_by(pod)
            if held:
                state = self._reservations.by_uid.get(pod.uid)
                yield (pod.key if state is None else f"Reservation {state.record.name}"), held

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
        state = self._reservations.by_uid.get(pod.uid)
        if state is not None:
            return self.left_of(state)
        return self._given.of(pod)

    def left_of(self, state: ReservationState) -> Given | None:
        """What is left of the devices that a reservation holds."""
        whole = self._given.of_uid(state.record.uid)
        if not whole or not state.owners:
            return whole
        used = DeviceHoldings()
        for uid in state.owners:
            if held := self._given.of_uid(uid):
                used.add(held)
        return {
            kind: tuple(_less(d, used.amounts.get(kind, {}).get(d.minor, {})) for d in ds) for kind, ds in whole.items()
        }

    def give(self, pod: Pod, row: int, given: Given) -> None:
        self._given.give(pod, given)
        self._recount(row)

    def take_back(self, pod: Pod, row: int) -> None:
        self._given.take_back(pod)
        self._recount(row)

    def _recount(self, row: int) -> None:
        self._holdings.pop(row, None)
        self._unclassed.add(row)


def _less(device: GivenDevice, used: Amounts) -> GivenDevice:
    left = {name: max(0, amount - used.get(name, 0)) for name, amount in device.amounts.items()}
    return GivenDevice(device.minor, left, device.function, device.template)


def held_devices(pod: Pod) -> Given | None:
    """What a pod's annotation says that it holds; None if it says nothing that can be read."""
    text = pod.annotations.get(ALLOCATED)
    return _read(text) if text else None


@lru_cache(maxsize=4096)
def _read(text: str) -> Given | None:
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
        minor,
        {name: to_units(name, read_quantity(amount)) for name, amount in amounts.items()},
        function,
        str(extension.get(_TEMPLATE) or ""),
    )


def allocation_text(given: Given, devices: NodeDevices) -> str:
    """The annotation that says what a pod was given."""
    ids = {(kind, device.minor): device.id for kind, listed in devices.by_type.items() for device in listed}
    document = {}
    for kind, parts in given.items():
        document[kind] = [_written(part, ids.get((kind, part.minor), "")) for part in parts]
    return json.dumps(document, separators=(",", ":"))


def _written(part: GivenDevice, identity: str) -> dict[str, Any]:
    entry: dict[str, Any] = {"minor": part.minor, "resources": {n: _text(n, a) for n, a in part.amounts.items()}}
    if identity:
        entry["id"] = identity
    if part.function is not None:
        function: dict[str, object] = {"busID": part.function.bus}
        if part.function.minor:
            function["minor"] = part.function.minor
        entry["extension"] = {"vfs": [function]}
    if part.template:
        entry["extension"] = {**entry.get("extension", {}), _TEMPLATE: part.template}
    return entry


def _text(name: str, amount: int) -> str:
    """An amount as the original writes it: memory in powers of two, the rest in powers of ten."""
    return str(Quantity(amount * 10**9, BINARY_SI)) if name == MEMORY else format_quantity(amount, name)
