"""Volcano's smaller plugins in whole clusters: from objects to bindings and evictions."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from fairlead.core.model import kinds
from fairlead.core.model.usage import NodeUsage
from fairlead.runtime.virtual import Latencies
from fairlead.testing.builders import (
    NodeBuilder,
    ReplicaSetBuilder,
    node,
    nodes,
    pod,
    podgroup,
    priority_class,
    replica_set,
)
from fairlead.volcano.kinds import VC_NUMATOPOLOGY
from tests.support.volcano import VolcanoHarness, conf

PREEMPT = "allocate, backfill, preempt"


def crowded(*protection: str, cooldown: str = "0s", pod_class: str = "low") -> VolcanoHarness:
    """One node that lesser pods fill, and somebody more important who would like half of it."""
    tier = "; ".join(("priority", "gang enablePreemptable: false", *protection))
    world = VolcanoHarness(conf(PREEMPT, tier, "predicates; proportion"), nodes(1))
    world.apply(priority_class("high", 1000), priority_class("low", 10))
    for at in range(2):
        member = world.member(f"low{at}", 0, {"cpu": "2"}, pod_class=pod_class)
        group = podgroup(f"low{at}", 1).in_queue("default").having(priorityClassName="low")
        world.apply(group, member.labelled({"volcano.sh/cooldown-time": cooldown}))
    world.run(10)
    assert sum(world.running("low").values()) == 2
    world.gang("high", 1, asks={"cpu": "2"}, priority_class="high", pod_class="high")
    return world


def test_a_pod_placed_lately_is_evicted_when_its_cooldown_is_over() -> None:
    world = crowded("cdp", cooldown="5m")
    world.run(240)
    assert (world.running("low").total(), world.running("high")) == (2, {})
    world.run(120)
    assert (world.running("low").total(), world.running("high")) == (1, {"high": 1})


def test_whatever_the_cluster_needs_is_never_evicted() -> None:
    world = crowded("conformance")
    world.run(60)
    assert world.running("low").total() == 1
    critical = crowded("conformance", pod_class="system-node-critical")
    critical.run(60)
    assert critical.running("low").total() == 2


def numa_topology(name: str, free: str) -> dict[str, Any]:
    """Two sockets of four CPUs, each a NUMA node."""
    return {
        "apiVersion": VC_NUMATOPOLOGY.api_version,
        "kind": VC_NUMATOPOLOGY.kind,
        "metadata": {"name": name},
        "spec": {
            "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "single-numa-node"},
            "numares": {"cpu": {"allocatable": free, "capacity": 8}},
            "cpuDetail": {str(at): {"numa": at // 4, "socket": at // 4, "core": at // 2} for at in range(8)},
        },
    }


def test_pods_go_where_their_cpus_lie_together() -> None:
    world = VolcanoHarness(
        conf("allocate, backfill", "gang", "predicates; numa-aware; nodeorder"),
        nodes(2, cpu="8", memory="8Gi", pods="9"),
    )
    world.apply(numa_topology("n0", "0,1,4,5"), numa_topology("n1", "0-7"))
    amounts = {"cpu": "3", "memory": "1Gi"}
    policy = {"volcano.sh/numa-topology-policy": "single-numa-node"}
    world.apply(podgroup("job", 2).in_queue("default"))
    for at in range(3):
        world.apply(world.member("job", at, amounts).limited_to(amounts).annotated(policy))
    world.run(30)
    placed = {pod["metadata"]["name"]: pod for pod in world.list(kinds.POD) if pod["spec"].get("nodeName")}
    assert {pod["spec"]["nodeName"] for pod in placed.values()} == {"n1"}, "on n0 no NUMA node has three"
    told = [json.loads(pod["metadata"]["annotations"]["volcano.sh/topology-decision"]) for pod in placed.values()]
    assert sorted(map(json.dumps, told)) == ['{"numa": {"0": {"cpu": "3"}}}', '{"numa": {"1": {"cpu": "3"}}}']


def busy(world: VolcanoHarness, **cpu: float) -> None:
    """What somebody measured just now: n1=90 is a node at ninety percent."""
    world.usage.put({name: NodeUsage(percent, 10.0, world.now) for name, percent in cpu.items()})


def test_pods_go_to_nodes_that_are_really_idle() -> None:
    world = VolcanoHarness(conf("allocate, backfill", "gang", "predicates; usage"), nodes(3))
    busy(world, n0=95, n1=10, n2=60)
    world.gang("a", 4, asks={"cpu": "1"})
    world.run(10)
    assert {pod["spec"]["nodeName"] for pod in world.list(kinds.POD)} == {"n1"}
    world.gang("b", 8, asks={"cpu": "1"})
    world.run(10)
    assert world.running("b") == {}, "n1 is full and n0 too busy: only four more fit"
    world.run(400)
    assert world.running("b") == {"b": 8}, "numbers of more than five minutes ago say nothing"


def test_pods_move_from_busy_nodes_to_idle_ones() -> None:
    strategy = "strategies: [{name: lowNodeUtilization, params: {thresholds: {cpu: 30}, targetThresholds: {cpu: 60}}}]"
    world = VolcanoHarness(
        conf(
            "allocate, backfill, shuffle",
            "gang",
            "predicates; usage; rescheduling arguments: {interval: 1m, " + strategy + "}",
        ),
        nodes(2),
    )
    busy(world, n0=5, n1=70)
    world.apply(elastic("web", "default", 4, cpu="1"))
    world.run(10)
    assert on_nodes(world) == {"n0": 4}
    busy(world, n0=95, n1=5)
    world.run(70)
    assert on_nodes(world) == {"n0": 2, "n1": 2}, "from 95 to below 60 percent it takes two of four cores"


def on_nodes(world: VolcanoHarness) -> Counter[str]:
    living = [pod for pod in world.list(kinds.POD) if not pod["metadata"].get("deletionTimestamp")]
    return Counter(pod["spec"].get("nodeName", "") for pod in living)


def elastic(name: str, queue_name: str, replicas: int, **asks: str) -> ReplicaSetBuilder:
    """Pods that come back when they are evicted."""
    template = pod("t").labelled(app=name).annotated({"scheduling.volcano.sh/queue-name": queue_name})
    return replica_set(name).replicas(replicas).of(template.scheduled_by("volcano").asks(dict(asks)))


# ---- deviceshare ----


def card_nodes(*names: str, cards: str = "a") -> list[NodeBuilder]:
    """Each with cards of 16000, called by letters."""
    register = "".join(f"{{0}}-{card},4,16000,NVIDIA-A100,true,hami-core:" for card in cards)
    offers = {"cpu": "16", "memory": "64Gi", "pods": "110", "volcano.sh/vgpu-number": str(4 * len(cards))}
    offers |= {"volcano.sh/vgpu-memory": str(16000 * len(cards)), "volcano.sh/vgpu-cores": str(100 * len(cards))}
    annotation = "volcano.sh/node-vgpu-register"
    return [node(name).offers(offers).annotated({annotation: register.format(name)}) for name in names]


def sharing(*arguments: str) -> str:
    listed = ", ".join(f"deviceshare.{argument}" for argument in ("VGPUEnable: true", *arguments))
    return conf("allocate, backfill", "gang", f"predicates; deviceshare arguments: {{{listed}}}; nodeorder")


def with_cards(world: VolcanoHarness, group: str, count: int, memory: str, **labels: str) -> None:
    amounts = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": memory}
    world.apply(podgroup(group, count).in_queue("default"))
    members = [world.member(group, at, amounts).limited_to(amounts).labelled(labels) for at in range(count)]
    world.apply(*members)


def cards_of(world: VolcanoHarness, group: str) -> Counter[str]:
    """How many pods of a group have which card."""
    ids = [
        (pod["metadata"].get("annotations") or {}).get("volcano.sh/vgpu-ids-new", "")
        for pod in world.list(kinds.POD)
        if pod["metadata"]["name"].startswith(f"{group}-")
    ]
    return Counter(one.split(",")[0] for one in ids if one)


def test_pods_share_cards_as_far_as_their_memory_goes() -> None:
    world = VolcanoHarness(sharing(), card_nodes("n0", "n1"))
    with_cards(world, "a", 4, "7000")
    with_cards(world, "b", 1, "3000")
    world.run(10)
    assert cards_of(world, "a") == {"n0-a": 2, "n1-a": 2}
    assert world.running() == {"a": 4}, "what is left of either card is not enough for b, though together it would be"
    world.delete(kinds.POD, "a-w-0")
    world.run(60)
    assert world.running("b") == {"b": 1}, "when the card is really free"


def test_cards_are_not_given_twice_while_a_binding_is_under_way() -> None:
    """Bindings take three seconds here, and a round runs every second. Of the memory of both cards three would fit."""
    world = VolcanoHarness(sharing(), card_nodes("n0", cards="ab"), latencies=Latencies(write=lambda _: 3.0))
    for at in range(3):
        with_cards(world, f"g{at}", 1, "9000")
        world.run(1)
    world.run(30)
    given = cards_of(world, "g0") + cards_of(world, "g1") + cards_of(world, "g2")
    assert given == {"n0-a": 1, "n0-b": 1}


def test_a_gang_that_finds_no_cards_for_all_takes_none() -> None:
    world = VolcanoHarness(sharing(), card_nodes("n0"))
    with_cards(world, "large", 3, "7000")
    with_cards(world, "small", 2, "7000")
    world.run(20)
    assert (cards_of(world, "large"), cards_of(world, "small")) == ({}, {"n0-a": 2})


def test_pods_of_a_rule_have_cards_to_themselves() -> None:
    world = VolcanoHarness(sharing("GPUExclusiveRules: [{app: train}]"), card_nodes("n0", "n1"))
    with_cards(world, "x", 1, "1000", app="train")
    with_cards(world, "y", 1, "1000", app="train")
    with_cards(world, "z", 1, "1000", app="train")
    with_cards(world, "other", 2, "1000", app="serve")
    world.run(20)
    trained = cards_of(world, "x") + cards_of(world, "y") + cards_of(world, "z")
    assert trained == {"n0-a": 1, "n1-a": 1}
    assert cards_of(world, "other").total() == 2


def test_a_locked_node_gives_cards_to_one_pod_at_a_time() -> None:
    world = VolcanoHarness(sharing("NodeLockEnable: true"), card_nodes("n0"))
    with_cards(world, "a", 1, "1000")
    with_cards(world, "b", 1, "1000")
    world.run(20)
    assert world.running().total() == 1
    locked = world.get(kinds.NODE, "n0")
    assert locked is not None
    assert "hamivgpu" in locked["metadata"]["annotations"]
    world.patch(kinds.NODE, "n0", {"metadata": {"annotations": {"hamivgpu": None}}})
    world.run(20)
    assert world.running() == {"a": 1, "b": 1}, "the device plugin took the lock away"


def test_memory_of_ascend_cards_is_counted_by_cards_alone() -> None:
    listed = json.dumps([{"id": name, "count": 7, "devmem": 21527, "devcore": 8} for name in ("c0", "c1")])
    npus = node("npu").offers(cpu="16", memory="64Gi", pods="110").offers({"huawei.com/Ascend310P": "14"})
    world = VolcanoHarness(
        conf(
            "enqueue, allocate, backfill",
            "gang; overcommit",
            "predicates; proportion; deviceshare arguments: {deviceshare.AscendHAMiVNPUEnable: true}",
        ),
        [npus.annotated({"hami.io/node-register-Ascend310P": listed})],
    )
    amounts = {"huawei.com/Ascend310P": "1", "huawei.com/Ascend310P-memory": "12000"}
    world.apply(podgroup("a", 2).in_queue("default").having(minResources=amounts))
    world.apply(*(world.member("a", at, amounts).limited_to(amounts) for at in range(3)))
    world.run(20)
    told = [
        pod["metadata"]["annotations"]["hami.io/Ascend310P-devices-allocated"]
        for pod in world.list(kinds.POD)
        if pod["spec"].get("nodeName")
    ]
    assert sorted(told) == ["c0,Ascend310P,12288,0:;", "c1,Ascend310P,12288,0:;"]
