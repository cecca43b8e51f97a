"""What a node sees of the devices: pools with the slices that reach it.

A pool is the slices of one driver and pool name, of the newest generation that reaches the node. It is incomplete while
a driver replaces it, invalid if its slices contradict each other; neither gives devices. The order is part of
compatibility, because the first fit is the answer: by driver and pool, pools with binding conditions last, slices by
name, devices as listed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable

    from fairlead.core.model.devices import Device, PoolId, ResourceSlice
    from fairlead.core.model.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class PoolView:
    """One pool as one node sees it. `elsewhere` are slices of the pool that do not reach the node, if they had to be
    looked at. `hidden` are devices whose own node selection leaves the node out. `layout` is all that a search reads
    of it besides what is in use: pools of different nodes that are alike have an equal one. `bits` has a bit for each
    device of `slices`, by its name, in their order: the sum over some of them identifies them."""

    id: PoolId
    slices: tuple[ResourceSlice, ...]
    elsewhere: tuple[ResourceSlice, ...]
    counter_sets: Mapping[str, Mapping[str, int]]
    incomplete: bool
    invalid: bool
    hidden: frozenset[str]
    layout: Hashable
    bits: Mapping[str, int]

    @property
    def usable(self) -> bool:
        return not (self.incomplete or self.invalid)


class Place(NamedTuple):
    """A device where a search finds it. `at` counts the devices of the node."""

    at: int
    device: Device
    pool: PoolView


@dataclass(frozen=True, slots=True, eq=False)
class NodeView:
    """`places` are the devices of the usable pools, in the order of a search."""

    name: str
    pools: tuple[PoolView, ...]
    places: tuple[Place, ...]


EMPTY_VIEW = NodeView("", (), ())


def view_of(
    node: Node, slices: Iterable[ResourceSlice], pools: Mapping[PoolId, Mapping[str, ResourceSlice]]
) -> NodeView:
    """The view of a node. `slices` may reach it; `pools` are all slices, by pool and name."""
    reaching: dict[PoolId, list[ResourceSlice]] = {}
    for one in slices:
        if _reaches(one, node):
            reaching.setdefault(one.pool, []).append(one)
    found = [_pool(pool, mine, pools[pool], node) for pool, mine in sorted(reaching.items())]
    views = [view for view in found if view is not None]
    early = [view for view in views if not _binds_late(view)]
    ordered = (*early, *(view for view in views if _binds_late(view)))
    usable = ((device, pool) for pool in ordered if pool.usable for one in pool.slices for device in one.devices)
    return NodeView(node.name, ordered, tuple([Place(at, *found) for at, found in enumerate(usable)]))


def devices_for(node: Node, slices: Iterable[ResourceSlice]) -> Iterator[Device]:
    """The devices of `slices` whose node selection admits the node, whatever the state of their pools."""
    for one in slices:
        for device in one.devices:
            if (device.where if one.per_device else one.where).admits(node.name, node.labels):
                yield device


def _binds_late(view: PoolView) -> bool:
    return any(one.binds_late for one in view.slices)


def _reaches(one: ResourceSlice, node: Node) -> bool:
    if one.counter_sets:
        return True
    if one.per_device:
        return any(device.where.admits(node.name, node.labels) for device in one.devices)
    return one.where.admits(node.name, node.labels)


def _pool(
    pool: PoolId, reaching: list[ResourceSlice], everywhere: Mapping[str, ResourceSlice], node: Node
) -> PoolView | None:
    newest = max(one.generation for one in reaching)
    mine = sorted((one for one in reaching if one.generation == newest), key=lambda one: one.name)
    elsewhere: tuple[ResourceSlice, ...] = ()
    incomplete = False
    if len(mine) != mine[0].whole:
        if any(one.generation > newest for one in everywhere.values()):
            return None  # the driver is replacing it
        same = [one for one in everywhere.values() if one.generation == newest]
        incomplete = len(same) != mine[0].whole
        elsewhere = tuple(sorted((one for one in same if one not in mine), key=lambda one: one.name))
    counter_sets = {name: counters for one in (*mine, *elsewhere) for name, counters in one.counter_sets}
    hidden = frozenset(
        device.id.name
        for one in mine
        if one.per_device
        for device in one.devices
        if not device.where.admits(node.name, node.labels)
    )
    invalid = _is_invalid(mine, elsewhere, counter_sets)
    local = not elsewhere and all(one.where.node_name for one in mine)
    layout = (
        "" if local else pool,
        pool.driver,
        tuple(one.twin for one in mine),
        incomplete,
        invalid,
        hidden,
        None if local else tuple(one.name for one in mine),
    )
    bits = {device.id.name: 1 << at for at, device in enumerate(device for one in mine for device in one.devices)}
    return PoolView(pool, tuple(mine), elsewhere, counter_sets, incomplete, invalid, hidden, layout, bits)


def _is_invalid(
    mine: list[ResourceSlice], elsewhere: tuple[ResourceSlice, ...], counter_sets: Mapping[str, Mapping[str, int]]
) -> bool:
    names = [device.id.name for one in mine for device in one.devices]
    sets = [name for one in (*mine, *elsewhere) for name, _ in one.counter_sets]
    if len(set(names)) != len(names) or len(set(sets)) != len(sets):
        return True
    devices = (device for one in (*mine, *elsewhere) for device in one.devices)
    return any(_consumes_unknown(device, counter_sets) for device in devices)


def _consumes_unknown(device: Device, counter_sets: Mapping[str, Mapping[str, int]]) -> bool:
    return any(
        name not in counter_sets or any(counter not in counter_sets[name] for counter in counters)
        for name, counters in device.counters.items()
    )
