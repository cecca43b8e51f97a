"""How many pods of an owner start together, by the owner's own document."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from fairlead.core.model.documents import FieldError
from fairlead.core.model.kinds import JOB
from fairlead.core.model.owner_sizes import owner_kind, owner_of, size_of
from fairlead.core.model.pod import Shapes, compile_pod
from tests.support.doc_blocks import REPOSITORY, blocks_of

_V1 = "kubeflow.org/v1"


def _size(api_version: str, kind: str, spec: Any, status: Any = None) -> int:
    known = owner_kind(api_version, kind)
    assert known is not None
    return size_of(known, {"metadata": {"name": "o"}, "spec": spec, "status": status})


def _replicated(name: str, replicas: int, parallelism: int, **more: Any) -> dict[str, Any]:
    return {"name": name, "replicas": replicas, "template": {"spec": {"parallelism": parallelism}}, **more}


@pytest.mark.parametrize(
    ("spec", "status", "size"),
    [
        ({}, {}, 1),
        ({"parallelism": 4}, {}, 4),
        ({"parallelism": 4, "completions": 10}, {}, 4),
        ({"parallelism": 4, "completions": 3}, {}, 3),
        ({"parallelism": 4, "completions": 10}, {"succeeded": 8}, 2),
        ({"parallelism": 4, "completions": 4}, {"succeeded": 4}, 1),
        ({"parallelism": 0}, {}, 1),
        ({"parallelism": 4, "completions": 8}, {"succeeded": 2, "failedIndexes": "1,3-5"}, 2),
        ({"parallelism": 4, "completions": 8}, {"succeeded": 2, "failedIndexes": "?"}, 4),
    ],
)
def test_a_job_needs_what_runs_at_once_and_is_still_missing(
    spec: dict[str, Any], status: dict[str, Any], size: int
) -> None:
    assert _size("batch/v1", "Job", spec, status) == size


def test_a_job_set_needs_all_replicas_of_all_its_jobs() -> None:
    spec = {"replicatedJobs": [_replicated("driver", 1, 1), _replicated("workers", 4, 8)]}
    assert _size("jobset.x-k8s.io/v1alpha2", "JobSet", spec) == 33
    done = {"replicatedJobsStatus": [{"name": "workers", "succeeded": 3}]}
    assert _size("jobset.x-k8s.io/v1alpha2", "JobSet", spec, done) == 9


def test_a_job_set_in_order_needs_its_first_jobs_only() -> None:
    jobs = [_replicated("driver", 1, 1), _replicated("workers", 4, 8)]
    in_order = {"startupPolicy": {"startupPolicyOrder": "InOrder"}, "replicatedJobs": jobs}
    assert _size("jobset.x-k8s.io/v1alpha2", "JobSet", in_order) == 1
    waiting = [jobs[0], jobs[1] | {"dependsOn": [{"name": "driver", "status": "Ready"}]}]
    assert _size("jobset.x-k8s.io/v1alpha2", "JobSet", {"replicatedJobs": waiting}) == 1


@pytest.mark.parametrize(
    ("groups", "scales", "size"),
    [
        ([], False, 1),
        ([{"replicas": 3}], False, 4),
        ([{"replicas": 3, "numOfHosts": 2}, {"replicas": 1}], False, 8),
        ([{"replicas": 3, "minReplicas": 1}], True, 2),
        ([{"replicas": 1, "minReplicas": 2}], False, 3),
        ([{"replicas": 3, "suspend": True}], False, 1),
    ],
)
def test_a_ray_cluster_needs_its_head_and_its_workers(groups: list[Any], scales: bool, size: int) -> None:
    spec = {"headGroupSpec": {}, "workerGroupSpecs": groups, "enableInTreeAutoscaling": scales}
    assert _size("ray.io/v1", "RayCluster", spec) == size


@pytest.mark.parametrize(
    ("kind", "field"),
    [
        ("PyTorchJob", "pytorch"), ("TFJob", "tf"), ("MPIJob", "mpi"), ("XGBoostJob", "xgb"), ("PaddleJob", "paddle"),
        ("JAXJob", "jax"), ("MXJob", "mx"),
    ],
)  # fmt: skip
def test_a_training_job_needs_all_its_replicas(kind: str, field: str) -> None:
    specs = {f"{field}ReplicaSpecs": {"Master": {"replicas": 1}, "Worker": {"replicas": 3}, "Chief": {}}}
    assert _size(_V1, kind, specs) == 5
    assert _size(_V1, kind, specs, {"replicaStatuses": {"Worker": {"succeeded": 2}}}) == 3
    assert _size(_V1, kind, specs | {"runPolicy": {"schedulingPolicy": {"minAvailable": 2}}}) == 2


def test_elastic_workers_have_a_minimum() -> None:
    spec = {"pytorchReplicaSpecs": {"Worker": {"replicas": 8}}, "elasticPolicy": {"minReplicas": 2}}
    assert _size(_V1, "PyTorchJob", spec) == 2


def test_a_launcher_that_waits_for_the_workers_is_not_waited_for() -> None:
    spec = {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 4}}}
    assert _size("kubeflow.org/v2beta1", "MPIJob", spec) == 5
    assert _size("kubeflow.org/v2beta1", "MPIJob", spec | {"launcherCreationPolicy": "WaitForWorkersReady"}) == 4


@pytest.mark.parametrize(
    ("kind", "spec"),
    [
        ("Job", None), ("Job", []), ("Job", {"parallelism": "four"}), ("Job", {"parallelism": True}),
        ("Job", {"completions": -1}), ("JobSet", {"replicatedJobs": {}}), ("JobSet", {"replicatedJobs": [1]}),
        ("RayCluster", {"workerGroupSpecs": [{"replicas": 1.5}]}), ("TFJob", {"tfReplicaSpecs": {"Worker": "w"}}),
    ],
)  # fmt: skip
def test_a_document_that_does_not_say_is_an_error_of_its_own(kind: str, spec: Any) -> None:
    versions = {"Job": "batch/v1", "JobSet": "jobset.x-k8s.io/v1alpha2", "RayCluster": "ray.io/v1", "TFJob": _V1}
    with pytest.raises(FieldError):
        _size(versions[kind], kind, spec)


# ---- whose document ----


def _pod(owner: tuple[str, str, str] | None = None, **labels: str) -> Any:
    metadata: dict[str, Any] = {"name": "p", "namespace": "ml", "uid": "u"}
    metadata["labels"] = labels
    if owner is not None:
        version, kind, name = owner
        metadata["ownerReferences"] = [{"apiVersion": version, "kind": kind, "name": name, "controller": True}]
    return compile_pod({"metadata": metadata, "spec": {"containers": []}}, Shapes())


def _owner(pod: Any) -> tuple[str, str, str] | None:
    ref = owner_of(pod)
    return None if ref is None else (ref.kind.api_version, ref.kind.kind, ref.key)


def test_a_pod_of_a_job_set_belongs_to_the_job_set_and_not_to_its_job() -> None:
    pod = _pod(("batch/v1", "Job", "js-workers-0"), **{"jobset.sigs.k8s.io/jobset-name": "js"})
    assert _owner(pod) == ("jobset.x-k8s.io/v1alpha2", "JobSet", "ml/js")


def test_the_launcher_of_an_mpi_job_belongs_to_the_mpi_job() -> None:
    labels = {"training.kubeflow.org/job-name": "m", "training.kubeflow.org/operator-name": "mpi-operator"}
    assert _owner(_pod(("batch/v1", "Job", "m-launcher"), **labels)) == ("kubeflow.org/v2beta1", "MPIJob", "ml/m")
    assert _owner(_pod(("kubeflow.org/v2beta1", "MPIJob", "m"), **labels)) == ("kubeflow.org/v2beta1", "MPIJob", "ml/m")


def test_an_owner_is_read_in_the_version_it_is_written_in() -> None:
    pod = _pod(("ray.io/v1alpha1", "RayCluster", "r"), **{"ray.io/cluster": "r"})
    assert _owner(pod) == ("ray.io/v1alpha1", "RayCluster", "ml/r")
    assert _owner(_pod(None, **{"ray.io/cluster": "r"})) == ("ray.io/v1", "RayCluster", "ml/r")


def test_a_job_is_a_job_and_others_are_not_read() -> None:
    ref = owner_of(_pod(("batch/v1", "Job", "j")))
    assert ref is not None
    assert ref.kind is JOB
    assert _owner(_pod(("apps/v1", "ReplicaSet", "web"))) is None
    assert _owner(_pod()) is None


def test_the_examples_in_the_documentation_count_as_it_says() -> None:
    blocks = blocks_of(REPOSITORY / "docs" / "gangs.md")
    examples = [yaml.safe_load(block.text) for block in blocks if block.language == "yaml"]
    sizes = {
        doc["kind"]: size_of(kind, doc)
        for doc in examples
        if (kind := owner_kind(doc["apiVersion"], doc["kind"])) is not None
    }
    assert sizes == {"Job": 4, "JobSet": 9, "RayCluster": 4, "PyTorchJob": 4}
