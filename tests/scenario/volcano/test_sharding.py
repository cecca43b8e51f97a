"""Several schedulers over one cluster with the Volcano profile: nodes by label, replicas on a ring, NodeShards."""

from __future__ import annotations

import pytest

from fairlead.core.model import kinds
from fairlead.testing.builders import Builder, node, pod, podgroup, priority_class, queue
from fairlead.volcano.kinds import VC_NODE_SHARD, VC_POD_GROUP
from fairlead.volcano.records.ring import Ring
from fairlead.volcano.rounds.partition import Partition, Sharding, node_labels
from tests.support.documents import GROUP
from tests.support.sharding import Shared
from tests.support.volcano import conf, round_drivers

REPLICAS = tuple(f"volcano-scheduler-{number}" for number in range(3))


def room(name: str, cpu: str = "4", **labels: str) -> Builder:
    return node(name).offers(cpu=cpu, memory="16Gi", pods="110").labelled(labels)


def hard(name: str) -> Partition:
    return Partition(sharding=Sharding.HARD, shard=name)


SOFT = Partition(sharding=Sharding.SOFT, shard="mine")


# ---- --node-selector ----


def test_only_nodes_with_one_of_the_selected_labels_are_used() -> None:
    wanted = Partition(node_labels(["role:train", " pool : b ", "nonsense", "empty:"]))
    nodes = [room("a", role="train"), room("b", pool="b"), room("c", role="serve"), room("d")]
    world = Shared(wanted, nodes=nodes, text=conf("enqueue, allocate", "priority; gang", "predicates; nodeorder"))
    world.gang("job", 4)
    world.run(5)
    assert world.nodes_of("job") == ["a", "a", "b", "b"]
    world.gang("more", 1, cpu="3")
    world.run(5)
    assert world.said("more-w-0").startswith("0/2 nodes are unavailable"), "the others are not even counted"


def test_a_node_that_loses_its_label_leaves() -> None:
    world = Shared(Partition(node_labels(["role:train"])), nodes=[room("a", role="train"), room("b", role="train")])
    world.patch(kinds.NODE, "a", {"metadata": {"labels": {"role": None}}})
    world.run(2)
    world.gang("job", 2)
    world.run(5)
    assert world.nodes_of("job") == ["b", "b"]


def test_queues_share_only_the_labelled_nodes() -> None:
    """What queues deserve is computed from this total: four cores, not eight."""
    world = Shared(Partition(node_labels(["role:train"])), nodes=[room("a", role="train"), room("b")])
    world.gang("first", 2)
    world.run(3)
    latest = round_drivers(world.schedulers[0])[0].latest
    assert latest is not None
    assert latest.total.cpu == 4000


# ---- replicas on a ring ----


def test_the_ring_is_volcanos() -> None:
    """As its consistent hashing answers for three replicas."""
    ring = Ring(REPLICAS)
    asked = ("n0", "n1", "n2", "n3", "node-a", "job-1", "job-2", "", "train", "x" * 70)
    assert [REPLICAS.index(ring.owner(name)) for name in asked[:9]] == [2, 2, 0, 1, 1, 2, 1, 2, 1]
    assert ring.owner(asked[9]) in REPLICAS


def test_replicas_divide_nodes_and_groups_among_them() -> None:
    ring = Ring(REPLICAS)
    names = [f"n{number}" for number in range(12)]
    world = Shared(*(Partition(ring=ring, replica=one) for one in REPLICAS), nodes=[room(name) for name in names])
    for number in range(6):
        world.gang(f"job-{number}", 2, cpu="1")
    world.run(10)
    for number in range(6):
        owner = ring.owner(f"job-{number}")
        placed = world.nodes_of(f"job-{number}-")
        assert len(placed) == 2, "every group has its scheduler"
        assert {ring.owner(name) for name in placed} == {owner}, "which keeps to its own nodes"
    assert len({ring.owner(f"job-{number}") for number in range(6)}) > 1


def test_other_replicas_pods_take_up_room_on_ones_own_nodes() -> None:
    ring = Ring(REPLICAS)
    mine = ring.owner("job-1")
    name = next(f"n{number}" for number in range(20) if ring.owner(f"n{number}") == mine)
    other = next(f"job-{number}" for number in range(20) if ring.owner(f"job-{number}") != mine)
    world = Shared(Partition(ring=ring, replica=mine), nodes=[room(name)])
    stranger = podgroup(other, 1)
    stored = world.apply(stranger)
    world.apply(pod("theirs").annotated({GROUP: other}).owned_by(stored).asks(cpu="3").on(name))
    world.gang("job-1", 1, cpu="2")
    world.run(5)
    assert world.nodes_of("job-1") == []
    assert world.said("job-1-w-0") == "0/1 nodes are unavailable: 1 Insufficient cpu."
    assert "status" not in (world.get(VC_POD_GROUP, other) or {}), "the other's group is left alone"


# ---- NodeShards ----


def test_in_hard_mode_pods_stay_within_the_shard() -> None:
    world = Shared(hard("mine"), nodes=[room("a"), room("b")])
    world.assign("mine", "a")
    world.gang("fits", 2)
    world.gang("waits", 1)
    world.run(5)
    assert world.nodes_of("fits") == ["a", "a"]
    assert world.said("waits-w-0") == (
        "0/2 nodes are unavailable: 1 Insufficient cpu, 1 node isn't in scheduler node shard."
    )
    assert world.used("mine") == ["a"]


def test_without_a_shard_of_ones_own_nothing_is_placed() -> None:
    world = Shared(hard("mine"), nodes=[room("a")])
    world.gang("job", 1)
    world.run(5)
    assert world.nodes_of("job") == []
    world.assign("mine", "a")
    world.run(5)
    assert world.nodes_of("job") == ["a"]
    world.delete(VC_NODE_SHARD, "mine")
    world.run(2)
    world.gang("later", 1)
    world.run(5)
    assert world.nodes_of("later") == ["a"], "a shard that goes leaves its nodes with whom they were"


def test_nodes_change_hands_one_after_the_other() -> None:
    """What another still uses is not ours yet; the status says what is awaited."""
    world = Shared(hard("one"), hard("two"), nodes=[room("a"), room("b"), room("c")])
    world.assign("one", "a", "b")
    world.assign("two", "c")
    world.run(3)
    assert (world.used("one"), world.used("two")) == (["a", "b"], ["c"])
    world.assign("two", "b", "c")
    world.run(3)
    assert world.used("two") == ["c"], "the first still has it"
    assert world.shard("two")["status"]["nodesToAdd"] == ["b"]
    world.assign("one", "a")
    world.run(3)
    assert (world.used("one"), world.used("two")) == (["a"], ["b", "c"])
    assert world.shard("two")["status"]["nodesToAdd"] == []


def test_a_shard_status_that_did_not_change_is_not_written() -> None:
    world = Shared(hard("mine"), nodes=[room("a")])
    world.assign("mine", "a")
    world.run(3)
    before = world.shard("mine")["metadata"]["resourceVersion"]
    world.gang("job", 1)
    world.run(5)
    assert world.shard("mine")["metadata"]["resourceVersion"] == before


def test_in_soft_mode_pods_prefer_the_shard_and_go_beyond_it() -> None:
    """The others would score higher: they are empty."""
    world = Shared(SOFT, nodes=[room("a"), room("b", "32"), room("c", "32")])
    world.assign("mine", "a")
    world.gang("job", 3, cpu="2")
    world.run(5)
    placed = world.nodes_of("job")
    assert placed[:2] == ["a", "a"]
    assert placed[2] in ("b", "c")


def test_in_soft_mode_idle_nodes_outside_come_before_releasing_nodes_of_the_shard() -> None:
    """idle in the shard, idle elsewhere, then what will be idle."""
    world = Shared(SOFT, nodes=[room("a"), room("b")])
    world.assign("mine", "a")
    world.apply(pod("leaving").asks(cpu="4").on("a").ending_after("20s"))
    world.run(2)
    world.delete(kinds.POD, "leaving")
    world.run(2)
    world.gang("job", 1)
    world.run(5)
    assert world.nodes_of("job") == ["b"]


def test_in_soft_mode_backfill_prefers_the_shard() -> None:
    world = Shared(SOFT, nodes=[room("a"), *(room(f"b{number}", "64") for number in range(5))])
    world.assign("mine", "a")
    world.gang("light", 4, cpu="", minimum=1)
    world.run(5)
    assert world.nodes_of("light") == ["a"] * 4


def _full(world: Shared, priority: str = "low", queue: str = "default") -> None:
    """A gang of one on each of the two nodes."""
    for name in ("a", "b"):
        group = podgroup(f"old-{name}", 1).in_queue(queue).having(priorityClassName=priority)
        group = group.annotated({"volcano.sh/preemptable": "true"})
        world.apply(group)
        member = pod(f"old-{name}-0").annotated({GROUP: f"old-{name}", "volcano.sh/preemptable": "true"})
        world.apply(member.scheduled_by("volcano").of_priority(priority).asks(cpu="4").on(name))
    world.run(3)


_PREEMPT = conf("allocate, preempt", "priority; gang enablePreemptable: false; conformance", "predicates; nodeorder")
_TOPOLOGY_AWARE = _PREEMPT + "configurations: [{name: preempt, arguments: {enableTopologyAwarePreemption: true}}]\n"
_GANG_PREEMPT = conf("allocate, gangpreempt", "priority; gang; conformance", "predicates; nodeorder")


@pytest.mark.parametrize("text", [_PREEMPT, _TOPOLOGY_AWARE])
@pytest.mark.parametrize("own", ["a", "b"])
def test_in_soft_mode_preempt_makes_room_in_the_shard_first(text: str, own: str) -> None:
    """a and b are alike, but for whose they are."""
    world = Shared(SOFT, text=text, nodes=[room("a"), room("b")])
    world.apply(priority_class("low", 10), priority_class("high", 1000))
    world.assign("mine", own)
    _full(world)
    world.gang("urgent", 1, cpu="4", priority="high")
    world.run(60)
    assert world.nodes_of("urgent") == [own]
    assert world.nodes_of("old-") == ["b" if own == "a" else "a"], "and nobody else had to go"


@pytest.mark.parametrize("own", ["a", "b"])
def test_in_soft_mode_gang_preemption_prefers_the_shard(own: str) -> None:
    """Whom gangpreempt evicts does not depend on shards; who comes in their place does."""
    world = Shared(SOFT, text=_GANG_PREEMPT, nodes=[room("a"), room("b")])
    world.apply(priority_class("low", 10), priority_class("high", 1000))
    world.assign("mine", own)
    world.gang("old", 2, cpu="4", priority="low")
    world.run(3)
    world.gang("urgent", 1, cpu="4", priority="high")
    world.run(60)
    assert world.nodes_of("urgent") == [own]


@pytest.mark.parametrize("own", ["a", "b"])
def test_in_soft_mode_reclaim_makes_room_in_the_shard_first(own: str) -> None:
    text = conf("allocate, reclaim", "priority; gang; conformance", "predicates; proportion; nodeorder")
    world = Shared(SOFT, text=text, nodes=[room("a"), room("b")])
    world.apply(priority_class("low", 10), queue("greedy"), queue("poor"))
    world.assign("mine", own)
    world.run(2)
    _full(world, queue="greedy")
    world.gang("owed", 1, cpu="4", queue="poor")
    world.run(60)
    assert world.nodes_of("owed") == [own]


def test_in_hard_mode_nobody_outside_of_the_shard_is_evicted() -> None:
    world = Shared(hard("mine"), text=_PREEMPT, nodes=[room("a"), room("b")])
    world.apply(priority_class("low", 10), priority_class("high", 1000))
    world.assign("mine", "b")
    _full(world)
    world.gang("urgent", 2, cpu="4", priority="high", minimum=1)
    world.run(60)
    assert world.nodes_of("urgent") == ["b"]
    assert world.nodes_of("old-") == ["a"]
