"""InterPodAffinity: affinity and anti-affinity of the pod, and anti-affinity of pods on nodes against it.

The pod's own terms are answered by counts of the pods they select; the terms of pods on nodes are kept in a registry of
distinct terms. The affinity index keeps both per topology domain, so that judging 5,000 nodes is one look-up per key.

The order of the three rules is the original's. Only a failed affinity is final: an eviction can satisfy an
anti-affinity, but not an affinity.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Interest
from fairlead.core.framework.results.cached_plugin import AfterPlacing, CachedPlugin
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status, unresolvable
from fairlead.core.state.nodes import either
from fairlead.kube.affinity.hints import after_node_change, after_pod_change
from fairlead.kube.affinity.index import AffinityIndex, affinity_index
from fairlead.kube.affinity.scores import AffinityScores

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.terms import AffinityTerm
    from fairlead.core.state.nodes import Nodes
    from fairlead.core.state.table import NodeTable
    from fairlead.kube.affinity.selected import PodSelection

_SCORES = "InterPodAffinity.scores"


class DomainCounts:
    """Counts by topology key and code of its value. Arrays are replaced when a trial changes them, never written to,
    so copies may share them."""

    __slots__ = ("by_key",)

    def __init__(self, by_key: dict[str, NDArray[np.int64]]) -> None:
        self.by_key = by_key

    def change(self, table: NodeTable, key: str, row: int, amount: int) -> None:
        label = table.label(key)
        code = label.codes[row]
        if code < 0:
            return
        counts = self.by_key.get(key)
        counts = np.zeros(len(label.values) + 1, dtype=np.int64) if counts is None else counts.copy()
        counts[code] += amount
        self.by_key[key] = counts

    def any(self) -> bool:
        return any(np.count_nonzero(counts) for counts in self.by_key.values())

    def somewhere(self, nodes: Nodes) -> NDArray[np.bool_] | None:
        """Rows in a domain with a count of some key; None if there is no count at all."""
        found: NDArray[np.bool_] | None = None
        for key, counts in self.by_key.items():
            found = either(found, nodes.with_label(key, counts > 0))
        return found

    def not_everywhere(self, nodes: Nodes) -> NDArray[np.bool_] | None:
        """Rows that are not, for every key, in a domain with a count; None if all are."""
        found: NDArray[np.bool_] | None = None
        for key, counts in self.by_key.items():
            if np.count_nonzero(counts > 0) < len(counts) - 1 or not nodes.table.everywhere(key):
                here = nodes.with_label(key, counts > 0)
                found = either(found, nodes.all() if here is None else ~here)
        return found

    def copy(self) -> DomainCounts:
        return DomainCounts(dict(self.by_key))


class AffinityNote:
    """The counts that the rules read: `toward` of pods that match all of the pod's own affinity terms, `away` of those
    that match one of its anti-affinity terms, `existing` of pods with an anti-affinity term that matches this pod."""

    __slots__ = ("away", "away_terms", "existing", "namespace_labels", "own", "toward", "toward_reaches")

    def __init__(
        self,
        *,
        toward_reaches: tuple[PodSelection, ...],
        away_terms: tuple[tuple[str, PodSelection], ...],
        namespace_labels: Mapping[str, str],
        own: bool,
        toward: DomainCounts,
        away: DomainCounts,
        existing: DomainCounts,
    ) -> None:
        self.toward_reaches = toward_reaches
        self.away_terms = away_terms
        self.namespace_labels = namespace_labels
        self.own = own
        self.toward = toward
        self.away = away
        self.existing = existing

    def copy(self) -> AffinityNote:
        return AffinityNote(
            toward_reaches=self.toward_reaches,
            away_terms=self.away_terms,
            namespace_labels=self.namespace_labels,
            own=self.own,
            toward=self.toward.copy(),
            away=self.away.copy(),
            existing=self.existing.copy(),
        )


class InterPodAffinity(CachedPlugin):
    name = "InterPodAffinity"
    _AFFINITY = Reason(name, "node(s) didn't match pod affinity rules", final=True)
    _ANTI_AFFINITY = Reason(name, "node(s) didn't match pod anti-affinity rules")
    _EXISTING = Reason(name, "node(s) didn't satisfy existing pods anti-affinity rules")

    def __init__(
        self, *, hard_pod_affinity_weight: int = 1, ignore_preferred_terms_of_existing_pods: bool = False
    ) -> None:
        self._hard_weight = hard_pod_affinity_weight
        self._ignores_preferences_of_others = ignore_preferred_terms_of_existing_pods
        self._anti_rows: frozenset[int] | None = None
        self._preference_rows: frozenset[int] | None = None

    def look_only_where(self, anti: frozenset[int] | None, preferences: frozenset[int] | None) -> None:
        """Restrict the rows whose pods count: `anti` for their required anti-affinity, `preferences` for their
        preferences when the incoming pod has none of its own. None is all rows."""
        self._anti_rows, self._preference_rows = anti, preferences

    def events(self) -> Sequence[Interest]:
        pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL
        return (
            Interest(ClusterEvent(POD, pods), after_pod_change),
            Interest(ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_LABEL), after_node_change),
        )

    def after_placing(self, pod: Pod) -> AfterPlacing:
        """A placed pod without affinity terms changes neither its own counts nor the registry of terms."""
        return AfterPlacing.UNKNOWN if pod.shape.has_pod_affinity else AfterPlacing.SAME

    def stands_aside(self, cycle: Cycle) -> bool:
        shape = cycle.pod.shape
        if shape.has_pod_affinity or shape.affinity_error:
            return False
        terms = affinity_index(cycle.cluster).terms
        return not terms.anti and (self._ignores_preferences_of_others or not terms.pulls)

    def looks_at_pods(self, cycle: Cycle) -> bool:
        """A pod without terms counts for the terms of others alone."""
        return cycle.pod.shape.has_pod_affinity

    # ---- filter ----

    def pre_filter(self, cycle: Cycle) -> Status | None:
        pod, shape = cycle.pod, cycle.pod.shape
        if shape.affinity_error:
            return unresolvable(f"parsing pod: {shape.affinity_error}")
        index = affinity_index(cycle.cluster)
        silent = not shape.pod_affinity and not shape.pod_anti_affinity
        if silent and not index.terms.anti:
            return SKIP
        namespace_labels = index.namespace_labels(pod.namespace)
        existing = _existing(index, pod, namespace_labels, cycle.cluster.table, self._anti_rows)
        if silent and not existing.any():
            return SKIP
        reaches = tuple(index.reach(term) for term in shape.pod_affinity)
        away_terms = tuple((term.topology_key, index.reach(term)) for term in shape.pod_anti_affinity)
        cycle.notes[self.name] = AffinityNote(
            toward_reaches=reaches,
            away_terms=away_terms,
            namespace_labels=namespace_labels,
            own=_covered(reaches, pod),
            toward=_toward(index, shape.pod_affinity, reaches, cycle.cluster.table),
            away=_away(index, away_terms, cycle.cluster.table),
            existing=existing,
        )
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        note: AffinityNote = cycle.notes[self.name]
        return _exclusive(
            (self._AFFINITY, _lonely(note, nodes)),
            (self._ANTI_AFFINITY, note.away.somewhere(nodes)),
            (self._EXISTING, note.existing.somewhere(nodes)),
        )

    def add_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        self._changed(cycle, pod, row, 1)

    def remove_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        self._changed(cycle, pod, row, -1)

    def _changed(self, cycle: Cycle, pod: Pod, row: int, amount: int) -> None:
        note: AffinityNote = cycle.notes[self.name]
        mine, table = cycle.pod, cycle.cluster.table
        for term in pod.shape.pod_anti_affinity:
            if term.matches(mine.namespace, mine.labels, note.namespace_labels):
                note.existing.change(table, term.topology_key, row, amount)
        if note.toward_reaches and _covered(note.toward_reaches, pod):
            for key in tuple(note.toward.by_key):
                note.toward.change(table, key, row, amount)
        for key, reach in note.away_terms:
            if reach.covers(pod.namespace, pod.labels):
                note.away.change(table, key, row, amount)

    # ---- score ----

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        shape = cycle.pod.shape
        preferences = bool(shape.preferred_pod_affinity or shape.preferred_pod_anti_affinity)
        if not preferences and self._ignores_preferences_of_others:
            return SKIP
        index = affinity_index(cycle.cluster)
        if not preferences and not index.terms.pulls:
            return SKIP
        among = None if preferences else self._preference_rows
        scores = AffinityScores(cycle.pod, index, cycle.cluster.table, self._hard_weight, among=among)
        if not scores.by_key:
            return SKIP
        cycle.notes[_SCORES] = scores
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        """Points of each row; a single 0 if all rows have the same points, which normalise to 0."""
        note: AffinityScores = cycle.notes[_SCORES]
        return 0 if note.level(nodes) else note.raw(nodes)

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        """Points scaled to 0..100 between the lowest and the highest, in the original's order of float operations."""
        lowest = raw.min()
        span = int(raw.max() - lowest)
        if span == 0:
            return np.zeros(len(raw), dtype=np.int64)
        share: NDArray[np.float64] = 100.0 * ((raw - lowest) / float(span))
        return share.astype(np.int64)


def _covered(reaches: tuple[PodSelection, ...], pod: Pod) -> bool:
    return all(reach.covers(pod.namespace, pod.labels) for reach in reaches)


def _existing(
    index: AffinityIndex,
    pod: Pod,
    namespace_labels: Mapping[str, str],
    table: NodeTable,
    among: frozenset[int] | None,
) -> DomainCounts:
    by_key: dict[str, NDArray[np.int64]] = {}
    for term in index.terms.anti.matching(pod.namespace, pod.labels, namespace_labels):
        if term.key not in by_key:
            by_key[term.key] = np.zeros(len(table.label(term.key).values) + 1, dtype=np.int64)
        term.add_to(by_key[term.key], 1, among)
    return DomainCounts(by_key)


def _toward(
    index: AffinityIndex, terms: Sequence[AffinityTerm], reaches: tuple[PodSelection, ...], table: NodeTable
) -> DomainCounts:
    """Pods that match all terms, in the domains of each term's key."""
    if not reaches:
        return DomainCounts({})
    tally = index.selected.count(*reaches, live=False)
    keys = {term.topology_key: len(table.label(term.topology_key).values) for term in terms}
    return DomainCounts({key: tally.domains(key)[: values + 1].astype(np.int64) for key, values in keys.items()})


def _away(index: AffinityIndex, terms: tuple[tuple[str, PodSelection], ...], table: NodeTable) -> DomainCounts:
    by_key: dict[str, NDArray[np.int64]] = {}
    for key, reach in terms:
        sums = index.selected.count(reach, live=False).domains(key)[: len(table.label(key).values) + 1]
        by_key[key] = by_key[key] + sums if key in by_key else sums.astype(np.int64)
    return DomainCounts(by_key)


def _lonely(note: AffinityNote, nodes: Nodes) -> NDArray[np.bool_] | None:
    """Rows that fail the pod's required affinity. A node must have all topology keys; the first pod of a group that
    matches its own terms may go to any such node."""
    if not note.toward_reaches:
        return None
    if not note.own or note.toward.any():
        return note.toward.not_everywhere(nodes)
    lonely: NDArray[np.bool_] | None = None
    for key in note.toward.by_key:
        lonely = either(lonely, nodes.without_label(key))
    return lonely


def _exclusive(*rules: tuple[Reason, NDArray[np.bool_] | None]) -> Iterator[Reject]:
    """Each row is refused by the first rule that refuses it."""
    refused: NDArray[np.bool_] | None = None
    for reason, rows in rules:
        if rows is None:
            continue
        yield Reject(reason, rows if refused is None else rows & ~refused)
        refused = rows if refused is None else refused | rows
