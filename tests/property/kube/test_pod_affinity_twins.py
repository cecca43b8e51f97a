"""InterPodAffinity says node by node what a plain reading of its rules says, also while a trial moves pods."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.model import kinds
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import SKIP
from fairlead.core.model.terms import AffinityTerm
from fairlead.core.state.nodes import Nodes
from fairlead.kube.affinity.plugin import InterPodAffinity
from tests.support.plugins import PendingPod
from tests.support.random_clusters import pending_pods, trials, try_moves

AFFINITY = "node(s) didn't match pod affinity rules (final)"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"

NO_LABELS: Mapping[str, str] = {}


def merged(place: PendingPod, term: AffinityTerm) -> AffinityTerm:
    """A term of the pod to be placed, with the namespaces that its selector finds. The selector stays."""
    found = {
        name
        for name, record in place.cluster.object_index.of(kinds.NAMESPACE).items()
        if not term.namespace_selector.empty and term.namespace_selector.matches(record.labels)
    }
    return AffinityTerm(term.namespaces | found, term.namespace_selector, term.selector, term.topology_key)


def means(term: AffinityTerm, other: Pod, labels: Mapping[str, str] = NO_LABELS) -> bool:
    return term.matches(other.namespace, other.labels, labels)


class PlainFilter:
    """The three rules, one node at a time, over counts by (key, value)."""

    def __init__(self, place: PendingPod) -> None:
        self.pod, self.nodes = place.pod, place.nodes()
        self.namespace_labels = place.namespace_labels(self.pod.namespace)
        self.toward_terms = [merged(place, term) for term in self.pod.shape.pod_affinity]
        self.away_terms = [merged(place, term) for term in self.pod.shape.pod_anti_affinity]
        self.toward: Counter[tuple[str, str]] = Counter()
        self.away: Counter[tuple[str, str]] = Counter()
        self.existing: Counter[tuple[str, str]] = Counter()
        for row in self.nodes:
            for other in place.pods_on(row):
                self.moved(other, row, 1)

    def moved(self, other: Pod, row: int, amount: int) -> None:
        node = self.nodes[row]
        for term in other.shape.pod_anti_affinity:
            if means(term, self.pod, self.namespace_labels):
                self._count(self.existing, node, term, amount)
        if self.toward_terms and all(means(term, other) for term in self.toward_terms):
            for term in self.toward_terms:
                self._count(self.toward, node, term, amount)
        for term in self.away_terms:
            if means(term, other):
                self._count(self.away, node, term, amount)

    def _count(self, counts: Counter[tuple[str, str]], node: Node, term: AffinityTerm, amount: int) -> None:
        if term.topology_key in node.labels:
            pair = (term.topology_key, node.labels[term.topology_key])
            counts[pair] += amount
            if not counts[pair]:
                del counts[pair]

    def steps_aside(self) -> bool:
        return not self.existing and not self.toward_terms and not self.away_terms

    def refusal(self, node: Node) -> str:
        if not self._has_company(node):
            return AFFINITY
        for term in self.away_terms:
            value = node.labels.get(term.topology_key)
            if value is not None and self.away[term.topology_key, value] > 0:
                return ANTI_AFFINITY
        if any(self.existing[pair] > 0 for pair in node.labels.items()):
            return EXISTING
        return ""

    def _has_company(self, node: Node) -> bool:
        if any(term.topology_key not in node.labels for term in self.toward_terms):
            return False
        if all(self.toward[t.topology_key, node.labels[t.topology_key]] > 0 for t in self.toward_terms):
            return True
        return not self.toward and all(means(term, self.pod) for term in self.toward_terms)

    def refusals(self) -> dict[int, str]:
        return {row: self.refusal(node) for row, node in self.nodes.items()}


@given(pending_pods(), trials, st.data())
@settings(max_examples=80)
def test_required_terms_refuse_what_the_plain_rules_refuse(
    place: PendingPod, steps: list[tuple[bool, int, int]], data: st.DataObject
) -> None:
    plugin, plain = InterPodAffinity(), PlainFilter(place)
    cycle = place.cycle(plugin)
    status = plugin.pre_filter(cycle)
    assert (status is SKIP) == plain.steps_aside()
    if status is SKIP:
        return
    before = plain.refusals()
    assert place.refusals(plugin, cycle) == before

    try_moves(place, cycle.copy(), plain, steps, data)
    assert place.refusals(plugin, cycle) == before, "a trial leaves the attempt as it was"


def plain_scores(place: PendingPod, feasible: list[int], hard_weight: int, ignores: bool) -> dict[int, int] | None:
    """The rules for preferred terms: scores after normalisation, None if nothing is scored."""
    pod, nodes, shape = place.pod, place.nodes(), place.pod.shape
    own = [(weight, merged(place, term)) for weight, term in shape.preferred_pod_affinity]
    own += [(-weight, merged(place, term)) for weight, term in shape.preferred_pod_anti_affinity]
    if ignores and not own:
        return None
    labels = place.namespace_labels(pod.namespace)
    topology: dict[tuple[str, str], int] = {}
    for row, node in nodes.items():
        for other in place.pods_on(row):
            theirs = [(hard_weight, term) for term in other.shape.pod_affinity if hard_weight > 0]
            theirs += other.shape.preferred_pod_affinity
            theirs += [(-weight, term) for weight, term in other.shape.preferred_pod_anti_affinity]
            meant = [(weight, term) for weight, term in own if means(term, other)]
            meant += [(weight, term) for weight, term in theirs if means(term, pod, labels)]
            for weight, term in meant:
                if term.topology_key in node.labels:
                    pair = (term.topology_key, node.labels[term.topology_key])
                    topology[pair] = topology.get(pair, 0) + weight
    if not topology:
        return None
    raw = {row: sum(topology.get(pair, 0) for pair in nodes[row].labels.items()) for row in feasible}
    lowest, span = min(raw.values()), max(raw.values()) - min(raw.values())
    return {row: int(100.0 * (float(score - lowest) / float(span))) if span else 0 for row, score in raw.items()}


@given(pending_pods(), st.sampled_from([0, 1, 7]), st.booleans(), st.data())
@settings(max_examples=80)
def test_preferred_terms_score_as_the_plain_rules_do(
    place: PendingPod, hard_weight: int, ignores: bool, data: st.DataObject
) -> None:
    rows = sorted(place.nodes())
    if not rows:
        return
    feasible = data.draw(st.lists(st.sampled_from(rows), min_size=1, unique=True))
    plugin = InterPodAffinity(hard_pod_affinity_weight=hard_weight, ignore_preferred_terms_of_existing_pods=ignores)
    cycle = place.cycle(plugin)
    nodes = Nodes(place.cluster.table, np.array(feasible, dtype=np.int32))
    if plugin.pre_score(cycle, nodes) is SKIP:
        assert plain_scores(place, feasible, hard_weight, ignores) is None
        return
    raw = plugin.score(cycle, nodes)
    values = [raw] * len(feasible) if isinstance(raw, int) else plugin.normalize_score(cycle, nodes, raw).tolist()
    found = dict(zip(feasible, values, strict=True))
    assert found == plain_scores(place, feasible, hard_weight, ignores)
