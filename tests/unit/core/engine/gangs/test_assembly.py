"""Gangs are admitted, placed, bound and refused as wholes."""

from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Wait
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.kube.gangs.plugin import GangScheduling
from tests.support.documents import RACK, group, member, members, node, pod, racks
from tests.support.scheduling import SchedulerScenario, ScriptedPlugin, confirm, default_plugins, gang_scenario


def _nothing_is_held(stage: SchedulerScenario) -> None:
    assert int(stage.cluster.table.pod_count.sum()) == 0
    stage.cluster.check()
    stage.backlog.check()


# ---- PreEnqueue: waiting for enough members ----


def test_a_member_waits_for_its_group_to_appear() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(*members("g", 2))
    waiting = stage.backlog.where("uid-g-0")
    assert waiting.queue == "gated"
    assert waiting.message == 'waiting for pods\'s pod group "g" to appear in scheduling queue'
    stage.tell(group("g", 2))
    assert sorted(stage.binds()) == ["g-0", "g-1"]


def test_members_wait_until_enough_of_them_are_known() -> None:
    stage = gang_scenario(nodes=2)
    stage.tell(group("g", 3), *members("g", 2))
    waiting = stage.backlog.where("uid-g-1")
    assert waiting.message == "waiting for minCount pods from a gang to appear in scheduling queue"
    assert not stage.binds()
    stage.tell(member("g-2", "g"))
    assert sorted(stage.binds()) == ["g-0", "g-1", "g-2"]


def test_a_basic_group_asks_for_nothing() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g"), *members("g", 1))
    assert stage.binds() == {"g-0": "n0"}


# ---- one attempt for all members ----


def test_a_gang_that_does_not_fit_holds_nothing() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 5), *members("g", 5))
    assert not stage.binds()
    _nothing_is_held(stage)


def test_members_beyond_the_minimum_are_placed_if_they_fit() -> None:
    stage = gang_scenario(nodes=1)
    docs = members("g", 6)
    stage.tell(group("g", 2), *docs)
    assert len(stage.binds()) == 4
    waiting = [d["metadata"]["uid"] for d in docs if d["metadata"]["name"] not in stage.binds()]
    assert all(stage.backlog.where(uid).queue == "unschedulable" for uid in waiting)
    confirm(stage, docs)
    stage.tell(node("more"))
    assert len(stage.binds()) == 6


def test_members_of_higher_priority_are_placed_first() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 1), member("low", "g", cpu="3"), member("high", "g", cpu="3", priority=5))
    assert list(stage.binds()) == ["high"]


def test_all_members_must_have_the_same_scheduler() -> None:
    profiles = [profile_of(name, default_plugins(GangScheduling())) for name in ("default-scheduler", "other")]
    stage = SchedulerScenario(nodes=2, profiles=profiles)
    other = member("b", "g")
    other["spec"]["schedulerName"] = "other"
    stage.tell(group("g", 2), member("a", "g"), other)
    assert stage.conditions("a")[-1]["message"] == (
        "all pods in a single pod group should have the same .spec.schedulerName set, "
        'got: "other" and "default-scheduler"'
    )
    assert stage.conditions("a")[-1]["reason"] == "SchedulerError"
    assert not stage.binds()


def test_members_of_another_scheduler_count_but_are_not_ours_to_place() -> None:
    stage = gang_scenario(nodes=2)
    other = member("b", "g")
    other["spec"]["schedulerName"] = "other"
    stage.tell(group("g", 2), member("a", "g"), other)
    assert not stage.binds()
    assert stage.conditions("a")[-1]["message"].startswith("pod group is unschedulable")


def test_one_unschedulable_group_stalls_nobody() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("big", 9), *members("big", 9), group("small", 2), *members("small", 2), pod("single"))
    assert sorted(stage.binds()) == ["single", "small-0", "small-1"]


# ---- what members and groups are told ----


def test_every_member_of_a_refused_gang_gets_the_reason() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 6), *members("g", 6))
    fitted, refused = stage.conditions("g-0")[-1], stage.conditions("g-5")[-1]
    assert fitted["message"] == (
        "pod group is unschedulable, waiting for minCount pods from a gang to be scheduled, "
        "one or more plugins asked to wait and no plugin rejected pod"
    )
    assert fitted["reason"] == "Unschedulable"
    assert refused["message"].startswith("0/1 nodes are available: 1 Insufficient cpu.")
    assert refused["message"].endswith("preemption: not eligible due to workload aware preemption enabled")
    assert len(stage.events("FailedScheduling")) == 6


def test_a_member_behind_gates_gets_no_reason_when_its_gang_is_refused() -> None:
    stage = gang_scenario(nodes=1)
    held = member("held", "g", schedulingGates=[{"name": "later"}])
    stage.tell(group("g", 6), *members("g", 6), held)
    assert stage.conditions("g-5")
    assert not stage.conditions("held")
    assert len(stage.events("FailedScheduling")) == 6


def _group_conditions(stage: SchedulerScenario) -> list[dict[str, object]]:
    return [w.body["status"]["conditions"][0] for w in stage.writes if w.kind is kinds.POD_GROUP]


def test_the_group_gets_a_condition_that_never_says_less() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 2), *members("g", 2))
    condition = _group_conditions(stage)[-1]
    assert (condition["type"], condition["status"], condition["reason"]) == ("PodGroupScheduled", "True", "Scheduled")
    assert condition["observedGeneration"] == 1
    told = {**group("g", 2), "status": {"conditions": [condition]}}
    stage.tell(told)
    stage.tell(member("late", "g", cpu="9"))
    assert len(_group_conditions(stage)) == 1


def test_members_that_do_not_fit_take_nothing_back_before_the_watch_has_shown_that_the_group_was_written() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 2), *members("g", 2))
    stage.tell(member("late", "g", cpu="9"))
    assert stage.conditions("late")[-1]["reason"] == "Unschedulable"
    assert [condition["status"] for condition in _group_conditions(stage)] == ["True"]


def test_a_refused_group_gets_the_reason_that_it_is_unschedulable() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 9), *members("g", 9))
    condition = _group_conditions(stage)[-1]
    assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
    assert str(condition["message"]).startswith(
        "0/1 placements are available, first placement status: pod group is unschedulable"
    )


# ---- topology: a gang within one rack ----


def test_a_gang_goes_into_one_rack() -> None:
    stage = gang_scenario()
    stage.tell(*racks(3, 2, cpu="4"))
    stage.tell(group("g", 8, key=RACK), *members("g", 8))
    assert len({target[:2] for target in stage.binds().values()}) == 1
    assert len(stage.binds()) == 8


def test_a_gang_that_no_rack_can_take_is_refused() -> None:
    stage = gang_scenario()
    stage.tell(*racks(3, 2, cpu="4"))
    stage.tell(group("g", 9, key=RACK), *members("g", 9))
    assert not stage.binds()
    condition = _group_conditions(stage)[-1]
    assert str(condition["message"]).startswith(
        "0/3 placements are available, first placement status: pod group is unschedulable"
    )
    explanation = stage.scheduler.explain_group("default", "g")
    assert explanation.summary == f"needs 9 in one rack ({RACK}); best rack r0 has room for 8"
    _nothing_is_held(stage)


def test_a_preferred_rack_is_no_demand() -> None:
    wish = group("g", 9, key=RACK)
    wish["metadata"]["annotations"] = {"scheduling.fairlead.io/topology-mode": "Preferred"}
    stage = gang_scenario()
    stage.tell(*racks(3, 2, cpu="4"))
    stage.tell(wish, *members("g", 9))
    assert len(stage.binds()) == 9


def test_later_members_follow_the_first_ones_into_their_rack() -> None:
    stage = gang_scenario()
    stage.tell(*racks(3, 2, cpu="4"))
    docs = members("g", 2)
    stage.tell(group("g", 2, key=RACK), *docs)
    confirm(stage, docs)
    rack = stage.binds()["g-0"][:2]
    stage.tell(member("late", "g"))
    assert stage.binds()["late"][:2] == rack


def test_the_rack_that_takes_more_members_wins() -> None:
    stage = gang_scenario()
    stage.tell(*racks(2, 1, cpu="4"), node("r2n0", cpu="8"))
    large = node("r9n0", cpu="8")
    large["metadata"]["labels"][RACK] = "r9"
    stage.tell(large)
    stage.tell(group("g", 2, key=RACK), *members("g", 6))
    assert set(stage.binds().values()) == {"r9n0"}


# ---- permits of others ----


def test_no_bind_is_sent_before_the_minimum_is_permitted() -> None:
    slow = ScriptedPlugin("Slow")
    slow.permitted = Wait(60.0)
    stage = gang_scenario(slow, nodes=1)
    stage.tell(group("g", 2), *members("g", 2))
    assert not stage.binds()
    first, second = stage.scheduler.bindings["uid-g-0"], stage.scheduler.bindings["uid-g-1"]
    first.allow("Slow")
    stage.scheduler.binding_driver.advance(first, ())
    stage.writes += stage.scheduler.output.writes
    assert not stage.binds()
    second.allow("Slow")
    stage.scheduler.binding_driver.advance(second, ())
    stage.writes += stage.scheduler.output.writes
    assert sorted(stage.binds()) == ["g-0", "g-1"]


def test_a_member_that_comes_while_the_others_wait_for_permission_waits_with_them() -> None:
    slow = ScriptedPlugin("Slow")
    slow.permitted = Wait(60.0)
    stage = gang_scenario(slow, nodes=1)
    stage.tell(group("g", 2), *members("g", 2))
    slow.permitted = None
    stage.tell(member("g-2", "g"))
    assert not stage.binds(), "one is permitted, two are needed"
    first = stage.scheduler.bindings["uid-g-0"]
    first.allow("Slow")
    stage.scheduler.binding_driver.advance(first, ())
    stage.writes += stage.scheduler.output.writes
    assert sorted(stage.binds()) == ["g-0", "g-2"]


def test_a_gang_that_loses_a_member_while_it_waits_gives_all_places_back() -> None:
    slow = ScriptedPlugin("Slow")
    slow.permitted = Wait(60.0)
    stage = gang_scenario(slow, nodes=1)
    docs = members("g", 2)
    stage.tell(group("g", 2), *docs)
    stage.gone(docs[0])
    assert not stage.scheduler.bindings
    assert stage.backlog.where("uid-g-1").queue == "unschedulable"
    _nothing_is_held(stage)
    slow.permitted = None
    stage.tell(member("g-2", "g"))
    assert sorted(stage.binds()) == ["g-1", "g-2"]


# ---- versions of the native API ----


@pytest.mark.parametrize("newer_first", [True, False])
def test_a_group_that_a_server_shows_in_two_versions_is_what_the_newer_one_says(newer_first: bool) -> None:
    """And a change in the older one, which comes at some other time, changes nothing."""
    stage = gang_scenario(nodes=1)
    old, new = group("g", 1), group("g", 3, kind=kinds.POD_GROUP_BETA)
    stage.tell(*((new, old) if newer_first else (old, new)))
    stage.tell(*members("g", 2))
    assert not stage.binds()
    stage.change(old, schedulingPolicy={"gang": {"minCount": 2}})
    assert not stage.binds()
    stage.tell(member("g-2", "g"))
    assert len(stage.binds()) == 3
    (said,) = [w for w in stage.writes if w.subresource == "status" and w.kind.kind == "PodGroup"]
    assert said.kind is kinds.POD_GROUP_BETA
    assert said.body["status"]["conditions"][0]["type"] == "PodGroupInitiallyScheduled"


@pytest.mark.parametrize("newer_first", [True, False])
def test_a_group_is_gone_when_it_is_gone_in_both_versions(newer_first: bool) -> None:
    stage = gang_scenario(nodes=1)
    both = [group("g", 2, kind=kinds.POD_GROUP_BETA), group("g", 2)]
    stage.tell(*both)
    for doc in both if newer_first else reversed(both):
        stage.gone(doc)
    stage.tell(*members("g", 2))
    assert not stage.binds()
    assert stage.backlog.where("uid-g-0").queue == "gated"
