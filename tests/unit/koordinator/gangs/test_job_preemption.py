"""Preemption by gangs (Coscheduling's enablePreemption): room for all members at once, with as few victims as help."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from fairlead.core.framework.plugin import PostFilterResult
from fairlead.core.model.reasons import unschedulable
from fairlead.kube.preemption.plugin import DefaultPreemption
from tests.support.documents import node
from tests.support.koordinator import SCHEDULING, KoordScenario, koord_group, koord_pod

JOB = SCHEDULING + "questioned-object-key"


@pytest.fixture(autouse=True)
def _only_jobs_preempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """DefaultPreemption follows in the profile and knows nothing of gangs; here it never finds anything."""
    monkeypatch.setattr(
        DefaultPreemption, "post_filter", lambda self, cycle, refusals: PostFilterResult(unschedulable())
    )


def preempting(*nodes: int, compatible: bool = False) -> KoordScenario:
    scenario = KoordScenario({"Coscheduling": {"enablePreemption": True}}, compatible=compatible)
    for number, cpu in enumerate(nodes):
        scenario.tell(node(f"n{number}", cpu=cpu))
    return scenario


def running(
    scenario: KoordScenario, name: str, on: str, cpu: int, priority: int = 0, labels: Mapping[str, str] | None = None
) -> None:
    scenario.tell(koord_pod(name, cpu=str(cpu), priority=priority, nodeName=on, labels=labels))


def gang(scenario: KoordScenario, count: int, cpu: int, **more: object) -> None:
    scenario.tell(koord_group("g", least=count))
    scenario.tell(*(koord_pod(f"g{at}", gang="g", cpu=str(cpu), priority=100, **more) for at in range(count)))


def test_room_is_made_for_all_members_at_once() -> None:
    scenario = preempting(4, 4)
    for on in ("n0", "n1"):
        running(scenario, f"low-{on}", on, 3)
    gang(scenario, 2, 3)
    scenario.play_out()
    assert scenario.pods_left() == {"g0", "g1"}
    assert set(scenario.placed().values()) == {"n0", "n1"}
    assert not scenario.backlog.complaints


def test_nobody_is_evicted_if_one_member_finds_no_room() -> None:
    scenario = preempting(4, 4)
    for on in ("n0", "n1"):
        running(scenario, f"low-{on}", on, 3)
    gang(scenario, 3, 3)
    scenario.play_out()
    assert {"low-n0", "low-n1"} <= scenario.pods_left()
    assert "g0" not in scenario.placed()
    first = next(name for name in ("g0", "g1", "g2") if "gets rejected" not in scenario.message(name))
    assert "2 Insufficient cpu. preemption: 0/2 nodes are available: 2 Insufficient cpu." in scenario.message(first)
    others = [name for name in ("g0", "g1", "g2") if name != first]
    assert all(
        f"preemption: preemption already attempted by default/{first} with message" in scenario.message(o)
        for o in others
    )


def test_a_member_that_waits_keeps_its_place_and_counts() -> None:
    scenario = preempting(4, 4)
    running(scenario, "low", "n1", 3)
    gang(scenario, 2, 3)
    scenario.play_out()
    assert scenario.pods_left() == {"g0", "g1"}
    assert set(scenario.placed().values()) == {"n0", "n1"}


def test_the_most_important_stay_as_long_as_the_job_fits_beside_them() -> None:
    scenario = preempting(5)
    for name, priority in (("a", 1), ("b", 4), ("c", 2), ("d", 3)):
        running(scenario, name, "n0", 1, priority)
    gang(scenario, 1, 3)
    scenario.play_out()
    assert scenario.pods_left() == {"g0", "b", "d"}


def test_the_node_with_the_cheapest_victims_is_taken_where_a_job_counts_once() -> None:
    scenario = preempting(4, 4)
    running(scenario, "zero", "n0", 1, 0)
    running(scenario, "two-a", "n0", 1, 2)
    running(scenario, "two-b", "n0", 1, 2)  # n0 costs the ranks 0 + 2 + 2
    for name in ("x", "y", "z"):
        running(scenario, name, "n1", 1, 2, {JOB: "job"})  # n1 costs the rank 2 once
    running(scenario, "one", "n1", 1, 1)  # and the rank 1
    gang(scenario, 1, 4)
    scenario.play_out()
    assert scenario.pods_left() == {"g0", "zero", "two-a", "two-b"}


@pytest.mark.parametrize(
    ("key", "value"),
    [(SCHEDULING + "disable-preemptible", "true"), ("quota.scheduling.koordinator.sh/preemptible", "false")],
)
def test_pods_that_say_so_are_not_evicted(key: str, value: str) -> None:
    scenario = preempting(4)
    running(scenario, "low", "n0", 3, labels={key: value})
    gang(scenario, 1, 3)
    scenario.play_out()
    assert "low" in scenario.pods_left()
    assert "1 Insufficient cpu. preemption: 0/1 nodes are available: 1 no potential victims." in scenario.message("g0")


def test_a_job_that_never_preempts_says_so() -> None:
    scenario = preempting(4)
    running(scenario, "low", "n0", 3)
    gang(scenario, 1, 3, preemptionPolicy="Never")
    scenario.play_out()
    assert "low" in scenario.pods_left()
    assert scenario.message("g0").startswith(
        "0/1 nodes are available: 1 Insufficient cpu. preemption: not eligible due to preemptionPolicy=Never."
    )


def test_without_the_argument_a_gang_evicts_nobody() -> None:
    scenario = KoordScenario()
    scenario.tell(node("n0", cpu=4))
    running(scenario, "low", "n0", 3)
    gang(scenario, 1, 3)
    scenario.play_out()
    assert "low" in scenario.pods_left()


@pytest.mark.parametrize("compatible", [False, True])
def test_only_the_original_evicts_for_members_as_if_each_were_alone(compatible: bool) -> None:
    """Three of four members would fit if all others went, so that evictions are in vain."""
    scenario = preempting(8, 8, compatible=compatible)
    running(scenario, "a", "n0", 6, 7500)
    running(scenario, "b", "n1", 3, 10)
    running(scenario, "high", "n1", 5, 9999)
    scenario.tell(koord_group("g", least=4))
    scenario.tell(*(koord_pod(f"g{at}", gang="g", cpu="3", priority=9500) for at in range(4)))
    scenario.play_out()
    assert ("b" in scenario.pods_left()) is not compatible
    assert not any(name.startswith("g") for name in scenario.placed())
