"""Cached results are shared by pods that are alike, and dropped when they take too much memory."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.effects import Effects
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.plugin import Plugin, Scope
from fairlead.core.framework.profile import profile_of
from fairlead.core.framework.results import cache
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Reason, Reject, Verdict
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.core.state.statement import Statement
from fairlead.errors import FairleadError, PluginError
from fairlead.kube.nodes.taints import TaintToleration
from fairlead.kube.resources.plugin import NodeResourcesFit
from fairlead.kube.scoring import to_hundred
from fairlead.testing.builders import node, pod

NODES = 40


class Counting(CachedPlugin):
    """Refuses nothing, and counts the rows that it was asked about."""

    name = "Counting"
    scope = Scope.STATIC
    reads = frozenset({"spec"})

    def __init__(self) -> None:
        self.rows = 0

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        self.rows += len(nodes)
        return ()


class CountingByPriority(Counting):
    def cache_key(self, pod: Pod) -> Hashable:
        return pod.shape.priority


class Moody(CachedPlugin):
    """Its score changes on all rows at once."""

    name = "Moody"
    scope = Scope.ROW
    reads = frozenset({"spec"})
    mood = 1

    def epoch(self, cycle: Cycle) -> int | None:
        return self.mood

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        return np.full(len(nodes), self.mood, dtype=np.int64)


class Lavish(CachedPlugin):
    """Gives the odd rows as much as it may."""

    scope = Scope.STATIC
    reads = frozenset({"spec"})

    def __init__(self, name: str) -> None:
        self.name = name

    def cache_key(self, pod: Pod) -> Hashable:
        return ()

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        return np.where(nodes.row_numbers() % 2 == 1, 100, 0).astype(np.int64)


class Terse(Lavish):
    """Is asked every time, and answers in the narrowest numbers there are."""

    scope = Scope.CLUSTER

    def score(self, cycle: Cycle, nodes: Nodes) -> Any:
        return super().score(cycle, nodes).astype(np.int8)


class Fewest(CachedPlugin):
    """Likes nodes with few pods: the fullest gets nothing, an empty one a hundred."""

    name = "Fewest"
    scope = Scope.ROW
    reads = frozenset({"spec"})

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        return nodes.take(nodes.table.pod_count).copy()

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        return to_hundred(raw, reverse=True)


class NowAndThen(CachedPlugin):
    """Breaks if told to, and refuses the even rows if not."""

    name = "NowAndThen"
    scope = Scope.ROW
    reads = frozenset({"spec"})
    broken = False

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        if self.broken:
            raise RuntimeError("not now")
        return (Reject(Reason(self.name, "even"), nodes.row_numbers() % 2 == 0),)


class Exaggerating(CachedPlugin):
    """Gives row 1 more than anybody may, once a pod lies there or if told to; and refuses it if told to."""

    name = "Exaggerating"
    reads = frozenset({"spec"})

    def __init__(self, scope: Scope, *, always: bool = True, refuses: bool = False) -> None:
        self.scope = scope
        self._always, self._refuses = always, refuses

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        return (Reject(Reason(self.name, "no"), (nodes.row_numbers() == 1) & self._refuses),)

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        return Verdict(self.name, ("no",), final=False) if row == 1 and self._refuses else None

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        return np.array([self.score_row(cycle, row) for row in nodes.row_numbers().tolist()], dtype=np.int64)

    def score_row(self, cycle: Cycle, row: int) -> int:
        return 1000 if row == 1 and (self._always or cycle.cluster.table.pod_count[row]) else 7


class ExaggeratingToAll(Exaggerating):
    def cache_key(self, pod: Pod) -> Hashable:
        return ()


def document(name: str, doc: dict[str, Any]) -> dict[str, Any]:
    return {**doc, "metadata": {**doc["metadata"], "name": name, "uid": name}}


def world() -> Cluster:
    cluster = Cluster()
    for number in range(NODES):
        doc = document(f"n{number}", node("n").offers(cpu="8", memory="32Gi", pods="110").doc())
        cluster.apply(Change(Happened.ADDED, kinds.NODE, doc))
    return cluster


def looked_at(evaluator: Evaluator, cluster: Cluster, name: str, cpu: str, priority: int = 0) -> Cycle:
    doc = document(name, pod("p").asks(cpu=cpu).having(priority=priority).doc())
    return judged(evaluator, cluster, doc)


def judged(evaluator: Evaluator, cluster: Cluster, doc: dict[str, Any]) -> Cycle:
    """A cycle of a new pod in which all nodes were judged."""
    applied = cluster.apply(Change(Happened.ADDED, kinds.POD, doc))
    assert applied is not None
    cycle = Cycle(
        pod=applied.new, cluster=cluster, profile=evaluator.profile, now=0.0, rng=Random(0), effects=Effects()
    )
    evaluator.pre_filter(cycle)
    evaluator.judge(cycle)
    return cycle


def ranking(cycle: Cycle) -> list[int]:
    assert cycle.results is not None
    return cycle.results.ranked[:NODES].tolist()


def test_pods_that_differ_in_what_a_plugin_does_not_read_share_its_answers() -> None:
    counting = CountingByPriority()
    evaluator, cluster = Evaluator(profile_of("s", [counting, NodeResourcesFit()])), world()
    one, other, higher = (
        looked_at(evaluator, cluster, name, cpu, priority)
        for name, cpu, priority in (("a", "1", 0), ("b", "2", 0), ("c", "2", 5))
    )
    assert counting.rows == 2 * NODES
    assert ranking(one) != ranking(other) == ranking(higher)


class CountingByTier(Counting):
    reads = frozenset({"labels.tier"})


def test_pods_that_differ_in_labels_that_nobody_names_share_answers() -> None:
    counting = CountingByTier()
    evaluator, cluster = Evaluator(profile_of("s", [counting])), world()
    for name, labels in (("a", {"tier": "web"}), ("b", {"tier": "web", "run": "7"}), ("c", {"tier": "db"}), ("d", {})):
        judged(evaluator, cluster, document(name, pod("p").labelled(**labels).doc()))
    assert counting.rows == 3 * NODES


def test_a_plugin_without_a_cache_key_is_asked_for_every_shape() -> None:
    counting = Counting()
    evaluator, cluster = Evaluator(profile_of("s", [counting, TaintToleration()])), world()
    for name, cpu in (("a", "1"), ("b", "2"), ("c", "1")):
        looked_at(evaluator, cluster, name, cpu)
    assert counting.rows == 2 * NODES


def test_scores_in_narrow_numbers_add_up() -> None:
    evaluator, cluster = Evaluator(profile_of("s", [Terse("a"), Terse("b")], weights={"a": 3, "b": 1})), world()
    totals, _ = evaluator.score(looked_at(evaluator, cluster, "p", "1"), Nodes(cluster.table))
    assert totals.tolist() == [0, 400] * (NODES // 2)


def test_a_shape_that_returns_after_others_were_placed_sees_their_rows_only() -> None:
    evaluator, cluster = Evaluator(profile_of("s", [NodeResourcesFit()])), world()
    first = looked_at(evaluator, cluster, "a", "1")
    before = ranking(first)
    for number in range(5):
        other = looked_at(evaluator, cluster, f"b{number}", "2")
        Statement(cluster).assign(other.pod, number * 3)
    judged = evaluator.rows_judged
    after = ranking(looked_at(evaluator, cluster, "c", "1"))
    assert evaluator.rows_judged - judged == 5
    assert [row for row in range(NODES) if before[row] != after[row]] == [0, 3, 6, 9, 12]


def test_an_epoch_that_moves_voids_every_row() -> None:
    moody = Moody()
    evaluator, cluster = Evaluator(profile_of("s", [moody])), world()
    assert set(ranking(looked_at(evaluator, cluster, "a", "1"))) == {1}
    moody.mood = 7
    assert set(ranking(looked_at(evaluator, cluster, "b", "1"))) == {7}


class MoodyAboutFew(Moody):
    def epoch(self, cycle: Cycle) -> int | None:
        return self.mood if cycle.pod.shape.request["cpu"] > 1000 else None


def test_an_epoch_that_says_nothing_about_a_pod_voids_nothing_of_it() -> None:
    moody = MoodyAboutFew()
    evaluator, cluster = Evaluator(profile_of("s", [moody])), world()
    for cpu in ("1", "2"):
        assert set(ranking(looked_at(evaluator, cluster, f"a{cpu}", cpu))) == {1}
    moody.mood = 7
    assert set(ranking(looked_at(evaluator, cluster, "b1", "1"))) == {1}
    assert set(ranking(looked_at(evaluator, cluster, "b2", "2"))) == {7}


def test_scores_in_range_add_up_beyond_the_range_with_their_weights() -> None:
    lavish = [Lavish(f"Lavish{number}") for number in range(3)]
    profile = profile_of("s", lavish, weights={plugin.name: 5 for plugin in lavish})
    evaluator, cluster = Evaluator(profile), world()
    for name in ("a", "b"):
        assert ranking(looked_at(evaluator, cluster, name, "1")) == [1500 * (row % 2) for row in range(NODES)]


def test_a_score_of_ones_own_that_is_normalised_stays_out_of_the_ranking() -> None:
    evaluator, cluster = Evaluator(profile_of("s", [Fewest()], weights={"Fewest": 2})), world()
    level = looked_at(evaluator, cluster, "a", "1")
    assert level.results is not None
    assert (set(ranking(level)), level.results.scored["Fewest"].beyond_ranking) == ({0}, 200)
    for number, row in enumerate((1, 1, 4)):
        Statement(cluster).assign(looked_at(evaluator, cluster, f"b{number}", "2").pod, row)
    cycle = looked_at(evaluator, cluster, "c", "1")
    assert cycle.results is not None
    assert cycle.results.scored["Fewest"].beyond_ranking is None
    totals, contributions = evaluator.score(cycle, Nodes(cluster.table, np.array([0, 1, 4], dtype=np.int32)))
    assert totals.tolist() == [200, 0, 100] == [contributions[0].at(row, at) for at, row in enumerate((0, 1, 4))]


EXAGGERATING = [(kind, scope) for kind in (Exaggerating, ExaggeratingToAll) for scope in (Scope.STATIC, Scope.ROW)]
INVALID = 'plugin "Exaggerating" returns an invalid score 1000, it should in the range of [0, 100] after normalizing'


@pytest.mark.parametrize(("kind", "scope"), EXAGGERATING)
def test_a_remembered_score_out_of_range_is_named(kind: type[Exaggerating], scope: Scope) -> None:
    evaluator, cluster = Evaluator(profile_of("s", [kind(scope)])), world()
    for name in ("a", "b"):
        with pytest.raises(FairleadError, match=re.escape(INVALID)):
            looked_at(evaluator, cluster, name, "1")


@pytest.mark.parametrize("kind", [Exaggerating, ExaggeratingToAll])
def test_a_score_that_leaves_the_range_on_one_row_is_named(kind: type[Exaggerating]) -> None:
    evaluator, cluster = Evaluator(profile_of("s", [kind(Scope.ROW, always=False)])), world()
    first = looked_at(evaluator, cluster, "a", "1")
    assert set(ranking(first)) == {7}
    Statement(cluster).assign(first.pod, 1)
    with pytest.raises(FairleadError, match=re.escape(INVALID)):
        looked_at(evaluator, cluster, "b", "1")


@pytest.mark.parametrize(("kind", "scope"), EXAGGERATING)
def test_the_score_of_a_refused_row_does_not_matter(kind: type[Exaggerating], scope: Scope) -> None:
    evaluator, cluster = Evaluator(profile_of("s", [kind(scope, refuses=True)])), world()
    for name in ("a", "b"):
        cycle = looked_at(evaluator, cluster, name, "1")
        assert ranking(cycle) == [7, -1, *[7] * (NODES - 2)]
        Statement(cluster).assign(cycle.pod, 1)


def test_a_plugin_that_raised_is_asked_again_about_the_same_rows() -> None:
    sometimes = NowAndThen()
    evaluator, cluster = Evaluator(profile_of("s", [sometimes, NodeResourcesFit()])), world()
    sometimes.broken = True
    with pytest.raises(PluginError):
        looked_at(evaluator, cluster, "a", "1")
    sometimes.broken = False
    cycle = looked_at(evaluator, cluster, "b", "1")
    assert cycle.results is not None
    assert cycle.results.ok[:NODES].tolist() == [row % 2 == 1 for row in range(NODES)]
    assert cycle.results.feasible == NODES // 2


def test_what_was_not_asked_for_in_a_long_time_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "_MEMORY_BYTES", 0)
    counting = CountingByPriority()
    evaluator, cluster = Evaluator(profile_of("s", [counting])), world()
    for priority in range(20):
        looked_at(evaluator, cluster, f"p{priority}", "1", priority)
    asked = counting.rows
    looked_at(evaluator, cluster, "latest", "1", 19)
    assert counting.rows == asked
    looked_at(evaluator, cluster, "oldest", "1", 0)
    assert counting.rows == asked + NODES


class Forgetful(Plugin):
    """Written for an older version: what it says for the cache would not be heard."""

    name = "Forgetful"
    scope = Scope.ROW

    def epoch(self, cycle: Cycle) -> int:
        return 0

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        return ()


class Careless(CachedPlugin):
    name = "Careless"
    scope = Scope.ROW
    reads = frozenset({"spec", "label.tier"})

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        return ()


@pytest.mark.parametrize(
    ("plugin", "problem"),
    [
        (Forgetful(), "epoch belongs to CachedPlugin: derive Forgetful from fairlead.CachedPlugin"),
        (Careless(), 'plugin "Careless": reads: label.tier is no part of a pod'),
    ],
)
def test_a_member_that_the_cache_would_not_call_is_an_error_that_names_the_remedy(plugin: Plugin, problem: str) -> None:
    with pytest.raises(FairleadError, match=re.escape(problem)):
        Evaluator(profile_of("p", [plugin]))


class Plain(Plugin):
    """A scope and nothing else."""

    name = "Plain"
    scope = Scope.STATIC

    def __init__(self) -> None:
        self.rows = 0

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        self.rows += len(nodes)
        return ()


def test_a_plain_plugin_with_a_scope_is_cached_for_pods_that_differ_in_their_names_alone() -> None:
    plain = Plain()
    evaluator, cluster = Evaluator(profile_of("s", [plain])), world()
    for name, cpu in (("a", "1"), ("b", "1"), ("c", "2")):
        looked_at(evaluator, cluster, name, cpu)
    assert plain.rows == 2 * NODES


class Running(CachedPlugin):
    """Refuses nodes on which a pod runs."""

    name = "Running"
    scope = Scope.ROW
    reads = frozenset({"spec"})

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        phases = [{there.phase for there in nodes.table.pods[row]} for row in nodes.row_numbers().tolist()]
        return (Reject(Reason(self.name, "busy"), np.array(["Running" in here for here in phases])),)


def started(cluster: Cluster, name: str) -> Change:
    """A pod that is on the first node begins to run there."""
    doc = document(name, pod("p").asks(cpu="1").on("n0").doc())
    cluster.apply(Change(Happened.ADDED, kinds.POD, {**doc, "status": {"phase": "Pending"}}))
    return Change(Happened.MODIFIED, kinds.POD, {**doc, "status": {"phase": "Running"}})


def test_a_pod_that_starts_makes_nobody_judge_its_node_again_who_reads_no_pods() -> None:
    evaluator, cluster = Evaluator(profile_of("s", [NodeResourcesFit(), TaintToleration()])), world()
    running = started(cluster, "p")
    looked_at(evaluator, cluster, "a", "1")
    cluster.apply(running)
    judged = evaluator.rows_judged
    looked_at(evaluator, cluster, "b", "1")
    assert evaluator.rows_judged == judged


def test_a_plugin_that_reads_the_pods_on_a_node_is_asked_again_when_one_starts() -> None:
    evaluator, cluster = Evaluator(profile_of("s", [NodeResourcesFit(), Running()])), world()
    running = started(cluster, "p")
    assert ranking(looked_at(evaluator, cluster, "a", "1"))[0] >= 0
    cluster.apply(running)
    assert ranking(looked_at(evaluator, cluster, "b", "1"))[0] == -1
