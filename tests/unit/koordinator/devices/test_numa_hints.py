"""Devices and NUMA policies: a pod's GPUs and its share of NUMA nodes come from the same NUMA nodes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.koordinator.agents.node_topologies import node_topology
from tests.support.documents import asking, node
from tests.support.koordinator import GPU, SCHEDULING, KoordScenario, given_gpus, gpu_devices, koord_pod

POLICY = "node.koordinator.sh/numa-topology-policy"


def machine(policy: str, **options: Any) -> KoordScenario:
    """A scheduler with one node: on NUMA node 0 the GPUs 0 and 1, on NUMA node 1 the GPUs 2 and 3, four CPUs each."""
    scenario = KoordScenario(**options)
    whole = {GPU: "400", "koordinator.sh/gpu-core": "400", "koordinator.sh/gpu-memory-ratio": "400"}
    here = node("n0", {POLICY: policy} if policy else {}, cpu=8, **whole)
    here["status"]["capacity"] = here["status"]["allocatable"]
    devices = gpu_devices("n0", count=4)
    for device in devices["spec"]["devices"]:
        numa = device["minor"] // 2
        device["topology"] = {"socketID": numa, "nodeID": numa, "pcieID": str(numa), "busID": str(device["minor"])}
    topology = node_topology(here)
    assert topology is not None
    scenario.tell(here, devices, topology)
    return scenario


def tried(scenario: KoordScenario, name: str, *, cpu: int, gpus: int = 0, **more: Any) -> Any:
    """A pod after it was tried."""
    wish = {"cpu": str(cpu), **({GPU: str(100 * gpus)} if gpus else {})}
    scenario.tell(koord_pod(name, containers=[asking(wish)], **more))
    scenario.settle()
    return scenario.doc("pods", name, "default")


def held(
    scenario: KoordScenario, name: str, *, gpus: tuple[int, ...] = (), share: int = 100, cpu: int = 1, numa: int = 0
) -> None:
    """A pod that runs on the node and holds a share of some GPUs, and CPUs of a NUMA node."""
    amounts = {"koordinator.sh/gpu-core": str(share), "koordinator.sh/gpu-memory-ratio": str(share)}
    given = {"gpu": [{"minor": minor, "resources": amounts} for minor in gpus]}
    parts = {"numaNodeResources": [{"node": numa, "resources": {"cpu": str(cpu)}}]}
    wish = {"cpu": str(cpu), **({GPU: str(share * len(gpus))} if gpus else {})}
    document = koord_pod(name, containers=[asking(wish)], nodeName="n0")
    notes = {"resource-status": json.dumps(parts), **({"device-allocated": json.dumps(given)} if gpus else {})}
    document["metadata"]["annotations"] = {SCHEDULING + key: text for key, text in notes.items()}
    scenario.tell(document)


def numa_of(doc: Any) -> set[int]:
    """The NUMA nodes that a pod was given shares of."""
    text = doc["metadata"]["annotations"][SCHEDULING + "resource-status"]
    return {part["node"] for part in json.loads(text)["numaNodeResources"]}


@pytest.mark.parametrize("policy", ["SingleNUMANode", "Restricted", "BestEffort"])
def test_gpus_and_cpus_come_from_the_numa_node_that_has_both(policy: str) -> None:
    scenario = machine(policy)
    held(scenario, "other", gpus=(0, 1), cpu=1, numa=0)
    doc = tried(scenario, "a", cpu=3, gpus=1)
    assert (numa_of(doc), set(given_gpus(doc)) <= {2, 3}) == ({1}, True)


def test_without_alignment_cpus_come_from_where_they_suit() -> None:
    scenario = machine("SingleNUMANode", arguments={"DeviceShare": {"disableDeviceNUMATopologyAlignment": True}})
    held(scenario, "other", gpus=(0, 1), cpu=1, numa=1)
    doc = tried(scenario, "a", cpu=3, gpus=1)
    assert (numa_of(doc), set(given_gpus(doc)) <= {2, 3}) == ({0}, True)


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        ("SingleNUMANode", "cpu prefer [01] among [01 11],gpu prefer [10] among [10 11]"),
        ("Restricted", "cpu prefer [11] among [11] & gpu prefer [10] among [10 11]"),
    ],
)
def test_a_pod_whose_gpus_and_cpus_are_on_different_numa_nodes_is_refused(policy: str, why: str) -> None:
    scenario = machine(policy)
    held(scenario, "gpus", gpus=(0, 1), cpu=0, numa=0)
    held(scenario, "cpus", cpu=3, numa=1)
    if policy == "Restricted":
        held(scenario, "more", cpu=3, numa=0)
    tried(scenario, "a", cpu=2, gpus=1)
    assert f"1 Unaligned NUMA Hint cause {why}" in scenario.message("a")


def test_gpus_that_only_two_numa_nodes_have_together_come_from_both_unless_one_is_wanted() -> None:
    for policy, placed in (("Restricted", True), ("SingleNUMANode", False)):
        scenario = machine(policy)
        held(scenario, "left", gpus=(0,), cpu=1, numa=0)
        held(scenario, "right", gpus=(2,), cpu=1, numa=1)
        doc = tried(scenario, "a", cpu=2, gpus=2)
        assert bool(doc["spec"].get("nodeName")) is placed
        if placed:
            assert (numa_of(doc), set(given_gpus(doc))) == ({0, 1}, {1, 3})


def test_the_numa_node_of_the_best_gpus_comes_before_the_one_with_more_cpus() -> None:
    """The GPU beside one that is in use is the best; the other NUMA node has more CPUs, and the lower number."""
    scenario = machine("SingleNUMANode")
    held(scenario, "other", gpus=(2,), cpu=2, numa=1)
    doc = tried(scenario, "a", cpu=1, gpus=1)
    assert (numa_of(doc), set(given_gpus(doc))) == ({1}, {3})


def test_a_node_without_enough_gpus_says_so() -> None:
    scenario = machine("SingleNUMANode")
    tried(scenario, "a", cpu=1, gpus=3)
    assert "1 Unaligned NUMA Hint cause cpu prefer" in scenario.message("a")
    held(scenario, "other", gpus=(0, 1, 2, 3), share=50, cpu=0)
    tried(scenario, "b", cpu=1, gpus=1)
    assert scenario.message("b").startswith("0/1 nodes are available: 1 Insufficient GPU Devices.")


@pytest.mark.parametrize("compatible", [False, True])
def test_only_the_original_finds_out_in_reserve_that_gpus_are_missing(compatible: bool) -> None:
    arguments = {"DeviceShare": {"disableDeviceNUMATopologyAlignment": True}}
    scenario = machine("SingleNUMANode", arguments=arguments, compatible=compatible)
    held(scenario, "other", gpus=(0, 1, 2, 3), share=50, cpu=0)
    tried(scenario, "a", cpu=1, gpus=1)
    assert ("preemption" in scenario.message("a")) is not compatible


def test_cpus_that_a_scheduler_that_died_wrote_before_its_bind_are_held_by_nobody() -> None:
    unbound = tried(machine("SingleNUMANode"), "a", cpu=4)
    del unbound["spec"]["nodeName"]
    (numa,) = numa_of(unbound)
    second = machine("SingleNUMANode")
    held(second, "other", cpu=4, numa=1 - numa)
    second.tell(unbound)
    second.settle()
    assert "a" in second.placed()
