"""Preemption by reservations (Reservation's enablePreemption): who is evicted for whom, and who never."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.documents import node
from tests.support.koordinator import (
    SCHEDULING,
    KoordScenario,
    elastic_quota,
    koord_pod,
    koord_reservation,
)


def preempting(*, enabled: bool = True, compatible: bool = False) -> KoordScenario:
    scenario = KoordScenario({"Reservation": {"enablePreemption": enabled}}, compatible=compatible)
    scenario.tell(node("n0", cpu=4))
    return scenario


def reserved(name: str, cpu: int, **spec: Any) -> Any:
    return koord_reservation(name, request={"cpu": str(cpu)}, owners={"app": "web"}, **spec)


def status(scenario: KoordScenario, name: str = "r") -> Any:
    return scenario.doc("reservations", name).get("status") or {}


def said(scenario: KoordScenario) -> str:
    return str(status(scenario)["conditions"][-1]["message"])


def test_a_reservation_evicts_as_few_pods_as_help_and_is_available_then() -> None:
    scenario = preempting()
    for name, priority in (("a", 1), ("b", 3), ("c", 2)):
        scenario.tell(koord_pod(name, cpu="1", priority=priority, nodeName="n0"))
    scenario.tell(reserved("r", 2))
    scenario.play_out()
    assert scenario.pods_left() == {"b", "c"}
    assert (status(scenario)["phase"], status(scenario)["nodeName"]) == ("Available", "n0")
    assert not scenario.backlog.complaints


@pytest.mark.parametrize("compatible", [False, True])
def test_without_the_argument_a_reservation_evicts_nobody(compatible: bool) -> None:
    scenario = preempting(enabled=False, compatible=compatible)
    scenario.tell(koord_pod("low", cpu="3", nodeName="n0"), reserved("r", 2))
    scenario.play_out()
    assert scenario.pods_left() == {"low"}
    assert said(scenario) == '0/1 nodes are available: 1 Insufficient cpu. preemption: pod "uid-r" not found'


def test_the_room_is_kept_for_the_reservation_while_its_victims_leave() -> None:
    scenario = preempting()
    scenario.tell(koord_pod("low", cpu="3", nodeName="n0"), reserved("r", 3))
    scenario.tell(koord_pod("late", cpu="2", priority=10))
    scenario.play_out()
    assert status(scenario)["phase"] == "Available"
    assert "late" not in scenario.placed()


def test_pods_that_are_marked_and_reservations_are_not_evicted() -> None:
    scenario = preempting()
    scenario.tell(koord_pod("kept", cpu="2", nodeName="n0", labels={SCHEDULING + "disable-preemptible": "true"}))
    low = reserved("low", 1)
    low["spec"]["template"]["spec"]["priority"] = 1
    scenario.tell(low)
    scenario.settle()
    assert status(scenario, "low")["phase"] == "Available"
    scenario.tell(reserved("r", 3))
    scenario.play_out()
    assert scenario.pods_left() == {"kept"}
    assert status(scenario, "low")["phase"] == "Available"
    assert said(scenario) == '0/1 nodes are available: 1 Insufficient cpu. preemption: pod "uid-r" not found'


def test_a_reservation_evicts_only_pods_of_lower_priority_than_its_own() -> None:
    scenario = preempting()
    scenario.tell(koord_pod("high", cpu="3", priority=100, nodeName="n0"))
    reservation = reserved("r", 2)
    reservation["spec"]["template"]["spec"]["priority"] = 100
    scenario.tell(reservation)
    scenario.play_out()
    assert scenario.pods_left() == {"high"}


def test_a_reservation_that_never_preempts_evicts_nobody() -> None:
    scenario = preempting()
    scenario.tell(koord_pod("low", cpu="3", nodeName="n0"))
    reservation = reserved("r", 2)
    reservation["spec"]["template"]["spec"]["preemptionPolicy"] = "Never"
    scenario.tell(reservation)
    scenario.play_out()
    assert scenario.pods_left() == {"low"}


def test_pods_preempt_too_and_spare_those_that_are_marked_if_others_do() -> None:
    scenario = preempting()
    scenario.tell(koord_pod("kept", cpu="2", nodeName="n0", labels={SCHEDULING + "disable-preemptible": "true"}))
    scenario.tell(koord_pod("low", cpu="2", priority=5, nodeName="n0"))
    scenario.tell(koord_pod("high", cpu="2", priority=100))
    scenario.play_out()
    assert scenario.pods_left() == {"kept", "high"}
    assert scenario.placed()["high"] == "n0"


@pytest.mark.parametrize("compatible", [False, True])
def test_only_the_original_evicts_pods_of_other_quotas_for_a_pod_that_its_quota_refuses(compatible: bool) -> None:
    scenario = preempting(compatible=compatible)
    scenario.tell(elastic_quota("team", least={"cpu": "1"}, most={"cpu": "1"}))
    scenario.tell(elastic_quota("other", least={"cpu": "1"}, most={"cpu": "4"}))
    scenario.tell(koord_pod("low", cpu="4", quota="other", nodeName="n0"))
    scenario.tell(koord_pod("high", cpu="2", priority=100, quota="team"))
    scenario.play_out()
    assert ("low" in scenario.pods_left()) is not compatible
    assert "high" not in scenario.placed()
