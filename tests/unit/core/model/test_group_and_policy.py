"""Groups of three APIs in one record; queues, priority classes, budgets and what workloads select."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.budgets import compile_disruption_budget
from fairlead.core.model.documents import ModelError
from fairlead.core.model.group import GroupPolicy, NetworkTopology, PodGroup, compile_group
from fairlead.core.model.priorities import compile_priority_class
from fairlead.core.model.selectors import NOTHING, selector_from_map
from fairlead.core.model.workload_selectors import compile_workload_selector
from fairlead.volcano.records.queues import NodeGroupAffinity, compile_queue

META = {"name": "g", "namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z"}


def group(api_version: str, spec: dict[str, Any], **status: Any) -> PodGroup:
    return compile_group({"apiVersion": api_version, "metadata": META, "spec": spec, "status": status})


def test_a_native_group_is_basic_or_a_gang() -> None:
    basic = group("scheduling.k8s.io/v1alpha2", {"schedulingPolicy": {"basic": {}}})
    assert (basic.policy, basic.min_member, basic.key, basic.api) == (GroupPolicy.BASIC, 0, "ns/g", "scheduling.k8s.io")
    gang = group(
        "scheduling.k8s.io/v1beta1",
        {
            "schedulingPolicy": {"gang": {"minCount": 4}},
            "schedulingConstraints": {"topology": [{"key": "rack"}]},
            "disruptionMode": "PodGroup",
            "priority": 9,
        },
    )
    assert (gang.policy, gang.min_member, gang.topology_key) == (GroupPolicy.GANG, 4, "rack")
    assert (gang.whole_disruption, gang.priority, gang.created) == (True, 9, 1767225600.0)


def test_a_volcano_group_has_queue_tasks_resources_and_topology() -> None:
    spec = {
        "minMember": 3,
        "queue": "q",
        "priorityClassName": "high",
        "minResources": {"cpu": "3", "memory": "1Gi"},
        "minTaskMember": {"ps": 1, "worker": 2},
        "networkTopology": {"mode": "soft", "highestTierAllowed": 2},
        "subGroupPolicy": [{"name": "w", "labelSelector": {"matchLabels": {"a": "b"}}, "matchLabelKeys": ["k"]}],
    }
    volcano = group("scheduling.volcano.sh/v1beta1", spec, phase="Inqueue")
    assert (volcano.min_member, volcano.queue, volcano.priority_class, volcano.phase) == (3, "q", "high", "Inqueue")
    assert volcano.min_resources == {"cpu": 3000, "memory": 2**30}
    assert volcano.task_minimums == {"ps": 1, "worker": 2}
    assert volcano.network_topology == NetworkTopology(hard=False, highest_tier=2)
    (sub,) = volcano.sub_groups
    assert (sub.size, sub.minimum, sub.selector) == (1, 0, selector_from_map({"a": "b"}))
    bare = group("scheduling.volcano.sh/v1beta1", {})
    assert (bare.min_resources, bare.network_topology, bare.queue) == (None, None, "")


def test_a_coscheduling_group_has_a_time_to_wait() -> None:
    waiting = group("scheduling.x-k8s.io/v1alpha1", {"minMember": 2, "scheduleTimeoutSeconds": 10})
    assert (waiting.min_member, waiting.timeout, waiting.policy) == (2, 10, GroupPolicy.GANG)


def test_a_group_that_cannot_be_read_is_named() -> None:
    with pytest.raises(ModelError, match=r"^PodGroup ns/g: apiVersion: "):
        group("example.com/v1", {})
    with pytest.raises(ModelError, match=r"^PodGroup ns/g: spec\.minResources\[cpu\]: "):
        group("scheduling.volcano.sh/v1beta1", {"minResources": {"cpu": "x"}})


def test_a_queue_has_limits_only_where_they_are_given() -> None:
    plain = compile_queue({"metadata": {"name": "q"}})
    assert (plain.weight, plain.capability, plain.deserved, plain.guarantee) == (1, None, None, None)
    assert (plain.reclaimable, plain.open, plain.priority, plain.affinity) == (True, False, 0, None)
    required = {"requiredDuringSchedulingIgnoredDuringExecution": ["gpu"]}
    rich = compile_queue(
        {
            "metadata": {"name": "q"},
            "spec": {
                "weight": 4,
                "capability": {"cpu": "10", "nvidia.com/gpu": 8},
                "deserved": {},
                "guarantee": {"resource": {"memory": "1Gi"}},
                "reclaimable": False,
                "parent": "root",
                "priority": 3,
                "affinity": {"nodeGroupAffinity": required},
            },
            "status": {"state": "Open"},
        }
    )
    assert (rich.capability, rich.deserved) == ({"cpu": 10000, "nvidia.com/gpu": 8}, {})
    assert (rich.guarantee, rich.weight, rich.parent, rich.priority) == ({"memory": 2**30}, 4, "root", 3)
    assert (rich.reclaimable, rich.open, rich.affinity) == (False, True, NodeGroupAffinity(required=("gpu",)))


def test_a_priority_class_preempts_unless_it_says_otherwise() -> None:
    metadata = {"name": "high"}
    assert compile_priority_class({"metadata": metadata, "value": 7}).preemption_policy == "PreemptLowerPriority"
    never = compile_priority_class({"metadata": metadata, "preemptionPolicy": "Never", "globalDefault": True})
    assert (never.preemption_policy, never.value, never.global_default) == ("Never", 0, True)


def budget(selector: Any) -> Any:
    return compile_disruption_budget(
        {
            "metadata": META,
            "spec": {"selector": selector} if selector is not None else {},
            "status": {"disruptionsAllowed": 2, "disruptedPods": {"p": "2026-01-01T00:00:00Z"}},
        }
    )


def test_a_budget_covers_labelled_pods_of_its_namespace() -> None:
    guard = budget({"matchLabels": {"a": "b"}})
    assert (guard.disruptions_allowed, guard.disrupted_pods) == (2, {"p"})
    assert guard.covers("ns", {"a": "b"})
    assert not guard.covers("other", {"a": "b"})
    assert not budget({}).covers("ns", {"a": "b"}), "an empty selector covers nothing here"
    assert not budget({"matchExpressions": [{"key": "x", "operator": "DoesNotExist"}]}).covers("ns", {})
    assert not budget(None).covers("ns", {"a": "b"})
    assert budget({"matchLabels": {"a": "not valid"}}).selector is NOTHING


def test_services_select_by_plain_maps_and_sets_by_selectors() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": META, "spec": {"selector": {"a": "b"}}}
    assert compile_workload_selector(service).selector == selector_from_map({"a": "b"})
    assert compile_workload_selector(service).labels == (("a", "b"),)
    headless = compile_workload_selector(service | {"spec": {}})
    assert (headless.selector, headless.labels) == (NOTHING, None)
    replicas = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": META}
    chosen = compile_workload_selector(replicas | {"spec": {"selector": {"matchLabels": {"a": "b"}}}})
    assert (chosen.selector, chosen.labels) == (selector_from_map({"a": "b"}), None)
