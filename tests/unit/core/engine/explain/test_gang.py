"""What is said of a gang: how many of how many fit and where, which rack comes closest, whom it might have evicted."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from fairlead.console.gang_text import show
from fairlead.core.model.flow import Doc, Happened
from tests.support.documents import RACK, group, hyper_node, member, members, node, pod, racks
from tests.support.scheduling import SchedulerScenario, gang_scenario


def _explained(stage: SchedulerScenario, name: str = "g") -> Any:
    return stage.scheduler.explain_group("default", name)


def _shown(stage: SchedulerScenario) -> str:
    console = Console(file=StringIO(), width=200)
    show(console, _explained(stage).to_document())
    return console.file.getvalue()  # type: ignore[attr-defined,no-any-return]


def _rules(stage: SchedulerScenario) -> dict[str, str]:
    return {spared.name: spared.rule for spared in _explained(stage).considered}


def test_a_gang_that_waits_for_members_says_how_many_are_known() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 4), *members("g", 2))
    assert _explained(stage).summary == "2 members are known, 4 needed"
    assert _explained(stage).message == "waiting for minCount pods from a gang to appear in scheduling queue"


def test_a_gang_without_its_group_says_so() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(*members("g", 1))
    assert _explained(stage).summary == "1 member is known; how many are needed is not"
    assert _explained(stage).to_document()["members"]["needed"] is None


def test_how_many_of_how_many_fit_and_where() -> None:
    stage = gang_scenario(nodes=2)
    stage.tell(group("g", 5), *members("g", 5, cpu="2"))
    explanation = _explained(stage)
    assert explanation.summary == "4 of 5 members fit, 5 are needed"
    assert explanation.where == {"n0": 2, "n1": 2}
    assert "found places on n" in _shown(stage)


def test_members_that_run_already_count() -> None:
    stage = gang_scenario(nodes=1)
    docs = members("g", 4, cpu="2")
    docs[0]["spec"]["nodeName"] = "n0"
    stage.tell(group("g", 4), *docs)
    assert _explained(stage).summary == "2 of 4 members fit, 4 are needed"


def test_the_rack_that_comes_closest_is_named() -> None:
    stage = gang_scenario()
    stage.tell(
        *racks(3, 1), pod("p0", cpu="2", on="r0n0"), pod("p1", cpu="1", on="r1n0"), pod("p2", cpu="3", on="r2n0")
    )
    stage.tell(group("g", 4, key=RACK), *members("g", 4))
    assert _explained(stage).summary == f"needs 4 in one rack ({RACK}); best rack r1 has room for 3"
    shown = [" ".join(line.replace("│", " ").split()) for line in _shown(stage).splitlines()]
    assert {"2 r0", "3 r1", "at most 1 r2"} <= set(shown)


def test_who_was_not_evicted_and_by_which_rule() -> None:
    stage = gang_scenario(nodes=2)
    stage.tell(pod("low", cpu="4", on="n0"), pod("equal", cpu="4", priority=5, on="n1"))
    stage.tell(group("g", 2, priority=5), *members("g", 2, cpu="4", priority=5))
    assert _rules(stage) == {
        "default/low": "its eviction would not make enough room",
        "default/equal": "its priority is not lower than 5",
    }
    assert "Evictions" in _shown(stage)


def test_who_was_evicted_is_still_said_when_the_gang_runs() -> None:
    stage = gang_scenario(nodes=2)
    victims = [pod("low-0", cpu="4", on="n0"), pod("low-1", cpu="1", on="n1")]
    docs = members("g", 2, cpu="3", priority=5)
    stage.tell(*victims, group("g", 2, priority=5), *docs)
    assert _explained(stage).verdict == "Preempting"
    rules = {"default/low-0": "evicted", "default/low-1": "the gang fits without its eviction"}
    assert _rules(stage) == rules
    stage.gone(victims[0])
    stage.run(after=20.0)
    assert _explained(stage).verdict == "Scheduled"
    assert _rules(stage) == rules


def test_a_whole_gang_is_not_gated_because_one_more_member_is() -> None:
    stage = gang_scenario(nodes=2)
    docs: list[Doc] = members("g", 2)
    stage.tell(group("g", 2), *docs)
    for doc in docs:
        target = stage.binds()[doc["metadata"]["name"]]
        stage.tell({**doc, "spec": {**doc["spec"], "nodeName": target}}, happened=Happened.MODIFIED)
    stage.tell(member("late", "g", schedulingGates=[{"name": "later"}]))
    assert _explained(stage).verdict == "Scheduled"
    assert _explained(stage).summary == "2 of 3 members have places, 2 are needed"


def test_levels_are_shown_where_they_differ() -> None:
    stage = gang_scenario()
    stage.tell(*(node(f"n{i}") for i in range(2)), hyper_node("s0", 1, nodes="^n0$"), hyper_node("b0", 2, of=("s0",)))
    near = group("g", 5)
    near["metadata"]["annotations"] = {"volcano.sh/network-topology-highest-tier": "2"}
    stage.tell(near, *members("g", 5))
    topology = _explained(stage).to_document()["topology"]
    assert {domain.get("level", topology["level"]) for domain in topology["domains"]} == {
        "HyperNode of tier 1",
        "HyperNode of tier 2",
    }
    assert _explained(stage).summary.startswith("needs 5 in one HyperNode of tier ")
