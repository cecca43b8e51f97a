"""Binding a gang: places are kept after a failure, half-bound gangs come first, time runs out."""

from __future__ import annotations

from typing import Any

from fairlead.core.engine.cycle.binding import BindingStage
from fairlead.core.framework.extended_plugin import ExtendedPlugin
from fairlead.core.framework.plugin import Wait
from fairlead.core.framework.profile import profile_of
from fairlead.core.model.flow import Happened, Reply, Verb
from fairlead.core.state.cluster import PodPlace
from fairlead.errors import Conflict
from fairlead.kube.gangs.plugin import GangScheduling
from tests.support.documents import deleting, group, member, members, node, pod
from tests.support.scheduling import SchedulerScenario, ScriptedPlugin, confirm, default_plugins, gang_scenario


def _refuse_bind_of(stage: SchedulerScenario, name: str) -> None:
    """The API refuses one bind and agrees to all other writes."""
    replies = [
        Reply(w, {}, Conflict("not now") if w.subresource == "binding" and w.name == name else None)
        for w in stage._unanswered
    ]
    stage._unanswered = []
    stage.run(replies=replies)


def _started(minimum: int = 2, **more: Any) -> tuple[SchedulerScenario, list[dict[str, Any]]]:
    """A gang of two on one node, one of whose binds failed."""
    stage = gang_scenario(nodes=1, **more)
    docs = members("g", 2, cpu="2")
    stage.tell(group("g", minimum), *docs)
    _refuse_bind_of(stage, "g-1")
    confirm(stage, docs[:1])
    return stage, docs


def test_a_failed_bind_keeps_the_members_place() -> None:
    stage, _ = _started()
    assert stage.cluster.pods["uid-g-1"].place is PodPlace.ASSUMED
    assert stage.scheduler.bindings["uid-g-1"].stage is BindingStage.HELD
    stage.tell(pod("thief", cpu="2"))
    assert "thief" not in stage.binds()
    assert stage.conditions("g-1")[-1]["reason"] == "SchedulerError"


def test_the_member_is_bound_again_where_it_was() -> None:
    stage, _ = _started()
    stage.tell(pod("thief", cpu="2"))
    stage.writes.clear()
    stage.run(after=2.0)
    assert stage.binds() == {"g-1": "n0"}


def test_the_held_place_moves_if_its_node_goes() -> None:
    stage = gang_scenario(nodes=1)
    docs = members("g", 2, cpu="2")
    stage.tell(group("g", 2), *docs)
    _refuse_bind_of(stage, "g-1")
    other = node("n9")
    stage.tell(other)
    stage.writes.clear()
    stage.gone(node("n0"))
    assert stage.binds() == {"g-1": "n9"}


def test_a_deleted_member_gives_its_held_place_back() -> None:
    stage, docs = _started()
    stage.gone(docs[1])
    assert "uid-g-1" not in stage.scheduler.bindings
    stage.tell(pod("other", cpu="2"))
    assert "other" in stage.binds()


def test_a_member_of_a_basic_group_is_not_held() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g"), *members("g", 1))
    _refuse_bind_of(stage, "g-0")
    assert stage.cluster.pods["uid-g-0"].place is PodPlace.PENDING
    assert stage.backlog.where("uid-g-0").queue == "backoff"


def test_a_gang_found_half_bound_comes_before_everything_else() -> None:
    stage = gang_scenario()
    docs = members("g", 2, cpu="4")
    stage.tell(
        *(pod(f"important-{i}", cpu="4", priority=1000) for i in range(3)),
        docs[1],
        {**docs[0], "spec": {**docs[0]["spec"], "nodeName": "n0"}},
        group("g", 2),
        node("n0"),
        node("n1"),
    )
    assert list(stage.binds()) == ["g-1"]


def test_members_that_wait_for_permission_give_up_when_a_bound_member_goes() -> None:
    permit = ScriptedPlugin("Permit")
    permit.permitted = Wait(30.0)
    stage = gang_scenario(permit, nodes=2)
    bound = member("g-0", "g", on="n0")
    stage.tell(group("g", 3), bound, *members("g", 3)[1:])
    waiting = [stage.cluster.pods[f"uid-g-{number}"] for number in (1, 2)]
    assert {pod_state.place for pod_state in waiting} == {PodPlace.ASSUMED}
    stage.gone(bound)
    assert {pod_state.place for pod_state in waiting} == {PodPlace.PENDING}
    assert not stage.scheduler.bindings


def test_time_runs_out_and_it_is_reported() -> None:
    stage, _ = _started()
    for _ in range(20):
        stage.run(after=20.0)
        _refuse_bind_of(stage, "g-1")
    told = stage.events("GangIncomplete")
    assert told[0]["note"] == "1 of 2 members started, and no more within 300s"
    assert told[0]["regarding"]["name"] == "g-1"
    assert not [w for w in stage.writes if w.verb is Verb.DELETE]
    assert stage.cluster.pods["uid-g-1"].place is PodPlace.ASSUMED


def test_time_runs_out_and_started_members_are_evicted() -> None:
    stage, docs = _started(gang=GangScheduling(timeout=60.0, evicts=True))
    for _ in range(5):
        stage.run(after=20.0)
        _refuse_bind_of(stage, "g-1")
    deleted = [w for w in stage.writes if w.verb is Verb.DELETE]
    assert [w.name for w in deleted] == ["g-0"]
    assert stage.conditions("g-0")[-1]["type"] == "DisruptionTarget"
    assert stage.cluster.pods["uid-g-1"].place is PodPlace.PENDING
    stage.tell({**deleting(docs[0]), "spec": {**docs[0]["spec"], "nodeName": "n0"}}, happened=Happened.MODIFIED)
    stage.gone({**docs[0], "spec": {**docs[0]["spec"], "nodeName": "n0"}})
    stage.tell(member("g-2", "g", cpu="2"))
    stage.run(after=20.0)
    assert {"g-1", "g-2"} <= set(stage.binds())


def test_a_groups_own_timeout_counts() -> None:
    own = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup",
        "metadata": {"name": "g", "namespace": "default", "uid": "uid-x"},
        "spec": {"minMember": 2, "scheduleTimeoutSeconds": 30},
    }  # fmt: skip
    docs = [pod(f"g-{i}") for i in range(2)]
    for doc in docs:
        doc["metadata"]["labels"] = {"scheduling.x-k8s.io/pod-group": "g"}
    stage = gang_scenario(nodes=1, gang=GangScheduling(evicts=True))
    stage.tell(own, *docs)
    _refuse_bind_of(stage, "g-1")
    confirm(stage, docs[:1])
    for _ in range(3):
        stage.run(after=15.0)
        _refuse_bind_of(stage, "g-1")
    assert [w.name for w in stage.writes if w.verb is Verb.DELETE] == ["g-0"]


def test_volcano_and_coscheduling_groups_are_gangs_too() -> None:
    volcano = {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "v", "namespace": "default", "uid": "uid-v"}, "spec": {"minMember": 3},
    }  # fmt: skip
    docs = [pod(f"v-{i}", cpu="2") for i in range(3)]
    for doc in docs:
        doc["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "v"}
    stage = gang_scenario(nodes=1)
    stage.tell(volcano, *docs)
    assert not stage.binds()
    stage.tell(node("n1"))
    assert len(stage.binds()) == 3


def test_without_the_plugin_members_go_one_by_one() -> None:
    stage = SchedulerScenario(nodes=1, profiles=[profile_of("default-scheduler", default_plugins())])
    stage.tell(group("g", 9), *members("g", 5))
    assert len(stage.binds()) == 4


class FailingOnce(ScriptedPlugin, ExtendedPlugin):
    """Raises at the end of one search, once it was armed."""

    armed = False

    def before_pre_filter(self, cycle: Any) -> None: ...

    def after_search(self, cycle: Any) -> None:
        if self.armed:
            self.armed = False
            raise RuntimeError("lost the thread")


def test_an_error_while_a_held_place_is_tried_again_leaves_later_pods_free_to_choose() -> None:
    plugin = FailingOnce("Failing")
    plugin.points = {"n0": 100}
    stage = gang_scenario(plugin, nodes=2)
    docs = members("g", 2, cpu="1")
    stage.tell(group("g", 2), *docs)
    _refuse_bind_of(stage, "g-1")
    confirm(stage, docs[:1])
    plugin.armed, plugin.points = True, {"n1": 100}
    stage.run(after=2.0)
    assert not plugin.armed, "the held place was not tried again"
    stage.tell(pod("later", cpu="1"))
    assert stage.binds()["later"] == "n1"
