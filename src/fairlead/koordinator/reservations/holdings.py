"""Reservations: who uses which reservation, and how much its reserve pod still holds.

A reserve pod is a pod on its row like any other, so that everybody sees the room as taken. When a pod is placed that
uses the reservation, the reserve pod shrinks by what that pod requests, so that the room is not counted twice; when
the pod goes, the reserve pod grows again.

Invariant: what a reserve pod is counted with is what its reservation holds less what its owners on the row request.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.core.framework.explainers import HeldRoom
from fairlead.core.model.quantity import nanos_to_units
from fairlead.core.model.requests import DEFAULT_CONTAINER_REQUEST
from fairlead.koordinator.records.reservations import AVAILABLE, is_reserve_pod, reservation_of

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.shape import PodShape
    from fairlead.core.state.cluster import Cluster, Removal
    from fairlead.core.state.pod_states import PodState
    from fairlead.koordinator.records.reservations import KoordReservation, OwnerMatcher

_LEAST = {"cpu": nanos_to_units("cpu", DEFAULT_CONTAINER_REQUEST["cpu"]),
          "memory": nanos_to_units("memory", DEFAULT_CONTAINER_REQUEST["memory"])}  # fmt: skip


@dataclass(slots=True, eq=False)
class ReservationState:
    """A reservation, the shape of its whole reserve pod, and what its owners request, by uid."""

    record: KoordReservation
    whole: PodShape
    number: int
    """Its place in the order in which reservations came."""
    owners: dict[str, dict[str, int]] = field(default_factory=dict)

    @property
    def allocated(self) -> dict[str, int]:
        """What owners are charged for."""
        total: dict[str, int] = {}
        for amounts in self.owners.values():
            for name, amount in amounts.items():
                total[name] = total.get(name, 0) + amount
        return total

    def available(self) -> dict[str, int]:
        """What is left of it."""
        used = self.allocated
        return {
            name: max(0, amount - used.get(name, 0) - self.record.inner.get(name, 0))
            for name, amount in self.record.held.items()
        }


class Reservations:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.by_uid: dict[str, ReservationState] = {}
        self._by_owners: dict[tuple[OwnerMatcher, ...], dict[str, ReservationState]] = {}
        """Reservations by those that may use them, because few pods may use many."""
        self._count = 0
        self._used: dict[str, ReservationState] = {}
        """Reservations that somebody uses."""
        self.dirty: set[str] = set()
        """Reservations that came, changed or went, or whose owners did; the writer of their status empties it."""
        self._uses: dict[str, str] = {}
        """The reservation that a pod on a node uses, by uid of both."""
        self._assumed: dict[str, str] = {}
        """The same of pods whose annotation does not say it yet."""
        self.version = 0
        """Raised whenever other reservations than before may match some pod; the row in question is touched too."""
        self._names_pods = (-1, False)
        self._counts_excess = True
        self._removals: list[tuple[Pod, Removal]] = []
        self.taken_off: dict[int, list[Pod]] = {}
        """Pods that are not on their rows during an attempt, by row: reserve pods while a pod is tried that may use
        their reservations, and pods that the reservation which is tried may take over."""

    def object_changed(self, uid: str, record: KoordReservation | None) -> None:
        """A reservation came or changed, or is gone; a change of its reserve pod follows."""
        if record is None:
            self._drop(uid)
        else:
            self._put(record, self._cluster.shapes.of(record.reserve_pod))

    def _put(self, record: KoordReservation, whole: PodShape) -> None:
        self.dirty.add(record.uid)
        self._matches_otherwise(record.uid)
        state = self.by_uid.get(record.uid)
        if state is None:
            if not self.by_uid:  # nobody has looked at what pods use until now
                self._uses.update((uid, used) for uid in self._cluster.pods if (used := self._used_now(uid)))
            self._count += 1
            self.by_uid[record.uid] = state = ReservationState(record, whole, self._count)
            self._by_owners.setdefault(record.owners, {})[record.uid] = state
            for uid, reservation in self._uses.items():
                if reservation == record.uid:
                    self._charge(uid, self._cluster.pods.get(uid))
        else:
            if state.record.owners is not record.owners:
                self._ungroup(state)
                self._by_owners.setdefault(record.owners, {})[record.uid] = state
            state.record, state.whole = record, whole

    def _drop(self, uid: str) -> None:
        self._matches_otherwise(uid)
        state = self.by_uid.pop(uid, None)
        if state is not None:
            self._ungroup(state)
            self._used.pop(uid, None)
        self.dirty.add(uid)

    def _ungroup(self, state: ReservationState) -> None:
        group = self._by_owners[state.record.owners]
        del group[state.record.uid]
        if not group:
            del self._by_owners[state.record.owners]

    def _matches_otherwise(self, uid: str) -> None:
        """Pods may see something else of a reservation than before."""
        self.version += 1
        pod_state = self._cluster.pods.get(uid)
        if pod_state is not None and pod_state.row >= 0:
            self._cluster.table.counted.touch(pod_state.row)

    @property
    def names_pods(self) -> bool:
        """Whether some owners are single pods, by name or uid."""
        if self._names_pods[0] != self.version:
            named = any(owner.object is not None for owners in self._by_owners for owner in owners)
            self._names_pods = (self.version, named)
        return self._names_pods[1]

    def on_row(self, row: int) -> Iterator[ReservationState]:
        """The reservations that hold room on a row."""
        for pod in self._cluster.table.pods[row]:
            if pod.uid in self.by_uid:
                yield self.by_uid[pod.uid]

    def matchable(self) -> Iterator[tuple[ReservationState, PodState]]:
        """Reservations that pods may use, with their reserve pods, which have a row."""
        return self._matchable(self.by_uid.values())

    def matchable_by(self, pod: Pod) -> Iterator[tuple[ReservationState, PodState]]:
        """Those of them that have a pod among their owners, in the order in which they came."""
        groups = [group for owners, group in self._by_owners.items() if any(owner.matches(pod) for owner in owners)]
        if len(groups) == 1:
            return self._matchable(groups[0].values())
        return self._matchable(sorted((state for group in groups for state in group.values()), key=_came))

    def matchable_in_use(self) -> Iterator[tuple[ReservationState, PodState]]:
        """Those of them that somebody uses."""
        return self._matchable(self._used.values())

    def _matchable(self, states: Iterable[ReservationState]) -> Iterator[tuple[ReservationState, PodState]]:
        for state in states:
            pod_state = self._cluster.pods.get(state.record.uid)
            if pod_state is not None and pod_state.row >= 0 and self._takes_part(state):
                yield state, pod_state

    def _takes_part(self, state: ReservationState) -> bool:
        """Whether a reservation counts for pods: it is available, and if it serves one pod only, that one has not been
        bound yet."""
        if state.record.phase != AVAILABLE:
            return False
        return not state.record.once or all(owner in self._assumed for owner in state.owners)

    def count_excess(self, counts: bool) -> None:
        """Whether owners that use more than is held are counted with all of it. (Not to do so is a slip of the
        original: KoordinatorQuirks.reservation_excess_uncounted.)"""
        if counts is not self._counts_excess:
            self._counts_excess = counts
            for uid in self.by_uid:
                self.reshape(uid)

    def held_rooms(self, pods: Sequence[Pod]) -> Iterator[HeldRoom]:
        """What reservations hold, for explanations of pods that wait."""
        for state, pod_state in self.matchable():
            usable = any(state.record.matches(pod) for pod in pods)
            why = "" if usable else f"it keeps room on {self._cluster.table.name(pod_state.row)} for its owners"
            yield HeldRoom(pod_state.row, f"Reservation {state.record.name}", state.available(), why)

    # ---- what a pod sees that may use some of them ----

    def take_off(self, states: Iterable[ReservationState], row: int) -> None:
        """Take the reserve pods of some reservations off their row, until `put_back`: the room that they hold is shown
        as free to the pod that is tried now. It is undone exactly, in reverse order, like a Statement."""
        self.take_off_pods((self._cluster.pods[state.record.uid].pod for state in states), row)

    def take_off_pods(self, pods: Iterable[Pod], row: int) -> None:
        """Take pods off their row, until `put_back`: the reservation that is tried now may take over their room."""
        for pod in pods:
            self._removals.append((pod, self._cluster.vacate(pod, row)))
            self.taken_off.setdefault(row, []).append(pod)

    def put_back(self) -> None:
        while self._removals:
            pod, removal = self._removals.pop()
            self._cluster.undo_vacate(pod, removal)
        self.taken_off.clear()

    # ---- owners ----

    def assume(self, pod: Pod, reservation: str) -> None:
        """A pod that was just placed uses a reservation."""
        self._assumed[pod.uid] = reservation
        self.pod_changed(pod.uid)

    def forget(self, pod: Pod) -> None:
        """It does not after all."""
        if self._assumed.pop(pod.uid, None) is not None:
            self.pod_changed(pod.uid)

    def used_by(self, uid: str) -> str:
        """The uid of the reservation that a pod uses; empty if none."""
        return self._uses.get(uid, "")

    def pod_changed(self, uid: str) -> None:
        """A pod came, moved, changed or went."""
        if not self.by_uid and uid not in self._uses:
            return
        pod_state = self._cluster.pods.get(uid)
        if pod_state is None:
            self._assumed.pop(uid, None)
        used = self._used_now(uid)
        before = self._uses.pop(uid, "")
        if used:
            self._uses[uid] = used
        if uid in self.by_uid:
            self._matches_otherwise(uid)
            self.reshape(uid)
        for one in {before, used}:
            state = self.by_uid.get(one)
            if state is not None and state.record.once:
                self._matches_otherwise(one)
        if before and before != used and before in self.by_uid:
            self._discharge(self.by_uid[before], uid)
            self.dirty.add(before)
            self.reshape(before)
        if used:
            self.dirty.add(used)
            self._charge(uid, pod_state)

    def _used_now(self, uid: str) -> str:
        """The uid of the reservation that a pod uses as it is now; empty if none."""
        pod_state = self._cluster.pods.get(uid)
        if pod_state is None or pod_state.row < 0 or is_reserve_pod(pod_state.seen):
            return ""
        return self._assumed.get(uid) or reservation_of(pod_state.seen)

    def _discharge(self, state: ReservationState, uid: str) -> None:
        state.owners.pop(uid, None)
        if not state.owners:
            self._used.pop(state.record.uid, None)

    def _charge(self, uid: str, pod_state: PodState | None) -> None:
        state = self.by_uid.get(self._uses.get(uid, ""))
        if state is None or pod_state is None:
            return
        exact = pod_state.pod.shape.exact_request
        amounts = {name: nanos_to_units(name, exact[name]) for name in state.record.names if name in exact}
        if state.owners.get(uid) != amounts:
            state.owners[uid] = amounts
            self._used[state.record.uid] = state
            self.reshape(state.record.uid)

    def reshape(self, uid: str) -> None:
        """Count a reserve pod with what is left of its reservation."""
        state, pod_state = self.by_uid.get(uid), self._cluster.pods.get(uid)
        if state is None or pod_state is None or pod_state.row < 0:
            return
        shape = self.shape_left(state)
        if _same(pod_state.pod.shape, shape):
            return
        self._cluster.reshape(pod_state, shape)

    def shape_left(self, state: ReservationState) -> PodShape:
        """The shape of a reserve pod with what its owners have left."""
        if not state.owners:
            return state.whole
        used, whole = state.allocated, state.whole
        request = {name: self._left(amount, used.get(name, 0)) for name, amount in whole.request.items()}
        return replace(
            whole,
            request=request,
            nonzero_cpu=self._left(whole.nonzero_cpu, used.get("cpu", _LEAST["cpu"])),
            nonzero_memory=self._left(whole.nonzero_memory, used.get("memory", _LEAST["memory"])),
        )

    def _left(self, amount: int, used: int) -> int:
        return max(0, amount - used) if self._counts_excess else amount - used


def reservations_of(cluster: Cluster) -> Reservations:
    """The reservations of a cluster."""
    return cluster.index(Reservations, Reservations)


def _came(state: ReservationState) -> int:
    return state.number


def _same(one: PodShape, other: PodShape) -> bool:
    return (one.request, one.nonzero_cpu, one.nonzero_memory) == (
        other.request,
        other.nonzero_cpu,
        other.nonzero_memory,
    )
