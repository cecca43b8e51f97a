"""Preemption for gangs: room is made for a whole gang or for none of it."""

from __future__ import annotations

from typing import Any

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Verb
from fairlead.kube.gangs.plugin import GangScheduling
from fairlead.kube.nodes.ports import NodePorts
from tests.support.documents import RACK, deleting, group, member, members, pod, racks
from tests.support.scheduling import SchedulerScenario, gang_scenario


def _deleted(stage: SchedulerScenario) -> list[str]:
    return [w.name for w in stage.writes if w.verb is Verb.DELETE]


def _all_victims_go(stage: SchedulerScenario, docs: list[dict[str, Any]]) -> None:
    """Replies and the watch, until nothing more is deleted."""
    gone: set[str] = set()
    for _ in range(6):
        stage.answer()
        for doc in docs:
            name = doc["metadata"]["name"]
            if name in _deleted(stage) and name not in gone:
                gone.add(name)
                stage.gone(doc)
    stage.run(after=15.0)


def test_the_fewest_necessary_are_evicted_and_every_member_is_promised_a_node() -> None:
    stage = gang_scenario(nodes=2)
    small = [pod(f"small-{i}", cpu="2", on=f"n{i % 2}") for i in range(4)]
    stage.tell(*small)
    stage.tell(group("g", 2, priority=10), *members("g", 2, cpu="2"))
    assert not stage.binds()
    nominated = {stage.backlog.nominator.node_of(f"uid-g-{i}") for i in range(2)}
    assert "" not in nominated
    _all_victims_go(stage, small)
    assert len(_deleted(stage)) == 2
    assert sorted(stage.binds()) == ["g-0", "g-1"]


def test_nobody_is_evicted_for_a_gang_that_would_still_not_fit() -> None:
    stage = gang_scenario(nodes=2)
    stage.tell(*(pod(f"small-{i}", cpu="2", on=f"n{i % 2}") for i in range(4)))
    stage.tell(group("g", 5, priority=10), *members("g", 5, cpu="2"))
    assert not _deleted(stage)
    explanation = stage.scheduler.explain_group("default", "g")
    assert {c.rule for c in explanation.considered} == {"its eviction would not make enough room"}
    nowhere = "0/1 placements are available, first placement status: pod group is unschedulable"
    assert explanation.message == f"{nowhere}, {nowhere}", "once as it is, once with all of them gone"
    assert int(stage.cluster.table.pod_count.sum()) == 4


def test_the_pod_with_the_port_that_a_member_needs_is_the_one_to_go() -> None:
    stage = gang_scenario(NodePorts(), nodes=1)
    bystander, holder = pod("bystander", cpu="1", on="n0"), _with_port(pod("holder", cpu="1", on="n0"))
    stage.tell(bystander, holder, pod("third", cpu="2", on="n0"))
    stage.tell(group("g", 1, priority=10), _with_port(member("g-0", "g")))
    _all_victims_go(stage, [bystander, holder])
    assert _deleted(stage) == ["holder"]
    assert list(stage.binds()) == ["g-0"]


def _with_port(doc: dict[str, Any]) -> dict[str, Any]:
    doc["spec"]["containers"][0]["ports"] = [{"containerPort": 80, "hostPort": 80}]
    return doc


def test_pods_of_the_same_priority_are_safe() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(pod("peer", cpu="4", on="n0", priority=10))
    stage.tell(group("g", 1, priority=10), *members("g", 1, cpu="2"))
    assert not _deleted(stage)
    explanation = stage.scheduler.explain_group("default", "g")
    assert explanation.message.endswith("No preemption victims found for incoming preemptor")
    assert [(c.name, c.rule) for c in explanation.considered] == [("default/peer", "its priority is not lower than 10")]


def test_a_group_that_is_disrupted_as_a_whole_goes_as_a_whole() -> None:
    stage = gang_scenario(nodes=2)
    victims = [member(f"v-{i}", "v", cpu="2", on=f"n{i % 2}") for i in range(4)]
    stage.tell(group("v", 4, whole=True), *victims)
    stage.tell(group("g", 1, priority=10), *members("g", 1, cpu="2"))
    _all_victims_go(stage, victims)
    assert sorted(_deleted(stage)) == ["v-0", "v-1", "v-2", "v-3"]


def test_a_pod_in_a_budget_is_spared_if_another_will_do() -> None:
    budget = {
        "apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "b", "namespace": "default", "uid": "uid-b"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "db"}}}, "status": {"disruptionsAllowed": 0},
    }  # fmt: skip
    guarded = pod("guarded", cpu="2", on="n0")
    guarded["metadata"]["labels"] = {"app": "db"}
    stage = gang_scenario(nodes=1)
    stage.tell(budget, guarded, pod("plain", cpu="2", on="n0"))
    stage.tell(group("g", 1, priority=10), *members("g", 1, cpu="2"))
    assert _deleted(stage) == ["plain"]


def test_preemption_policy_never_of_one_member_is_enough() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(pod("low", cpu="4", on="n0"))
    polite = member("g-0", "g", preemptionPolicy="Never")
    stage.tell(group("g", 1, priority=10), polite)
    assert not _deleted(stage)


def test_members_wait_while_the_victims_go() -> None:
    stage = gang_scenario(nodes=1)
    low = pod("low", cpu="4", on="n0")
    stage.tell(low)
    stage.tell(group("g", 1, priority=10), *members("g", 1))
    stage.tell(member("g-1", "g"))
    assert stage.backlog.where("uid-g-0").message == ("waiting for the preemption for this pod group to be finished")
    assert len(_deleted(stage)) == 1


def test_victims_are_reported_by_whom() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(pod("low", cpu="4", on="n0"))
    stage.tell(group("g", 1, priority=10, uid="group-uid"), *members("g", 1))
    event = stage.events("Preempted")[0]
    assert event["note"] == "Preempted by podgroup group-uid on node cluster"
    assert event["related"]["kind"] == "PodGroup"
    assert stage.conditions("low")[-1]["message"] == (
        "default-scheduler: preempting to accommodate a higher priority podgroup"
    )


def test_groups_with_topology_constraints_do_not_preempt() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(pod("low", cpu="4", on="n0"))
    stage.tell(group("g", 1, priority=10, key="kubernetes.io/hostname"), *members("g", 1))
    assert not _deleted(stage)
    assert stage.scheduler.explain_group("default", "g").message.endswith(
        "workload aware preemption is not supported for pod groups with scheduling constraints"
    )


def _in_one_rack(name: str, count: int, *, priority: int = 10) -> list[Doc]:
    wish = group(name, count, priority=priority, key=RACK, kind=kinds.POD_GROUP_BETA)
    return [wish, *members(name, count, cpu="4", priority=priority)]


def test_room_is_made_in_one_rack_for_a_gang_that_must_be_close_together() -> None:
    """As in 1.37, and nobody goes elsewhere."""
    stage = gang_scenario()
    stage.tell(*racks(2, 3))
    low = [pod(f"low-{rack}{i}", cpu="4", on=f"r{rack}n{i}") for rack in range(2) for i in range(3)]
    stage.tell(*low)
    stage.tell(*_in_one_rack("g", 3))
    promised = {stage.backlog.nominator.node_of(f"uid-g-{i}") for i in range(3)}
    _all_victims_go(stage, low)
    gone = _deleted(stage)
    assert len(gone) == 3
    assert len({name[:5] for name in gone}) == 1, f"victims in several racks: {gone}"
    assert promised == set(stage.binds().values()) == {f"r{gone[0][4]}n{i}" for i in range(3)}


def test_nobody_goes_for_a_gang_that_no_rack_can_hold() -> None:
    stage = gang_scenario()
    stage.tell(*racks(2, 3))
    stage.tell(*(pod(f"low-{rack}{i}", cpu="4", on=f"r{rack}n{i}") for rack in range(2) for i in range(3)))
    stage.tell(*_in_one_rack("g", 4))
    assert not _deleted(stage)
    assert not stage.binds()
    told = stage.scheduler.explain("default", "g-0")
    assert told.message.endswith("preemption: not eligible due to workload aware preemption enabled")
    rules = {one.rule for one in stage.scheduler.explain_group("default", "g").considered}
    assert rules == {"its eviction would not make enough room"}


def test_a_rack_whose_pods_are_more_important_is_left_alone() -> None:
    stage = gang_scenario()
    stage.tell(*racks(2, 2))
    stage.tell(*(pod(f"high-{i}", cpu="4", on=f"r0n{i}", priority=100) for i in range(2)))
    low = [pod(f"low-{i}", cpu="4", on=f"r1n{i}") for i in range(2)]
    stage.tell(*low)
    stage.tell(*_in_one_rack("g", 2))
    _all_victims_go(stage, low)
    assert sorted(_deleted(stage)) == ["low-0", "low-1"]
    assert {stage.binds()[f"g-{i}"][:2] for i in range(2)} == {"r1"}


def test_members_that_run_say_in_which_rack_room_is_made() -> None:
    stage = gang_scenario()
    stage.tell(*racks(2, 2))
    stage.tell(*_in_one_rack("g", 2)[:1], member("g-0", "g", cpu="4", on="r1n0", priority=10))
    low = [pod("low-0", cpu="4", on="r0n0"), pod("low-1", cpu="4", on="r1n1"), pod("low-2", cpu="4", on="r0n1")]
    stage.tell(*low)
    stage.tell(member("g-1", "g", cpu="4", priority=10))
    assert _deleted(stage) == ["low-1"]
    _all_victims_go(stage, low[1:2])
    assert stage.binds()["g-1"] == "r1n1"


def test_members_may_also_be_rescued_one_by_one() -> None:
    stage = gang_scenario(nodes=2, gang=GangScheduling(rescues_whole=False))
    low = [pod(f"low-{i}", cpu="4", on=f"n{i}") for i in range(2)]
    stage.tell(*low)
    stage.tell(group("g", 2), *members("g", 2, cpu="3", priority=10))
    assert stage.backlog.nominator.node_of("uid-g-0") != stage.backlog.nominator.node_of("uid-g-1")
    _all_victims_go(stage, low)
    assert sorted(_deleted(stage)) == ["low-0", "low-1"]
    assert sorted(stage.binds()) == ["g-0", "g-1"]


def test_a_leaving_victim_is_not_pushed() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(deleting(pod("low", cpu="4", on="n0")))
    stage.tell(group("g", 1, priority=10), *members("g", 1))
    assert not _deleted(stage)
