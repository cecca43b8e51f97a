"""Pre-allocation: a reservation that may be placed on top of pods that run already, whose room it takes over.

The pods become owners of the reservation: what they use counts as used of it, and when they go, the reservation keeps
the room. While nodes are searched, all pods that may be taken over are off their rows; then one of them, or as many as
are needed, must make enough room for the reservation and fit into it. Only Restricted reservations may do this.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.reasons import SUCCESS, Status, failed, unresolvable
from fairlead.core.state.pod_states import PodPlace
from fairlead.koordinator.quotas.usage import request_of
from fairlead.koordinator.records.reservations import (
    ALLOCATED,
    IN_CLUSTER,
    PRE_ALLOCATION_REQUIRED_LABEL,
    RESTRICTED,
    is_reserve_pod,
    reservation_of,
)
from fairlead.koordinator.reservations.fitting import NodeRoom, reservation_score, reservation_shortage
from fairlead.koordinator.reservations.holdings import reservations_of
from fairlead.koordinator.reservations.matching import MatchCounts, may_be_taken_over, reservation_demand
from fairlead.kube.nodes.node_affinity import accepts

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.records.reservations import KoordReservation
    from fairlead.koordinator.reservations.holdings import ReservationState

REQUIRED = "node(s) no pod match reservation with pre allocation required"
NO_PODS = "node(s) no pod(s) to meet the pre-allocation requirements"
_UNSUPPORTED = "node(s) reservation pre allocation is unsupported with current attributes"
_NO_CLUSTER_MODE = "reservation requires cluster mode pre-allocation which is disabled"
_STILL_MARKED = "pods are marked as owners by an earlier attempt, which is being taken back"
_ON_NODES = (PodPlace.BOUND, PodPlace.RELEASING)


@dataclass(frozen=True, slots=True)
class PreAllocationRules:
    """The argument preAllocationConfig. `prefers_none` places reservations beside running pods where there is room.
    `unscored` is a slip of the original: KoordinatorQuirks.preallocation_of_several_unscored."""

    cluster_mode: bool = False
    label: str = "pod.koordinator.sh/is-pre-allocatable"
    priority_annotation: str = "pod.koordinator.sh/pre-allocatable-priority"
    prefers_none: bool = False
    unscored: bool = False

    def marks(self, pod: Pod) -> bool:
        """Whether a pod may be taken over by any reservation."""
        return pod.labels.get(self.label) == "true"

    def order(self, pod: Pod) -> tuple[int, str]:
        """The order in which marked pods are taken over."""
        text = pod.annotations.get(self.priority_annotation, "")
        return (-int(text) if text.lstrip("+-").isdecimal() else 0), pod.uid


@dataclass(slots=True)
class CandidateRow:
    """Pods of a row that may be taken over, and the row with them on it; only its number of pods is without them."""

    pods: tuple[Pod, ...]
    room: NodeRoom


@dataclass(slots=True)
class PreAllocation:
    """What is known in the attempt at one reservation. `taken` are the pods that it took over in Reserve."""

    own: ReservationState
    asked: Mapping[str, int]
    required: bool
    rules: PreAllocationRules
    rows: dict[int, CandidateRow] = field(default_factory=dict)
    taken: tuple[Pod, ...] | None = None

    def refusal(self, cycle: Cycle, row: int) -> list[str]:
        """Why a row cannot take the reservation, as the table is now; empty if it can."""
        candidates = self.rows[row]
        said = self._select(candidates.pods, _room(cycle, row, candidates.pods))
        return said if isinstance(said, list) else []

    def chosen_on(self, row: int) -> tuple[Pod, ...]:
        """The pods that the reservation would take over on a row."""
        candidates = self.rows.get(row)
        if candidates is None:
            return ()
        selected = self._select(candidates.pods, candidates.room)
        if not selected or isinstance(selected, list) or self.own.record.takes_several:
            return selected if isinstance(selected, tuple) else ()
        if len(selected) == 1 and self.required:
            return selected
        fitting = [pod for pod in selected if self._shares_names(pod) and self._fits_alone(pod, candidates.room)]
        return (max(fitting, key=self._score),) if fitting else ()

    def score(self, row: int) -> int:
        """How well a row suits: pods that fill the reservation, or as few pods as possible."""
        chosen = self.chosen_on(row)
        if self.own.record.takes_several:
            return 100 // (1 + len(chosen))
        return self._score(chosen[0]) if chosen else 0

    def scores(self) -> bool:
        """Whether nodes are distinguished."""
        return bool(self.rows) and not (self.own.record.takes_several and self.rules.unscored)

    def _score(self, pod: Pod) -> int:
        return reservation_score(self.own, request_of(pod))

    def _shares_names(self, pod: Pod) -> bool:
        return not set(self.own.record.names).isdisjoint(request_of(pod))

    def _fits_alone(self, pod: Pod, room: NodeRoom) -> bool:
        given = request_of(pod)
        return not room.lacking(self.asked, given) and not reservation_shortage(self.own, given, detailed=False)

    def _select(self, pods: Sequence[Pod], room: NodeRoom) -> tuple[Pod, ...] | list[str]:
        """The pods that come into question on a row, none if the reservation has room without; or the reasons why it
        has no room."""
        if self.rules.prefers_none and not self.required and not _alone(room).lacking(self.asked, {}):
            return ()
        of_node, of_reservation = set[str](), list[str]()
        selected = self._several if self.own.record.takes_several else self._one
        found = selected([pod for pod in pods if self._shares_names(pod)], room, of_node, of_reservation)
        if found:
            return found if self.own.record.takes_several else tuple(pods)
        reasons = [f"Insufficient {name} by node" for name in sorted(of_node)]
        if self.required:
            return [*reasons, *of_reservation] or [NO_PODS]
        if not reasons:
            reasons = [f"Insufficient {name} by node" for name in _alone(room).lacking(self.asked, {})]
        return reasons or ()

    def _one(
        self, pods: Iterable[Pod], room: NodeRoom, of_node: set[str], of_reservation: list[str]
    ) -> tuple[Pod, ...]:
        """The first pod that makes enough room; the sets collect what is missing otherwise."""
        for pod in pods:
            given = request_of(pod)
            node, own = room.lacking(self.asked, given), reservation_shortage(self.own, given, detailed=False)
            if not node and not own:
                return (pod,)
            of_node.update(node)
            of_reservation += own
        return ()

    def _several(
        self, pods: Sequence[Pod], room: NodeRoom, of_node: set[str], of_reservation: list[str]
    ) -> tuple[Pod, ...]:
        """Pods that make enough room together and fit into the reservation together; by their scores, unless they have
        an order of their own."""
        if self.own.record.pre_mode != IN_CLUSTER:
            pods = sorted(pods, key=self._score, reverse=True)
        selected: list[Pod] = []
        given: dict[str, int] = {}
        for pod in pods:
            trial = dict(given)
            for name, amount in request_of(pod).items():
                trial[name] = trial.get(name, 0) + amount
            short = reservation_shortage(self.own, trial, detailed=False)
            node = _with(room, len(selected) + 1).lacking(self.asked, trial)
            of_node.clear()
            of_node.update(node)
            if short:
                of_reservation += short
                continue
            selected.append(pod)
            given = trial
            if not node:
                return tuple(selected)
        return ()


def begin(
    cycle: Cycle, own: ReservationState, rules: PreAllocationRules, counts: dict[int, MatchCounts]
) -> PreAllocation | Status:
    """Look for pods that the reservation may take over, and take them off their rows; `counts` collects others."""
    record = own.record
    if record.policy != RESTRICTED:
        return unresolvable(_UNSUPPORTED)
    if record.pre_mode == IN_CLUSTER and not rules.cluster_mode:
        return unresolvable(_NO_CLUSTER_MODE)
    if own.owners:
        return failed(_STILL_MARKED)
    required = cycle.pod.labels.get(PRE_ALLOCATION_REQUIRED_LABEL) == "true"
    found = PreAllocation(own, request_of(cycle.pod), required, rules)
    for row, pods in _candidates(cycle, record, rules, counts).items():
        reservations_of(cycle.cluster).take_off_pods(pods, row)
        found.rows[row] = CandidateRow(tuple(pods), _room(cycle, row, pods))
    return found


def _candidates(
    cycle: Cycle, record: KoordReservation, rules: PreAllocationRules, counts: dict[int, MatchCounts]
) -> dict[int, list[Pod]]:
    found: dict[int, list[Pod]] = {}
    nodes, by_owners = cycle.cluster.table.nodes, record.pre_mode != IN_CLUSTER
    for pod, row in _running(cycle.cluster):
        node = nodes[row]
        if node is None or not accepts(cycle.pod, node):
            continue
        if not (_is_selected(record, pod) if by_owners else rules.marks(pod)):
            continue
        try:
            demand = reservation_demand(pod)
        except (ValueError, AttributeError, TypeError):
            continue
        match_counts = counts.setdefault(row, MatchCounts())
        if may_be_taken_over(pod, demand, request_of(pod), record, node, match_counts, by_owners=by_owners):
            found.setdefault(row, []).append(pod)
    if not by_owners:
        for pods in found.values():
            pods.sort(key=rules.order)
    return found


def _running(cluster: Cluster) -> Iterator[tuple[Pod, int]]:
    """Pods on nodes that are in no reservation."""
    reservations = reservations_of(cluster)
    for uid, pod_state in cluster.pods.items():
        if pod_state.place in _ON_NODES and not reservations.used_by(uid):
            pod = pod_state.pod
            if not is_reserve_pod(pod) and not reservation_of(pod_state.seen):
                yield pod, pod_state.row


def _is_selected(record: KoordReservation, pod: Pod) -> bool:
    return any(owner.selector is not None and owner.selector.matches(pod.labels) for owner in record.owners)


def _room(cycle: Cycle, row: int, pods: Iterable[Pod]) -> NodeRoom:
    """A row while some pods are off it, with what they request."""
    table = cycle.cluster.table
    node = table.nodes[row]
    assert node is not None, "only nodes that are there are looked at"
    requested = {name: int(column[row]) for name, column in table.requested.items()}
    for pod in pods:
        for name, amount in pod.shape.request.items():
            requested[name] = requested.get(name, 0) + amount
    return NodeRoom(node.allocatable, requested, int(table.pod_count[row]), node.allocatable.get("pods", 0), matched=1)


def _with(room: NodeRoom, matched: int) -> NodeRoom:
    return NodeRoom(room.allocatable, room.requested, room.pods, room.most_pods, matched)


def _alone(room: NodeRoom) -> NodeRoom:
    """The node if no pod is taken over."""
    return _with(room, 0)


class MarkOwners:
    """The Errand that writes on the pods which a reservation takes over that they are its owners."""

    def __init__(self, pods: Sequence[Pod], record: KoordReservation) -> None:
        self._awaited = [owner_patch(pod, owner_text(record)) for pod in pods]

    def start(self, now: float) -> list[Write]:
        return list(self._awaited)

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | list[Write] | None:
        for reply in replies:
            left = [write for write in self._awaited if write is not reply.write]
            if len(left) < len(self._awaited) and reply.error is not None:
                return failed(str(reply.error))
            self._awaited = left
        return None if self._awaited else SUCCESS

    def wake_at(self) -> float | None:
        return None


def owner_text(record: KoordReservation) -> str:
    """The annotation of a pod that uses a reservation."""
    return json.dumps({"name": record.name, "uid": record.uid}, separators=(",", ":"))


def owner_patch(pod: Pod, text: str | None) -> Write:
    """The patch that marks a pod as owner of a reservation, or, with None, takes the mark off."""
    body = {"metadata": {"uid": pod.uid, "annotations": {ALLOCATED: text}}}
    return Write(Verb.PATCH, kinds.POD, pod.namespace, pod.name, body)
