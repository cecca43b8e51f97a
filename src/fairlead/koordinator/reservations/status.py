"""ReservationStatusWriter writes the status of reservations: who owns them. It ends them and removes those that ended.

A reservation that serves one pod has succeeded when that pod is bound. One whose time is over, or whose node is gone,
has failed (the reason is Expired). Ended ones are deleted after a day. What is wanted is compared with what the object
shows, so that nothing is written twice and nothing is lost.
"""

from __future__ import annotations

from heapq import heappop, heappush
from typing import TYPE_CHECKING

from fairlead.core.model.documents import moment, read_units
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.quantity import format_quantity
from fairlead.core.model.times import timestamp
from fairlead.core.state.pod_states import PodPlace
from fairlead.koordinator.kinds import KOORD_RESERVATION
from fairlead.koordinator.quotas.usage import request_of
from fairlead.koordinator.records.reservations import AVAILABLE, FAILED, PENDING, SUCCEEDED
from fairlead.koordinator.reservations.holdings import reservations_of
from fairlead.koordinator.reservations.preallocation import owner_patch
from fairlead.koordinator.sent_statuses import SentStatuses

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.records.reservations import KoordReservation
    from fairlead.koordinator.reservations.holdings import ReservationState

_ENDED = (SUCCEEDED, FAILED)
_BOUND = (PodPlace.BOUND, PodPlace.RELEASING)


class ReservationStatusWriter:
    def __init__(self, cluster: Cluster, *, kept_for: float | None) -> None:
        """`kept_for` is how many seconds ended reservations stay; None is for good."""
        self._cluster = cluster
        self._kept_for = kept_for
        self._sent = SentStatuses()
        self._moments: list[tuple[float, str]] = []
        self._static_mark = -1
        self._reservations = reservations_of(cluster)
        self._reservations.dirty.update(self._reservations.by_uid)

    def step(self, now: float) -> Iterator[Write]:
        reservations = self._reservations
        if self._static_mark != self._cluster.table.static.mark:
            self._static_mark = self._cluster.table.static.mark
            reservations.dirty.update(uid for uid, state in reservations.by_uid.items() if self._lost_its_node(state))
        while self._moments and self._moments[0][0] <= now:
            reservations.dirty.add(heappop(self._moments)[1])
        reservations.dirty.update(self._sent.overdue(now))
        while reservations.dirty:
            uid = reservations.dirty.pop()
            state = reservations.by_uid.get(uid)
            if state is None:
                self._sent.forget(uid)
            else:
                yield from self._keep(uid, state, now)

    def wake_at(self) -> float | None:
        times = [self._moments[0][0] if self._moments else None, self._sent.again_at()]
        return min((at for at in times if at is not None), default=None)

    def _lost_its_node(self, state: ReservationState) -> bool:
        record = state.record
        return record.phase == AVAILABLE and bool(record.node) and record.node not in self._cluster.table.row_of

    def _keep(self, uid: str, state: ReservationState, now: float) -> Iterator[Write]:
        record = state.record
        if record.phase in _ENDED:
            yield from self._remove_in_time(uid, record, now)
            return
        marked = self._marked_in_vain(uid, state)
        if marked:
            if self._sent.is_due(uid, tuple(pod.uid for pod in marked), (), now):
                yield from (owner_patch(pod, None) for pod in marked)
            return
        ends = _expires(record)
        if ends is not None and ends > now:
            heappush(self._moments, (ends, uid))
        expired = (ends is not None and ends <= now) or self._lost_its_node(state)
        owners, allocated = self._owners(state)
        if record.phase == AVAILABLE and record.once and owners:
            wanted = _ended(SUCCEEDED, "Succeeded", now)
        elif expired:
            wanted = _ended(FAILED, "Expired", now)
        elif record.phase == AVAILABLE:
            wanted = {}
        else:
            self._sent.forget(uid)
            return
        if record.phase == AVAILABLE:
            wanted |= {"currentOwners": owners, "allocated": allocated}
        if self._sent.is_due(uid, _comparable(wanted, record), _comparable(record.shown, record), now):
            yield Write(Verb.PATCH, KOORD_RESERVATION, "", record.name, {"status": wanted}, subresource="status")

    def _marked_in_vain(self, uid: str, state: ReservationState) -> list[Pod]:
        """Pods that a reservation marked as its owners in an attempt that failed; the marks must go."""
        reserve_pod = self._cluster.pods.get(uid)
        if state.record.phase != PENDING or reserve_pod is None or reserve_pod.place is not PodPlace.PENDING:
            return []
        return [pod_state.seen for owner in state.owners if (pod_state := self._cluster.pods.get(owner)) is not None]

    def _owners(self, state: ReservationState) -> tuple[list[Doc], Doc]:
        """The bound owners, and what they use of all that is held."""
        owners: list[Doc] = []
        total: dict[str, int] = {}
        for uid in state.owners:
            pod_state = self._cluster.pods.get(uid)
            if pod_state is None or pod_state.place not in _BOUND:
                continue
            pod = pod_state.seen
            owners.append({"namespace": pod.namespace, "name": pod.name, "uid": uid})
            for name, amount in request_of(pod).items():
                if name in state.record.held and amount:
                    total[name] = total.get(name, 0) + amount
        owners.sort(key=lambda owner: (owner["namespace"], owner["name"]))
        return owners, {name: format_quantity(amount, name) for name, amount in sorted(total.items())}

    def _remove_in_time(self, uid: str, record: KoordReservation, now: float) -> Iterator[Write]:
        if self._kept_for is None:
            self._sent.forget(uid)
            return
        ended = max(
            (
                at
                for said in record.shown.get("conditions") or ()
                if (at := moment(said, "lastTransitionTime")) is not None
            ),
            default=record.created,
        )
        if now < ended + self._kept_for:
            self._sent.forget(uid)  # what was sent to end it is shown
            heappush(self._moments, (ended + self._kept_for, uid))
        elif self._sent.is_due(uid, "gone", "there", now):
            yield Write(Verb.DELETE, KOORD_RESERVATION, "", record.name)


def _expires(record: KoordReservation) -> float | None:
    if record.expires is not None:
        return record.expires
    return record.created + record.ttl if record.ttl > 0 else None


def _ended(phase: str, reason: str, now: float) -> Doc:
    at = timestamp(now)
    scheduled = {"type": "Ready", "status": "False", "reason": reason, "lastProbeTime": at, "lastTransitionTime": at}
    return {"phase": phase, "conditions": [scheduled]}


def _comparable(status: Doc, record: KoordReservation) -> tuple[object, ...]:
    """What is compared of a status: its phase, owners and amounts; times do not count."""
    amounts = read_units(status.get("allocated"), "status.allocated")
    return (
        status.get("phase") or record.phase or PENDING,
        tuple(owner.get("uid") for owner in status.get("currentOwners") or ()),
        tuple(sorted((name, amount) for name, amount in amounts.items() if amount)),
    )
