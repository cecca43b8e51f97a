"""NodeMetrics, Devices, batch and mid resources of simulated nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.koordinator.agents.node_agents import NodeAgents
from fairlead.koordinator.agents.node_topologies import node_topology
from fairlead.koordinator.kinds import KOORD_DEVICE, KOORD_NODE_METRIC, KOORD_NODE_TOPOLOGY
from fairlead.koordinator.records.cpu_topology import compile_node_topology, parse_cpus
from fairlead.koordinator.records.node_metrics import compile_node_metric
from fairlead.koordinator.records.overcommit import (
    DEFAULT_STRATEGY,
    ColocationStrategy,
    NodeLoad,
    PodLoad,
    batch_resources,
    differs,
    mid_resources,
)
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness

GI = 1 << 30
BATCH_CPU, BATCH_MEMORY = "kubernetes.io/batch-cpu", "kubernetes.io/batch-memory"


def of(*pods: PodLoad, **more: Any) -> NodeLoad:
    """A node of 100 cores and 100Gi whose system uses 5 cores."""
    facts: dict[str, Any] = {
        "capacity": {"cpu": 100_000, "memory": 100 * GI}, "system": {"cpu": 5000}, "reserved": {},
        "used": {"cpu": 35_000}, "prod_reclaimable": {}, "vanished": {},
    }  # fmt: skip
    return NodeLoad(pods=pods, **{**facts, **more})


def prod(asked: int, used: int | None, qos: str = "LS", band: str = "koord-prod") -> PodLoad:
    return PodLoad(band, qos, {"cpu": asked}, None if used is None else {"cpu": used})


def strategy(**changes: Any) -> ColocationStrategy:
    fields = {name: getattr(DEFAULT_STRATEGY, name) for name in ColocationStrategy.__slots__}
    return ColocationStrategy(**{**fields, **changes})


@pytest.mark.parametrize(
    ("load", "how", "cpu"),
    [
        (of(prod(50_000, 30_000)), DEFAULT_STRATEGY, 25_000),
        (of(prod(50_000, None)), DEFAULT_STRATEGY, 5000),
        (of(prod(8000, 1000, "LSE")), DEFAULT_STRATEGY, 47_000),
        (of(prod(8000, 1000, "BE", "koord-batch")), DEFAULT_STRATEGY, 55_000),
        (of(prod(8000, 1000, "LS", "koord-mid")), DEFAULT_STRATEGY, 54_000),
        (of(prod(90_000, 90_000)), DEFAULT_STRATEGY, 0),
        (of(reserved={"cpu": 10_000}), DEFAULT_STRATEGY, 50_000),
        (of(vanished={"cpu": 7000}), DEFAULT_STRATEGY, 48_000),
        (of(prod(20_000, 5000)), strategy(policy={"cpu": "maxUsageRequest", "memory": "usage"}), 35_000),
        (of(prod(20_000, None)), strategy(policy={"cpu": "maxUsageRequest", "memory": "usage"}), 35_000),
        (of(vanished={"cpu": 7000}), strategy(policy={"cpu": "maxUsageRequest", "memory": "usage"}), 48_000),
        (of(), strategy(batch_threshold={"cpu": 30, "memory": None}), 30_000),
        (of(), strategy(reclaim_percent={"cpu": 100, "memory": 65}), 95_000),
    ],
)
def test_batch_resources_follow_the_formula(load: NodeLoad, how: ColocationStrategy, cpu: int) -> None:
    assert batch_resources(load, how)[BATCH_CPU] == cpu


@pytest.mark.parametrize(
    ("load", "how", "cpu"),
    [
        (of(prod_reclaimable={"cpu": 20_000}), DEFAULT_STRATEGY, 20_000),
        (of(prod_reclaimable={"cpu": 90_000}), DEFAULT_STRATEGY, 65_000),
        (of(prod(55_000, 1), prod_reclaimable={"cpu": 20_000}), strategy(mid_unallocated_percent=50), 40_000),
        (of(prod_reclaimable={"cpu": 20_000}), strategy(mid_threshold={"cpu": 10, "memory": 100}), 10_000),
    ],
)
def test_mid_resources_follow_the_formula(load: NodeLoad, how: ColocationStrategy, cpu: int) -> None:
    assert mid_resources(load, how)["kubernetes.io/mid-cpu"] == cpu


def test_small_moves_are_not_written() -> None:
    assert not differs({"a": 100}, {"a": 110})
    assert differs({"a": 100}, {"a": 111})
    assert differs({}, {"a": 1})


# ---- the controller ----


def reported(cluster: Harness, name: str) -> Doc:
    found = cluster.store.get(KOORD_NODE_METRIC, "", name)
    assert found is not None
    return found


def allocatable(cluster: Harness, name: str) -> Doc:
    found = cluster.get("node", name)
    assert found is not None
    given: Doc = found["status"]["allocatable"]
    return given


def test_a_node_reports_what_its_pods_use(cluster: Harness) -> None:
    metric = compile_node_metric(reported(cluster, "n1"))
    assert metric.usage == {"cpu": 3500, "memory": 3 * GI}
    assert metric.system == {"cpu": 500, "memory": GI}
    assert metric.pods["default/asks"].usage == {"cpu": 2000, "memory": 2 * GI}
    assert metric.pods["default/says"].usage == {"cpu": 1000, "memory": 0}
    assert metric.aggregated["p95", 300.0] == metric.usage
    assert metric.prod_reclaimable == {"cpu": 3000, "memory": 0}


def test_batch_resources_are_written_to_the_node(cluster: Harness) -> None:
    given = allocatable(cluster, "n1")
    # 8 cores and 32Gi: less 40 and 35 percent, less 3.5 cores and 3Gi in use
    assert given[BATCH_CPU] == "1300"
    assert given["cpu"] == "8"
    assert given["kubernetes.io/mid-cpu"] == "3k"


def test_batch_resources_leave_what_the_node_keeps_for_itself(cluster: Harness) -> None:
    kept = json.dumps({"resources": {"cpu": "1"}, "applyPolicy": "ReservedCPUsOnly"})
    cluster.patch("node", "n1", {"metadata": {"annotations": {"node.koordinator.sh/reservation": kept}}})
    cluster.run(61)
    # a core in place of the half that the system uses
    assert allocatable(cluster, "n1")[BATCH_CPU] == "800"


def test_reports_come_every_minute_and_stop_when_the_node_falls_silent(cluster: Harness) -> None:
    first = reported(cluster, "n1")["status"]["updateTime"]
    cluster.run(61)
    second = reported(cluster, "n1")["status"]["updateTime"]
    assert second > first
    cluster.patch("node", "n1", {"metadata": {"annotations": {"fairlead.io/fail": "true"}}})
    cluster.run(200)
    assert reported(cluster, "n1")["status"]["updateTime"] <= second


def test_gpus_have_a_device_object(cluster: Harness) -> None:
    device = cluster.store.get(KOORD_DEVICE, "", "g1")
    assert device is not None
    gpus = device["spec"]["devices"]
    assert [one["minor"] for one in gpus] == [0, 1, 2, 3]
    assert [one["topology"]["pcieID"] for one in gpus] == ["0", "0", "1", "1"]
    assert [one["topology"]["nodeID"] for one in gpus] == [0, 0, 1, 1]
    assert gpus[0]["resources"]["koordinator.sh/gpu-memory"] == "40Gi"
    given = allocatable(cluster, "g1")
    assert given["koordinator.sh/gpu-core"] == "400"
    assert cluster.store.get(KOORD_DEVICE, "", "n1") is None


def test_real_nodes_are_left_alone(cluster: Harness) -> None:
    assert cluster.store.get(KOORD_NODE_METRIC, "", "real") is None


@pytest.fixture
def cluster() -> Harness:
    real = node("real").doc()
    real["metadata"]["annotations"] = {}
    gpus = node("g1").annotated({"fairlead.io/gpu-memory": "40Gi"}).doc()
    for part in ("capacity", "allocatable"):
        gpus["status"][part]["nvidia.com/gpu"] = "4"
    busy = node("n1").annotated({"fairlead.io/usage": "cpu=500m,memory=1Gi"})
    made = Harness(nodes=[busy, gpus, real], schedulers=[], controllers=[NodeAgents], housekeeping="none")
    made.apply(
        pod("asks").asks(cpu="2", memory="2Gi"),
        pod("says").asks(cpu="4").annotated({"fairlead.io/usage": "cpu=1"}),
    )
    for name in ("asks", "says"):
        made.bind(name, "n1")
    made.run(61)
    return made


def test_a_simulated_node_reports_its_cpus_and_pods_are_bound_to_them() -> None:
    cluster = Harness(nodes=[node("n")], config="koordinator", controllers=[NodeAgents])
    cluster.run(1)
    doc = cluster.store.get(KOORD_NODE_TOPOLOGY, "", "n")
    assert doc is not None
    topology = compile_node_topology(doc)
    assert {number: len(cpus) for number, cpus in topology.cpus.of_numa.items()} == {0: 4, 1: 4}
    assert topology.numa == ((0, {"cpu": 4000, "memory": 16 * GI}), (1, {"cpu": 4000, "memory": 16 * GI}))
    for number in range(3):
        labels = {"koordinator.sh/qosClass": "LSR", "koordinator.sh/priority-class": "koord-prod"}
        bound = pod(f"p{number}").labelled(labels).asks(cpu="2", memory="1Gi").doc()
        bound["spec"]["schedulerName"] = "koord-scheduler"
        requests = bound["spec"]["containers"][0]["resources"]["requests"]
        bound["spec"]["containers"][0]["resources"]["limits"] = dict(requests)
        cluster.apply(bound)
    cluster.run(5)
    given = []
    for one in cluster.store.list(kinds.POD):
        text = one["metadata"].get("annotations", {}).get("scheduling.koordinator.sh/resource-status")
        assert text, one["status"]
        given += sorted(parse_cpus(json.loads(text)["cpuset"]))
    assert len(given) == len(set(given)) == 6


@pytest.mark.parametrize(
    ("cpu", "places"),
    [("500m", None), ("1", [1]), ("3", [3]), ("4", [2, 2]), ("5", [4, 1]), ("96", [48, 48])],
)
def test_cpus_of_a_node_are_on_one_or_two_numa_nodes(cpu: str, places: list[int] | None) -> None:
    offered = {"cpu": cpu, "memory": "8Gi"}
    made = node_topology({"metadata": {"name": "n"}, "status": {"capacity": offered, "allocatable": offered}})
    if places is None:
        assert made is None
        return
    assert made is not None
    topology = compile_node_topology(made)
    assert [len(topology.cpus.of_numa[number]) for number in sorted(topology.cpus.of_numa)] == places
    assert sum(amounts["cpu"] for _, amounts in topology.numa) == 1000 * sum(places)
