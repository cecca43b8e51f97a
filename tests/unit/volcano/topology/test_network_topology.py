"""HyperNodes and network-topology-aware: which part of the network a job gets."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.number_sets import parse_number_set
from fairlead.volcano.kinds import VC_HYPER_NODE
from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.records.topology import (
    ROOT,
    HyperNodeTree,
    compile_hyper_node,
    compile_node_shard,
    compile_numa_topology,
)
from fairlead.volcano.rounds.tiers import Purpose
from fairlead.volcano.topology.network_topology import NetworkTopologyAware
from tests.support.rounds import RoundScenario, binds, scores, task

Doc = dict[str, Any]
NODES = {f"n{number}": {"rack": f"r{number // 2}"} for number in range(6)}


def exactly(name: str, *, node: bool = True) -> Doc:
    return {"type": "Node" if node else "HyperNode", "selector": {"exactMatch": {"name": name}}}


def hyper_node(name: str, tier: int, *members: Doc, tier_name: str = "") -> Doc:
    return {"metadata": {"name": name}, "spec": {"tier": tier, "tierName": tier_name, "members": list(members)}}


def tree(*documents: Doc) -> HyperNodeTree:
    return HyperNodeTree([compile_hyper_node(document) for document in documents], NODES)


RACKS = (
    hyper_node("s0", 1, exactly("n0"), exactly("n1")),
    hyper_node("s1", 1, {"type": "Node", "selector": {"regexMatch": {"pattern": "n[23]$"}}}),
    hyper_node("s2", 1, {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r2"}}}}),
    hyper_node("t0", 2, exactly("s0", node=False), exactly("s1", node=False), tier_name="spine"),
)


# ---- the tree ----


def test_members_are_found_by_name_pattern_and_labels() -> None:
    network = tree(*RACKS)
    assert network.nodes_of("s0") == {"n0", "n1"}
    assert network.nodes_of("s1") == {"n2", "n3"}
    assert network.nodes_of("s2") == {"n4", "n5"}
    assert network.nodes_of("t0") == {"n0", "n1", "n2", "n3"}
    assert network.nodes_of(ROOT) == set(NODES)


def test_the_root_is_a_tier_above_all_and_has_who_has_no_parent() -> None:
    network = tree(*RACKS)
    assert network.tier(ROOT) == 3
    assert network.tiers == (1, 2, 3)
    assert network.children(ROOT) == ("s2", "t0")
    assert tree().tier(ROOT) == 1
    assert network.tier_named("spine") == 2


def test_the_lowest_common_ancestor_of_two_hypernodes_is_found() -> None:
    network = tree(*RACKS)
    assert network.lowest_common("s0", "s1") == "t0"
    assert network.lowest_common("s0", "s2") == ROOT
    assert network.lowest_common("s0", "t0") == "t0"
    assert network.lowest_common("", "s1") == "s1"
    assert network.lowest_common("s1", "") == "s1"


def test_where_tasks_are_is_the_lowest_that_has_them_all() -> None:
    network = tree(*RACKS)
    assert network.lowest_containing(["n0", "n1"]) == "s0"
    assert network.lowest_containing(["n0", "n2"]) == "t0"
    assert network.lowest_containing(["n0", "n4"]) == ROOT
    assert network.lowest_containing(["unknown"]) == ""
    assert network.leaf_of("n0") == "s0"
    assert tree(hyper_node("s0", 1, exactly("n0"))).leaf_of("n5") == ""


@pytest.mark.parametrize(
    "documents",
    [
        [hyper_node("a", 1, exactly("b", node=False)), hyper_node("b", 2, exactly("a", node=False))],
        [
            hyper_node("a", 1, exactly("n0")),
            hyper_node("b", 2, exactly("a", node=False)),
            hyper_node("c", 2, exactly("a", node=False)),
        ],
    ],
    ids=["circle", "two parents"],
)
def test_what_is_no_tree_is_not_ready(documents: list[Doc]) -> None:
    assert not tree(*documents).ready
    assert tree(*RACKS).ready


def test_members_that_cannot_be_read_or_do_not_exist_are_nobody() -> None:
    broken = {"type": "Node", "selector": {"regexMatch": {"pattern": "("}}}
    network = tree(hyper_node("a", 1, broken, exactly("gone"), exactly("nobody", node=False)))
    assert network.ready
    assert network.nodes_of("a") == frozenset()


def test_the_tree_follows_nodes_and_hypernodes() -> None:
    yard = RoundScenario().node("n0").node("n1", {"rack": "r"})
    yard.put(
        VC_HYPER_NODE,
        hyper_node("s", 1, {"type": "Node", "selector": {"labelMatch": {"matchLabels": {"rack": "r"}}}}),
    )
    first = yard.open().topology
    assert first.nodes_of("s") == {"n1"}
    assert yard.open().topology is first, "nothing changed"
    yard.node("n0", {"rack": "r"})
    assert yard.open().topology.nodes_of("s") == {"n0", "n1"}


def test_numa_layouts_and_shards_are_read() -> None:
    layout = compile_numa_topology(
        {
            "metadata": {"name": "n0"},
            "spec": {
                "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "best-effort"},
                "resReserved": {"cpu": "500m"},
                "numares": {"cpu": {"allocatable": "0-2,5", "capacity": 6}},
                "cpuDetail": {"0": {"numa": 0, "socket": 0, "core": 0}, "5": {"numa": 1, "socket": 1, "core": 2}},
            },
        }
    )
    assert layout.allocatable["cpu"] == {0, 1, 2, 5}
    assert layout.reserved == {"cpu": 500}
    assert layout.cpus[5].numa == 1
    assert parse_number_set("") == frozenset()
    shard = compile_node_shard(
        {"metadata": {"name": "volcano"}, "spec": {"nodesDesired": ["a"]}, "status": {"nodesInUse": ["b"]}}
    )
    assert (shard.desired, shard.in_use) == ({"a"}, {"b"})


# ---- the plugin ----


def yard_of_racks(**topology: Any) -> RoundScenario:
    yard = RoundScenario()
    for name, labels in NODES.items():
        yard.node(name, labels, cpu="4")
    for document in RACKS:
        yard.put(VC_HYPER_NODE, document)
    return yard.queue("default").group("job", minMember=2, networkTopology=topology or None)


def test_a_gradient_goes_from_near_to_far_and_leaves_out_what_is_too_small() -> None:
    yard = yard_of_racks(mode="hard", highestTierAllowed=2).group(
        "job", minMember=3, minResources={"cpu": "9"}, networkTopology={"highestTierAllowed": 2}
    )
    plugin = NetworkTopologyAware()
    round = yard.pod("x", "job", asks={"cpu": "3"}).open(plugin)
    job = round.jobs["default/job"]
    assert plugin.gradient_for_job(job, ROOT, Purpose.ALLOCATE) == [["t0"]]
    sub_job = job.sub_jobs["default/job"]
    assert plugin.gradient_for_sub_job(sub_job, ROOT, Purpose.ALLOCATE) == [["s2", "s0", "s1"], ["t0"]]
    assert plugin.gradient_for_sub_job(sub_job, "s1", Purpose.ALLOCATE) == [["s1"]]
    assert plugin.gradient_for_sub_job(sub_job, ROOT, Purpose.EVICT) == [["t0"], ["s2", "s0", "s1"]]


def test_who_is_somewhere_already_stays_within_its_tier() -> None:
    yard = yard_of_racks(mode="hard", highestTierAllowed=1).pod("w", "job", on="n2").pod("x", "job")
    plugin = NetworkTopologyAware()
    round = yard.open(plugin)
    job = round.jobs["default/job"]
    assert job.allocated_hyper_node == "s1"
    assert plugin.gradient_for_job(job, ROOT, Purpose.ALLOCATE) == [["s1"]]
    assert plugin.gradient_for_job(job, "s0", Purpose.ALLOCATE) == []


@pytest.mark.parametrize(("compatible", "where"), [(True, ""), (False, "s1")])
def test_parts_without_a_topology_show_the_original_nothing_of_where_their_job_is(compatible: bool, where: str) -> None:
    selector = {"matchLabels": {"job": "j"}}
    policy = {"name": "p", "subGroupSize": 1, "labelSelector": selector, "matchLabelKeys": ["part"]}
    yard = yard_of_racks().group("job", networkTopology={"highestTierAllowed": 1}, subGroupPolicy=[policy])
    yard.pod("w", "job", on="n2", labels={"job": "j", "part": "0"})
    round = yard.open(NetworkTopologyAware(), compatible=compatible)
    assert round.jobs["default/job"].allocated_hyper_node == where


def test_soft_preferences_get_every_tier() -> None:
    plugin = NetworkTopologyAware()
    round = yard_of_racks(mode="soft").pod("x", "job").open(plugin)
    gradient = plugin.gradient_for_job(round.jobs["default/job"], ROOT, Purpose.ALLOCATE)
    assert gradient == [["s2", "s0", "s1"], ["t0"], [ROOT]]


def test_evictions_look_at_the_widest_few() -> None:
    plugin = NetworkTopologyAware(most=3)
    round = yard_of_racks(mode="soft").pod("x", "job").open(plugin)
    gradient = plugin.gradient_for_job(round.jobs["default/job"], ROOT, Purpose.EVICT)
    assert gradient == [[ROOT], ["t0"], ["s1"]]


def test_the_fuller_hypernode_is_liked_better() -> None:
    yard = yard_of_racks(mode="hard", highestTierAllowed=1).pod("there", on="n2", asks={"cpu": "2"})
    yard.pod("x", "job", asks={"cpu": "2"}).pod("y", "job", asks={"cpu": "2"})
    plugin = NetworkTopologyAware(weight=2)
    round = yard.open(plugin)
    sub_job = round.jobs["default/job"].sub_jobs["default/job"]
    assert plugin.hyper_node_order(sub_job, ["s0", "s1"]) == {"s0": pytest.approx(100), "s1": pytest.approx(150)}


def test_equally_full_hypernodes_are_ordered_by_how_many_tasks_they_have() -> None:
    yard = yard_of_racks(mode="hard", highestTierAllowed=2).pod("w", "job", on="n2", asks={"cpu": "2"})
    yard.pod("there", on="n0", asks={"cpu": "2"}).pod("x", "job", asks={"cpu": "2"})
    plugin = NetworkTopologyAware()
    round = yard.open(plugin)
    sub_job = round.jobs["default/job"].sub_jobs["default/job"]
    given = plugin.hyper_node_order(sub_job, ["s0", "s1"])
    assert given["s1"] - given["s0"] == pytest.approx(50)


def test_nodes_near_the_job_are_liked_by_tier() -> None:
    plugin = NetworkTopologyAware()
    round = yard_of_racks(mode="hard", highestTierAllowed=2).pod("x", "job").pod("y", "job").open(plugin)
    waiting = task(round, "x")
    assert set(scores(plugin, round, "x").values()) == {0.0}, "nobody is anywhere yet"
    waiting.hyper_node = "s0"
    assert scores(plugin, round, "x") == pytest.approx({"n0": 100, "n1": 100, "n2": 50, "n3": 50, "n4": 0, "n5": 0})


def test_pods_that_do_not_care_fill_what_is_begun() -> None:
    yard = yard_of_racks().group("job").pod("there", on="n2", asks={"cpu": "2"}).pod("x", "job", asks={"cpu": "2"})
    plugin = NetworkTopologyAware(fading=0.5)
    round = yard.open(plugin)
    whole = 1 + 0.5 + 0.25
    s1 = (4 / 8 + 0.5 * 4 / 16 + 0.25 * 4 / 24) / whole
    s2 = (2 / 8 + 0.5 * 1.0 + 0.25 * 4 / 24) / whole
    given = scores(plugin, round, "x")
    assert given["n3"] == pytest.approx(100 * s1)
    assert given["n5"] == pytest.approx(100 * s2), "a node without a HyperNode in a tier is as good as full"
    spare = NetworkTopologyAware(packs_others=False)
    assert set(scores(spare, yard.open(spare), "x").values()) == {0.0}


def test_a_job_goes_into_one_rack_as_a_whole() -> None:
    yard = yard_of_racks(mode="hard", highestTierAllowed=1).pod("there", on="n0", asks={"cpu": "3"})
    for number in range(2):
        yard.pod(f"x{number}", "job", asks={"cpu": "3"})
    placed = binds(yard.run(GangTierPlugin(), NetworkTopologyAware()))
    assert len(placed) == 2
    assert set(placed.values()) in ({"n2", "n3"}, {"n4", "n5"})


def test_a_job_that_fits_no_rack_waits() -> None:
    yard = yard_of_racks(mode="hard", highestTierAllowed=1).group(
        "job", minMember=3, networkTopology={"highestTierAllowed": 1}
    )
    for number in range(3):
        yard.pod(f"x{number}", "job", asks={"cpu": "3"})
    assert binds(yard.run(GangTierPlugin(), NetworkTopologyAware())) == {}
