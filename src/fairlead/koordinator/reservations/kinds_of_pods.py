"""What is known for pods of one kind, which see the same of reservations: matches, and judgements of the rows that have
some.

Pods of a kind are equal in all that owners of reservations, affinity to them and node selectors read. Their matches are
looked for again when reservations or nodes have changed, and a row is judged again when it was touched.

Invariant: whenever what pods of a kind match on a row changes, the row is touched in one of the table's logs.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.koordinator.quotas.usage import request_of
from fairlead.koordinator.records.reservations import AFFINITY, EXACT_MATCH
from fairlead.koordinator.reservations.fitting import NodeRoom, reservation_score, shortages
from fairlead.koordinator.reservations.holdings import reservations_of
from fairlead.koordinator.reservations.matching import MatchCounts, matches, reservation_demand
from fairlead.kube.nodes.node_affinity import accepts

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.reservations.holdings import ReservationState
    from fairlead.koordinator.reservations.matching import ReservationDemand

_KEPT = 256
"""So many kinds are kept; the one that was met longest ago is forgotten first."""


@dataclass(slots=True, eq=False)
class MatchedRow:
    """The reservations on one row that a pod matches, the row as it is while they are there, and what was said of it.
    A row that changes gets a new one."""

    states: list[ReservationState]
    room: NodeRoom
    first_order: int
    """The smallest order that one of them has; 0 if none has one."""
    judged: RowJudgement | None = None


@dataclass(frozen=True, slots=True)
class RowJudgement:
    """Why a pod of the kind fits into none of a row's reservations, nor beside them if it may (empty if it does), the
    reservation that it would use, and how good that one is."""

    refusal: tuple[str, ...]
    chosen: ReservationState | None
    score: int


@dataclass(slots=True, eq=False)
class PodKind:
    """`idle` are reservations, with their rows, that belong to such pods and do not match. `seen` says how many pods of
    the kind there were before."""

    number: int
    demand: ReservationDemand
    asked: Mapping[str, int]
    rows: Mapping[int, MatchedRow] = field(default_factory=dict)
    idle: list[tuple[int, ReservationState]] = field(default_factory=list)
    counts: dict[int, MatchCounts] = field(default_factory=dict)
    seen: int = 0
    plain: bool = True
    """Whether the reserve pods of all matches are without affinity terms, ports and volumes."""
    state: tuple[int, int] = (-1, -1)
    """The versions of reservations and nodes that the matches are of."""
    mark: int = -1
    """How far the log of pods on rows was read."""

    # ---- matches ----

    def match(self, pod: Pod, cluster: Cluster) -> None:
        """Find the matches anew if something has changed, and the rooms of rows that were touched."""
        state = (reservations_of(cluster).version, cluster.table.static.mark)
        if state != self.state:
            found = self._search(pod, cluster)
            self.rows = {row: _matched(cluster, row, states) for row, states in found.items()}
            self.state = state
        else:
            touched = cluster.table.content.since(self.mark)
            stale = self.rows.keys() if touched is None else self.rows.keys() & touched
            if stale:
                renewed = {row: _matched(cluster, row, self.rows[row].states) for row in stale}
                self.rows = {**self.rows, **renewed}
        self.mark = cluster.table.content.mark

    def _search(self, pod: Pod, cluster: Cluster) -> dict[int, list[ReservationState]]:
        """The reservations that match, by row."""
        self.idle, self.counts, self.plain = [], {}, True
        found: dict[int, list[ReservationState]] = {}
        reservations, nodes = reservations_of(cluster), cluster.table.nodes
        for state, pod_state in reservations.matchable() if self.demand.ignores else reservations.matchable_by(pod):
            row = pod_state.row
            node = nodes[row]
            if node is None or not accepts(pod, node):
                continue
            counts = self.counts.setdefault(row, MatchCounts())
            if matches(pod, self.asked, self.demand, state.record, node, counts):
                found.setdefault(row, []).append(state)
                shape = pod_state.pod.shape
                self.plain = self.plain and not (shape.has_pod_affinity or shape.host_ports or shape.volumes)
            else:
                self.idle.append((row, state))
        return found

    # ---- judgements ----

    def judge(self, matched: MatchedRow) -> RowJudgement:
        """What there is to say of a row with matches."""
        if matched.judged is None:
            matched.judged = self.judged_anew(matched)
        return matched.judged

    def judged_anew(self, matched: MatchedRow) -> RowJudgement:
        chosen = self._choose(matched)
        score = 0 if chosen is None else reservation_score(chosen, self.asked)
        return RowJudgement(() if self.demand.ignores else self._refusal(matched), chosen, score)

    def _refusal(self, matched: MatchedRow) -> tuple[str, ...]:
        by_node: set[str] = set()
        by_reservation: list[str] = []
        for state in matched.states:
            if not self.demand.required and not set(state.record.names) & set(self.asked):
                continue
            if self.demand.name and self.demand.name != state.record.name:
                continue
            node, own = shortages(state, self.asked, matched.room, detailed=bool(self.demand.name))
            if not node and not own:
                return ()
            by_node.update(node)
            by_reservation += own
        of_node = tuple(f"Insufficient {name} by node" for name in sorted(by_node))
        if self.demand.required:
            return (*of_node, *by_reservation) or ("node(s) no reservation(s) to meet the requirements",)
        if of_node:
            return of_node
        return tuple(f"Insufficient {name} by node" for name in matched.room.lacking(self.asked, {}))

    def _choose(self, matched: MatchedRow) -> ReservationState | None:
        """The reservation that the pod would use; None if none."""
        if len(matched.states) == 1 and self.demand.required:
            return matched.states[0]
        fitting = self.fitting(matched)
        if len(fitting) < 2:
            return fitting[0] if fitting else None
        ordered = [state for state in fitting if state.record.order]
        if ordered:
            return min(ordered, key=lambda state: state.record.order)
        return max(fitting, key=lambda state: reservation_score(state, self.asked))

    def fitting(self, matched: MatchedRow) -> list[ReservationState]:
        """The reservations that the pod fits into."""
        return [state for state in matched.states if self._fits(matched, state)]

    def _fits(self, matched: MatchedRow, state: ReservationState) -> bool:
        if state.record.once and state.owners:
            return False
        if self.demand.name and self.demand.name != state.record.name:
            return False
        if not self.demand.required and not set(state.record.names) & set(self.asked):
            return False
        node, own = shortages(state, self.asked, matched.room, detailed=False)
        return not node and not own


def _matched(cluster: Cluster, row: int, states: list[ReservationState]) -> MatchedRow:
    """A row as it is now, with its reserve pods."""
    table, matched = cluster.table, len(states)
    node = table.nodes[row]
    assert node is not None, "only nodes that are there are looked at"
    requested = {name: column.item(row) for name, column in table.requested.items()}
    # While they are taken off, the pods that are there are so many less.
    room = NodeRoom(
        node.allocatable, requested, table.pod_count.item(row) - matched, node.allocatable.get("pods", 0), matched
    )
    return MatchedRow(states, room, min((state.record.order for state in states if state.record.order), default=0))


class PodKinds:
    """The kinds of pods that were met lately, in one cluster."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._kinds: dict[Hashable, PodKind] = {}
        self._count = 0

    def of(self, pod: Pod) -> PodKind:
        """The kind of a pod, with its matches up to date; a ValueError if what the pod says cannot be read."""
        annotations = pod.annotations
        key = (
            pod.shape,
            frozenset(pod.labels.items()),
            annotations.get(AFFINITY),
            annotations.get(EXACT_MATCH),
            pod.namespace,
            pod.owner,
            pod.uid if reservations_of(self._cluster).names_pods else "",
        )
        kind = self._kinds.pop(key, None)
        if kind is None:
            self._count += 1
            kind = PodKind(self._count, reservation_demand(pod), request_of(pod))
        self._kinds[key] = kind
        if len(self._kinds) > _KEPT:
            del self._kinds[next(iter(self._kinds))]
        kind.match(pod, self._cluster)
        kind.seen += 1
        return kind
