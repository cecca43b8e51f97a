"""Slices and Uses: which devices the API shows, and which of them are in use. The DeviceIndex keeps both.

Invariant: a device that is not shared is in use if and only if an allocation without admin access names it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import Allocation
    from fairlead.core.model.devices import DeviceId, PoolId, ResourceSlice
    from fairlead.kube.claims.device_views import PoolView


class Slices:
    """ResourceSlices by name, by pool, and by the node that they are for."""

    def __init__(self) -> None:
        self.by_name: dict[str, ResourceSlice] = {}
        self.by_pool: dict[PoolId, dict[str, ResourceSlice]] = {}
        self._by_node: dict[str, dict[str, ResourceSlice]] = {}

    def put(self, name: str, new: ResourceSlice | None) -> tuple[ResourceSlice | None, ResourceSlice | None]:
        """Take in a slice, or that it is gone; returns it before and after."""
        old = self.by_name.pop(name, None)
        if old is not None:
            self.by_pool[old.pool].pop(name)
            self._by_node[_node_of(old)].pop(name)
        if new is not None:
            self.by_name[name] = new
            self.by_pool.setdefault(new.pool, {})[name] = new
            self._by_node.setdefault(_node_of(new), {})[name] = new
        return old, new

    def maybe_reaching(self, node: str) -> Iterator[ResourceSlice]:
        yield from self._by_node.get(node, {}).values()
        yield from self._by_node.get("", {}).values()


def _node_of(one: ResourceSlice) -> str:
    """The only node that a slice can matter to; empty if there may be several."""
    return "" if one.counter_sets or one.per_device else one.where.node_name


class Uses:
    """Devices in use, counted from the allocations of claims."""

    def __init__(self) -> None:
        self.held: dict[str, Allocation] = {}
        self.whole: dict[DeviceId, int] = {}
        self.by_pool: dict[PoolId, set[str]] = {}
        """The names of those of `whole`."""
        self.shares: dict[DeviceId, int] = {}
        self.consumed: dict[DeviceId, dict[str, int]] = {}

    def replace(self, key: str, new: Allocation | None) -> Collection[PoolId]:
        """A claim has another allocation, or none; returns the pools whose devices that concerns."""
        old = self.held.get(key)
        if old is not None and new is not None and old.results == new.results:
            self.held[key] = new
            return ()
        touched: set[PoolId] = set()
        for allocation, sign in ((old, -1), (new, 1)):
            for result in allocation.results if allocation is not None else ():
                if result.admin:
                    continue  # across pods admin access takes nothing away
                device, pool = result.id, result.pool
                touched.add(pool)
                if result.share:
                    self._count(self.shares, device, sign)
                    self._consume(device, result.consumed, sign)
                elif self._count(self.whole, device, sign):
                    self.by_pool.setdefault(pool, set()).add(device.name)
                else:
                    self.by_pool[pool].discard(device.name)
        if new is None:
            self.held.pop(key, None)
        else:
            self.held[key] = new
        return touched

    def _count(self, counts: dict[DeviceId, int], device: DeviceId, sign: int) -> int:
        """Count a device once more or less; returns how often it is counted now."""
        now = counts.get(device, 0) + sign
        if now:
            counts[device] = now
        else:
            del counts[device]
        return now

    def _consume(self, device: DeviceId, amounts: Mapping[str, int], sign: int) -> None:
        sums = self.consumed.setdefault(device, {})
        for name, amount in amounts.items():
            sums[name] = sums.get(name, 0) + sign * amount
        if device not in self.shares:
            del self.consumed[device]

    # ---- reading ----

    def in_use(self, device: DeviceId) -> bool:
        return device in self.whole

    def is_shared_out(self, device: DeviceId) -> bool:
        """Whether shares of the device are allocated."""
        return device in self.shares

    def consumed_of(self, device: DeviceId) -> Mapping[str, int] | None:
        """What shares of the device have taken of its capacities, in nanos; None if there are none."""
        return self.consumed.get(device)

    def holders_by_device(self) -> dict[DeviceId, list[str]]:
        """The keys of the claims that have each device, for explanations."""
        found: dict[DeviceId, list[str]] = {}
        for key, held in self.held.items():
            for result in held.results:
                found.setdefault(result.id, []).append(key)
        return found

    def counters_left(self, pool: PoolView) -> dict[str, dict[str, int]]:
        """What allocated devices leave of a pool's counters; it may be negative."""
        left = {name: dict(counters) for name, counters in pool.counter_sets.items()}
        for one in (*pool.slices, *pool.elsewhere):
            for device in one.devices:
                if device.counters and (self.in_use(device.id) or self.is_shared_out(device.id)):
                    for name, counters in device.counters.items():
                        for counter, amount in counters.items():
                            if counter in left.get(name, {}):
                                left[name][counter] -= amount
        return left
