"""DeviceIndex: which devices there are, which node sees them, and which are in use. An Index, made when requested.

In use is what the claims say: as the API shows them, as a reserved pod will have changed them (`claims`), or as an
attempt that is still on its way to the API wants to have it (`hold`). Holdings follow the index of claims by its log,
and each row has a `signature`: rows with equal signatures see devices that are equal in kind and use, so that one
search answers for all of them. Only rows whose devices changed get a new one.

Invariant: a device that is not shared is in use if and only if an allocation without admin access names it.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model import kinds
from fairlead.core.model.device_claims import extended_claim_of
from fairlead.core.model.devices import IMPLICIT_PREFIX, DeviceClass, DeviceId, PoolId, ResourceSlice
from fairlead.core.model.documents import is_older
from fairlead.core.state.touchlog import TouchLog
from fairlead.kube.claims.device_views import EMPTY_VIEW, NodeView, PoolView, devices_for, view_of
from fairlead.kube.volumes.storage import Assumed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.device_claims import Allocation, ResourceClaim
    from fairlead.core.model.devices import Device
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.object_index import KindIndex

_MOST_SIGNATURES = 1 << 16
_NOBODY = 1 << 40
"""Above all priorities."""
_NO_NAMES: frozenset[str] = frozenset()


class DeviceIndex:
    def __init__(self, cluster: Cluster) -> None:
        index = cluster.object_index
        self.cluster = cluster
        self._table = cluster.table
        self._slice_index: KindIndex = index.of(kinds.RESOURCE_SLICE)
        self._claim_index: KindIndex = index.of(kinds.RESOURCE_CLAIM)
        self.classes: KindIndex = index.of(kinds.DEVICE_CLASS)
        self.claims: Assumed[ResourceClaim] = Assumed(self._claim_index)
        self._in_flight: dict[str, tuple[Allocation, str]] = {}
        """Allocations on their way to the API, by the claim's key, each with the gang of the pod that they are for."""
        self._claimants: dict[int, dict[str, int]] = {}
        """Pods that may have devices, by row: their priorities."""
        self._least: NDArray[np.int64] = np.full(64, _NOBODY, dtype=np.int64)
        """The lowest of them of each row."""
        self.lowest_priority = _NOBODY
        """No pod that may have devices has a lower one."""
        self._uses = _Uses()
        self._slices = _Slices()
        self._views: dict[int, NodeView] = {}
        self._rows_of_pool: dict[PoolId, set[int]] = {}
        self._seen = (-1, -1, -1)
        """Up to where the slices, the claims and the table's log were followed."""
        self._dirty: set[int] = set()
        self._column: NDArray[np.int32] = np.full(64, -1, dtype=np.int32)
        self.changed = TouchLog()
        """Rows whose signature changed: what was found out about them before does not hold any more."""
        self._signature_ids: dict[Hashable, int] = {}
        self._layouts: dict[Hashable, int] = {}
        self._layout_of: dict[int, int] = {}
        """By row, if it is known."""
        self._next_signature = count()
        """Numbers are never used twice, so that nobody mistakes an old one."""
        self.extended = ExtendedNames(self.classes)
        self.version = 0
        """Grows when devices come, go, or are taken or freed, on whatever row."""

    # ---- following what happens ----

    def catch_up(self) -> None:
        """Take in what changed since the last call."""
        kind_index, table = self._slice_index, self._table
        now = kind_index.version, self._claim_index.version, table.static.mark
        if now == self._seen:
            return
        slices, claims, mark = self._seen
        if slices != kind_index.version:
            touched = kind_index.since(slices) if slices >= 0 else None
            self._slices_changed({*self._slices.by_name, *kind_index} if touched is None else set(touched))
        if claims != self._claim_index.version:
            touched = self._claim_index.since(claims) if claims >= 0 else None
            for key in {*self._uses.held, *self._claim_index} if touched is None else set(touched):
                self._claim_changed(key)
        if mark != table.static.mark:
            rows = table.static.since(mark) if mark >= 0 else None
            for row in range(table.high) if rows is None else set(rows):
                self._forget_view(row)
        self._seen = now

    def _slices_changed(self, names: Iterable[str]) -> None:
        for name in names:
            old, new = self._slices.put(name, self._slice_index.get(name))
            for one in (old, new):
                if one is None:
                    continue
                for row in self._rows_of_pool.get(one.pool, set()) | self._rows_reached(one):
                    self._forget_view(row)

    def _rows_reached(self, one: ResourceSlice) -> set[int]:
        if one.where.node_name and not one.counter_sets and not one.per_device:
            row = self._table.row_of.get(one.where.node_name)
            return set() if row is None else {row}
        return set(range(self._table.high))

    def _forget_view(self, row: int) -> None:
        view = self._views.pop(row, None)
        self._layout_of.pop(row, None)
        for pool in view.pools if view is not None else ():
            self._rows_of_pool[pool.id].discard(row)
        self._dirty.add(row)
        self.version += 1

    def _claim_changed(self, key: str) -> None:
        """A claim uses the devices that the API shows, unless it is held: then it goes on using those."""
        if key not in self._in_flight:
            claim = self.claims.get(key)
            self._use(key, None if claim is None else claim.allocation)

    def _use(self, key: str, allocation: Allocation | None) -> None:
        if allocation is None and key not in self._uses.held:
            return
        touched = self._uses.replace(key, allocation)
        self.version += bool(touched)
        for pool in touched:
            self._dirty.update(self._rows_of_pool.get(pool, ()))

    # ---- what is on its way ----

    def hold(self, key: str, allocation: Allocation, gang: str = "") -> None:
        """A reserved pod will have this claim allocated so. Members of its gang may count on it."""
        self._in_flight[key] = allocation, gang
        self._use(key, allocation)

    def let_go(self, key: str) -> None:
        """It is not on its way any more: it has arrived, or never will."""
        if self._in_flight.pop(key, None) is not None:
            self._claim_changed(key)

    def in_flight(self, key: str) -> bool:
        return key in self._in_flight

    def promised(self, key: str, gang: str) -> Allocation | None:
        """What a member of the same gang will have the claim allocated to; None if none will."""
        allocation, holder = self._in_flight.get(key, (None, ""))
        return allocation if gang and holder == gang else None

    def arrived(self, claim: ResourceClaim, held: str) -> None:
        """The API agreed to this claim, which was held under a key. Unless the watch shows it, or what became of
        it, it counts as agreed from now on."""
        seen = self.claims.seen(claim.key)
        shown = claim.resource_version if seen is None else seen.resource_version
        if shown != claim.resource_version and not is_older(claim.resource_version, shown):
            self.claims.assume(claim.key, claim)
            if held != claim.key:
                self._claim_changed(claim.key)
        self.let_go(held)

    def restore(self, key: str) -> None:
        self.claims.restore(key)
        self._claim_changed(key)

    def allocated(self) -> Iterator[ResourceClaim]:
        """Claims that have devices."""
        return (claim for key in list(self._uses.held) if (claim := self.claims.get(key)) and claim.allocation)

    def without(self, keys: Iterable[str]) -> dict[str, Allocation]:
        """Show the devices of some claims as free; returns what `put_back` needs."""
        taken = {key: held for key in keys if (held := self._uses.held.get(key)) is not None}
        for key in taken:
            self._use(key, None)
        return taken

    def put_back(self, taken: Mapping[str, Allocation]) -> None:
        """Show them as they are again."""
        for key, allocation in taken.items():
            self._use(key, allocation)

    def extended_claim(self, pod: Pod) -> ResourceClaim | None:
        """The claim that serves a pod's extended resources, if its status names one."""
        name = extended_claim_of(pod)
        return self.claims.get(f"{pod.namespace}/{name}") if name else None

    def rows_with_less_important(self, priority: int) -> NDArray[np.bool_]:
        """Rows with a pod that has claims and a priority below this one: evicting it may free devices."""
        if len(self._least) < self._table.high:
            self._widen(self._table.high)
        return self._least[: self._table.high] < priority

    def claims_owned_by(self, uid: str) -> Iterator[ResourceClaim]:
        """Claims that a pod controls."""
        return (claim for key in list(self._claim_index) if (claim := self.claims.get(key)) and claim.owner_uid == uid)

    # ---- reading ----

    def view(self, row: int) -> NodeView:
        """What a row's node sees."""
        found = self._views.get(row)
        if found is None:
            node = self._table.nodes[row] if row < self._table.high else None
            found = EMPTY_VIEW
            if node is not None:
                found = view_of(node, self._slices.maybe_reaching(node.name), self._slices.by_pool)
            self._views[row] = found
            for pool in found.pools:
                self._rows_of_pool.setdefault(pool.id, set()).add(row)
        return found

    def devices_for(self, row: int) -> Iterator[Device]:
        """All devices that slices offer to the row's node, also those of pools that no search may use."""
        node = self._table.nodes[row]
        return iter(()) if node is None else devices_for(node, self._slices.maybe_reaching(node.name))

    def in_use(self, device: DeviceId) -> bool:
        return device in self._uses.whole

    def is_shared_out(self, device: DeviceId) -> bool:
        """Whether shares of the device are allocated."""
        return device in self._uses.shares

    def consumed(self, device: DeviceId) -> Mapping[str, int] | None:
        """What shares of the device have taken of its capacities, in nanos; None if there are none."""
        return self._uses.consumed.get(device)

    def holders_by_device(self) -> dict[DeviceId, list[str]]:
        """The keys of the claims that have each device, for explanations."""
        found: dict[DeviceId, list[str]] = {}
        for key, held in self._uses.held.items():
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

    def signatures(self) -> NDArray[np.int32]:
        """For each row of the table a number that stands for all that a search on it reads, as of the last
        `catch_up`."""
        if len(self._column) < self._table.high:
            wider = np.full(max(self._table.capacity, self._table.high), -1, dtype=np.int32)
            wider[: len(self._column)] = self._column
            self._column = wider
            self._dirty |= set(range(self._table.high))
        if len(self._signature_ids) > _MOST_SIGNATURES:
            self._signature_ids.clear()
            self._layouts.clear()
            self._layout_of.clear()
            self._dirty = set(range(self._table.high))
        if self._dirty:
            for row in self._dirty:
                if row < self._table.high and self._column[row] != (signature := self._signature(row)):
                    self._column[row] = signature
                    self.changed.touch(row)
            self._dirty.clear()
        return self._column[: self._table.high]

    def signature(self, row: int) -> int:
        """That of one row, as the last call of `signatures` found it."""
        return self._column.item(row)

    def _signature(self, row: int) -> int:
        pools = self.view(row).pools
        key = (self._layout(row), *[self._state(pool) for pool in pools])
        found = self._signature_ids.get(key)
        if found is None:
            found = self._signature_ids[key] = next(self._next_signature)
        return found

    def _layout(self, row: int) -> int:
        """A number for the layouts of the pools that a row sees: they are long, and do not change with what is in
        use."""
        found = self._layout_of.get(row)
        if found is None:
            layouts = tuple([pool.layout for pool in self.view(row).pools])
            found = self._layouts.get(layouts)
            if found is None:
                found = self._layouts[layouts] = next(self._next_signature)
            self._layout_of[row] = found
        return found

    def _state(self, pool: PoolView) -> Hashable:
        uses, bits = self._uses, pool.bits
        taken = sum(map(bits.__getitem__, bits.keys() & uses.by_pool.get(pool.id, _NO_NAMES)))
        shares: Hashable = None
        if uses.shares or uses.consumed:
            shares = tuple(
                [
                    (at, device.id in uses.shares, tuple(sorted((uses.consumed.get(device.id) or {}).items())))
                    for at, device in enumerate(device for one in pool.slices for device in one.devices)
                    if device.id in uses.shares or device.id in uses.consumed
                ]
            )
        counters = repr(self.counters_left(pool)) if pool.counter_sets else None
        return taken, shares, counters

    # ---- Index ----

    def occupied(self, pod: Pod, row: int) -> None:
        if pod.shape.claims or pod.claim_statuses:
            self._claimants.setdefault(row, {})[pod.uid] = pod.priority
            if row >= len(self._least):
                self._widen(row + 1)
            if pod.priority < self._least[row]:
                self._least[row] = pod.priority
                self.lowest_priority = min(self.lowest_priority, pod.priority)

    def vacated(self, pod: Pod, row: int) -> None:
        pods = self._claimants.get(row)
        if pods is None or pods.pop(pod.uid, None) is None:
            return
        self._least[row] = min(pods.values(), default=_NOBODY)
        if not pods:
            del self._claimants[row]

    def _widen(self, size: int) -> None:
        wider = np.full(max(size, 2 * len(self._least)), _NOBODY, dtype=np.int64)
        wider[: len(self._least)] = self._least
        self._least = wider

    def node_changed(self, row: int) -> None:
        self._forget_view(row)


class _Slices:
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


class _Uses:
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


class ExtendedNames:
    """Which device class serves an extended resource: one that claims the name, or the one that the name implies.

    Classes are taken in as they come. Of two that claim one name, the newer serves it, of equally old ones the one with
    the lower name; one that comes when a better one is there already gets no implied name either, as in the original.
    """

    def __init__(self, classes: KindIndex) -> None:
        self._classes = classes
        self._version = -1
        self._serving: dict[str, str] = {}
        self.version = 0

    def class_of(self, resource: str) -> str:
        """The class that serves a resource; empty if none does."""
        self.catch_up()
        return self._serving.get(resource, "")

    def catch_up(self) -> None:
        if self._version == self._classes.version:
            return
        self._version = self._classes.version
        serving: dict[str, str] = {}
        for one in self._classes.values():
            self._take_in(serving, one)
        if serving != self._serving:
            self._serving = serving
            self.version += 1

    def _take_in(self, serving: dict[str, str], one: DeviceClass) -> None:
        if one.extended:
            rival = self._classes.get(serving.get(one.extended, ""))
            if rival is not None and (-rival.created, rival.name) < (-one.created, one.name):
                return
            serving[one.extended] = one.name
        serving[IMPLICIT_PREFIX + one.name] = one.name


def devices_of(cluster: Cluster) -> DeviceIndex:
    index = cluster.index(DeviceIndex, DeviceIndex)
    index.catch_up()
    return index
