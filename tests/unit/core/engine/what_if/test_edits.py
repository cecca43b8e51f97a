"""Edits that are made of what families know of closeness and of their owners of pods."""

from __future__ import annotations

from fairlead.core.engine.what_if.edits import easier_groups, group_target, with_pods
from fairlead.core.engine.what_if.workload import Workload
from fairlead.core.model.flow import Doc
from fairlead.testing import pod, podgroup

NEAR = {
    "volcano.sh/network-topology-highest-tier": "1",
    "scheduling.fairlead.io/topology-key": "rack",
    "gang.scheduling.koordinator.sh/network-topology-spec": "{}",
}
"""Annotations of closeness, one of each family and the core's own."""


def in_group(name: str, annotations: dict[str, str]) -> Doc:
    document = pod(name).asks(cpu="1").in_group("g").scheduled_by("volcano").doc()
    document["metadata"].update(uid=name, namespace="default")
    document["metadata"].setdefault("annotations", {}).update(annotations)
    return document


def group(annotations: dict[str, str], owner: str = "") -> Doc:
    document = podgroup("g", 2).in_queue("team").doc()
    document["metadata"]["annotations"] = annotations
    if owner:
        document["metadata"]["ownerReferences"] = [{"apiVersion": owner, "kind": "Job", "name": "train"}]
    return document


def test_closeness_is_given_up_in_all_its_forms_at_once() -> None:
    (edit,) = easier_groups(Workload.of([group(NEAR), in_group("a", {})]))
    (step,) = edit.steps
    assert step.patch == {"metadata": {"annotations": dict.fromkeys(sorted(NEAR))}}
    assert list(step.patch["metadata"]["annotations"]) == sorted(NEAR)
    assert edit.workload.objects[0]["metadata"]["annotations"] == {}


def test_closeness_of_a_group_without_an_object_is_given_up_in_its_pods() -> None:
    (edit,) = easier_groups(Workload.of([in_group("a", NEAR)]))
    assert edit.steps[0].targets == ("pod/a",)
    assert edit.steps[0].patch == {"metadata": {"annotations": dict.fromkeys(sorted(NEAR))}}
    assert not NEAR.keys() & edit.workload.pods[0]["metadata"]["annotations"].keys()


def test_a_group_that_a_job_makes_is_changed_in_the_job_before_it_is_created() -> None:
    loose = group({})
    loose["spec"]["networkTopology"] = {"mode": "hard"}
    made = {**loose, "metadata": group({}, "batch.volcano.sh/v1alpha1")["metadata"]}
    for document, target, fixed in (
        (loose, "podgroups.scheduling.volcano.sh/g", False),
        (made, "jobs.batch.volcano.sh/train", True),
    ):
        (edit,) = easier_groups(Workload.of([document, in_group("a", {})]))
        assert group_target(document) == (target, fixed)
        assert edit.steps[0].targets == (target,)
        assert edit.steps[0].patch == {"spec": {"networkTopology": None}}
        assert "networkTopology" not in edit.workload.objects[0]["spec"]


def test_fewer_pods_of_a_job_are_fewer_replicas_of_its_last_tasks() -> None:
    pods = [in_group(name, {"volcano.sh/task-spec": name[0]}) for name in ("a0", "b0", "b1")]
    for document in pods:
        document["metadata"]["ownerReferences"] = [
            {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "train", "controller": True}
        ]
    edit = with_pods(Workload.of([group({}), *pods]), 2)
    assert edit is not None
    assert edit.steps[0].targets == ("jobs.batch.volcano.sh/train",)
    tasks = [{"name": "a", "replicas": 1}, {"name": "b", "replicas": 1}]
    assert edit.steps[0].patch == {"spec": {"minAvailable": 2, "tasks": tasks}}
