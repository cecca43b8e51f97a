"""Who guards the priority of PodGroups: quotas on priorities do not, as in Kubernetes 1.36.4 (docs/gangs.md)."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.errors import Forbidden
from fairlead.testing.builders import pod, priority_class
from fairlead.testing.harness import Harness


def _quota(name: str, hard: dict[str, str], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name},
        "spec": {"hard": hard, **spec},
    }


def _group(name: str) -> dict[str, Any]:
    spec = {"priorityClassName": "high", "schedulingPolicy": {"gang": {"minCount": 2}}}
    return {
        "apiVersion": "scheduling.k8s.io/v1alpha2",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": spec,
    }


def test_a_quota_on_priorities_covers_pods_and_no_pod_groups() -> None:
    cluster = Harness(nodes=1)
    scope = {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]}
    cluster.apply(priority_class("high").worth(1_000_000), _quota("pods", {"pods": "0"}, scopeSelector=scope))
    cluster.run(5)
    with pytest.raises(Forbidden, match="exceeded quota: pods"):
        cluster.apply(pod("direct").of_priority("high"))
    cluster.apply(_group("g"))
    member = pod("member").having(schedulingGroup={"podGroupName": "g"})
    cluster.apply(member)


def test_a_quota_on_the_number_of_pod_groups_counts_them() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(priority_class("high").worth(1_000_000), _quota("groups", {"count/podgroups.scheduling.k8s.io": "1"}))
    cluster.run(5)
    cluster.apply(_group("g"))
    with pytest.raises(Forbidden, match="exceeded quota: groups"):
        cluster.apply(_group("h"))
