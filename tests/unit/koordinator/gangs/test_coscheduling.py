"""Coscheduling: pods of a gang are bound together or not at all."""

from __future__ import annotations

import json

import pytest

from fairlead.core.model.flow import Happened
from tests.support.documents import node
from tests.support.koordinator import (
    GANG,
    KoordScenario,
    koord_group,
    koord_pod,
)


def test_a_gang_that_fits_is_bound_together_with_its_number_written_on_each() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=3))
    for name in "abc":
        scenario.tell(koord_pod(name, gang="g"))
        scenario.settle()
        assert bool(scenario.placed()) == (name == "c")
    assert scenario.placed().keys() == {"a", "b", "c"}
    annotations = scenario.doc("pods", "a", "default")["metadata"]["annotations"]
    assert annotations["internal.scheduling.koordinator.sh/bind-gang-member-count"] == "3"


@pytest.mark.parametrize("first", ["pods", "group"])
def test_a_group_that_comes_again_under_the_same_name_has_not_started_yet(first: str) -> None:
    scenario = KoordScenario(nodes=1)
    group, pods = koord_group("g", least=2), [koord_pod(name, gang="g") for name in "ab"]
    scenario.tell(group, *pods)
    scenario.settle()
    assert scenario.placed().keys() == {"a", "b"}
    gone = [scenario.doc("pods", name, "default") for name in "ab"]
    for one in [group, *gone] if first == "group" else [*gone, group]:
        scenario.run(scenario.as_change(one, Happened.DELETED))
        scenario.settle()
    scenario.tell(koord_group("g", least=2), koord_pod("c", gang="g"))
    scenario.settle()
    assert scenario.placed() == {}


def test_of_a_gang_that_does_not_fit_nothing_is_bound_and_nothing_is_held() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=5), *(koord_pod(f"p{i}", gang="g") for i in range(5)))
    scenario.settle()
    assert scenario.placed() == {}
    assert int(scenario.cluster.table.pod_count[0]) == 0
    assert not scenario.scheduler.bindings
    said = [scenario.message(f"p{i}") for i in range(5)]
    assert sum("Insufficient cpu" in text for text in said) >= 1
    assert any("gets rejected due to member Pod" in text for text in said)
    scenario.tell(koord_pod("other", cpu="4"))
    scenario.settle()
    assert scenario.placed() == {"other": "n0"}


def test_a_gang_is_tried_again_when_there_is_room() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=5), *(koord_pod(f"p{i}", gang="g") for i in range(5)))
    scenario.settle()
    scenario.tell(node("n1"))
    scenario.run(after=20)
    scenario.settle()
    assert len(scenario.placed()) == 5


def test_gangs_that_find_half_of_their_room_do_not_wake_each_other() -> None:
    scenario = KoordScenario(nodes=2)
    scenario.tell(koord_pod("first", cpu="3"))
    scenario.settle()
    for name in ("a", "b", "c"):
        scenario.tell(koord_group(name, least=2), *(koord_pod(f"{name}{i}", gang=name, cpu="3") for i in range(2)))
    scenario.settle()
    before = scenario.backlog.cycle
    assert before <= 1 + 2 * (1 + 2 + 3), "only a new PodGroup is a reason to try those before it again"
    scenario.settle()
    scenario.run()
    assert scenario.backlog.cycle == before, "nothing has happened"
    scenario.gone(scenario.doc("pods", "first", "default"))
    scenario.settle()
    assert len(scenario.placed()) == 2
    assert scenario.backlog.cycle <= before + 2 * 3, "each gang was tried once"


def test_the_pod_group_may_come_last() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(*(koord_pod(f"p{i}", gang="g") for i in range(3)))
    scenario.settle()
    assert scenario.placed() == {}
    scenario.tell(koord_group("g", least=3))
    scenario.run(after=5)
    scenario.settle()
    assert len(scenario.placed()) == 3


def test_pods_beyond_the_minimum_follow_when_the_gang_has_started() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=2), *(koord_pod(f"p{i}", gang="g") for i in range(4)))
    scenario.settle()
    scenario.run(after=2)
    scenario.settle()
    assert len(scenario.placed()) == 4


def test_pods_beyond_the_minimum_stay_at_the_gate_as_in_the_original() -> None:
    scenario = KoordScenario(nodes=1, compatible=True)
    scenario.tell(koord_group("g", least=2), *(koord_pod(f"p{i}", gang="g") for i in range(4)))
    scenario.settle()
    scenario.run(after=2)
    scenario.settle()
    assert len(scenario.placed()) == 2


def test_gangs_of_a_group_start_together_or_not_at_all() -> None:
    together = {GANG + "groups": json.dumps(["default/g", "default/h"])}
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=2, annotations=together), koord_group("h", least=1, annotations=together))
    scenario.tell(koord_pod("a", gang="g"), koord_pod("b", gang="g"))
    scenario.settle()
    assert scenario.placed() == {}
    scenario.tell(koord_pod("c", gang="h"))
    scenario.settle()
    assert scenario.placed().keys() == {"a", "b", "c"}


def test_rejected_members_lose_their_nominations_unless_the_originals_way_is_kept() -> None:
    for compatible in (False, True):
        scenario = KoordScenario(nodes=1, compatible=compatible)
        scenario.tell(koord_group("g", least=5), *(koord_pod(f"p{i}", gang="g") for i in range(5)))
        scenario.settle()
        nominated = [
            name
            for (kind, _, name), doc in scenario.docs.items()
            if kind == "pods" and (doc.get("status") or {}).get("nominatedNodeName")
        ]
        assert bool(nominated) is compatible


def test_a_pod_group_goes_through_its_phases() -> None:
    scenario = KoordScenario(nodes=1)
    scenario.tell(koord_group("g", least=2))
    scenario.settle()
    phases = []

    def look() -> None:
        scenario.run(after=2)
        scenario.settle()
        phases.append(scenario.doc("podgroups", "g", "default")["status"]["phase"])

    look()
    scenario.tell(koord_pod("a", gang="g"), koord_pod("b", gang="g"))
    scenario.settle()
    look()
    for phase in ("Running", "Succeeded"):
        for name in "ab":
            shown = scenario.doc("pods", name, "default")
            scenario.tell({**shown, "status": {"phase": phase}}, happened=Happened.MODIFIED)
        look()
    assert phases == ["Pending", "Scheduled", "Running", "Finished"]
