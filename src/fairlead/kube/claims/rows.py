"""Rows for people: the devices of a node that ResourceSlices list, and the claims that have them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.rows import DeviceRow
from fairlead.core.model.kinds import RESOURCE_SLICE
from fairlead.kube.claims.devices import devices_of

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler


def device_rows(scheduler: Scheduler, row: int) -> Iterator[DeviceRow]:
    cluster = scheduler.cluster
    if not cluster.object_index.of(RESOURCE_SLICE):
        return
    devices = devices_of(cluster)
    devices.catch_up()
    holders = devices.uses.holders_by_device()
    for place in devices.view(row).places:
        name = place.device.id
        claims = tuple(f"ResourceClaim {key}" for key in holders.get(name, ()))
        yield DeviceRow(name.driver, cluster.table.name(row), f"{name.pool}/{name.name}", claims)
