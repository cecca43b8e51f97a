"""What a change of the cluster means for waiting pods, by kube-scheduler's rules."""

from __future__ import annotations

from fairlead.core.framework.plugin import Wait
from fairlead.core.model.flow import Happened
from fairlead.core.state.cluster import PodPlace
from tests.support.documents import deleting, node, pod
from tests.support.scheduling import SchedulerScenario, ScriptedPlugin


def test_a_pod_that_ended_is_as_good_as_deleted() -> None:
    stage = SchedulerScenario(nodes=1)
    running = pod("a", cpu="4", on="n0")
    stage.tell(running)
    stage.tell(pod("b", cpu="4"))
    assert stage.binds() == {}
    stage.tell({**running, "status": {"phase": "Succeeded"}}, happened=Happened.MODIFIED)
    stage.run(after=2)
    assert stage.binds() == {"b": "n0"}


def test_pods_of_other_schedulers_take_room_and_are_not_scheduled() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("theirs", schedulerName="another"), pod("there", cpu="3", on="n0", schedulerName="another"))
    stage.tell(pod("mine", cpu="2"))
    assert stage.binds() == {}
    assert stage.backlog.where("uid-theirs") is None
    assert stage.backlog.where("uid-mine").plugins == ("NodeResourcesFit",)


def test_a_pod_that_somebody_else_bound_leaves_the_queue() -> None:
    stage = SchedulerScenario()
    waiting = pod("a")
    stage.tell(waiting)
    stage.tell(node("n0"), pod("other"))
    stage = SchedulerScenario()
    stage.tell(waiting)
    assert stage.backlog.where("uid-a") is not None
    stage.change(waiting, nodeName="n9")
    assert stage.backlog.where("uid-a") is None


def test_a_deleted_pod_frees_its_room_for_a_parked_one() -> None:
    stage = SchedulerScenario(nodes=1)
    there = pod("there", cpu="4", on="n0")
    stage.tell(there)
    stage.tell(pod("waiting", cpu="4"))
    assert stage.backlog.where("uid-waiting").queue == "unschedulable"
    stage.gone(there)
    stage.run(after=2)
    assert stage.binds() == {"waiting": "n0"}


def test_the_same_version_twice_does_nothing() -> None:
    stage = SchedulerScenario()
    stage.tell(pod("a"))
    before = stage.backlog.where("uid-a")
    stage.tell({**pod("a"), "metadata": {**pod("a")["metadata"]}}, happened=Happened.MODIFIED)
    assert stage.backlog.where("uid-a").attempts == before.attempts


def test_an_assumed_pod_that_is_being_deleted_gives_its_room_back() -> None:
    stage = SchedulerScenario(nodes=1)
    first = pod("first", cpu="4")
    stage.tell(first)
    stage.tell(pod("second", cpu="4"))
    assert stage.binds() == {"first": "n0"}
    stage.tell(deleting(first), happened=Happened.MODIFIED)
    stage.run(after=2)
    assert stage.binds() == {"first": "n0", "second": "n0"}


def test_other_changes_of_an_assumed_pod_are_ignored() -> None:
    stage = SchedulerScenario(nodes=1)
    first = pod("first", cpu="1")
    stage.tell(first)
    stage.tell({**first, "metadata": {**first["metadata"], "labels": {"a": "b"}}}, happened=Happened.MODIFIED)
    assert stage.cluster.pods["uid-first"].place is PodPlace.ASSUMED
    assert len(stage.binds()) == 1


def test_deleting_a_pod_that_waits_for_permission_refuses_it() -> None:
    permit = ScriptedPlugin("Permit")
    permit.permitted = Wait(60.0)
    stage = SchedulerScenario(permit, nodes=1)
    first = pod("first", cpu="4")
    stage.tell(first)
    assert stage.scheduler.bindings["uid-first"].waiting_for
    stage.gone(first)
    assert stage.scheduler.bindings == {}
    assert "Permit.unreserve" in permit.log
    stage.tell(pod("second", cpu="4"))
    assert stage.cluster.pods["uid-second"].place is PodPlace.ASSUMED


def test_a_deleted_pod_gives_up_its_nomination_for_pods_of_no_higher_priority() -> None:
    stage = SchedulerScenario(nodes=1)
    nominated = {**pod("nominated", cpu="3", priority=5, schedulingGates=[{"name": "g"}]),
                 "status": {"phase": "Pending", "nominatedNodeName": "n0"}}  # fmt: skip
    stage.tell(nominated, pod("low", cpu="5", priority=1), pod("high", cpu="5", priority=9))
    stage.backlog.nominator.nominate(stage.cluster.pods["uid-nominated"].seen, "n0")
    stage.gone(nominated)
    assert stage.backlog.nominator.node_of("uid-nominated") == ""
    assert stage.backlog.where("uid-low").attempts == 2
    assert stage.backlog.where("uid-high").attempts == 1


def test_a_new_node_wakes_the_pods_that_fit_on_it() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("big", cpu="6"), pod("huge", cpu="20"))
    stage.tell(node("large", cpu="8"))
    stage.run(after=2)
    assert stage.binds() == {"big": "large"}
    assert stage.backlog.where("uid-huge").queue == "unschedulable"


def test_a_node_that_changed_in_nothing_that_matters_wakes_nobody() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("big", cpu="6"))
    attempts = stage.backlog.where("uid-big").attempts
    stage.tell(node("n0"), happened=Happened.MODIFIED)
    stage.run(after=5)
    assert stage.backlog.where("uid-big").attempts == attempts


def test_pods_on_a_deleted_node_are_kept_until_they_are_deleted_themselves() -> None:
    stage = SchedulerScenario(nodes=2)
    stage.tell(pod("there", on="n0"))
    stage.gone(node("n0"))
    assert [pod_state.place for pod_state in stage.cluster.pods.values()] == [PodPlace.BOUND]
    stage.tell(pod("a", cpu="4"))
    assert stage.binds() == {"a": "n1"}


def test_a_document_that_makes_no_sense_is_reported_and_skipped() -> None:
    stage = SchedulerScenario(nodes=1)
    stage.tell(pod("bad", cpu="four"), pod("good"))
    assert stage.binds() == {"good": "n0"}
    assert "Pod default/bad: spec.containers[0].resources.requests[cpu]" in stage.cluster.refused[0]
