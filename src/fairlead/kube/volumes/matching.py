"""Which volumes a pod's claims would get on each node: those they have, those they match, or new ones.

A claim that waits for its first consumer is matched with the smallest suitable volume that the node can reach, smallest
claims first, each volume once; for a claim that finds none, the class's provisioner is to make one. The answer is
computed for the whole table at once, volume by volume and not node by node, and is valid for the whole attempt, because
it does not depend on the pods on the nodes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.kube.gosort import go_sort
from fairlead.kube.volumes.csi_migration import MigrationError, affinity_after_migration

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.storage import Claim, StorageCapacity, StorageClass, Volume
    from fairlead.kube.volumes.storage import Storage

NO_PROVISIONER = "kubernetes.io/no-provisioner"
NO_VOLUME = -1
UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class Match:
    """The volume that a claim gets on each row, as a number in the layout's list, or NO_VOLUME."""

    claim: Claim
    choice: NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Provision:
    """The rows for which a claim's volume would have to be made, and the size of the pool there, if known."""

    claim: Claim
    rows: NDArray[np.bool_]
    pool: NDArray[np.int64]


@dataclass(slots=True, eq=False)
class Layout:
    """The answer for every row of the table: four reasons to refuse it, and the volumes for the others."""

    out_of_reach: NDArray[np.bool_]
    nothing_to_bind: NDArray[np.bool_]
    no_space: NDArray[np.bool_]
    volume_missing: NDArray[np.bool_]
    volumes: list[Volume] = field(default_factory=list)
    matches: list[Match] = field(default_factory=list)
    provisions: list[Provision] = field(default_factory=list)
    errors: list[tuple[str, NDArray[np.bool_]]] = field(default_factory=list)
    """Failures to judge, with the rows that they are about; the first of a row counts."""

    def bindings(self, row: int) -> list[tuple[Claim, Volume]]:
        chosen = ((match.claim, int(match.choice[row])) for match in self.matches)
        return [(claim, self.volumes[number]) for claim, number in chosen if number != NO_VOLUME]

    def to_provision(self, row: int) -> list[Claim]:
        return [provision.claim for provision in self.provisions if provision.rows[row]]


@dataclass(frozen=True, slots=True, eq=False)
class _Offer:
    """Rows and the volumes that they can use, side by side, in the order of preference."""

    rows: NDArray[np.intp]
    numbers: NDArray[np.int32]

    @classmethod
    def of(cls, batch: Sequence[tuple[int, NDArray[np.intp]]]) -> _Offer:
        numbers = np.array([number for number, _ in batch], dtype=np.int32)
        return cls(np.concatenate([rows for _, rows in batch]), np.repeat(numbers, [len(rows) for _, rows in batch]))


def lay_out(
    cycle: Cycle,
    storage: Storage,
    bound: Sequence[Claim],
    delayed: Sequence[Claim],
    *,
    asks_drivers: bool = True,
) -> Layout:
    """`asks_drivers`: where drivers say how much room they have, volumes are only made where it is enough."""
    return _Planner(cycle, storage, asks_drivers=asks_drivers).run(bound, delayed)


class _Planner:
    def __init__(self, cycle: Cycle, storage: Storage, *, asks_drivers: bool) -> None:
        self._asks_drivers = asks_drivers
        self._storage = storage
        self._table = cycle.cluster.table
        self._high = self._table.high
        self._layout = Layout(self._none(), self._none(), self._none(), self._none())
        self._numbers: dict[str, int] = {}

    def _none(self) -> NDArray[np.bool_]:
        return np.zeros(self._high, dtype=np.bool_)

    def run(self, bound: Sequence[Claim], delayed: Sequence[Claim]) -> Layout:
        self._check_bound(bound)
        in_play = ~self._none()
        for claim in delayed:
            if claim.selected_node is not None:
                in_play &= self._only(claim.selected_node)
        self._layout.nothing_to_bind |= ~in_play
        selected = [claim for claim in delayed if claim.selected_node is not None]
        open_ones = [claim for claim in delayed if claim.selected_node is None]
        for claim in go_sort(open_ones, lambda one, other: one.request < other.request):
            self._layout.matches.append(self._match(claim, in_play))
        self._provision(selected, in_play)
        return self._layout

    def _only(self, name: str) -> NDArray[np.bool_]:
        mask = self._none()
        row = self._table.row_of.get(name)
        if row is not None:
            mask[row] = True
        return mask

    # ---- claims that have a volume ----

    def _check_bound(self, claims: Sequence[Claim]) -> None:
        """Each volume must exist and be within reach; the first that is not ends the search on that row."""
        going = ~self._none()
        for claim in claims:
            volume = self._storage.volumes.get(claim.volume_name)
            if volume is None:
                self._layout.volume_missing |= going
                return
            reached = self._reached(volume, going)
            self._layout.out_of_reach |= going & ~reached
            going &= reached

    def _reached(self, volume: Volume, asked: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Rows that can use a volume. Where an in-tree plugin has moved to its driver, the driver's zones count."""
        reach = self._storage.reach
        reached = reach.mask_of(volume)
        migrated = self._storage.attached.limits.rows_migrated(volume.in_tree[0]) if volume.in_tree is not None else ()
        if not migrated:
            return reached
        there = self._none()
        there[list(migrated)] = True
        try:
            translated = reach.mask(reach.of_affinity(affinity_after_migration(volume)))
        except MigrationError as error:
            self._layout.errors.append((f"could not translate pv: {error}", asked & there))
            return reached
        return np.where(there, translated, reached)

    # ---- claims that wait ----

    def _match(self, claim: Claim, in_play: NDArray[np.bool_]) -> Match:
        if claim.selector_error:
            text = f"error creating internal label selector for claim: {claim.key}: {claim.selector_error}"
            self._layout.errors.append((text, in_play.copy()))
        match = Match(claim, np.full(self._high, NO_VOLUME, dtype=np.int32))
        going = in_play.copy()
        suited = [v for v in self._storage.volumes_of_class(claim.storage_class) if is_large_enough(claim, v)]
        promised = [volume for volume in suited if is_meant_for(volume, claim)]
        for volume in sorted(promised, key=lambda volume: volume.name):
            self._give_promised(volume, match.choice, going)
        for offer in self._offers([volume for volume in suited if is_available_for(claim, volume)]):
            if not going.any():
                break
            self._give(offer, match.choice, going)
        return match

    def _give_promised(self, volume: Volume, choice: NDArray[np.int32], going: NDArray[np.bool_]) -> None:
        """Match a volume that is reserved for this claim. Where it is out of reach the claim gets no other volume."""
        number, rows = np.int32(self._number(volume)), np.flatnonzero(going)
        rows = rows[self._not_taken(rows, number)]
        going[rows] = False
        choice[rows[self._storage.reach.mask_of(volume)[rows]]] = number

    def _offers(self, volumes: Sequence[Volume]) -> Iterator[_Offer]:
        """Volumes with the rows that can use them, smallest first, in batches of some multiple of the rows: a thousand
        disks of one node each make one batch, and a few that all nodes can use make one too."""
        batch: list[tuple[int, NDArray[np.intp]]] = []
        size = 0
        everywhere = np.arange(self._high)
        for volume, reached in zip(volumes, self._storage.reach.of_volumes(volumes), strict=True):
            rows = everywhere if reached is None else reached
            batch.append((self._number(volume), rows))
            size += len(rows)
            if size >= 2 * self._high:
                yield _Offer.of(batch)
                batch, size = [], 0
        if batch:
            yield _Offer.of(batch)

    def _give(self, offer: _Offer, choice: NDArray[np.int32], going: NDArray[np.bool_]) -> None:
        """Give each row the first volume on offer that no earlier claim has taken there."""
        free = going[offer.rows] & self._not_taken(offer.rows, offer.numbers)
        rows, numbers = offer.rows[free], offer.numbers[free]
        choice[rows[::-1]] = numbers[::-1]  # of several values for one row the last is kept: the smallest volume
        going[rows] = False

    def _not_taken(self, rows: NDArray[np.intp], numbers: NDArray[np.int32] | np.int32) -> NDArray[np.bool_]:
        """Where no earlier claim of the pod has taken the volume."""
        free = np.ones(len(rows), dtype=np.bool_)
        for match in self._layout.matches:
            free &= match.choice[rows] != numbers
        return free

    def _number(self, volume: Volume) -> int:
        number = self._numbers.get(volume.name)
        if number is None:
            number = self._numbers[volume.name] = len(self._layout.volumes)
            self._layout.volumes.append(volume)
        return number

    # ---- claims whose volumes have to be made ----

    def _provision(self, selected: Sequence[Claim], in_play: NDArray[np.bool_]) -> None:
        going = in_play.copy()
        for claim, rows in self._to_provision(selected, in_play):
            asked = rows & going
            if not asked.any():
                continue
            storage_class: StorageClass = self._storage.classes[claim.storage_class]
            unfit = asked & ~self._provided(storage_class)
            self._layout.nothing_to_bind |= unfit
            enough, pool = self._space(claim, storage_class)
            short = asked & ~unfit & ~enough
            self._layout.no_space |= short
            going &= ~(unfit | short)
            self._layout.provisions.append(Provision(claim, rows, pool))

    def _to_provision(
        self, selected: Sequence[Claim], in_play: NDArray[np.bool_]
    ) -> Iterator[tuple[Claim, NDArray[np.bool_]]]:
        for claim in selected:
            yield claim, in_play
        for match in self._layout.matches:
            yield match.claim, in_play & (match.choice == NO_VOLUME)

    def _provided(self, storage_class: StorageClass) -> NDArray[np.bool_]:
        """Rows that a class makes volumes for."""
        if storage_class.provisioner in ("", NO_PROVISIONER):
            return self._none()
        if not storage_class.allowed_topologies:
            return ~self._none()
        found = self._none()
        for term in storage_class.allowed_topologies:
            if term:
                here = ~self._none()
                for key, values in term:
                    column = self._table.label(key)
                    here &= np.isin(column.codes[: self._high], [column.code(value) for value in values])
                found |= here
        return found

    def _space(self, claim: Claim, storage_class: StorageClass) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Rows with a pool that is large enough, for drivers that say how large their pools are; and how large the
        first such pool is, by name."""
        pool = np.full(self._high, UNKNOWN, dtype=np.int64)
        driver = self._storage.drivers.get(storage_class.provisioner)
        if not self._asks_drivers or not claim.has_request or driver is None or not driver.storage_capacity:
            return ~self._none(), pool
        enough = self._none()
        for _, capacity in sorted(self._storage.capacities.items()):
            if _is_pool_for(capacity, storage_class, claim.request):
                rows = self._storage.reach.of_pool(capacity)
                fresh = rows[~enough[rows]]
                pool[fresh] = capacity.capacity or 0
                enough[fresh] = True
        return enough, pool


def _is_pool_for(capacity: StorageCapacity, storage_class: StorageClass, request: int) -> bool:
    largest = capacity.largest_volume
    return capacity.storage_class == storage_class.name and largest is not None and largest >= request


def is_meant_for(volume: Volume, claim: Claim) -> bool:
    """Whether a volume is reserved for a claim; the reservation of an administrator need not name the claim's uid."""
    to = volume.claim
    if to is None or (to.namespace, to.name) != (claim.namespace, claim.name):
        return False
    return not to.uid or to.uid == claim.uid


def is_large_enough(claim: Claim, volume: Volume) -> bool:
    """Whether a volume is a candidate: free or reserved for the claim, large enough, with its modes."""
    return (
        (volume.claim is None or is_meant_for(volume, claim))
        and volume.capacity >= claim.request
        and volume.volume_mode == claim.volume_mode
        and volume.attributes_class == claim.attributes_class
        and not volume.terminating
    )


def is_available_for(claim: Claim, volume: Volume) -> bool:
    """Whether a volume that is not reserved suits a claim, apart from its node affinity."""
    return (
        volume.claim is None
        and volume.phase == "Available"
        and (claim.selector is None or claim.selector.matches(volume.labels))
        and volume.storage_class == claim.storage_class
        and volume.access_modes >= claim.access_modes
    )
