"""Choosing a node by kube-scheduler's rules, on a Scheduler with scripted plugins."""

from __future__ import annotations

import pytest

from fairlead.core.engine.cycle.choice import heap_preorder
from fairlead.core.framework.profile import profile_of
from fairlead.core.model.flow import Happened
from fairlead.core.model.reasons import SKIP, failed, unresolvable, unschedulable
from tests.support.documents import deleting, node, pod
from tests.support.scheduling import SchedulerScenario, ScriptedPlugin, default_plugins


def test_a_pod_that_is_being_deleted_is_skipped_with_a_warning() -> None:
    stage = SchedulerScenario()
    stage.tell(pod("a"))
    stage.tell(deleting(pod("a")), happened=Happened.MODIFIED)
    stage.tell(node("n0"))
    stage.run(after=20)
    notes = [event["note"] for event in stage.events("FailedScheduling")]
    assert "skip schedule deleting pod: default/a" in notes
    assert stage.binds() == {}


def test_without_nodes_a_pod_is_retried_as_after_an_error() -> None:
    stage = SchedulerScenario()
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == "no nodes available to schedule pods"
    assert stage.conditions("a")[0]["reason"] == "SchedulerError"
    assert stage.backlog.where("uid-a").queue == "backoff"


def test_a_single_feasible_node_is_not_scored() -> None:
    scores = ScriptedPlugin("Scores")
    scores.refused = {"n1": ("no", True)}
    stage = SchedulerScenario(scores, nodes=2)
    stage.tell(pod("a"))
    assert stage.binds() == {"a": "n0"}
    assert "Scores.score" not in scores.log


def test_a_final_refusal_in_prefilter_ends_the_search() -> None:
    first, second = ScriptedPlugin("First"), ScriptedPlugin("Second")
    first.prepared = unresolvable("not at all")
    stage = SchedulerScenario(first, second, nodes=2)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == "0/2 nodes are available: not at all."
    assert stage.backlog.where("uid-a").plugins == ("First",)
    assert "Second.pre_filter" not in second.log


def test_names_from_prefilter_narrow_the_nodes_and_speak_for_the_others() -> None:
    narrow = ScriptedPlugin("Narrow")
    narrow.prepared = frozenset({"n1"})
    narrow.refused = {"n1": ("not that one", False)}
    stage = SchedulerScenario(narrow, nodes=3)
    stage.tell(pod("a"))
    assert (
        stage.conditions("a")[0]["message"]
        == "0/3 nodes are available: 1 not that one, 2 node(s) didn't satisfy plugin(s) [Narrow]."
    )


def test_a_nominated_node_that_still_fits_ends_the_search_unscored() -> None:
    scores = ScriptedPlugin("Scores")
    scores.points = {"n0": 100}
    stage = SchedulerScenario(scores, nodes=3)
    stage.tell({**pod("a"), "status": {"phase": "Pending", "nominatedNodeName": "n2"}})
    assert stage.binds() == {"a": "n2"}
    assert "Scores.score" not in scores.log


def test_a_nominated_node_that_does_not_fit_any_more_is_passed_over() -> None:
    stage = SchedulerScenario(nodes=2)
    stage.tell(pod("there", cpu="4", on="n1"))
    stage.tell({**pod("a"), "status": {"phase": "Pending", "nominatedNodeName": "n1"}})
    assert stage.binds() == {"a": "n0"}


@pytest.mark.parametrize(
    ("nodes", "percentage", "wanted"), [(50, 10, 50), (200, 0, 100), (200, 80, 160), (400, 0, 188), (400, 10, 100)]
)
def test_as_many_feasible_nodes_as_the_percentage_says_are_looked_for(nodes: int, percentage: int, wanted: int) -> None:
    scores = ScriptedPlugin("Scores")
    profile = profile_of("default-scheduler", default_plugins(scores), percentage=percentage)
    stage = SchedulerScenario(profiles=[profile], nodes=nodes)
    stage.tell(pod("a"))
    explanation = stage.scheduler.explain("default", "a")
    assert explanation is not None
    assert explanation.feasible_nodes == wanted


def test_the_next_search_begins_where_the_last_one_ended() -> None:
    profile = profile_of(
        "default-scheduler", default_plugins(ScriptedPlugin("Scores")), percentage=50, deterministic_ties=True
    )
    stage = SchedulerScenario(profiles=[profile], nodes=200)
    stage.tell(pod("a"))
    stage.tell(pod("b"))
    order = stage.cluster.table.order()
    rows = [stage.cluster.table.row_of[name] for name in stage.binds().values()]
    positions = [order.tolist().index(row) for row in rows]
    assert positions[0] < 100 <= positions[1]


def test_room_promised_to_a_pod_of_equal_priority_is_not_taken() -> None:
    stage = SchedulerScenario()
    stage.tell(
        {
            **pod("nominated", cpu="3", priority=5, schedulingGates=[{"name": "wait"}]),
            "status": {"phase": "Pending", "nominatedNodeName": "n0"},
        }
    )
    promised = stage.cluster.pods["uid-nominated"].seen
    stage.backlog.nominator.nominate(promised, "n0")
    stage.tell(node("n0"))
    stage.tell(pod("equal", cpu="2", priority=5))
    stage.tell(pod("higher", cpu="2", priority=6))
    assert stage.binds() == {"higher": "n0"}


def test_weighted_scores_add_up() -> None:
    one, two = ScriptedPlugin("One"), ScriptedPlugin("Two")
    one.points = {"n0": 60, "n1": 50}
    two.points = {"n0": 0, "n1": 10}
    profile = profile_of("default-scheduler", default_plugins(one, two), weights={"Two": 2, "NodeResourcesFit": 1})
    stage = SchedulerScenario(profiles=[profile], nodes=2)
    stage.tell(pod("a"))
    explanation = stage.scheduler.explain("default", "a")
    assert explanation is not None
    assert explanation.chosen is not None
    assert explanation.runner_up is not None
    assert (explanation.chosen.node, explanation.chosen.scores["Two"]) == ("n1", 20)
    assert explanation.chosen.total - explanation.runner_up.total == 10


def test_a_score_out_of_range_fails_the_attempt() -> None:
    scores = ScriptedPlugin("Scores")
    scores.points = {"n0": 101}
    stage = SchedulerScenario(scores, nodes=2)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == (
        'plugin "Scores" returns an invalid score 101, it should in the range of [0, 100] after normalizing'
    )


def test_ties_fall_to_the_seeded_generator() -> None:
    def chosen(seed: int) -> list[str]:
        stage = SchedulerScenario(nodes=20, seed=seed)
        for number in range(10):
            stage.tell(pod(f"p{number}"))
        return list(stage.binds().values())

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)


def test_the_deterministic_order_of_equals_is_that_of_a_heap() -> None:
    assert heap_preorder(5).tolist() == [0, 1, 3, 4, 2]
    totals = [1, 3, 3, 2, 3]
    order = heap_preorder(5)
    assert max(order.tolist(), key=lambda position: totals[position]) == 1


def test_equal_pods_are_placed_from_one_ranking_and_only_changed_rows_are_judged_again() -> None:
    stage = SchedulerScenario(nodes=50)
    stage.tell(pod("first"))
    evaluator = stage.scheduler.pods.evaluators["default-scheduler"]
    before = evaluator.rows_judged
    for number in range(10):
        stage.tell(pod(f"p{number}"))
    assert evaluator.rows_judged - before <= 2 * 10


def test_a_plugin_that_raises_fails_its_own_attempt_only_and_is_named() -> None:
    bad = ScriptedPlugin("Bad")
    bad.prepared = ZeroDivisionError("oops")
    stage = SchedulerScenario(bad, nodes=1)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == "plugin Bad failed at pre_filter: ZeroDivisionError: oops"
    bad.prepared = None
    stage.tell(pod("b"))
    assert stage.binds() == {"b": "n0"}


def test_an_unschedulable_prefilter_lets_the_others_look_too() -> None:
    first, second = ScriptedPlugin("First"), ScriptedPlugin("Second")
    first.prepared, second.prepared = unschedulable("one"), unschedulable("two")
    stage = SchedulerScenario(first, second, nodes=1)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == "0/1 nodes are available: two."
    assert stage.backlog.where("uid-a").plugins == ("Second",)


def test_a_prefilter_error_fails_the_attempt_with_the_plugin_named() -> None:
    first = ScriptedPlugin("First")
    first.prepared = failed("no idea")
    stage = SchedulerScenario(first, nodes=1)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == 'running PreFilter plugin "First": no idea'
    assert stage.backlog.where("uid-a").queue == "backoff"


def test_disjoint_names_are_a_refusal_by_everybody_who_narrowed() -> None:
    first, second = ScriptedPlugin("B"), ScriptedPlugin("A")
    first.prepared, second.prepared = frozenset({"n0"}), frozenset({"n1"})
    stage = SchedulerScenario(first, second, nodes=2)
    stage.tell(pod("a"))
    assert (
        stage.conditions("a")[0]["message"]
        == "0/2 nodes are available: node(s) didn't satisfy plugin(s) [A B] simultaneously."
    )


def test_a_plugin_that_steps_aside_is_not_asked_to_filter() -> None:
    aside = ScriptedPlugin("Aside")
    aside.prepared = SKIP
    aside.refused = {"n0": ("no", True)}
    stage = SchedulerScenario(aside, nodes=1)
    stage.tell(pod("a"))
    assert stage.binds() == {"a": "n0"}
    assert "Aside.filter" not in aside.log


def test_only_the_first_refusing_plugin_of_a_node_counts() -> None:
    first, second = ScriptedPlugin("First"), ScriptedPlugin("Second")
    first.refused = {"n0": ("first says no", False)}
    second.refused = {"n0": ("second says no", True), "n1": ("second says no", True)}
    stage = SchedulerScenario(first, second, nodes=2)
    stage.tell(pod("a"))
    assert stage.conditions("a")[0]["message"] == "0/2 nodes are available: 1 first says no, 1 second says no."
    assert stage.backlog.where("uid-a").plugins == ("First", "Second")
