"""DynamicResources as far as it is built: nothing for pods without claims, and a plain refusal for the others."""

from __future__ import annotations

from typing import Any

from fairlead.model.reasons import SKIP, Code
from fairlead.plugins.devices import NOT_BUILT, DynamicResources
from fairlead.plugins.node_affinity import NodeAffinityPlugin
from fairlead.plugins.node_basics import NodeUnschedulable
from tests.support.documents import node, plain_pod, pod
from tests.support.plugins import PluginScenario
from tests.support.scheduling import SchedulerScenario

CLAIMING: dict[str, Any] = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]}


def message(stage: SchedulerScenario, name: str = "a") -> str:
    said: str = stage.conditions(name)[0]["message"]
    return said


def test_a_pod_with_claims_is_told_that_they_are_not_built() -> None:
    status = PluginScenario().prepared(DynamicResources(), plain_pod(**CLAIMING))[2]
    assert (status.code, status.message) == (Code.UNRESOLVABLE, NOT_BUILT)
    stage = SchedulerScenario(DynamicResources(), nodes=2)
    stage.tell(pod("a", **CLAIMING))
    assert message(stage) == f"0/2 nodes are available: {NOT_BUILT}. no new claims to deallocate"
    assert stage.binds() == {}


def test_a_pod_without_claims_is_not_looked_at_and_scores_nothing() -> None:
    assert PluginScenario().prepared(DynamicResources(), plain_pod())[2] is SKIP
    stage = SchedulerScenario(DynamicResources(), nodes=1)
    stage.tell(pod("a"))
    assert stage.binds() == {"a": "n0"}


def test_a_refused_pod_is_told_that_there_are_no_new_claims_to_deallocate() -> None:
    stage = SchedulerScenario(NodeUnschedulable(), DynamicResources())
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
    stage = SchedulerScenario(NodeAffinityPlugin(), DynamicResources(), nodes=1)
    stage.tell(pod("a", affinity={"nodeAffinity": conflicting}))
    assert message(stage) == "0/1 nodes are available: pod affinity terms conflict. not found"


def test_nothing_in_the_cluster_turns_its_refusal_around() -> None:
    assert DynamicResources().events() == ()
