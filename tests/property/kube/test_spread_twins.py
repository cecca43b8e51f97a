"""PodTopologySpread says node by node what a plain reading of its rules says, also while a trial moves pods."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from fairlead.core.model import kinds
from fairlead.core.model.node import Node
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import SKIP
from fairlead.core.model.requirements import EVERYTHING, LabelSelector
from fairlead.core.model.selectors import selector_from_map
from fairlead.core.model.taints import first_untolerated
from fairlead.core.model.terms import SpreadConstraint
from fairlead.core.state.nodes import Nodes
from fairlead.kube.spread.golog import ln
from fairlead.kube.spread.plugin import SYSTEM_DEFAULTS, PodTopologySpread
from tests.support.documents import HOST, ZONE
from tests.support.plugins import PendingPod
from tests.support.random_clusters import RACK, pending_pods, trials, try_moves

MISSING = "node(s) didn't match pod topology spread constraints (missing required label) (final)"
SKEWED = "node(s) didn't match pod topology spread constraints"


def _chosen(pod: Pod, node: Node) -> bool:
    """Whether a node meets a pod's node selector and required node affinity."""
    if any(node.labels.get(key) != value for key, value in pod.shape.node_selector or ()):
        return False
    affinity = pod.shape.required_node_affinity
    return affinity is None or affinity.matches(node.labels, node.name)


@dataclass
class Asked:
    """A constraint and the selector that it has for the pod."""

    constraint: SpreadConstraint
    selector: LabelSelector

    @property
    def key(self) -> str:
        return self.constraint.topology_key

    def admits(self, pod: Pod, node: Node) -> bool:
        if self.constraint.honor_affinity and not _chosen(pod, node):
            return False
        return not self.constraint.honor_taints or first_untolerated(node.taints, pod.shape.tolerations) is None

    def count(self, pod: Pod, others: list[Pod]) -> int:
        if self.selector.empty:
            return 0
        return sum(
            other.namespace == pod.namespace and not other.terminating and self.selector.matches(other.labels)
            for other in others
        )


def own(pod: Pod, *, hard: bool) -> list[Asked]:
    return [Asked(c, c.selector_for(pod.labels)) for c in pod.shape.spread if c.hard is hard]


def has_all(node: Node, asked: list[Asked]) -> bool:
    return all(a.key in node.labels for a in asked)


class PlainFilter:
    """The rules for hard constraints, one node at a time."""

    def __init__(self, place: PendingPod, asked: list[Asked]) -> None:
        self.pod, self.asked, self.nodes = place.pod, asked, place.nodes()
        self.found: list[dict[str, int]] = [{} for _ in asked]
        for row, node in self.nodes.items():
            for a, found in zip(asked, self.found, strict=True):
                if has_all(node, asked) and a.admits(self.pod, node):
                    value = node.labels[a.key]
                    found[value] = found.get(value, 0) + a.count(self.pod, place.pods_on(row))

    def moved(self, other: Pod, row: int, amount: int) -> None:
        node = self.nodes[row]
        if other.namespace != self.pod.namespace or not has_all(node, self.asked):
            return
        for a, found in zip(self.asked, self.found, strict=True):
            if a.admits(self.pod, node) and a.selector.matches(other.labels):
                found[node.labels[a.key]] += amount

    def refusal(self, node: Node) -> str:
        for a, found in zip(self.asked, self.found, strict=True):
            if a.key not in node.labels:
                return MISSING
            fewest = 0 if len(found) < a.constraint.min_domains else min(found.values())
            itself = a.selector.matches(self.pod.labels)
            if found.get(node.labels[a.key], 0) + itself - fewest > a.constraint.max_skew:
                return SKEWED
        return ""

    def refusals(self) -> dict[int, str]:
        return {row: self.refusal(node) for row, node in self.nodes.items()}


@given(pending_pods(constraints=1), trials, st.data())
@settings(max_examples=80)
def test_hard_constraints_refuse_what_the_plain_rules_refuse(
    place: PendingPod, steps: list[tuple[bool, int, int]], data: st.DataObject
) -> None:
    plugin, plain = PodTopologySpread(), PlainFilter(place, own(place.pod, hard=True))
    cycle = place.cycle(plugin)
    status = plugin.pre_filter(cycle)
    assert (status is SKIP) == (not plain.asked)
    if status is SKIP:
        return
    before = plain.refusals()
    assert place.refusals(plugin, cycle) == before

    try_moves(place, cycle.copy(), plain, steps, data)
    assert place.refusals(plugin, cycle) == before, "a trial leaves the attempt as it was"


def plain_scores(place: PendingPod, feasible: list[int], asked: list[Asked], *, every_key: bool) -> dict[int, int]:
    """The rules for soft constraints: scores after normalisation."""
    pod, nodes = place.pod, place.nodes()
    ignored = {row for row in feasible if every_key and not has_all(nodes[row], asked)}
    counted = [row for row in feasible if row not in ignored]
    totals: list[dict[str, int]] = []
    weights: list[float] = []
    for a in asked:
        registered = {nodes[row].labels.get(a.key, "") for row in counted} if a.key != HOST else set()
        weights.append(ln(float((len(counted) if a.key == HOST else len(registered)) + 2)))
        total = dict.fromkeys(registered, 0)
        for row, node in nodes.items():
            value = node.labels.get(a.key, "")
            if value in total and a.admits(pod, node) and (not every_key or has_all(node, asked)):
                total[value] += a.count(pod, place.pods_on(row))
        totals.append(total)

    def raw(row: int) -> int:
        score = 0.0
        for a, weight, total in zip(asked, weights, totals, strict=True):
            if a.key in nodes[row].labels:
                found = a.count(pod, place.pods_on(row)) if a.key == HOST else total[nodes[row].labels[a.key]]
                score += found * weight + (a.constraint.max_skew - 1)
        return math.floor(score) + (score - math.floor(score) >= 0.5)

    scores = {row: raw(row) for row in counted}
    highest, lowest = max(scores.values(), default=0), min(scores.values(), default=0)
    normalised = {row: 100 if not highest else 100 * (highest + lowest - s) // highest for row, s in scores.items()}
    return normalised | dict.fromkeys(ignored, 0)


def scores(place: PendingPod, plugin: PodTopologySpread, feasible: list[int]) -> dict[int, int] | None:
    cycle = place.cycle(plugin)
    nodes = Nodes(place.cluster.table, np.array(feasible, dtype=np.int32))
    if plugin.pre_score(cycle, nodes) is SKIP:
        return None
    values = plugin.normalize_score(cycle, nodes, plugin.score(cycle, nodes))
    return dict(zip(feasible, values.tolist(), strict=True))


def some_rows(place: PendingPod, data: st.DataObject) -> list[int]:
    rows = sorted(place.nodes())
    return data.draw(st.lists(st.sampled_from(rows), min_size=1, unique=True)) if rows else []


@given(pending_pods(constraints=1), st.data())
@settings(max_examples=80)
def test_soft_constraints_score_as_the_plain_rules_do(place: PendingPod, data: st.DataObject) -> None:
    feasible, asked = some_rows(place, data), own(place.pod, hard=False)
    found = scores(place, PodTopologySpread(defaulting="List"), feasible) if feasible else None
    assert found == (plain_scores(place, feasible, asked, every_key=True) if asked and feasible else None)


DEFAULTS = (
    SpreadConstraint(max_skew=1, topology_key=ZONE, hard=True, selector=EVERYTHING),
    SpreadConstraint(max_skew=2, topology_key=RACK, hard=False, selector=EVERYTHING),
)


@given(pending_pods(services=True), st.booleans(), st.data())
@settings(max_examples=80)
def test_default_constraints_hold_for_pods_that_a_service_selects(
    place: PendingPod, system: bool, data: st.DataObject
) -> None:
    selector = plain_selector(place)
    wanted = () if selector.empty else SYSTEM_DEFAULTS if system else DEFAULTS
    asked = [Asked(constraint, selector) for constraint in wanted]
    plugin = PodTopologySpread() if system else PodTopologySpread(default_constraints=DEFAULTS, defaulting="List")
    hard = [a for a in asked if a.constraint.hard]
    cycle = place.cycle(plugin)
    if plugin.pre_filter(cycle) is SKIP:
        assert not hard
    else:
        assert place.refusals(plugin, cycle) == PlainFilter(place, hard).refusals()
    soft, feasible = [a for a in asked if not a.constraint.hard], some_rows(place, data)
    if feasible:
        expected = plain_scores(place, feasible, soft, every_key=not system) if soft else None
        assert scores(place, plugin, feasible) == expected


def plain_selector(place: PendingPod) -> LabelSelector:
    merged: dict[str, str] = {}
    for service in place.cluster.object_index.of(kinds.SERVICE).values():
        chosen = dict(service.labels or ())
        if service.namespace == place.pod.namespace and chosen.items() <= place.pod.labels.items():
            merged |= chosen
    return selector_from_map(merged)
