"""Explanations of evictions: whether they help, whom they concerned and by which rule, in both scheduling modes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from rich.console import Console

from fairlead.cli.explain.commands import show_group, show_pod
from fairlead.core.framework.profile import profile_of
from fairlead.testing.builders import node, nodes, pod, priority_class, queue
from fairlead.testing.harness import Harness
from tests.support.documents import pod as pod_document
from tests.support.scheduling import SchedulerScenario, ScriptedPlugin, default_plugins
from tests.support.volcano import VolcanoHarness, conf

EVICTING = conf(
    "enqueue, allocate, preempt, reclaim, backfill",
    "priority; gang; conformance",
    "drf; predicates; proportion; nodeorder",
)


def shown(document: dict[str, Any]) -> str:
    console = Console(width=120, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    with console.file:
        show_pod(console, document, 5) if "pod" in document else show_group(console, document)
        return console.export_text()


def of_pod(harness: Harness, name: str) -> dict[str, Any]:
    explanation = harness.explain(name)
    assert explanation is not None
    return explanation.to_document()


def of_group(harness: VolcanoHarness, name: str) -> dict[str, Any]:
    explanation = harness.scheduler.explain_group("default", name)
    assert explanation is not None
    return explanation.to_document()


def rules(document: dict[str, Any]) -> dict[str, str]:
    return {one["name"].removeprefix("default/"): one["rule"] for one in document["considered"]}


# ---- with a kube profile ----


def full_cluster() -> Harness:
    harness = Harness(nodes=[node("n").offers(cpu="4")])
    harness.apply(priority_class("high", 100))
    harness.apply(pod("runs").asks(cpu="3").ending_after("5s"))
    harness.run(2)
    return harness


def test_eviction_does_not_help_where_no_victims_were_found() -> None:
    harness = full_cluster()
    harness.apply(pod("equal").asks(cpu="3"))
    harness.run(2)
    document = of_pod(harness, "equal")
    assert "No preemption victims found" in document["message"]
    assert [blocker["eviction"] for blocker in document["blockers"]] == ["does not help"]
    assert "may help" not in shown(document)


def test_eviction_is_not_tried_for_a_pod_that_must_not_preempt() -> None:
    harness = full_cluster()
    harness.apply(priority_class("meek", 100).never_preempting(), pod("meek").asks(cpu="3").of_priority("meek"))
    harness.run(2)
    assert [blocker["eviction"] for blocker in of_pod(harness, "meek")["blockers"]] == ["not tried"]


def test_the_victims_are_named_while_they_leave_and_after_the_pod_was_placed() -> None:
    harness = full_cluster()
    harness.apply(pod("important").asks(cpu="3").of_priority("high"))
    harness.run(2)
    preempting = of_pod(harness, "important")
    assert (preempting["nominatedNode"], rules(preempting)) == ("n", {"runs": "evicted"})
    assert [blocker["eviction"] for blocker in preempting["blockers"]] == ["makes room"]
    harness.run(30)
    placed = of_pod(harness, "important")
    assert (placed["verdict"], rules(placed)) == ("Scheduled", {"runs": "evicted"})
    assert "default/runs" in shown(placed)


def test_amounts_say_what_is_asked_for_what_the_largest_node_has_and_what_is_free() -> None:
    offers = [{"nvidia.com/gpu": "8", "cpu": "4"}, {"nvidia.com/gpu": "4", "cpu": "64"}]
    harness = Harness(nodes=[node(f"n{at}").offers(amounts) for at, amounts in enumerate(offers)])
    harness.apply(pod("uses").asks({"nvidia.com/gpu": "3"}).selects({"kubernetes.io/hostname": "n0"}))
    harness.run(2)
    harness.apply(pod("big").asks({"nvidia.com/gpu": "16", "cpu": "1"}))
    harness.run(2)
    document = of_pod(harness, "big")
    assert document["shortages"] == [{"resource": "nvidia.com/gpu", "asks": "16", "largest": "8", "mostFree": "5"}]
    assert "asks 16 nvidia.com/gpu, the largest node has 8, most free 5" in shown(document)


class ScoringExtender:
    """Gives the last node most."""

    name, ignorable, filters, prioritizes, preempts, binds = "http://e/v1", False, False, True, False, False
    outside = None

    def interested(self, pod: Any) -> bool:
        return True

    def filter(self, cycle: Any, rows: Any) -> Any:
        raise AssertionError("it has no such verb")

    preempt = bind = filter

    def prioritize(self, cycle: Any, rows: Any) -> Any:
        return rows.astype("int64") * 300


def test_the_scores_of_extenders_are_part_of_the_sum() -> None:
    plugins = default_plugins(ScriptedPlugin("Scores"))
    profile = replace(profile_of("default-scheduler", plugins), extenders=(ScoringExtender(),))
    stage = SchedulerScenario(nodes=3, profiles=[profile])
    stage.tell(pod_document("a"))
    explanation = stage.scheduler.explain("default", "a")
    assert explanation is not None
    assert explanation.chosen is not None
    assert explanation.runner_up is not None
    assert explanation.chosen.scores["extender http://e/v1"] == 600
    for scored in (explanation.chosen, explanation.runner_up):
        assert sum(scored.scores.values()) == scored.total


def test_the_time_that_a_pod_waited_is_reported_with_fractions_of_a_second() -> None:
    harness = full_cluster()
    harness.apply(pod("important").asks(cpu="3").of_priority("high"))
    harness.run(30)
    waited = of_pod(harness, "important")["waitedSeconds"]
    assert 5 <= waited < 30
    assert f"in {waited:.3f} s" in shown(of_pod(harness, "important"))


# ---- with the Volcano profile ----


def test_a_group_counts_the_places_that_it_found_as_fitting() -> None:
    harness = VolcanoHarness(EVICTING, nodes(1))
    harness.gang("two", 2, asks={"cpu": "3"})
    harness.run(3)
    document = of_group(harness, "two")
    assert (document["summary"], document["where"]) == ("1 of 2 members fit, 2 are needed", {"n0": 1})


def test_each_candidate_for_eviction_is_named_with_the_rule_that_protects_it() -> None:
    harness = VolcanoHarness(EVICTING, nodes(2), queues=[queue("shy").having(reclaimable=False)])
    harness.apply(priority_class("high", 100), priority_class("low", 1))
    low: dict[str, Any] = {"priority_class": "low", "pod_class": "low"}
    harness.gang("pair", 1, members=2, asks={"cpu": "2"}, **low)
    harness.gang("shy", 1, queue="shy", asks={"cpu": "2"}, **low)
    harness.gang("tight", 1, asks={"cpu": "2"}, **low)
    harness.run(3)
    harness.gang("waits", 1, asks={"cpu": "4"}, priority_class="high", pod_class="high")
    harness.run(3)
    told = rules(of_group(harness, "waits"))
    assert sorted(told[f"pair-w-{at}"] for at in range(2)) == [
        "may go: allowed by priority, gang, conformance",
        "protected by gang: its job would have fewer pods than its minimum",
    ]
    assert told["shy-w-0"] == "its queue shy is not reclaimable"
    assert rules(of_pod(harness, "waits-w-0")) == told


def test_the_victims_of_a_group_are_named_while_they_leave_and_after_it_started() -> None:
    harness = VolcanoHarness(EVICTING, nodes(1))
    harness.apply(priority_class("high", 100), priority_class("low", 1))
    harness.gang("low", 1, members=2, asks={"cpu": "2"}, priority_class="low", pod_class="low")
    harness.run(3)
    harness.gang("high", 1, asks={"cpu": "2"}, priority_class="high", pod_class="high")
    harness.run(1.5)
    (evicted,) = [name for name, rule in rules(of_group(harness, "high")).items() if rule.startswith("evicted")]
    harness.run(60)
    started = of_group(harness, "high")
    assert started["verdict"] == "Scheduled"
    assert rules(started)[evicted] == "evicted by preempt: allowed by priority, gang, conformance"
    noted = next(iter(harness.scheduler.ledger.of()))
    assert (noted.beneficiary, noted.rule) == ("default/high", rules(started)[evicted])


def test_without_an_action_that_evicts_nobody_is_listed() -> None:
    harness = VolcanoHarness(conf("enqueue, allocate", "priority; gang", "predicates; proportion"), nodes(1))
    harness.gang("first", 1, asks={"cpu": "3"})
    harness.run(3)
    harness.gang("second", 1, asks={"cpu": "3"})
    harness.run(3)
    assert "considered" not in of_group(harness, "second")
