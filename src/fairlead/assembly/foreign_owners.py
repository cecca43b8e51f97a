"""The pods of owners whose controllers are not ours: JobSet, RayCluster, LeaderWorkerSet and Kubeflow's training jobs.

Each pod template times its replicas, with the labels and the owner by which the pods are found to belong together
(core/model/owner_sizes.py reads the same fields). Names are those that the controllers would give, as far as scheduling
could notice the difference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

Part = tuple[str, Mapping[str, Any], int, Mapping[str, str], Mapping[str, str]]
"""Of some pods: a name, their template, how many, and the labels and annotations that their controller adds."""


def is_foreign(document: Doc) -> bool:
    return _expander(document) is not None


def pods_of(document: Doc) -> Iterator[Doc]:
    """The pods that the owner's controller would make, as documents to be created."""
    expander = _expander(document)
    assert expander is not None
    metadata = document["metadata"]
    owner = {
        "apiVersion": document["apiVersion"],
        "kind": document["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    for name, template, count, labels, notes in expander(document):
        theirs = template.get("metadata") or {}
        for index in range(count):
            yield {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {
                    "name": f"{metadata['name']}-{name}-{index}".lower(),
                    "namespace": metadata.get("namespace") or "default",
                    "labels": {**(theirs.get("labels") or {}), **labels},
                    "annotations": {**(theirs.get("annotations") or {}), **notes},
                    "ownerReferences": [owner],
                },
                "spec": template.get("spec") or {},
            }


def _expander(document: Doc) -> Callable[[Doc], Iterator[Part]] | None:
    group, kind = document["apiVersion"].rpartition("/")[0], document["kind"]
    if group == "kubeflow.org" and kind in _KUBEFLOW:
        return _training_job
    return {
        ("jobset.x-k8s.io", "JobSet"): _job_set,
        ("ray.io", "RayCluster"): _ray_cluster,
        ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): _leader_worker_set,
    }.get((group, kind))


def _job_set(document: Doc) -> Iterator[Part]:
    labels = {"jobset.sigs.k8s.io/jobset-name": document["metadata"]["name"]}
    jobs = document["spec"].get("replicatedJobs") or ()
    in_order = (document["spec"].get("startupPolicy") or {}).get("startupPolicyOrder") == "InOrder"
    for job in jobs[:1] if in_order else jobs:
        if job.get("dependsOn"):
            continue
        spec = (job.get("template") or {}).get("spec") or {}
        parallelism = spec.get("parallelism", 1)
        each = min(parallelism, spec.get("completions", parallelism))
        for replica in range(job.get("replicas", 1)):
            yield f"{job['name']}-{replica}", spec.get("template") or {}, each, labels, {}


def _ray_cluster(document: Doc) -> Iterator[Part]:
    spec, labels = document["spec"], {"ray.io/cluster": document["metadata"]["name"]}
    yield "head", (spec.get("headGroupSpec") or {}).get("template") or {}, 1, labels, {}
    for group in spec.get("workerGroupSpecs") or ():
        least = group.get("minReplicas", 0)
        wanted = least if spec.get("enableInTreeAutoscaling") else max(least, group.get("replicas", least))
        count = 0 if group.get("suspend") else wanted * group.get("numOfHosts", 1)
        yield f"{group.get('groupName', 'worker')}-worker", group.get("template") or {}, count, labels, {}


def _leader_worker_set(document: Doc) -> Iterator[Part]:
    spec, name = document["spec"], document["metadata"]["name"]
    template = spec.get("leaderWorkerTemplate") or {}
    size = template.get("size", 1)
    worker = template.get("workerTemplate") or {}
    for group in range(spec.get("replicas", 1)):
        labels = {"leaderworkerset.sigs.k8s.io/name": name, "leaderworkerset.sigs.k8s.io/group-index": str(group)}
        annotations = {"leaderworkerset.sigs.k8s.io/size": str(size)}
        yield f"{group}-leader", template.get("leaderTemplate") or worker, 1, labels, annotations
        yield f"{group}", worker, size - 1, labels, annotations


_KUBEFLOW = {
    "PyTorchJob": "pytorch", "TFJob": "tf", "MPIJob": "mpi", "XGBoostJob": "xgb", "PaddleJob": "paddle",
    "JAXJob": "jax", "MXJob": "mx",
}  # fmt: skip


def _training_job(document: Doc) -> Iterator[Part]:
    spec = document["spec"]
    labels = {"training.kubeflow.org/job-name": document["metadata"]["name"]}
    for role, replica in (spec.get(f"{_KUBEFLOW[document['kind']]}ReplicaSpecs") or {}).items():
        waits = role == "Launcher" and spec.get("launcherCreationPolicy") == "WaitForWorkersReady"
        count = 0 if waits else replica.get("replicas", 1)
        yield role, replica.get("template") or {}, count, labels, {}
