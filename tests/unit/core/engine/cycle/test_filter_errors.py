"""A filter that fails to judge a node (code Error) fails the attempt only where kube-scheduler would ask about the
node: not while the nominated node fits, and in a trial of preemption only for the node that is tried."""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import Any

import numpy as np

from fairlead.core.engine.cycle.attempt import Committed, Rescue, attempt
from fairlead.core.engine.cycle.outcome import Failure
from fairlead.core.engine.cycle.placement import Search
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.plugin import Plugin
from fairlead.core.framework.profile import Profile, profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Doc, Happened
from fairlead.core.model.reasons import Reason, Reject
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.kube.nodes.basics import PrioritySort
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from fairlead.kube.preemption.plugin import DefaultPreemption
from fairlead.kube.resources.plugin import NodeResourcesFit
from tests.support.documents import node, pod
from tests.support.preemption import NOW

FAILED = 'running "Unsure" filter plugin: cannot tell what odd attaches'


class Unsure(Plugin):
    """Cannot judge a node on which a pod named `odd` is."""

    name = "Unsure"
    raises = False

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        pods = cycle.cluster.table.pods
        rows = [any(other.name.startswith("odd") for other in pods[row]) for row in nodes.row_numbers().tolist()]
        if self.raises and any(rows):
            raise RuntimeError("cannot tell")
        yield Reject(Reason(self.name, "cannot tell what odd attaches", error=True), np.array(rows, dtype=np.bool_))


def profile(unsure: Plugin, **options: Any) -> Profile:
    plugins = [PrioritySort(), NodeAffinityPlugin(), NodeResourcesFit(), unsure, DefaultPreemption()]
    return profile_of("default-scheduler", plugins, **options)


def tried(doc: Doc, nodes: Iterable[Doc], pods: Iterable[Doc], of: Profile | None = None) -> Any:
    """What becomes of one attempt: the node, the error, or the nominated node with the victims."""
    of = of or profile(Unsure())
    cluster = Cluster()
    for kind, docs in ((kinds.NODE, nodes), (kinds.POD, pods)):
        for each in docs:
            cluster.apply(Change(Happened.ADDED, kind, each))
    applied = cluster.apply(Change(Happened.ADDED, kinds.POD, doc))
    assert applied is not None
    cycle = Cycle(pod=applied.new, cluster=cluster, profile=of, now=NOW, rng=Random(0), effects=Effects())
    outcome = attempt(cycle, Evaluator(of), Search())
    if isinstance(outcome, Committed):
        return cluster.table.name(outcome.placed.row)
    if isinstance(outcome, Rescue):
        return outcome.rescued.nominated, [victim.name for victim in outcome.rescued.victims]
    assert isinstance(outcome, Failure)
    return outcome.message


def nominated(name: str) -> Doc:
    return {**pod("new"), "status": {"nominatedNodeName": name}}


TWO = [node("a"), node("b")]


def test_an_error_on_one_node_fails_the_attempt_although_another_fits() -> None:
    assert tried(pod("new"), TWO, [pod("odd", on="a")]) == FAILED


def test_an_error_on_a_node_that_an_earlier_filter_refuses_does_not_count() -> None:
    assert tried(pod("new", cpu="4"), TWO, [pod("odd", on="a")]) == "b"


def test_an_error_elsewhere_does_not_count_while_the_nominated_node_fits() -> None:
    assert tried(nominated("b"), TWO, [pod("odd", on="a")]) == "b"


def test_an_error_on_the_nominated_node_counts_when_all_nodes_are_looked_at() -> None:
    assert tried(nominated("a"), TWO, [pod("odd", on="a")]) == FAILED


def test_an_error_on_a_node_that_prefilter_excludes_does_not_count() -> None:
    named = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["b"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [named]}}
    assert tried(pod("new", affinity={"nodeAffinity": required}), TWO, [pod("odd", on="a")]) == "b"


def test_an_error_on_a_node_beyond_the_sample_does_not_count() -> None:
    many = [node(f"n{number:03}") for number in range(200)]
    odd = [pod("odd", on="n150")]
    assert tried(pod("new"), many, odd, profile(Unsure(), percentage=10, deterministic_ties=True)) == "n000"
    assert tried(pod("new"), many, odd, profile(Unsure(), percentage=100, deterministic_ties=True)) == FAILED


def test_an_error_in_a_trial_is_about_the_node_that_was_tried() -> None:
    there = [
        pod("odd", cpu="1", on="a", priority=100), pod("low", cpu="3", on="a"), pod("small", cpu="4", on="b"),
    ]  # fmt: skip
    assert tried(pod("new", cpu="2", priority=10), TWO, there) == ("b", ["small"])


def test_errors_of_trials_are_reported_if_no_node_is_a_candidate() -> None:
    there = [pod("odd", cpu="1", on="a", priority=100), pod("low", cpu="3", on="a")]
    refused = "0/1 nodes are available: 1 Insufficient cpu."
    assert tried(pod("new", cpu="2", priority=10), [node("a")], there) == f"{refused} preemption: {FAILED}"
    both = [*there, pod("odder", cpu="1", on="b", priority=100), pod("lower", cpu="3", on="b")]
    refused = "0/2 nodes are available: 2 Insufficient cpu."
    assert tried(pod("new", cpu="2", priority=10), TWO, both) == f"{refused} preemption: {FAILED}"


def test_a_pod_whose_return_makes_a_filter_fail_is_a_victim() -> None:
    there = [pod("odd", cpu="1", on="a"), pod("plain", cpu="3", on="a")]
    assert tried(pod("new", cpu="3", priority=10), [node("a")], there) == ("a", ["plain", "odd"])


def test_a_filter_that_raises_in_a_trial_fails_that_trial_alone() -> None:
    class Raising(Unsure):
        def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
            self.raises = len(nodes) == 1
            return super().filter(cycle, nodes) if self.raises else ()

    there = [
        pod("odd", cpu="1", on="a", priority=100), pod("low", cpu="3", on="a"), pod("small", cpu="4", on="b"),
    ]  # fmt: skip
    of = profile(Raising())
    assert tried(pod("new", cpu="2", priority=10), TWO, there, of) == ("b", ["small"])
    message = tried(pod("new", cpu="2", priority=10), TWO, [*there[:2], pod("full", cpu="4", on="b", priority=10)], of)
    assert message.endswith("preemption: plugin Unsure failed at filter: RuntimeError: cannot tell")
