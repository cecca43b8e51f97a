"""Queues that share a cluster: what they deserve is what they get, what is owed is given back, and then it is quiet."""

from __future__ import annotations

import pytest

from fairlead.testing.builders import PodBuilder, nodes, priority_class, queue, replica_set
from fairlead.testing.builders import pod as pod_builder
from fairlead.volcano.kinds import VC_QUEUE
from tests.support.volcano import VolcanoHarness, conf

BASICS = "priority; gang; conformance"
WEIGHTS = conf("enqueue, allocate, backfill, reclaim", BASICS, "drf enablePreemptable: false; predicates; proportion")
TREE = conf("allocate, backfill, reclaim", BASICS, "predicates; capacity enableHierarchy: true; nodeorder")
FLAT = conf("allocate, backfill, reclaim", BASICS, "predicates; capacity; nodeorder")


def elastic(name: str, queue_name: str, replicas: int, **asks: str) -> object:
    """Pods that may come and go one by one, each in a group of the ReplicaSet's own: min 1."""
    template: PodBuilder = (
        pod_builder("t")
        .labelled(app=name)
        .annotated({"scheduling.volcano.sh/queue-name": queue_name})
        .scheduled_by("volcano")
        .asks(dict(asks))
    )
    return replica_set(name).replicas(replicas).of(template)


def tasks(world: VolcanoHarness, queue_name: str, count: int, **asks: str) -> None:
    """As many jobs of one pod each: a ReplicaSet each, so that an evicted pod comes back."""
    for at in range(count):
        world.apply(elastic(f"{queue_name}-{at}", queue_name, 1, **asks))  # type: ignore[arg-type]


def shares(world: VolcanoHarness, *names: str) -> dict[str, float]:
    return {name: world.held_cpu(name) for name in names}


def test_the_example_of_the_drf_paper_gives_three_and_two_tasks() -> None:
    """Nine cores and 18 GB; A's tasks ask for 1 core and 4 GB, B's for 3 cores and 1 GB."""
    world = VolcanoHarness(
        conf("allocate, backfill", "gang", "drf; predicates; proportion"),
        nodes(1, cpu="9", memory="18Gi", pods="110"),
    )
    world.gang("a", 1, members=10, asks={"cpu": "1", "memory": "4Gi"})
    world.gang("b", 1, members=10, asks={"cpu": "3", "memory": "1Gi"})
    world.run(10)
    assert world.running() == {"a": 3, "b": 2}


@pytest.mark.parametrize(
    ("weights", "deserved"),
    [({"a": 1, "b": 1}, {"a": 6, "b": 6}), ({"a": 1, "b": 2}, {"a": 4, "b": 8}), ({"a": 5, "b": 1}, {"a": 10, "b": 2})],
)
def test_two_queues_converge_to_their_weights_from_either_side(
    weights: dict[str, int], deserved: dict[str, float]
) -> None:
    for first, second in (("a", "b"), ("b", "a")):
        world = VolcanoHarness(WEIGHTS, nodes(3), queues=[queue(name).weighing(w) for name, w in weights.items()])
        tasks(world, first, 14, cpu="1")
        world.run(20)
        assert world.held_cpu(first) == 12, "alone it may have everything"
        tasks(world, second, 14, cpu="1")
        world.run(120)
        assert shares(world, "a", "b") == deserved
        evicted = world.evictions()
        world.run(600)
        assert shares(world, "a", "b") == deserved
        assert world.evictions() == evicted, "what is owed is given back, and then it stops"


def test_three_queues_converge_and_what_one_does_not_want_goes_to_the_others() -> None:
    world = VolcanoHarness(
        WEIGHTS, nodes(3), queues=[queue(name).weighing(w) for name, w in zip("abc", (1, 2, 3), strict=True)]
    )
    tasks(world, "a", 14, cpu="1")
    world.run(20)
    tasks(world, "b", 14, cpu="1")
    world.run(60)
    assert shares(world, "a", "b", "c") == {"a": 4, "b": 8, "c": 0}
    tasks(world, "c", 14, cpu="1")
    world.run(120)
    assert shares(world, "a", "b", "c") == {"a": 2, "b": 4, "c": 6}


def test_a_tree_of_queues_converges_to_what_its_leaves_deserve() -> None:
    """Two teams deserve half each; within the first, research deserves twice what teaching does."""
    queues = [
        queue("science").deserving(cpu="6"),
        queue("sales").deserving(cpu="6"),
        queue("research").deserving(cpu="4").having(parent="science"),
        queue("teaching").deserving(cpu="2").having(parent="science"),
    ]
    world = VolcanoHarness(TREE, nodes(3), queues=queues)
    tasks(world, "sales", 14, cpu="1")
    world.run(20)
    assert world.held_cpu("sales") == 12, "it borrows what nobody wants"
    tasks(world, "research", 14, cpu="1")
    world.run(60)
    tasks(world, "teaching", 14, cpu="1")
    world.run(200)
    names = ("sales", "research", "teaching")
    assert shares(world, *names) == {"sales": 6, "research": 4, "teaching": 2}
    evicted = world.evictions()
    world.run(600)
    assert world.evictions() == evicted


def test_flat_capacity_shares_and_takes_back() -> None:
    world = VolcanoHarness(FLAT, nodes(3), queues=[queue("a").deserving(cpu="8"), queue("b").deserving(cpu="4")])
    tasks(world, "b", 14, cpu="1")
    world.run(20)
    assert world.held_cpu("b") == 12
    tasks(world, "a", 14, cpu="1")
    world.run(120)
    assert shares(world, "a", "b") == {"a": 8, "b": 4}


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has() -> None:
    world = VolcanoHarness(WEIGHTS, nodes(3), queues=[queue("a").having(reclaimable=False), queue("b")])
    tasks(world, "a", 14, cpu="1")
    world.run(20)
    tasks(world, "b", 14, cpu="1")
    world.run(120)
    assert shares(world, "a", "b") == {"a": 12, "b": 0}


def test_reclaim_does_not_break_a_gang_that_is_protected_in_the_same_tier() -> None:
    """All that the other queue runs is one gang at its minimum: it stays whole."""
    text = conf("enqueue, allocate, backfill, reclaim", "priority; gang; conformance; predicates; proportion")
    world = VolcanoHarness(text, nodes(3), queues=[queue("a"), queue("b")])
    world.gang("whole", 12, queue="a", asks={"cpu": "1"})
    world.run(10)
    assert world.running("whole") == {"whole": 12}
    tasks(world, "b", 6, cpu="1")
    world.run(120)
    assert world.running("whole") == {"whole": 12}
    assert world.evictions() == 0


def test_a_higher_tier_that_names_nobody_protects_nobody() -> None:
    """The same with gang in a tier of its own: where it leaves no victims, the next tier is asked without it."""
    world = VolcanoHarness(WEIGHTS, nodes(3), queues=[queue("a"), queue("b")])
    world.gang("whole", 12, queue="a", asks={"cpu": "1"})
    world.run(10)
    tasks(world, "b", 6, cpu="1")
    world.run(120)
    assert world.running("whole") == {"whole": 6}


PREEMPT = "allocate, backfill, preempt"


def test_preempt_makes_room_for_the_more_important_and_never_loops() -> None:
    tiers = (
        "priority; gang enablePreemptable: false; conformance",
        "drf enablePreemptable: false; predicates; proportion",
    )
    world = VolcanoHarness(conf(PREEMPT, *tiers), nodes(2))
    world.apply(priority_class("high", 1000), priority_class("low", 10))
    for at in range(4):
        world.gang(f"low{at}", 1, asks={"cpu": "2"}, priority_class="low", pod_class="low")
    world.run(10)
    assert sum(world.running("low").values()) == 4
    world.gang("high", 2, asks={"cpu": "2"}, priority_class="high", pod_class="high")
    world.run(60)
    assert world.running("high") == {"high": 2}
    assert sum(world.running("low").values()) == 2
    evicted = world.evictions()
    world.run(900)
    assert world.evictions() == evicted
    assert world.running("high") == {"high": 2}


def test_preempt_takes_only_what_a_gang_has_beyond_its_minimum() -> None:
    world = VolcanoHarness(conf(PREEMPT, BASICS, "predicates; proportion"), nodes(2))
    world.apply(priority_class("high", 1000), priority_class("low", 10))
    world.gang("low", 3, members=4, asks={"cpu": "2"}, priority_class="low", pod_class="low")
    world.run(10)
    world.gang("high", 1, members=2, asks={"cpu": "2"}, priority_class="high", pod_class="high")
    world.run(120)
    assert world.running() == {"low": 3, "high": 1}


def test_a_guarantee_is_kept_free_for_its_queue() -> None:
    guaranteed = queue("g").deserving(cpu="4").having(guarantee={"resource": {"cpu": "4"}})
    world = VolcanoHarness(WEIGHTS, nodes(3), queues=[guaranteed, queue("b")])
    tasks(world, "b", 14, cpu="1")
    world.run(30)
    assert world.held_cpu("b") == 8
    tasks(world, "g", 14, cpu="1")
    world.run(120)
    assert shares(world, "g", "b") == {"g": 6, "b": 6}


def test_the_status_of_a_queue_has_its_state_and_what_is_allocated() -> None:
    """Volcano writes no more there: how many groups are in which phase is for metrics and commands."""
    world = VolcanoHarness(WEIGHTS, nodes(3), queues=[queue("a")])
    tasks(world, "a", 2, cpu="1")
    world.run(10)
    found = world.get(VC_QUEUE, "a")
    assert found is not None
    assert found["status"]["allocated"]["cpu"] == "2"
    assert found["status"]["state"] == "Open"
    assert "running" not in found["status"]
