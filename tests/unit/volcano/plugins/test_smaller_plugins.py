"""pdb, resourcequota, usage and resource-strategy-fit."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.usage import NodeUsage
from fairlead.volcano.plugins.catalogue import NAMES, tier_plugin
from fairlead.volcano.plugins.pdb import DisruptionBudgets
from fairlead.volcano.plugins.resource_strategy_fit import ResourceStrategyFit
from fairlead.volcano.plugins.resourcequota import ResourceQuotaPlugin
from fairlead.volcano.plugins.usage import UsagePlugin
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.tiers import Vote
from tests.support.rounds import NOW, RoundScenario, measured, refusals, scores, task

# ---- pdb ----


def budgeted() -> RoundScenario:
    yard = RoundScenario().node("n").queue("default").group("job").pod("x", "job")
    for name in ("a", "b", "c"):
        yard.pod(name, "job", on="n", labels={"app": "web"})
    yard.pod("bare", "job", on="n")
    metadata = {"name": "web", "namespace": "default"}
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    status = {"disruptionsAllowed": 1, "disruptedPods": {"b": "2026-01-01T00:00:00Z"}}
    yard.put(kinds.POD_DISRUPTION_BUDGET, {"metadata": metadata, "spec": spec, "status": status})
    return yard


@pytest.mark.parametrize(("compatible", "expected"), [(False, ["a", "b", "bare"]), (True, ["a", "b"])])
def test_victims_stay_within_their_budgets(compatible: bool, expected: list[str]) -> None:
    plugin = DisruptionBudgets()
    round = budgeted().open(plugin, compatible=compatible)
    candidates = [task(round, name) for name in ("a", "b", "c", "bare")]
    assert [victim.name for victim in plugin.preemptable(task(round, "x"), candidates)] == expected
    assert [victim.name for victim in plugin.reclaimable(task(round, "x"), candidates)] == expected
    assert [victim.name for victim in plugin.victim_tasks(candidates)] == expected, "each question starts anew"


# ---- resourcequota ----


def quotas() -> RoundScenario:
    yard = RoundScenario().queue("default")
    status = {"hard": {"cpu": "4", "pods": "10"}, "used": {"cpu": "1", "pods": "2"}}
    yard.put(kinds.RESOURCE_QUOTA, {"metadata": {"name": "q", "namespace": "default"}, "status": status})
    for name, cpu in (("one", "2"), ("two", "2"), ("large", "3500m")):
        yard.group(name, phase="Pending", minResources={"cpu": cpu, "memory": "1Ti"})
    return yard


def test_a_namespace_lets_in_what_its_quota_has_room_for() -> None:
    plugin = ResourceQuotaPlugin()
    round = quotas().open(plugin)
    jobs = round.jobs
    assert plugin.job_enqueueable(jobs["default/large"]) is Vote.REJECT
    assert plugin.job_enqueueable(jobs["default/one"]) is Vote.PERMIT
    plugin.job_enqueued(jobs["default/one"])
    assert plugin.job_enqueueable(jobs["default/two"]) is Vote.REJECT
    assert next(iter(round.outcome.notes))[1].startswith("resource quota insufficient, requested: cpu 3500")


def test_compatible_rounds_count_who_is_only_asked_about() -> None:
    plugin = ResourceQuotaPlugin()
    jobs = quotas().open(plugin, compatible=True).jobs
    assert plugin.job_enqueueable(jobs["default/one"]) is Vote.PERMIT
    assert plugin.job_enqueueable(jobs["default/two"]) is Vote.REJECT


# ---- usage ----


def busy_yard() -> RoundScenario:
    yard = RoundScenario().queue("default").group("job").pod("x", "job")
    for name in ("idle", "busy", "full", "stale", "unknown"):
        yard.node(name)
    return yard


def test_usage_is_scored_by_what_is_left() -> None:
    source = measured(idle=NodeUsage(40, 60, NOW), stale=NodeUsage(0, 0, NOW - 301))
    plugin = UsagePlugin.of(Arguments(), source)
    round = busy_yard().open(plugin)
    assert scores(plugin, round, "x")["idle"] == pytest.approx(250)
    assert scores(plugin, round, "x")["stale"] == 0
    assert scores(plugin, round, "x")["unknown"] == 0


def test_nodes_above_a_threshold_are_refused() -> None:
    source = measured(idle=NodeUsage(70, 50, NOW), busy=NodeUsage(71, 90, NOW), full=NodeUsage(0, 51, NOW))
    plugin = UsagePlugin.of(Arguments({"thresholds": {"cpu": 70, "mem": 50}}), source)
    refused = refusals(plugin, busy_yard().open(plugin), "x")
    assert refused.keys() == {"busy", "full"}
    assert "CPU" in refused["busy"][0]
    assert "memory" in refused["full"][0]


# ---- resource-strategy-fit ----


def gpus(**arguments: Any) -> tuple[ResourceStrategyFit, RoundScenario]:
    yard = (
        RoundScenario()
        .node("plain", cpu="8", memory="32Gi")
        .node("gpu", cpu="8", memory="32Gi", gpu="4")
        .queue("default")
    )
    return ResourceStrategyFit.of(Arguments(arguments)), yard.group("job").pod("there", on="gpu", asks={"cpu": "2"})


def test_each_resource_has_its_own_strategy() -> None:
    resources = {"nvidia.com/*": {"type": "MostAllocated", "weight": 3}, "cpu": {"type": "LeastAllocated"}, "*": {}}
    plugin, yard = gpus(resources=resources, resourceStrategyFitWeight=2)
    round = yard.pod("x", "job", asks={"cpu": "2", "nvidia.com/gpu": "1"}).open(plugin)
    assert scores(plugin, round, "x")["gpu"] == pytest.approx(200 * (0.25 * 3 + 0.5) / 4)
    assert scores(plugin, round, "x")["plain"] == pytest.approx(200 * 0.75 / 4)


def test_the_pattern_with_the_longest_prefix_decides() -> None:
    resources = {
        "nvidia*": {"type": "MostAllocated", "weight": 1},
        "nvidia.com/g*": {"type": "LeastAllocated", "weight": 1},
    }
    plugin, yard = gpus(resources=resources)
    round = yard.pod("x", "job", asks={"nvidia.com/gpu": "1"}).open(plugin)
    assert scores(plugin, round, "x")["gpu"] == pytest.approx(1000 * 0.75)


def test_a_pods_own_strategy_goes_first() -> None:
    plugin, yard = gpus()
    own = {"volcano.sh/resource-strategy-scoring-type": "MostAllocated"}
    own["volcano.sh/resource-strategy-weight"] = json.dumps({"cpu": 1})
    round = yard.pod("x", "job", asks={"cpu": "2", "memory": "1Gi"}, annotations=own).open(plugin)
    assert scores(plugin, round, "x") == pytest.approx({"plain": 250, "gpu": 500})


def test_sra_keeps_others_off_what_is_scarce() -> None:
    sra = {"enable": True, "resources": "nvidia.com/gpu", "weight": 5, "resourceWeight": {"nvidia.com/gpu": 1}}
    plugin, yard = gpus(resourceStrategyFitWeight=0, sra=sra)
    round = yard.pod("x", "job", asks={"cpu": "1"}).open(plugin)
    assert scores(plugin, round, "x") == {"plain": 500, "gpu": 0}


def test_enough_is_left_beside_idle_gpus() -> None:
    shares = {"nvidia.com/gpu.cpu": 1, "nvidia.com/gpu.memory": 1}
    plugin, yard = gpus(proportional={"enable": True, "resources": "nvidia.com/gpu", "resourceProportion": shares})
    yard.pod("x", "job", asks={"cpu": "3"}).pod("ok", "job", asks={"cpu": "2"})
    round = yard.pod("user", "job", asks={"cpu": "3", "nvidia.com/gpu": "1"}).open(plugin)
    assert refusals(plugin, round, "x") == {"gpu": ["proportional of resource nvidia.com/gpu check failed"]}
    assert refusals(plugin, round, "ok") == {}
    assert refusals(plugin, round, "user") == {}


# ---- by name ----


def test_every_name_makes_a_plugin_of_that_name() -> None:
    for name in NAMES:
        for hierarchy in (False, True):
            plugin = tier_plugin(name, {}, {"enableHierarchy": hierarchy})
            assert plugin is not None
            assert plugin.name == name
    assert tier_plugin("capacity-card", {}, {}) is None


def test_arguments_of_the_wrong_type_count_as_not_given() -> None:
    arguments = Arguments({"whole": 1.5, "number": "2", "flag": "TRUE", "other": True, "list": " a, ,b "})
    assert arguments.whole("whole", 7) == 7
    assert arguments.number("number", 0.5) == 0.5
    assert arguments.flag("flag", default=False)
    assert arguments.whole("other", 3) == 3
    assert arguments.names("list") == ["a", "b"]
