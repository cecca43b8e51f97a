"""Decisions seen through the API become scenarios that replay: what is written, when, and what partial ones compare."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest

from fairlead.assembly.presets import first_profile
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.kube.replay.forms import KUBE_FORM
from fairlead.kube.replay.recorder import DecisionRecorder, with_scores
from fairlead.kube.replay.recording import Scenario
from fairlead.kube.replay.replay import DecisionDifference, KubeReplay
from tests.support.documents import node, pod

Doc = dict[str, Any]
FULL = "0/2 nodes are available: 2 Insufficient cpu."


class Camera:
    """A recorder that has seen two nodes, and hears of versions of objects."""

    def __init__(self, *more: Change) -> None:
        self._versions = count(100)
        self.recorder = DecisionRecorder()
        self.recorder.begin([*(Change(Happened.ADDED, kinds.NODE, node(n)) for n in ("n0", "n1")), *more])

    def sees(self, doc: Doc, happened: Happened = Happened.MODIFIED, kind: kinds.Kind = kinds.POD) -> list[Doc]:
        metadata = {**doc["metadata"], "resourceVersion": str(next(self._versions)), "managedFields": [{"x": 1}]}
        return self.recorder.take_changes([Change(happened, kind, {**doc, "metadata": metadata})])

    def binds(self, doc: Doc, to: str) -> Doc:
        self.sees(doc, Happened.ADDED)
        (scenario,) = self.sees({**doc, "spec": {**doc["spec"], "nodeName": to}})
        return scenario


def refused(doc: Doc, message: str, *, reason: str = "Unschedulable", nominated: str = "") -> Doc:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    promise = {"nominatedNodeName": nominated} if nominated else {}
    return {**doc, "status": {**doc["status"], "conditions": [condition], **promise}}


def replayed(scenario: Doc) -> list[DecisionDifference]:
    (differences,) = KubeReplay(Scenario("f", 1, KUBE_FORM, 1, "x", scenario), [first_profile()]).decisions()
    return differences


def test_a_binding_becomes_a_scenario_of_the_cluster_before_it() -> None:
    camera = Camera()
    first = camera.binds(pod("a"), "n0")
    assert [doc["metadata"]["name"] for doc in first["nodes"]] == ["n0", "n1"]
    assert first["existing"] == []
    (decision,) = first["decisions"]
    assert (decision["node"], decision["message"], decision["partial"]) == ("n0", None, True)
    assert "nodeName" not in decision["pod"]["spec"]
    assert "managedFields" not in decision["pod"]["metadata"]
    second = camera.binds(pod("b"), "n1")
    assert [doc["metadata"]["name"] for doc in second["existing"]] == ["a"]
    assert [s["seed"] for s in (first, second)] == [1, 2]


def test_existing_pods_come_in_the_order_of_their_versions_and_finished_ones_not_at_all() -> None:
    def there(name: str, version: str, phase: str = "Running") -> Change:
        doc = pod(name, on="n0")
        doc["metadata"]["resourceVersion"] = version
        return Change(Happened.ADDED, kinds.POD, {**doc, "status": {"phase": phase}})

    camera = Camera(there("late", "50"), there("early", "9"), there("done", "20", "Succeeded"))
    scenario = camera.binds(pod("a"), "n1")
    assert [doc["metadata"]["name"] for doc in scenario["existing"]] == ["early", "late"]


def test_a_refusal_is_recorded_once_for_each_new_message() -> None:
    camera, big = Camera(), pod("big", cpu="9")
    camera.sees(big, Happened.ADDED)
    (scenario,) = camera.sees(refused(big, FULL))
    assert scenario["decisions"][0]["message"] == FULL
    assert "partial" not in scenario["decisions"][0]
    assert camera.sees(refused(big, FULL)) == []
    (again,) = camera.sees(refused(big, "something else"))
    assert again["decisions"][0]["message"] == "something else"


@pytest.mark.parametrize("reason", ["SchedulingGated", "SchedulerError"])
def test_gates_and_errors_are_no_decisions(reason: str) -> None:
    camera = Camera()
    camera.sees(pod("a"), Happened.ADDED)
    assert camera.sees(refused(pod("a"), "no", reason=reason)) == []


def test_a_pod_that_comes_with_its_node_was_not_scheduled() -> None:
    camera = Camera()
    assert camera.sees(pod("a", on="n0"), Happened.ADDED) == []
    assert camera.sees(pod("a", on="n0")) == []


def test_objects_are_as_they_were_and_claims_as_the_pod_found_them() -> None:
    camera = Camera()
    claim: Doc = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"resources": {}}}
    user = pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    camera.sees(claim, Happened.ADDED, kinds.PERSISTENT_VOLUME_CLAIM)
    camera.sees(user, Happened.ADDED)
    camera.sees({"metadata": {"name": "pv"}, "spec": {}}, Happened.ADDED, kinds.PERSISTENT_VOLUME)
    bound = {**claim, "spec": {**claim["spec"], "volumeName": "pv"}}
    camera.sees(bound, kind=kinds.PERSISTENT_VOLUME_CLAIM)
    (scenario,) = camera.sees({**user, "spec": {**user["spec"], "nodeName": "n0"}})
    (found,) = scenario["objects"]
    assert (found["kind"], found["spec"].get("volumeName")) == ("PersistentVolumeClaim", None)


# ---- replayed ----


def test_a_partial_decision_agrees_if_the_node_is_among_our_best() -> None:
    assert replayed(Camera().binds(pod("a"), "n0")) == []
    assert replayed(Camera().binds(pod("a"), "n1")) == []
    camera = Camera()
    camera.binds(pod("a"), "n0")
    worse = camera.binds(pod("b"), "n0")
    assert [(d.field, d.expected, d.got) for d in replayed(worse)] == [("node", "n0", ["n1"])]


def test_a_partial_decision_differs_if_the_node_is_not_feasible() -> None:
    camera = Camera()
    camera.binds(pod("a", cpu="4"), "n0")
    impossible = camera.binds(pod("b"), "n0")
    assert [(d.field, d.expected, d.got) for d in replayed(impossible)] == [("feasible", ["n0"], ["n1"])]


def test_a_recorded_refusal_is_compared_to_the_letter() -> None:
    camera, big = Camera(), pod("big", cpu="9")
    camera.sees(big, Happened.ADDED)
    (scenario,) = camera.sees(refused(big, FULL))
    (difference,) = replayed(scenario)
    assert difference.field == "message"
    camera.sees(pod("bigger", cpu="9"), Happened.ADDED)
    (right,) = camera.sees(refused(pod("bigger", cpu="9"), difference.got))
    assert replayed(right) == []


def test_a_recorded_nomination_is_compared_without_victims() -> None:
    camera, high = Camera(), pod("high", cpu="4", priority=9)
    camera.binds(pod("low", cpu="4"), "n0")
    camera.binds(pod("middle", cpu="4", priority=5), "n1")
    camera.sees(high, Happened.ADDED)
    (scenario,) = camera.sees(refused(high, FULL, nominated="n0"))
    assert replayed(scenario) == []
    camera.sees(high, Happened.DELETED)
    camera.sees(pod("other", cpu="4", priority=9), Happened.ADDED)
    (wrong,) = camera.sees(refused(pod("other", cpu="4", priority=9), FULL, nominated="n1"))
    assert [(d.field, d.expected, d.got) for d in replayed(wrong)] == [("nominated", "n1", ["n0"])]


# ---- scores ----


def explanation(*scored: tuple[str, int], feasible: int, uid: str = "uid-a") -> Doc:
    rows = [{"node": name, "total": score, "scores": {"X": score}} for name, score in scored]
    doc: Doc = {"pod": {"uid": uid}, "node": rows[0]["node"], "nodes": {"feasible": feasible}, "chosen": rows[0]}
    return {**doc, "runnerUp": rows[1]} if len(rows) > 1 else doc


DECISION: Doc = {"pod": pod("a"), "node": "n0", "message": None, "partial": True, "scores": {}}


def test_two_feasible_nodes_and_their_scores_are_all_there_is_to_know() -> None:
    known = with_scores(DECISION, explanation(("n0", 5), ("n1", 3), feasible=2))
    assert known["scores"] == {"n0": {"X": 5}, "n1": {"X": 3}}
    assert "partial" not in known


def test_the_best_two_of_many_stay_partial() -> None:
    known = with_scores(DECISION, explanation(("n0", 5), ("n1", 3), feasible=7))
    assert (sorted(known["scores"]), known["partial"]) == (["n0", "n1"], True)


def test_a_single_feasible_node_was_not_scored() -> None:
    known = with_scores(DECISION, explanation(("n0", 0), feasible=1))
    assert (known["scores"], "partial" in known) == ({}, False)


def test_an_explanation_of_something_else_is_not_used() -> None:
    assert with_scores(DECISION, explanation(("n1", 5), feasible=1)) == DECISION
    assert with_scores(DECISION, explanation(("n0", 5), feasible=1, uid="other")) == DECISION


def test_wrong_scores_of_a_partial_decision_are_named() -> None:
    scenario = Camera().binds(pod("a"), "n0")
    (decision,) = scenario["decisions"]
    scenario["decisions"] = [{**decision, "scores": {"n0": {"NodeResourcesFit": 1}}}]
    fields = {difference.field for difference in replayed(scenario)}
    assert "scores.n0.NodeResourcesFit" in fields


def test_a_refused_pod_saw_the_claims_that_there_are_by_now() -> None:
    """Pods and claims come by watches of their own, so a pod may be seen before its claim."""
    camera = Camera()
    user = pod("a", volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}])
    camera.sees(user, Happened.ADDED)
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"accessModes": [], "resources": {}}}
    camera.sees(claim, Happened.ADDED, kinds.PERSISTENT_VOLUME_CLAIM)
    (scenario,) = camera.sees(
        refused(user, "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. not found")
    )
    assert replayed(scenario) == []


def test_room_that_was_made_for_a_pod_is_kept_for_it_in_the_replay_too() -> None:
    camera = Camera()
    keeper = pod("keeper", cpu="4", priority=9)
    camera.sees(keeper, Happened.ADDED)
    camera.sees(refused(keeper, FULL, nominated="n0"))
    scenario = camera.binds(pod("a", cpu="1"), "n1")
    assert [doc["metadata"]["name"] for doc in scenario["waiting"]] == ["keeper"]
    assert replayed(scenario) == []
    assert [d.field for d in replayed({**scenario, "decisions": [{**scenario["decisions"][0], "node": "n0"}]})] == [
        "feasible"
    ]


def test_a_recording_has_the_devices_that_a_pod_was_given() -> None:
    camera = Camera()
    selectors = {"selectors": [{"cel": {"expression": 'device.driver == "gpu.example.com"'}}]}
    camera.sees({"metadata": {"name": "gpu"}, "spec": selectors}, Happened.ADDED, kinds.DEVICE_CLASS)
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    camera.sees(
        {
            "metadata": {"name": "s"},
            "spec": {
                "driver": "gpu.example.com",
                "nodeName": "n1",
                "pool": pool,
                "devices": [{"name": "g0"}, {"name": "g1"}],
            },
        },
        Happened.ADDED,
        kinds.RESOURCE_SLICE,
    )
    requests = [{"name": "a", "exactly": {"deviceClassName": "gpu"}}]
    claim: Doc = {
        "metadata": {"name": "c", "namespace": "default", "uid": "c"}, "spec": {"devices": {"requests": requests}},
    }  # fmt: skip
    camera.sees(claim, Happened.ADDED, kinds.RESOURCE_CLAIM)
    user = pod("a")
    user["spec"]["resourceClaims"] = [{"name": "g", "resourceClaimName": "c"}]
    camera.sees(user, Happened.ADDED)
    only = {"key": "metadata.name", "operator": "In", "values": ["n1"]}

    def bound(device: str) -> Doc:
        result = {"request": "a", "driver": "gpu.example.com", "pool": "n1", "device": device}
        allocation = {
            "devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [only]}]},
        }  # fmt: skip
        camera.sees({**claim, "status": {"allocation": allocation}}, kind=kinds.RESOURCE_CLAIM)
        (scenario,) = camera.sees({**user, "spec": {**user["spec"], "nodeName": "n1"}})
        return scenario

    scenario = bound("g0")
    assert next(doc for doc in scenario["objects"] if doc["kind"] == "ResourceClaim").get("status") is None
    assert replayed(scenario) == []
    camera.sees(claim, kind=kinds.RESOURCE_CLAIM)
    camera.sees(user, Happened.DELETED)
    camera.sees(user, Happened.ADDED)
    assert [difference.field for difference in replayed(bound("g1"))] == ["allocations.c"]
