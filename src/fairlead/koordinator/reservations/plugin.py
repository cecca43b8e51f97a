"""Reservation: shows a pod the room that reservations hold for it, chooses one, and writes down which.

Before anybody else looks at the pod, the reserve pods of all reservations that match it are taken off their rows, or
they are as soon as somebody looks there (core/framework/row_view.py); when the search is over they are put back. A
reserve pod itself is placed like any pod, with a binding of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.extended_plugin import ExtendedPlugin
from fairlead.core.framework.plugin import Interest, Plugin, PostFilterResult, Scope
from fairlead.core.framework.results.cached_plugin import overrides
from fairlead.core.framework.row_view import RowView
from fairlead.core.model.events import POD, ActionType, ClusterEvent
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.quantity import format_quantity
from fairlead.core.model.reasons import SKIP, SUCCESS, Code, Reason, Reject, Status, failed, unresolvable, unschedulable
from fairlead.core.model.times import timestamp
from fairlead.koordinator.kinds import KOORD_RESERVATION, RESERVATION_EVENTS
from fairlead.koordinator.pod_annotations import write_annotation
from fairlead.koordinator.records.reservations import (
    ALLOCATED,
    AVAILABLE,
    NO_POLICY,
    RESERVATION_NODE,
    is_reserve_pod,
)
from fairlead.koordinator.reservations.fitting import is_reservation_reason, reservation_score
from fairlead.koordinator.reservations.holdings import reservations_of
from fairlead.koordinator.reservations.kinds_of_pods import PodKinds
from fairlead.koordinator.reservations.lacks import reservation_lacks
from fairlead.koordinator.reservations.matching import reservation_demand
from fairlead.koordinator.reservations.preallocation import (
    NO_PODS,
    MarkOwners,
    PreAllocation,
    PreAllocationRules,
    owner_text,
)
from fairlead.koordinator.reservations.preallocation import REQUIRED as PRE_ALLOCATION_REQUIRED
from fairlead.koordinator.reservations.preallocation import begin as begin_pre_allocation
from fairlead.koordinator.reservations.status import ReservationStatusWriter
from fairlead.kube.nodes.node_affinity import accepts
from fairlead.kube.scoring import to_hundred

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.profile import Profile
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.lack import Lack
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes
    from fairlead.koordinator.reservations.holdings import ReservationState
    from fairlead.koordinator.reservations.kinds_of_pods import MatchedRow, PodKind
    from fairlead.koordinator.reservations.matching import MatchCounts, ReservationDemand
    from fairlead.koordinator.reservations.preemption import ReservationPreemption

_PREFERRED = 1000
_SEARCH = ("pre_filter", "filter", "pre_score", "score")
_EXTENDED_SEARCH = ("before_pre_filter", "preferred_nodes")
_OTHER_NODE = "node(s) didn't match the nodeName specified by reservation"
_RULES = PreAllocationRules()
_NO_MATCH = "node(s) no reservations match reservation affinity"


@dataclass(slots=True)
class ReservationNote:
    """What is known in this cycle. `rows` are those with matches. `touched` are all that have reservations which
    count for this pod, matched or not; `taken` while the reserve pods of matches are off their rows, where somebody
    looks."""

    kind: PodKind
    rows: Mapping[int, MatchedRow]
    counts: Mapping[int, MatchCounts]
    touched: set[int] = field(default_factory=set)
    taken: bool = False
    preferred: int = -1
    assumed: ReservationState | None = None
    pre: PreAllocation | None = None
    """Of a reservation with preAllocation, the pods that it may take over."""

    @property
    def demand(self) -> ReservationDemand:
        return self.kind.demand


class ReservationPlugin(ExtendedPlugin):
    name = "Reservation"
    kinds_read = (KOORD_RESERVATION,)

    def __init__(
        self,
        *,
        counts_excess: bool = True,
        kept_for: float | None = 86400.0,
        preemption: ReservationPreemption | None = None,
        pre_allocation: PreAllocationRules = _RULES,
    ) -> None:
        """`kept_for` is how many seconds ended reservations stay, `preemption` who evicts pods; None is nobody."""
        self._counts_excess = counts_excess
        self._pre_allocation = pre_allocation
        self._preemption = preemption
        self._kept_for = kept_for
        self._status_writer: ReservationStatusWriter | None = None

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return False

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE)),
            Interest(ClusterEvent(RESERVATION_EVENTS, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE)),
        )

    # ---- the status of reservations ----

    def sync(self, cluster: Cluster, now: float) -> Iterable[Write]:
        self._status_writer = cluster.index(
            lambda cluster: ReservationStatusWriter(cluster, kept_for=self._kept_for),
            ReservationStatusWriter,
            self._kept_for,
        )
        return self._status_writer.step(now)

    def sync_at(self) -> float | None:
        return self._status_writer.wake_at() if self._status_writer is not None else None

    def _note(self, cycle: Cycle) -> ReservationNote | None:
        note: ReservationNote | None = cycle.notes.get(self.name)
        return note

    # ---- before PreFilter: what the pod sees ----

    def before_pre_filter(self, cycle: Cycle) -> Status | None:
        cluster, pod = cycle.cluster, cycle.pod
        reservations = reservations_of(cluster)
        reservations.count_excess(self._counts_excess)
        if not reservations.by_uid:
            return None
        try:
            kind = cluster.index(PodKinds, PodKinds).of(pod)
        except (ValueError, AttributeError, TypeError) as error:
            return failed(f"reservation annotations cannot be read: {error}")
        if is_reserve_pod(pod):
            return self._begin_reservation(cycle, kind)
        note = cycle.notes[self.name] = ReservationNote(kind, kind.rows, kind.counts)
        note.touched.update(row for row, state in kind.idle if state.owners)
        if not kind.rows and not note.touched:
            note.touched.update(self._row_in_use(cycle))
        if kind.demand.required:
            note.touched &= kind.rows.keys()
        note.touched |= kind.rows.keys()
        if kind.rows:
            self._take_off(cycle, note)
        return None

    def _begin_reservation(self, cycle: Cycle, kind: PodKind) -> Status | None:
        counts: dict[int, MatchCounts] = {}
        note = cycle.notes[self.name] = ReservationNote(kind, {}, counts)
        own = reservations_of(cycle.cluster).by_uid.get(cycle.pod.uid)
        if own is None or not own.record.pre_allocation:
            return None
        said = begin_pre_allocation(cycle, own, self._pre_allocation, counts)
        if isinstance(said, Status):
            return said
        note.pre, note.taken = said, True
        return None

    def _row_in_use(self, cycle: Cycle) -> Iterator[int]:
        """A row that the pod may be on and where somebody uses a reservation, if there is one: then the plugin takes
        part for this pod."""
        for _, pod_state in reservations_of(cycle.cluster).matchable_in_use():
            node = cycle.cluster.table.nodes[pod_state.row]
            if node is not None and accepts(cycle.pod, node):
                yield pod_state.row
                return

    def _take_off(self, cycle: Cycle, note: ReservationNote) -> None:
        """Take the reserve pods of matches off their rows: where rows are looked at, if nobody looks at more than rows
        that changed, and if there were such pods before; else everywhere."""
        reservations, rows = reservations_of(cycle.cluster), note.rows
        note.taken = True
        view = RowView((self.name, note.kind.number), rows, lambda row: reservations.take_off(rows[row].states, row))
        if note.kind.plain and note.kind.seen > 1 and not _is_looked_at(cycle):
            cycle.view = view
        else:
            view.show(None)

    def after_search(self, cycle: Cycle) -> None:
        note = self._note(cycle)
        if note is not None and note.taken:
            note.taken = False
            reservations_of(cycle.cluster).put_back()
            # The rows are as they were: what is known of them for this kind of pods stands.
            note.kind.mark = cycle.cluster.table.content.mark
            if cycle.view is not None:
                cycle.view.ended(cycle.cluster.table)
                cycle.view = None

    def lacks(self, pods: Sequence[Pod], cluster: Cluster) -> Iterable[Lack]:
        """What is missing in the reservations of pods that may run nowhere else."""
        yield from reservation_lacks(pods, cluster)

    # ---- PreFilter and Filter ----

    def pre_filter(self, cycle: Cycle) -> Status | frozenset[str] | None:
        note = self._note(cycle)
        if is_reserve_pod(cycle.pod):
            if note is None or note.pre is None or not note.pre.required:
                return None
            names = frozenset(cycle.cluster.table.name(row) for row in note.pre.rows)
            return names or unresolvable(PRE_ALLOCATION_REQUIRED)
        demand = note.demand if note is not None else reservation_demand(cycle.pod)
        if demand.required:
            if note is None or not note.touched:
                return unresolvable(_NO_MATCH)
            return frozenset(cycle.cluster.table.name(row) for row in note.touched)
        return None if note is not None and note.touched else SKIP

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        if is_reserve_pod(cycle.pod):
            yield from self._reserve_pod_filter(cycle, nodes)
        note = self._note(cycle)
        if note is None:
            return
        refused: dict[tuple[str, ...], list[int]] = {}
        if note.pre is None:
            reasons = {row: said for row, matched in note.rows.items() if (said := note.kind.judge(matched).refusal)}
        else:
            reasons = {row: tuple(short) for row in note.pre.rows if (short := note.pre.refusal(cycle, row))}
        for at, row in _places(nodes, reasons):
            refused.setdefault(reasons[row], []).append(at)
        for texts, places in refused.items():
            mask = nodes.none()
            mask[places] = True
            for text in texts:
                yield Reject(Reason(self.name, text), mask)

    def _reserve_pod_filter(self, cycle: Cycle, nodes: Nodes) -> Iterator[Reject]:
        """Where a reservation may be: on the node that it names, and not beside reservations of another kind."""
        wanted = cycle.pod.annotations.get(RESERVATION_NODE)
        if wanted:
            elsewhere = ~nodes.mask_of([row] if (row := nodes.table.row_of.get(wanted)) is not None else [])
            yield Reject(Reason(self.name, _OTHER_NODE, final=True), elsewhere)
        own = reservations_of(cycle.cluster).by_uid.get(cycle.pod.uid)
        if own is None:
            return
        conflicting = [
            pod_state.row
            for state, pod_state in reservations_of(cycle.cluster).matchable()
            if NO_POLICY in (own.record.policy, state.record.policy) and own.record.policy != state.record.policy
        ]
        if conflicting:
            mask = nodes.mask_of(conflicting)
            yield Reject(Reason(self.name, "node(s) reservation allocate policy conflict", final=True), mask)

    # ---- PostFilter: make room, or say how it is with reservations ----

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        preemption, note = self._preemption, self._note(cycle)
        rescued = PostFilterResult(unschedulable()) if preemption is None else preemption.post_filter(cycle, refusals)
        if rescued.status.code is not Code.UNSCHEDULABLE:
            return rescued
        said = self._said(cycle, note, refusals) if note is not None else ()
        return PostFilterResult(unschedulable(*rescued.status.reasons, *said), rescued.nominated)

    def _said(self, cycle: Cycle, note: ReservationNote, refusals: Refusals) -> list[str]:
        counts = note.counts.values()
        owned = sum(count.owned for count in counts)
        if not owned and not note.demand.required:
            return []
        tainted: Counter[str] = sum((count.tainted for count in counts), Counter[str]())
        said = [
            (sum(c.name_matched for c in counts), "exactly matches the requested reservation name"),
            (sum(c.name_unmatched for c in counts), "didn't match the requested reservation name"),
            (sum(c.affinity_unmatched for c in counts), "didn't match affinity rules"),
            (sum(c.unschedulable for c in counts), "is unschedulable"),
            (sum(c.not_exact for c in counts), "is not exact matched"),
            *((number, f"had untolerated taint {taint}") for taint, number in sorted(tainted.items())),
            *self._node_reasons(note, refusals),
        ]
        reasons = [f"{number} Reservation(s) {words}" for number, words in said if number]
        return [*reasons, f"{owned} Reservation(s) matched owner total"]

    def _node_reasons(self, note: ReservationNote, refusals: Refusals) -> list[tuple[int, str]]:
        """For reservations that matched, why their nodes were refused."""
        reasons: Counter[str] = Counter()
        for row, count in note.counts.items():
            left = count.owned - count.explained
            if left <= 0:
                continue
            here = Counter(_reasons_of(refusals, row))
            left -= sum(number for reason, number in here.items() if is_reservation_reason(reason))
            if left > 0:
                reasons.update({r: left * n for r, n in here.items() if not is_reservation_reason(r)})
        return [(number, f"for node reason that {reason}") for reason, number in sorted(reasons.items())]

    # ---- score ----

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        note = self._note(cycle)
        if note is not None and note.pre is not None:
            return None if note.pre.scores() else SKIP
        if note is None or is_reserve_pod(cycle.pod) or note.demand.ignores or not note.touched:
            return SKIP
        smallest: tuple[int, int] | None = None
        orders = {row: first for row, matched in note.rows.items() if (first := matched.first_order)}
        for _, row in _places(nodes, orders):
            if smallest is None or orders[row] < smallest[0]:
                smallest = (orders[row], row)
        note.preferred = smallest[1] if smallest is not None else -1
        return None

    def _nominate(self, note: ReservationNote, row: int) -> ReservationState | None:
        """The reservation that the pod would use on a row; None if none."""
        return note.kind.judge(note.rows[row]).chosen if row in note.rows else None

    def equals_of(self, cycle: Cycle, row: int) -> list[ReservationState]:
        """All reservations of a row that would have been as good, for replays."""
        note = self._note(cycle)
        chosen = self._nominate(note, row) if note is not None else None
        if note is None or chosen is None:
            return []
        fitting = note.kind.fitting(note.rows[row])
        if any(state.record.order for state in fitting):
            return [state for state in fitting if state.record.order == chosen.record.order] or [chosen]
        asked, score = note.kind.asked, note.kind.judge(note.rows[row]).score
        return [state for state in fitting if reservation_score(state, asked) == score] or [chosen]

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        note = self._note(cycle)
        assert note is not None, "it stepped aside in prepare_scores otherwise"
        if note.pre is not None:
            return np.fromiter(map(note.pre.score, nodes.row_numbers().tolist()), np.int64, len(nodes))
        scores = np.zeros(nodes.table.high, dtype=np.int64)
        rated = [note.kind.judge(matched).score for matched in note.rows.values()]
        scores[np.fromiter(note.rows, dtype=np.intp, count=len(rated))] = rated
        if note.preferred >= 0:
            scores[note.preferred] = _PREFERRED
        return nodes.take(scores)

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return raw if is_reserve_pod(cycle.pod) else to_hundred(raw)

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        note = self._note(cycle)
        if note is not None and note.pre is not None:
            return self._take_over(cycle, note.pre, row)
        if is_reserve_pod(cycle.pod) or (note is not None and note.demand.ignores):
            return None
        chosen = self._nominate(note, row) if note is not None else None
        if note is None or chosen is None:
            required = note.demand.required if note is not None else reservation_demand(cycle.pod).required
            return unschedulable(_NO_MATCH) if required else None
        note.assumed = chosen
        reservations_of(cycle.cluster).assume(cycle.pod, chosen.record.uid)
        return None

    def _take_over(self, cycle: Cycle, pre: PreAllocation, row: int) -> Status | None:
        """The reservation takes over the room of pods that run already."""
        pre.taken = pre.chosen_on(row)
        if pre.required and not pre.taken:
            return unschedulable(NO_PODS)
        for pod in pre.taken:
            reservations_of(cycle.cluster).assume(pod, pre.own.record.uid)
        return None

    def unreserve(self, cycle: Cycle, row: int) -> None:
        note = self._note(cycle)
        if note is not None and note.pre is not None:
            for pod in note.pre.taken or ():
                reservations_of(cycle.cluster).forget(pod)
            note.pre.taken = None
        if note is not None and note.assumed is not None:
            note.assumed = None
            reservations_of(cycle.cluster).forget(cycle.pod)

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status:
        note = self._note(cycle)
        works = note is not None and ((note.pre is not None and note.pre.taken) or note.assumed is not None)
        return SUCCESS if works else SKIP

    def pre_bind(self, cycle: Cycle, row: int) -> MarkOwners | None:
        note = self._note(cycle)
        if note is not None and note.pre is not None and note.pre.taken:
            return MarkOwners(note.pre.taken, note.pre.own.record)
        if note is not None and note.assumed is not None:
            write_annotation(cycle, ALLOCATED, owner_text(note.assumed.record))
        return None

    def bind(self, cycle: Cycle, row: int) -> Write | Status:
        """A reserve pod is bound by its reservation's status: it is available, on this node."""
        if not is_reserve_pod(cycle.pod):
            return SKIP
        own = reservations_of(cycle.cluster).by_uid[cycle.pod.uid].record
        now = timestamp(cycle.now)
        held = {name: format_quantity(amount, name) for name, amount in own.held.items()}
        condition = {"lastProbeTime": now, "lastTransitionTime": now, "status": "True"}
        body = {
            "status": {
                "phase": AVAILABLE,
                "nodeName": cycle.cluster.table.name(row),
                "allocatable": held,
                "conditions": [
                    {**condition, "type": "Scheduled", "reason": "Scheduled"},
                    {**condition, "type": "Ready", "reason": "Available"},
                ],
            }
        }
        return Write(Verb.PATCH, KOORD_RESERVATION, "", own.name, body, subresource="status")


def _is_looked_at(cycle: Cycle) -> bool:
    """Whether a plugin looks at pods on nodes otherwise than row by row."""
    pod = cycle.pod
    return any(plugin.concerns(pod) and plugin.looks_at_pods(cycle) for plugin in _askers(cycle.profile))


@lru_cache(maxsize=16)
def _askers(profile: Profile) -> tuple[Plugin, ...]:
    """The plugins of a profile that may be asked about every pod while nodes are searched for."""
    called = [
        *(plugin for point in _EXTENDED_SEARCH for plugin in profile.extended_at(point)),
        *(plugin for point in _SEARCH for plugin in profile.at(point)),
    ]
    found = {plugin.name: plugin for plugin in called if plugin.scope is Scope.CLUSTER or overrides(plugin, "refresh")}
    return tuple(found.values())


def _places(nodes: Nodes, rows: Collection[int]) -> Iterator[tuple[int, int]]:
    """Those of some rows that are in a selection, each with its place there, in the order of the selection."""
    if not rows:
        return iter(())
    places = nodes.mask_of(rows).nonzero()[0]
    return zip(places.tolist(), nodes.row_numbers()[places].tolist(), strict=True)


def _reasons_of(refusals: Refusals, row: int) -> tuple[str, ...]:
    """What a row was refused for."""
    code = int(refusals.codes[row]) if row < len(refusals.codes) else -1
    if code > 0:
        return refusals.evaluator.codes.verdict(code).reasons
    absent = refusals.diagnosis.absent
    return absent.reasons if code < 0 and absent is not None else ()
