"""DeviceIndex: which devices there are, which node sees them, and which are in use. An Index, made when requested.

In use is what the claims say: as the API shows them, as a reserved pod will have changed them (`claims`), or as an
attempt that is still on its way to the API wants to have it (`hold`). Holdings follow the index of claims by its log,
and each row has a `signature`: rows with equal signatures see devices that are equal in kind and use, so that one
search answers for all of them. Only rows whose devices changed get a new one.

Invariant: a device that is not shared is in use if and only if an allocation without admin access names it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.device_claims import extended_claim_of
from fairlead.core.model.devices import IMPLICIT_PREFIX, DeviceClass, PoolId, ResourceSlice
from fairlead.core.model.documents import is_older
from fairlead.kube.claims.claimants import Claimants
from fairlead.kube.claims.device_views import EMPTY_VIEW, NodeView, devices_for, view_of
from fairlead.kube.claims.signatures import RowSignatures
from fairlead.kube.claims.uses import Slices, Uses
from fairlead.kube.volumes.storage import Assumed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.model.device_claims import Allocation, ResourceClaim
    from fairlead.core.model.devices import Device
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.object_index import KindIndex


class DeviceIndex:
    def __init__(self, cluster: Cluster) -> None:
        index = cluster.object_index
        self.cluster = cluster
        self._slice_index: KindIndex = index.of(kinds.RESOURCE_SLICE)
        self._claim_index: KindIndex = index.of(kinds.RESOURCE_CLAIM)
        self.classes: KindIndex = index.of(kinds.DEVICE_CLASS)
        self.claims: Assumed[ResourceClaim] = Assumed(self._claim_index)
        self._in_flight: dict[str, tuple[Allocation, str]] = {}
        """Allocations on their way to the API, by the claim's key, each with the gang of the pod that they are for."""
        self.claimants = Claimants()
        self.uses = Uses()
        self._slices = Slices()
        self._views: dict[int, NodeView] = {}
        self._rows_of_pool: dict[PoolId, set[int]] = {}
        self._seen = (-1, -1, -1)
        """Up to where the slices, the claims and the table's log were followed."""
        self.row_signatures = RowSignatures()
        self.extended = ExtendedNames(self.classes)
        self.version = 0
        """Grows when devices come, go, or are taken or freed, on whatever row."""

    # ---- following what happens ----

    def catch_up(self) -> None:
        """Take in what changed since the last call."""
        kind_index, table = self._slice_index, self.cluster.table
        now = kind_index.version, self._claim_index.version, table.static.mark
        if now == self._seen:
            return
        slices, claims, mark = self._seen
        if slices != kind_index.version:
            touched = kind_index.since(slices) if slices >= 0 else None
            self._slices_changed({*self._slices.by_name, *kind_index} if touched is None else set(touched))
        if claims != self._claim_index.version:
            touched = self._claim_index.since(claims) if claims >= 0 else None
            for key in {*self.uses.held, *self._claim_index} if touched is None else set(touched):
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
            row = self.cluster.table.row_of.get(one.where.node_name)
            return set() if row is None else {row}
        return set(range(self.cluster.table.high))

    def _forget_view(self, row: int) -> None:
        view = self._views.pop(row, None)
        for pool in view.pools if view is not None else ():
            self._rows_of_pool[pool.id].discard(row)
        self.row_signatures.forget(row)
        self.version += 1

    def _claim_changed(self, key: str) -> None:
        """A claim uses the devices that the API shows, unless it is held: then it goes on using those."""
        if key not in self._in_flight:
            claim = self.claims.get(key)
            self._use(key, None if claim is None else claim.allocation)

    def _use(self, key: str, allocation: Allocation | None) -> None:
        if allocation is None and key not in self.uses.held:
            return
        touched = self.uses.replace(key, allocation)
        self.version += bool(touched)
        for pool in touched:
            self.row_signatures.dirty.update(self._rows_of_pool.get(pool, ()))

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
        return (claim for key in list(self.uses.held) if (claim := self.claims.get(key)) and claim.allocation)

    def without(self, keys: Iterable[str]) -> dict[str, Allocation]:
        """Show the devices of some claims as free; returns what `put_back` needs."""
        taken = {key: held for key in keys if (held := self.uses.held.get(key)) is not None}
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

    def claims_owned_by(self, uid: str) -> Iterator[ResourceClaim]:
        """Claims that a pod controls."""
        return (claim for key in list(self._claim_index) if (claim := self.claims.get(key)) and claim.owner_uid == uid)

    # ---- reading ----

    def view(self, row: int) -> NodeView:
        """What a row's node sees."""
        found = self._views.get(row)
        if found is None:
            node = self.cluster.table.nodes[row] if row < self.cluster.table.high else None
            found = EMPTY_VIEW
            if node is not None:
                found = view_of(node, self._slices.maybe_reaching(node.name), self._slices.by_pool)
            self._views[row] = found
            for pool in found.pools:
                self._rows_of_pool.setdefault(pool.id, set()).add(row)
        return found

    def devices_for(self, row: int) -> Iterator[Device]:
        """All devices that slices offer to the row's node, also those of pools that no search may use."""
        node = self.cluster.table.nodes[row]
        return iter(()) if node is None else devices_for(node, self._slices.maybe_reaching(node.name))

    def signatures(self) -> NDArray[np.int32]:
        """For each row of the table a number that stands for all that a search on it reads, as of the last
        `catch_up`."""
        return self.row_signatures.of_rows(self.cluster.table, self.view, self.uses)

    # ---- Index ----

    def occupied(self, pod: Pod, row: int) -> None:
        if pod.shape.claims or pod.claim_statuses:
            self.claimants.add(pod, row)

    def vacated(self, pod: Pod, row: int) -> None:
        self.claimants.remove(pod, row)

    def node_changed(self, row: int) -> None:
        self._forget_view(row)


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
