"""How much simulated nodes lend, by the ConfigMap slo-controller-config and by what nodes say of themselves."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model.flow import Doc
from fairlead.koordinator.agents.node_agents import NodeAgents
from fairlead.koordinator.records.colocation import normalised, strategy_of
from fairlead.koordinator.records.overcommit import DEFAULT_STRATEGY, ColocationStrategy, NodeLoad, mid_resources
from fairlead.testing.builders import namespace, node
from fairlead.testing.harness import Harness

BATCH_CPU, MID_CPU = "kubernetes.io/batch-cpu", "kubernetes.io/mid-cpu"
N = "node.koordinator.sh/"


def strategy(config: Any, labels: Doc | None = None, **annotations: Any) -> ColocationStrategy | None:
    notes = {N + key.replace("_", "-"): json.dumps(value) for key, value in annotations.items()}
    text = config if config is None or isinstance(config, str) else json.dumps(config)
    return strategy_of(text, labels or {}, notes)


def reclaims(found: ColocationStrategy | None) -> tuple[bool, int]:
    """Whether a strategy is enabled, and the percentage of CPU that is reclaimed."""
    assert found is not None
    return found.enabled, found.reclaim_percent["cpu"]


def test_without_a_configuration_nodes_offer_by_the_default_strategy() -> None:
    assert strategy(None) == DEFAULT_STRATEGY


def test_a_configuration_that_says_little_is_koordinators_default_which_is_off() -> None:
    for config in ("", "{}", {"metricReportIntervalSeconds": 30}):
        assert reclaims(strategy(config)) == (False, 60)


POOLS = {
    "enable": True, "cpuReclaimThresholdPercent": 70,
    "nodeConfigs": [
        {"name": "none", "cpuReclaimThresholdPercent": 1},
        {"nodeSelector": {"matchLabels": {"pool": "a"}}, "cpuReclaimThresholdPercent": 80},
        {"nodeSelector": {"matchLabels": {"pool": "a"}}, "cpuReclaimThresholdPercent": 90},
        {"nodeSelector": {"matchLabels": {"pool": "off"}}, "enable": False},
        {"nodeSelector": {"matchLabels": {"pool": "bad"}}, "cpuReclaimThresholdPercent": -1},
        {"nodeSelector": {"matchExpressions": [{"key": "pool", "operator": "Like"}]}, "enable": False},
    ],
}  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "notes", "expected"),
    [
        ({}, {}, (True, 70)),
        ({"pool": "a"}, {}, (True, 80)),
        ({"pool": "off"}, {}, (False, 70)),
        ({"pool": "bad"}, {}, (True, 70)),
        ({"pool": "a"}, {"colocation_strategy": {"cpuReclaimThresholdPercent": 50}}, (True, 50)),
        ({}, {"colocation_strategy": {"enable": False}}, (False, 70)),
        ({}, {"colocation_strategy": "nothing"}, (True, 70)),
        ({N + "cpu-reclaim-ratio": "0.555"}, {"colocation_strategy": {"cpuReclaimThresholdPercent": 50}}, (True, 55)),
        ({N + "cpu-reclaim-ratio": "-1"}, {}, (True, 70)),
        ({N + "cpu-reclaim-ratio": "much"}, {}, (True, 70)),
    ],
)
def test_the_first_strategy_of_a_node_then_its_annotation_then_its_labels_count(
    labels: Doc, notes: Doc, expected: tuple[bool, int]
) -> None:
    assert reclaims(strategy(POOLS, labels, **notes)) == expected


def test_a_node_is_not_enabled_alone() -> None:
    assert reclaims(strategy({"enable": False}, colocation_strategy={"enable": True})) == (False, 60)


@pytest.mark.parametrize(
    "config",
    [
        "{", "[]", {"enable": "yes"}, {"cpuReclaimThresholdPercent": -1}, {"midCPUThresholdPercent": 101},
        {"updateTimeThresholdSeconds": 0}, {"cpuReclaimThresholdPercent": "60"}, {"nodeConfigs": [1]},
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_used_is_none(config: Any) -> None:
    assert strategy(config) is None


def test_all_that_a_strategy_may_say_is_read() -> None:
    found = strategy({
        "enable": True, "memoryReclaimThresholdPercent": 50, "cpuCalculatePolicy": "maxUsageRequest",
        "memoryCalculatePolicy": "request", "batchCPUThresholdPercent": 30, "batchMemoryThresholdPercent": 40,
        "midUnallocatedPercent": 5, "midCPUThresholdPercent": 20, "midMemoryThresholdPercent": 25,
        "updateTimeThresholdSeconds": 60, "resourceDiffThreshold": 0.5,
    })  # fmt: skip
    assert found == ColocationStrategy(
        reclaim_percent={"cpu": 60, "memory": 50},
        policy={"cpu": "maxUsageRequest", "memory": "request"},
        batch_threshold={"cpu": 30, "memory": 40},
        mid_threshold={"cpu": 20, "memory": 25},
        mid_unallocated_percent=5,
        update_after=60.0,
        update_difference=0.5,
    )


@pytest.mark.parametrize(("threshold", "cpu"), [(100, 30_000), (20, 20_000)])
def test_static_mid_resources_are_a_share_of_the_capacity(threshold: int, cpu: int) -> None:
    config = {"enable": True, "midReclaimMode": "static", "midCPUThresholdPercent": threshold}
    found = strategy(config, {N + "mid-static-cpu-reserved-ratio": "0.3"})
    assert found is not None
    load = NodeLoad({"cpu": 100_000}, {"cpu": 90_000}, {}, {"cpu": 90_000}, {}, (), {})
    assert mid_resources(load, found)[MID_CPU] == cpu


@pytest.mark.parametrize(("ratio", "cpu"), [("1.2", 1200), ("1.0005", 1001), ("0.5", 1000), ("fast", 1000)])
def test_batch_cpu_of_faster_nodes_is_worth_more(ratio: str, cpu: int) -> None:
    assert normalised(1000, {N + "cpu-normalization-ratio": ratio}) == cpu


# ---- the controller ----


def config_map(**data: str) -> Doc:
    metadata = {"name": "slo-controller-config", "namespace": "koordinator-system"}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def lent(cluster: Harness) -> dict[str, str]:
    given = cluster.node("n")["status"]["allocatable"]
    return {name: given[name] for name in (BATCH_CPU, MID_CPU) if name in given}


def test_nodes_follow_the_configuration_at_their_next_report() -> None:
    cluster = Harness(nodes=[node("n")], schedulers=[], controllers=[NodeAgents], housekeeping="none")
    cluster.run(61)
    assert lent(cluster) == {BATCH_CPU: "4800", MID_CPU: "0"}
    text = {"enable": True, "cpuReclaimThresholdPercent": 25}
    cluster.apply(namespace("koordinator-system"), config_map(**{"colocation-config": json.dumps(text)}))
    cluster.run(61)
    assert lent(cluster) == {BATCH_CPU: "2k", MID_CPU: "0"}
    cluster.apply(config_map(**{"colocation-config": "{"}))
    cluster.run(61)
    assert lent(cluster)[BATCH_CPU] == "2k", "what cannot be read changes nothing"
    cluster.apply(config_map(**{"colocation-config": json.dumps({**text, "enable": False})}))
    cluster.run(61)
    assert lent(cluster) == {}
    version = cluster.node("n")["metadata"]["resourceVersion"]
    cluster.run(400)
    assert cluster.node("n")["metadata"]["resourceVersion"] == version, "what is gone is not taken away again"
