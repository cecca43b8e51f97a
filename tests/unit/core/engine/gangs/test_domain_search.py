"""A gang in one rack or one HyperNode: which are tried, which one it gets, and what it is told if none has room."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import Doc, Happened
from tests.support.documents import RACK, deleting, group, hyper_node, member, members, node, pod, racks
from tests.support.scheduling import SchedulerScenario, confirm, gang_scenario

MODE, TIER = "volcano.sh/network-topology-mode", "volcano.sh/network-topology-highest-tier"


def _network(*, racks_each: int = 2, nodes_each: int = 2) -> SchedulerScenario:
    """Two blocks of racks: s<block><rack> of tier 1, b<block> of tier 2."""
    stage = gang_scenario()
    stage.tell(
        *(node(f"b{b}r{r}n{n}") for b in range(2) for r in range(racks_each) for n in range(nodes_each)),
        *(hyper_node(f"s{b}{r}", 1, nodes=f"^b{b}r{r}n", title="rack") for b in range(2) for r in range(racks_each)),
        *(hyper_node(f"b{b}", 2, of=tuple(f"s{b}{r}" for r in range(racks_each)), title="block") for b in range(2)),
    )
    return stage


def _near(name: str, minimum: int, **annotations: str) -> Doc:
    doc = group(name, minimum)
    named = {"mode": MODE, "tier": TIER}
    doc["metadata"]["annotations"] = {named[key]: value for key, value in annotations.items()}
    return doc


def _volcano_group(name: str, minimum: int, **topology: Any) -> Doc:
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"},
        "spec": {"minMember": minimum, "networkTopology": topology},
    }


def _in_volcano_group(name: str, count: int) -> list[Doc]:
    docs = [pod(f"{name}-{i}") for i in range(count)]
    for doc in docs:
        doc["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": name}
    return docs


def _parts(stage: SchedulerScenario, letters: int) -> set[str]:
    return {target[:letters] for target in stage.binds().values()}


# ---- HyperNodes ----


def test_a_gang_goes_into_the_smallest_hypernode_with_room() -> None:
    stage = _network()
    stage.tell(_near("g", 8, tier="2"), *members("g", 8))
    assert len(stage.binds()) == 8
    assert len(_parts(stage, 4)) == 1


def test_a_gang_too_large_for_a_rack_goes_into_one_block() -> None:
    stage = _network()
    stage.tell(_near("g", 9, tier="2"), *members("g", 9))
    assert len(stage.binds()) == 9
    assert len(_parts(stage, 2)) == 1


def test_no_hypernode_above_the_limit_is_used() -> None:
    stage = _network()
    stage.tell(_near("g", 9, tier="1"), *members("g", 9))
    assert not stage.binds()
    explanation = stage.scheduler.explain_group("default", "g")
    assert explanation.summary == "needs 9 in one rack; best rack s00 has room for 8"


def test_a_limit_may_be_a_name() -> None:
    stage = _network()
    stage.tell(_near("g", 9, tier="rack"), _near("h", 9, tier="block"), *members("g", 9), *members("h", 9))
    assert {name[0] for name in stage.binds()} == {"h"}


def test_a_name_that_no_tier_has_is_said() -> None:
    stage = _network()
    stage.tell(_near("g", 2, tier="row"), *members("g", 2))
    assert 'no HyperNode is of a tier named "row"' in stage.scheduler.explain_group("default", "g").message
    stage.tell(hyper_node("s00", 1, nodes="^b0r0n", title="row"), happened=Happened.MODIFIED)
    stage.run(after=3.0)
    assert len(stage.binds()) == 2, "the tier has a name now"


def test_soft_means_near_if_possible() -> None:
    stage = _network()
    stage.tell(_near("near", 8, mode="soft"), *members("near", 8))
    assert len(_parts(stage, 4)) == 1
    stage.tell(_near("far", 17, mode="soft"), *members("far", 17))
    assert len(stage.binds()) == 25


def test_a_volcano_group_has_a_field_for_it() -> None:
    stage = _network()
    stage.tell(_volcano_group("v", 9, mode="hard", highestTierAllowed=1), *_in_volcano_group("v", 9))
    assert not stage.binds()
    stage.tell(_volcano_group("w", 8, highestTierAllowed=1), *_in_volcano_group("w", 8))
    assert len(stage.binds()) == 8
    assert len(_parts(stage, 4)) == 1


def test_a_demand_without_a_limit_asks_for_nothing() -> None:
    stage = _network()
    stage.tell(_volcano_group("v", 17, mode="hard"), *_in_volcano_group("v", 17))
    assert len(stage.binds()) == 17


def test_later_members_stay_as_near_as_possible() -> None:
    stage = _network()
    docs = members("g", 7)
    stage.tell(_near("g", 2, tier="2"), *docs)
    confirm(stage, docs)
    rack = _parts(stage, 4)
    assert len(rack) == 1
    stage.tell(member("same-rack", "g"))
    stage.tell(member("same-block", "g"))
    binds = stage.binds()
    assert {binds["same-rack"][:4]} == rack
    assert {binds["same-block"][:2]} == {next(iter(rack))[:2]}
    assert {binds["same-block"][:4]} != rack


def test_members_that_run_too_far_apart_are_said() -> None:
    stage = _network()
    docs = [member("g-0", "g", on="b0r0n0"), member("g-1", "g", on="b1r0n0"), member("g-2", "g")]
    stage.tell(_near("g", 3, tier="2"), *docs)
    assert not stage.binds()
    message = stage.scheduler.explain_group("default", "g").message
    assert "no HyperNode up to tier 2 has all members that run already" in message


def test_hypernodes_that_make_no_tree_are_said_and_stall_nobody() -> None:
    stage = _network()
    stage.tell(hyper_node("b9", 2, of=("s00",)))
    stage.tell(_near("g", 2, tier="1"), *members("g", 2), group("other", 2), *members("other", 2))
    assert {name.rpartition("-")[0] for name in stage.binds()} == {"other"}
    assert "HyperNodes do not make a tree" in stage.scheduler.explain_group("default", "g").message


def test_a_new_hypernode_wakes_a_gang() -> None:
    stage = gang_scenario(nodes=2)
    stage.tell(hyper_node("b0", 2, nodes="^n"), _near("g", 2, tier="1"), *members("g", 2))
    assert not stage.binds()
    assert "no feasible placements found" in stage.scheduler.explain_group("default", "g").message
    stage.tell(hyper_node("s0", 1, nodes="^n"))
    stage.run(after=3.0)
    assert len(stage.binds()) == 2


def test_a_node_that_moves_to_another_rack_wakes_a_gang() -> None:
    stage = gang_scenario()
    docs = racks(2, 1)
    stage.tell(*docs, group("g", 8, key=RACK), *members("g", 8))
    assert not stage.binds()
    moved = {**docs[1], "metadata": {**docs[1]["metadata"], "labels": {RACK: "r0"}}}
    stage.tell(moved, happened=Happened.MODIFIED)
    stage.run(after=3.0)
    assert len(stage.binds()) == 8


# ---- which domains are tried ----


def test_racks_without_room_are_not_tried() -> None:
    stage = gang_scenario()
    stage.tell(*racks(50, 2))
    stage.tell(group("g", 9, key=RACK), *members("g", 9))
    assert not stage.binds()
    assert stage.scheduler.pods.gangs.domains_tried == 1
    topology = stage.scheduler.explain_group("default", "g").to_document()["topology"]
    assert (topology["tried"], topology["of"]) == (1, 50)
    assert topology["domains"][0] == {"name": "r0", "fits": 8}
    assert topology["domains"][1]["atMost"]


def test_the_rack_that_comes_closest_is_tried_for_the_answer() -> None:
    stage = gang_scenario()
    stage.tell(*racks(20, 1), *(pod(f"p{r}", cpu="2", on=f"r{r}n0") for r in range(20) if r != 7))
    stage.tell(group("g", 5, key=RACK), *members("g", 5))
    explanation = stage.scheduler.explain_group("default", "g")
    assert explanation.summary == f"needs 5 in one rack ({RACK}); best rack r7 has room for 4"
    assert stage.scheduler.pods.gangs.domains_tried == 2


def test_only_racks_that_might_do_are_tried() -> None:
    stage = gang_scenario()
    stage.tell(*racks(20, 1), *(pod(f"p{r}", cpu="2", on=f"r{r}n0") for r in range(20) if r != 7))
    stage.tell(group("g", 4, key=RACK), *members("g", 4))
    assert set(stage.binds().values()) == {"r7n0"}
    assert stage.scheduler.pods.gangs.domains_tried == 1


def test_members_of_several_sizes_are_bounded_together() -> None:
    stage = gang_scenario()
    stage.tell(*racks(10, 1))
    docs = [member(f"small-{i}", "g", cpu="1") for i in range(3)] + [
        member(f"large-{i}", "g", cpu="2") for i in range(2)
    ]
    stage.tell(group("g", 5, key=RACK), *docs)
    assert not stage.binds()
    assert stage.scheduler.pods.gangs.domains_tried == 1


def test_what_freed_room_in_any_rack_wakes_the_gang() -> None:
    """The refusals of racks that were not tried count too."""
    stage = gang_scenario()
    blocker = pod("blocker", cpu="4", on="r3n0")
    stage.tell(*racks(4, 2), *(pod(f"p{r}", cpu="4", on=f"r{r}n1") for r in range(4)), blocker)
    stage.tell(group("g", 8, key=RACK), *members("g", 8))
    stage.gone(pod("p3", cpu="4", on="r3n1"))
    stage.gone(blocker)
    stage.run(after=3.0)
    assert len(stage.binds()) == 8


@pytest.mark.parametrize("mode", ["Required", "Preferred"])
def test_a_preferred_rack_tries_the_whole_cluster_last(mode: str) -> None:
    wish = group("g", 9, key=RACK)
    wish["metadata"]["annotations"] = {"scheduling.fairlead.io/topology-mode": mode}
    stage = gang_scenario()
    stage.tell(*racks(5, 2))
    stage.tell(wish, *members("g", 9))
    assert bool(stage.binds()) == (mode == "Preferred")


def test_too_few_members_that_may_be_placed_are_named_for_a_preference_too() -> None:
    """One of three is behind a gate: the gang is known, and cannot be whole anywhere."""
    wish = group("g", 3, key=RACK)
    wish["metadata"]["annotations"] = {"scheduling.fairlead.io/topology-mode": "Preferred"}
    stage = gang_scenario()
    stage.tell(*racks(2, 1), wish, *members("g", 2), member("g-9", "g", schedulingGates=[{"name": "later"}]))
    assert not stage.binds()
    assert "0/0" not in stage.scheduler.explain_group("default", "g").message


def test_members_of_several_sizes_may_fill_a_rack_to_the_last() -> None:
    stage = gang_scenario()
    stage.tell(*racks(2, 1))
    stage.tell(group("g", 3, key=RACK), *(member(f"g-{i}", "g", cpu=cpu) for i, cpu in enumerate(("1", "1", "2"))))
    assert len(stage.binds()) == 3


def test_room_is_made_in_one_hypernode() -> None:
    """For groups of every API but Kubernetes 1.36's own."""
    stage = _network()
    nodes = [f"b{b}r{r}n{n}" for b in range(2) for r in range(2) for n in range(2)]
    stage.tell(*(pod(f"low-{name}", cpu="4", on=name) for name in nodes))
    important = [{**doc, "spec": {**doc["spec"], "priority": 10}} for doc in _in_volcano_group("v", 8)]
    stage.tell(_volcano_group("v", 8, mode="hard", highestTierAllowed=1), *important)
    promised = {stage.backlog.nominator.node_of(f"uid-v-{i}") for i in range(8)}
    assert len(promised) == 2
    assert len({name[:4] for name in promised}) == 1, f"in several racks: {promised}"


def test_what_is_promised_outside_a_rack_is_not_said_of_the_rack() -> None:
    """Members hear of the nodes of one placement; that another rack is promised to somebody says nothing about it."""
    stage = gang_scenario()
    stage.tell(*racks(2, 1, cpu="2"))
    stage.tell(pod("runs", cpu="1", on="r0n0", priority=100), deleting(pod("leaves", cpu="2", on="r1n0")))
    stage.tell({**pod("next", cpu="2", priority=100), "status": {"nominatedNodeName": "r1n0"}})
    stage.tell(group("g", 1, key=RACK), *members("g", 1, cpu="2"))
    assert stage.conditions("g-0")[-1]["message"].startswith("0/1 nodes are available: 1 Insufficient cpu. ")
