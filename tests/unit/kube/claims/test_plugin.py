"""DynamicResources at its extension points: what pods with claims, and pods without, see of it."""

from __future__ import annotations

from typing import Any

from fairlead.cel.selectors import compile_selector
from fairlead.core.model import kinds
from fairlead.core.model.reasons import SKIP
from fairlead.kube.claims.plugin import DynamicResources
from fairlead.kube.nodes.basics import NodeUnschedulable
from fairlead.kube.nodes.node_affinity import NodeAffinityPlugin
from tests.support.documents import node, plain_pod, pod
from tests.support.plugins import PluginScenario
from tests.support.scheduling import SchedulerScenario

CLAIMING: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}


def plugin() -> DynamicResources:
    return DynamicResources(compile_selector)


def message(stage: SchedulerScenario, name: str = "a") -> str:
    said: str = stage.conditions(name)[0]["message"]
    return said


def test_a_pod_without_claims_is_not_looked_at_and_scores_nothing() -> None:
    assert PluginScenario().prepared(plugin(), plain_pod())[2] is SKIP
    stage = SchedulerScenario(plugin(), nodes=1)
    stage.tell(pod("a"))
    assert stage.binds() == {"a": "n0"}


def test_a_refused_pod_gets_the_reason_that_there_are_no_new_claims_to_deallocate() -> None:
    stage = SchedulerScenario(NodeUnschedulable(), plugin())
    stage.tell(node("n0"))
    stage.tell(pod("a", cpu="5"))
    assert message(stage) == "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate"


def test_where_the_search_ended_before_its_turn_it_finds_no_state() -> None:
    conflicting = {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [n]} for n in ("a", "b")]}
            ]
        }
    }
    stage = SchedulerScenario(NodeAffinityPlugin(), plugin(), nodes=1)
    stage.tell(pod("a", affinity={"nodeAffinity": conflicting}))
    assert message(stage) == "0/1 nodes are available: pod affinity terms conflict. not found"


def test_a_pod_whose_claim_is_missing_waits_at_the_gate() -> None:
    stage = SchedulerScenario(plugin(), nodes=1)
    stage.tell(pod("a", **CLAIMING))
    assert stage.binds() == {}
    assert stage.conditions("a") == []


def test_the_kinds_that_it_reads_are_known() -> None:
    assert {interest.event.resource for interest in plugin().events()} >= {
        f"{kind.group}/{kind.kind}" for kind in (kinds.RESOURCE_CLAIM, kinds.RESOURCE_SLICE, kinds.DEVICE_CLASS)
    }
