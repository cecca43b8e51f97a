"""The legacy Policy: the mapping of 1.22, and what has no successor."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.assembly.loading import load_config
from fairlead.config.problems import ConfigErrors
from fairlead.kube.config.plugin_args import (
    InterPodAffinityArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ShapePoint,
)
from fairlead.kube.config.policy import load_policy, policy_from_config_map
from fairlead.kube.config.records import KubeConfig


def load(**fields: Any) -> KubeConfig:
    return load_policy(json.dumps({"kind": "Policy", "apiVersion": "v1", **fields}), file="policy.json")


def names(config: KubeConfig, point: str) -> list[str]:
    return [name for name, _ in config.profiles[0].points[point]]


def scores(config: KubeConfig) -> list[tuple[str, int]]:
    return list(config.profiles[0].points["score"])


def refusal(**fields: Any) -> str:
    with pytest.raises(ConfigErrors) as caught:
        load(**fields)
    return str(caught.value)


def priority(name: str, weight: int = 1, **argument: Any) -> dict[str, Any]:
    return {"name": name, "weight": weight, **({"argument": argument} if argument else {})}


def test_a_policy_without_predicates_and_priorities_has_the_defaults_of_1_22() -> None:
    config = load()
    assert names(config, "filter") == [
        "NodeUnschedulable",
        "NodeResourcesFit",
        "NodeName",
        "NodePorts",
        "NodeAffinity",
        "VolumeRestrictions",
        "TaintToleration",
        "NodeVolumeLimits",
        "VolumeBinding",
        "VolumeZone",
        "PodTopologySpread",
        "InterPodAffinity",
    ]
    assert scores(config) == [
        ("NodeResourcesBalancedAllocation", 1),
        ("PodTopologySpread", 2),
        ("ImageLocality", 1),
        ("InterPodAffinity", 1),
        ("NodeResourcesFit", 1),
        ("NodeAffinity", 1),
        ("TaintToleration", 1),
    ]
    assert names(config, "queueSort") == ["PrioritySort"]
    assert names(config, "postFilter") == ["DefaultPreemption"]
    assert names(config, "bind") == ["DefaultBinder"]


def test_empty_predicates_leave_the_mandatory_ones_and_empty_priorities_none() -> None:
    config = load(predicates=[], priorities=[])
    assert names(config, "filter") == ["NodeUnschedulable", "TaintToleration"]
    assert scores(config) == []


def test_predicates_run_in_the_old_order_whatever_the_order_in_the_file() -> None:
    config = load(predicates=[{"name": "MatchInterPodAffinity"}, {"name": "PodFitsPorts"}, {"name": "HostName"}])
    assert names(config, "filter") == [
        "NodeUnschedulable",
        "NodeName",
        "NodePorts",
        "TaintToleration",
        "InterPodAffinity",
    ]
    assert names(config, "preFilter") == ["NodePorts", "InterPodAffinity"]


def test_check_volume_binding_also_reserves_and_prebinds() -> None:
    config = load(predicates=[{"name": "CheckVolumeBinding"}], priorities=[])
    assert names(config, "reserve") == names(config, "preBind") == ["VolumeBinding"]
    assert "VolumeBinding" not in names(config, "score")


def test_most_requested_is_a_strategy_of_node_resources_fit_today() -> None:
    config = load(priorities=[priority("MostRequestedPriority", 3)])
    args = config.profiles[0].args["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    assert args.scoring_strategy.type == "MostAllocated"
    assert scores(config) == [("NodeResourcesFit", 3)]


def test_requested_to_capacity_ratio_keeps_its_shape_and_resources() -> None:
    argument = {
        "shape": [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}],
        "resources": [{"name": "nvidia.com/gpu", "weight": 3}],
    }
    config = load(priorities=[priority("Packed", 2, requestedToCapacityRatioArguments=argument)])
    args = config.profiles[0].args["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    assert args.scoring_strategy.shape == (ShapePoint(0, 0), ShapePoint(100, 10))
    assert [(each.name, each.weight) for each in args.scoring_strategy.resources] == [("nvidia.com/gpu", 3)]
    assert scores(config) == [("NodeResourcesFit", 2)]


@pytest.mark.parametrize(
    ("listed", "weight", "defaulting"),
    [
        (["EvenPodsSpreadPriority:4"], 4, "List"),
        (["SelectorSpreadPriority:5"], 5, "System"),
        (["ServiceSpreadingPriority:5"], 5, "System"),
        (["SelectorSpreadPriority:5", "EvenPodsSpreadPriority:4"], 4, "System"),
    ],
)
def test_both_spreading_priorities_are_pod_topology_spread_and_the_first_by_name_gives_the_weight(
    listed: list[str], weight: int, defaulting: str
) -> None:
    config = load(priorities=[priority(name, int(value)) for name, value in (entry.split(":") for entry in listed)])
    assert scores(config) == [("PodTopologySpread", weight)]
    assert config.profiles[0].args["PodTopologySpread"] == PodTopologySpreadArgs((), defaulting)


def test_the_symmetric_weight_goes_to_inter_pod_affinity() -> None:
    assert load(hardPodAffinitySymmetricWeight=7).profiles[0].args["InterPodAffinity"] == InterPodAffinityArgs(7)


def test_an_extender_has_its_timeout_in_nanoseconds_and_its_names_in_any_case() -> None:
    extender = {"urlPrefix": "http://x", "FilterVerb": "f", "enableHTTPS": True, "httpTimeout": 250_000_000}
    (read,) = load(extenders=[extender]).extenders
    assert (read.url_prefix, read.filter_verb, read.enable_https, read.http_timeout) == ("http://x", "f", True, 0.25)


def test_equal_priority_is_ignored() -> None:
    assert scores(load(priorities=[priority("EqualPriority")])) == []


def test_a_policy_lies_in_a_config_map_too() -> None:
    policy = json.dumps({"kind": "Policy", "apiVersion": "v1", "predicates": []})
    config_map = {"kind": "ConfigMap", "metadata": {"name": "p"}, "data": {"policy.cfg": policy}}
    assert names(policy_from_config_map(config_map), "filter") == ["NodeUnschedulable", "TaintToleration"]
    assert load_config(json.dumps(config_map)) == policy_from_config_map(config_map)


def test_a_config_map_without_the_key_is_refused() -> None:
    with pytest.raises(ConfigErrors) as caught:
        policy_from_config_map({"kind": "ConfigMap", "data": {"policy.conf": "x"}})
    assert str(caught.value) == (
        'data: missing policy config map value at key "policy.cfg" (did you mean "policy.conf"?)'
    )


def test_what_only_scored_and_is_gone_is_dropped_and_said_aloud() -> None:
    config = load(
        predicates=[{"name": "MaxEBSVolumeCount"}],
        priorities=[
            priority("NodePreferAvoidPodsPriority", 10000),
            priority("Zones", 2, labelPreference={"label": "zone", "presence": True}),
            priority("Apart", 2, serviceAntiAffinity={"label": "rack"}),
        ],
        alwaysCheckAllPredicates=True,
    )
    assert scores(config) == []
    assert config.notices == (
        "predicate MaxEBSVolumeCount: plugin EBSLimits was removed, NodeVolumeLimits counts these volumes",
        "priority Zones: plugin NodeLabel was removed, this preference has no effect",
        "priority Apart: plugin ServiceAffinity was removed, this preference has no effect",
        "priority NodePreferAvoidPodsPriority: plugin NodePreferAvoidPods was removed, "
        "the annotation scheduler.alpha.kubernetes.io/preferAvoidPods has no effect",
        "alwaysCheckAllPredicates: a node is reported with the first plugin that refuses it, not with all",
    )


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"predicates": [{"name": "PodFitsResource"}]},
            'policy.json:1: predicates[0].name: predicate type not found for "PodFitsResource"'
            ' (did you mean "PodFitsResources"?)',
        ),
        (
            {"priorities": [priority("MostRequested")]},
            'policy.json:1: priorities[0].name: priority type not found for "MostRequested"'
            ' (did you mean "MostRequestedPriority"?)',
        ),
        (
            {"predicates": [{"name": "Here", "argument": {"labelsPresence": {"labels": ["zone"], "presence": True}}}]},
            'policy.json:1: predicates[0].name: predicate "Here" needs the plugin NodeLabel, which was removed from'
            " Kubernetes (the args of NodeAffinity have addedAffinity for such rules)",
        ),
        (
            {"predicates": [{"name": "CheckServiceAffinity"}]},
            'policy.json:1: predicates[0].name: predicate "CheckServiceAffinity" needs the plugin ServiceAffinity,'
            " which was removed from Kubernetes",
        ),
        (
            {"predicates": [{"name": "Here", "argument": {}}]},
            "policy.json:1: predicates[0].argument: exactly 1 predicate argument is required, numArgs: 0,"
            " predicate Here",
        ),
        (
            {"priorities": [priority("LeastRequestedPriority", 0)]},
            "policy.json:1: priorities[0].weight: priority LeastRequestedPriority should have a positive weight"
            " applied to it or it has overflown",
        ),
        (
            {"priorities": [priority("LeastRequestedPriority"), priority("MostRequestedPriority")]},
            "policy.json:1: priorities: LeastRequestedPriority and MostRequestedPriority cannot be combined:"
            " NodeResourcesFit has one scoring strategy (keep one of them)",
        ),
        (
            {"hardPodAffinitySymmetricWeight": 101},
            "policy.json:1: hardPodAffinitySymmetricWeight: Invalid value: 101: not in valid range [0-100]",
        ),
        (
            {"extenders": [{"urlPrefix": "http://x", "prioritizeVerb": "p"}]},
            "policy.json:1: extenders[0].weight: Invalid value: 0: must have a positive weight applied to it",
        ),
        (
            {"predicate": []},
            'policy.json:1: predicate: unknown field "predicate" (did you mean "predicates"?)',
        ),
    ],
)
def test_a_wrong_policy_is_refused(fields: dict[str, Any], words: str) -> None:
    assert refusal(**fields) == words


def test_two_label_preferences_must_weigh_the_same() -> None:
    first = priority("A", 1, labelPreference={"label": "a", "presence": True})
    second = priority("B", 2, labelPreference={"label": "b", "presence": True})
    assert refusal(priorities=[first, second]) == (
        'policy.json:1: priorities[1]: LabelPreference  priority "B" has a different weight with "A"'
    )


def test_predicates_of_conditions_are_the_one_of_taints_which_took_their_place() -> None:
    pressures = ["CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure", "CheckNodePIDPressure"]
    config = load(predicates=[{"name": name} for name in pressures], priorities=[])
    assert names(config, "filter") == ["NodeUnschedulable", "TaintToleration"]
    words = "such conditions are taints today, which TaintToleration respects"
    assert config.notices == tuple(f"predicate {name}: {words}" for name in pressures)
