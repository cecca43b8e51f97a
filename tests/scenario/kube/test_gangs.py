"""Gangs on the embedded API, from users' documents to running pods."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.cluster.kubelets.pod_script import PodScript
from fairlead.core.engine.explain.figures import figures_of
from fairlead.core.model import kinds
from fairlead.errors import Invalid
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness

RACK = "example.com/rack"


def _group(name: str, minimum: int, *, version: str = "v1alpha2", key: str = "", **spec: Any) -> dict[str, Any]:
    constraints = {"schedulingConstraints": {"topology": [{"key": key}]}} if key else {}
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": name},
        "spec": {"schedulingPolicy": {"gang": {"minCount": minimum}}, **constraints, **spec},
    }


def _members(group: str, count: int, cpu: str = "4") -> list[dict[str, Any]]:
    docs = [pod(f"{group}-{i}").asks(cpu=cpu).doc() for i in range(count)]
    return [{**doc, "spec": {**doc["spec"], "schedulingGroup": {"podGroupName": group}}} for doc in docs]


def _scheduled(cluster: Harness, name: str) -> tuple[str, str]:
    """What the group's condition says, in whichever version it is read."""
    said = []
    for kind, type_ in ((kinds.POD_GROUP, "PodGroupScheduled"), (kinds.POD_GROUP_BETA, "PodGroupInitiallyScheduled")):
        doc = cluster.get(kind, name)
        assert doc is not None
        (condition,) = doc["status"]["conditions"]
        assert condition["type"] == type_
        said.append((condition["status"], condition["reason"]))
    assert said[0] == said[1]
    return said[0]


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
def test_a_native_gang_starts_when_there_is_room_for_all(version: str) -> None:
    cluster = Harness(nodes=1)
    cluster.apply(_group("g", 3, version=version), *_members("g", 3))
    cluster.run(30)
    assert cluster.bindings() == {}
    assert _scheduled(cluster, "g") == ("False", "Unschedulable")
    cluster.apply(node("another"))
    cluster.run(30)
    assert set(cluster.phases().values()) == {"Running"}
    assert _scheduled(cluster, "g") == ("True", "Scheduled")


def test_members_without_their_group_wait_for_it() -> None:
    cluster = Harness(nodes=2)
    cluster.apply(*_members("g", 2))
    cluster.run(10)
    assert cluster.bindings() == {}
    cluster.apply(_group("g", 2))
    cluster.run(10)
    assert len(cluster.bindings()) == 2


def test_groups_of_three_apis_start_whole() -> None:
    coscheduling = {"apiVersion": "scheduling.x-k8s.io/v1alpha1", "kind": "PodGroup", "metadata": {"name": "x"},
                    "spec": {"minMember": 2}}  # fmt: skip
    volcano = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "v"},
               "spec": {"minMember": 2}}  # fmt: skip
    cluster = Harness(nodes=1)
    cluster.apply(coscheduling, volcano)
    cluster.apply(*(pod(f"x-{i}").asks(cpu="4").labelled({"scheduling.x-k8s.io/pod-group": "x"}) for i in range(2)))
    cluster.apply(*(pod(f"v-{i}").asks(cpu="4").in_group("v") for i in range(2)))
    cluster.run(10)
    assert {name[0] for name in cluster.bindings()} in ({"x"}, {"v"})
    assert len(cluster.bindings()) == 2


def test_a_gang_in_one_rack_is_explained_when_there_is_none() -> None:
    cluster = Harness(nodes=[node(f"r{i}").labelled({RACK: f"r{i}"}) for i in range(3)])
    cluster.apply(_group("g", 4, key=RACK), *_members("g", 4))
    cluster.run(10)
    assert cluster.bindings() == {}
    (scheduler,) = cluster.assembled.schedulers
    explanation = scheduler.explain_group("default", "g")  # type: ignore[attr-defined]
    assert explanation.summary.startswith(f"needs 4 in one rack ({RACK}); best rack r")
    assert explanation.summary.endswith("has room for 2")
    assert explanation.to_document()["topology"]["domains"][0]["fits"] == 2


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
def test_a_more_important_gang_makes_room_for_itself(version: str) -> None:
    """The class is enough: the API puts its priority on the group."""
    cluster = Harness(nodes=2)
    cluster.apply(*(pod(f"low-{i}").asks(cpu="4") for i in range(4)))
    cluster.run(10)
    assert len(cluster.bindings()) == 4
    cluster.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    important = _members("g", 2)
    for doc in important:
        doc["spec"]["priorityClassName"] = "high"
    cluster.apply(_group("g", 2, version=version, priorityClassName="high"), *important)
    cluster.run(120)
    names = set(cluster.bindings())
    assert {"g-0", "g-1"} <= names
    assert len(names) == 4


@pytest.mark.parametrize(("version", "mode"), [("v1alpha2", "PodGroup"), ("v1beta1", {"all": {}})])
def test_a_group_that_goes_as_a_whole_says_so_in_either_version(version: str, mode: Any) -> None:
    cluster = Harness(nodes=2)
    cluster.apply(
        {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 1000}
    )
    cluster.apply(_group("cheap", 2, version=version, disruptionMode=mode), *_members("cheap", 4))
    cluster.run(10)
    assert len(cluster.bindings()) == 4
    important = _members("dear", 1)
    for doc in important:
        doc["spec"]["priorityClassName"] = "high"
    cluster.apply(_group("dear", 1, version=version, priorityClassName="high"), *important)
    cluster.run(120)
    assert set(cluster.bindings()) == {"dear-0"}


def test_a_minimum_that_is_lowered_lets_a_gang_start() -> None:
    """Which v1beta1 allows, and v1alpha2 does not."""
    cluster = Harness(nodes=1)
    cluster.apply(_group("g", 3, version="v1beta1"), *_members("g", 3))
    cluster.run(10)
    assert cluster.bindings() == {}
    lowered = {"spec": {"schedulingPolicy": {"gang": {"minCount": 2}}}}
    with pytest.raises(Invalid, match="field is immutable"):
        cluster.patch(kinds.POD_GROUP, "g", lowered)
    cluster.patch(kinds.POD_GROUP_BETA, "g", lowered)
    cluster.run(10)
    assert len(cluster.bindings()) == 2


GANG = "scheduling.fairlead.io/gang"


def _job(name: str, parallelism: int, *, gang: str = "auto", completions: int = 0) -> dict[str, Any]:
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "4"}}}
    template = {
        "metadata": {"annotations": {GANG: gang} if gang else {}},
        "spec": {"containers": [container], "restartPolicy": "Never"},
    }
    spec = {"parallelism": parallelism, "completions": completions or parallelism, "template": template}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}


def test_pods_of_a_job_start_together_if_its_template_says_so() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(_job("train", 3))
    cluster.run(30)
    assert cluster.bindings() == {}
    assert len(cluster.phases()) == 3
    cluster.apply(node("another"))
    cluster.run(30)
    assert set(cluster.phases().values()) == {"Succeeded"}


def test_a_job_with_more_completions_than_pods_at_once_comes_to_its_end() -> None:
    """Three at once, seven in all: the last one does not wait for two more."""
    cluster = Harness(nodes=2, script=PodScript(run_time=5.0))
    cluster.apply(_job("train", 3, completions=7))
    cluster.run(300)
    job = cluster.get(kinds.JOB, "train")
    assert job is not None
    assert job["status"]["succeeded"] == 7


def test_a_namespace_makes_gangs_of_all_its_jobs() -> None:
    cluster = Harness(nodes=1)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default", "labels": {GANG: "auto"}}})
    cluster.apply(_job("train", 3, gang=""))
    cluster.run(30)
    assert cluster.bindings() == {}
    cluster.apply(node("another"))
    cluster.run(30)
    assert len(cluster.bindings()) == 3


def _ray_definition() -> dict[str, Any]:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "rayclusters", "singular": "raycluster", "kind": "RayCluster"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "rayclusters.ray.io"},
        "spec": {"group": "ray.io", "scope": "Namespaced", "names": names, "versions": [version]},
    }


def _ray_pods(count: int) -> list[dict[str, Any]]:
    owner = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "name": "demo", "uid": "u", "controller": True}
    docs = [pod(f"ray-{i}").asks(cpu="4").labelled({"ray.io/cluster": "demo"}).doc() for i in range(count)]
    for doc in docs:
        doc["metadata"] |= {"annotations": {GANG: "auto"}, "ownerReferences": [owner]}
    return docs


@pytest.mark.parametrize("order", ["defined first", "defined last"])
def test_an_owner_of_a_kind_that_users_define_is_read(order: str) -> None:
    cluster = Harness(nodes=2, housekeeping="-garbage-collector-controller")
    if order == "defined first":
        cluster.apply(_ray_definition())
    cluster.apply(*_ray_pods(3))
    cluster.run(5)
    assert cluster.bindings() == {}
    if order == "defined last":
        cluster.apply(_ray_definition())
    ray = {"apiVersion": "ray.io/v1", "kind": "RayCluster", "metadata": {"name": "demo"},
           "spec": {"workerGroupSpecs": [{"replicas": 2}]}}  # fmt: skip
    cluster.apply(ray)
    cluster.run(5)
    cluster.apply(pod("another"))
    cluster.run(5)
    assert len(cluster.bindings()) == 4


def test_with_all_plugins_racks_without_room_are_not_tried() -> None:
    cluster = Harness(nodes=[node(f"n{i}").labelled({RACK: f"r{i}"}) for i in range(12)])
    cluster.apply(_group("g", 4, key=RACK), *_members("g", 4))
    cluster.run(1)
    (scheduler,) = cluster.assembled.schedulers
    assert figures_of(scheduler).domains_tried == 1  # type: ignore[arg-type]
