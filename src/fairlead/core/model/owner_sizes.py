"""How many pods of an owner start together, read from the owner's own document.

| owner | minimum |
|---|---|
| Job | parallelism, but not more than the completions that are still missing |
| JobSet | the sum over its replicated jobs that may start at once: replicas that have not succeeded, times their pods |
| RayCluster | the head and the workers of each group: `minReplicas` if it scales by itself, else `replicas`, by hosts |
| Kubeflow's training jobs | `minAvailable` of the scheduling policy, else the replicas that have not succeeded |

A LeaderWorkerSet is not read: its pods carry the size of their group. What has succeeded is not waited for, or the last
pods of a job would wait for those that are done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.core.model.documents import FieldError
from fairlead.core.model.kinds import JOB, Kind
from fairlead.core.model.number_sets import parse_number_set

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod

Document = Mapping[str, Any]
_KUBEFLOW = "kubeflow.org"
_KUBEFLOW_LABEL = "training.kubeflow.org/job-name"
_OPERATOR_LABEL = "training.kubeflow.org/operator-name"


class OwnerRef(NamedTuple):
    """The object that says how many pods belong together. `key` is `namespace/name`."""

    kind: Kind
    key: str


# ---- which object ----


def owner_of(pod: Pod) -> OwnerRef | None:
    """The owner of a pod whose document gives the gang's size; None if no owner is of a kind that we read."""
    labels, owner = pod.labels, pod.owner
    if name := labels.get("jobset.sigs.k8s.io/jobset-name"):
        return _ref("jobset.x-k8s.io/v1alpha2", "JobSet", pod, name)
    if owner is not None and owner.api_version.startswith(f"{_KUBEFLOW}/"):
        return _ref(owner.api_version, owner.kind, pod, owner.name)
    if (name := labels.get(_KUBEFLOW_LABEL)) and labels.get(_OPERATOR_LABEL) == "mpi-operator":
        return _ref(f"{_KUBEFLOW}/v2beta1", "MPIJob", pod, name)  # a launcher belongs to a Job of the MPIJob
    if name := labels.get("ray.io/cluster"):
        version = owner.api_version if owner is not None and owner.kind == "RayCluster" else "ray.io/v1"
        return _ref(version, "RayCluster", pod, name)
    return _ref(owner.api_version, owner.kind, pod, owner.name) if owner is not None else None


def _ref(api_version: str, kind: str, pod: Pod, name: str) -> OwnerRef | None:
    known = owner_kind(api_version, kind)
    return OwnerRef(known, f"{pod.namespace}/{name}") if known is not None else None


@lru_cache(maxsize=64)
def owner_kind(api_version: str, kind: str) -> Kind | None:
    """The kind of an owner that we can read, in the version that the owner is written in."""
    group, _, version = api_version.rpartition("/")
    if (group, kind) == (JOB.group, JOB.kind):
        return JOB
    known = (group, kind) in _RULES
    return Kind(group, version, kind, f"{kind.lower()}s", singular=kind.lower()) if known else None


def is_owner(kind: Kind) -> bool:
    return (kind.group, kind.kind) in _RULES


# ---- how many ----


def size_of(kind: Kind, document: Document) -> int:
    """How many pods of an owner start together; raises FieldError if its document does not say."""
    spec, status = document.get("spec"), document.get("status") or {}
    if not isinstance(spec, Mapping) or not isinstance(status, Mapping):
        raise FieldError("spec", "not an object")
    return max(1, _RULES[kind.group, kind.kind](spec, status))


def _number(holder: Document, field: str, default: int) -> int:
    value = holder.get(field)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise FieldError(field, f"not a number: {value!r}")
    return value


def _parts(holder: Document, field: str) -> Iterable[Document]:
    found = holder.get(field)
    if found is None:
        return ()
    if not isinstance(found, list) or not all(isinstance(part, Mapping) for part in found):
        raise FieldError(field, "not a list of objects")
    return found


def _part(holder: Document, field: str) -> Document:
    found = holder.get(field) or {}
    if not isinstance(found, Mapping):
        raise FieldError(field, "not an object")
    return found


def _job(spec: Document, status: Document) -> int:
    parallelism = _number(spec, "parallelism", 1)
    ended = _number(status, "succeeded", 0) + _indexes(status.get("failedIndexes"))
    return min(parallelism, _number(spec, "completions", parallelism) - ended)


def _indexes(text: Any) -> int:
    """How many `1,3-5` are; 0 if it is nothing of the kind."""
    try:
        return len(parse_number_set(text)) if isinstance(text, str) else 0
    except ValueError:
        return 0


def _job_set(spec: Document, status: Document) -> int:
    jobs = list(_parts(spec, "replicatedJobs"))
    if _part(spec, "startupPolicy").get("startupPolicyOrder") == "InOrder":
        jobs = jobs[:1]
    succeeded = {one.get("name"): _number(one, "succeeded", 0) for one in _parts(status, "replicatedJobsStatus")}
    total = 0
    for job in jobs:
        if not job.get("dependsOn"):
            replicas = _number(job, "replicas", 1) - succeeded.get(job.get("name"), 0)
            total += max(0, replicas) * _job(_part(_part(job, "template"), "spec"), {})
    return total


def _ray_cluster(spec: Document, status: Document) -> int:
    """The head, and workers as many as there will be before anything scales."""
    scales = bool(spec.get("enableInTreeAutoscaling"))
    total = 1
    for group in _parts(spec, "workerGroupSpecs"):
        least = _number(group, "minReplicas", 0)
        wanted = least if scales else max(least, _number(group, "replicas", least))
        if not group.get("suspend"):
            total += wanted * _number(group, "numOfHosts", 1)
    return total


def _training_job(field: str) -> Callable[[Document, Document], int]:
    def size(spec: Document, status: Document) -> int:
        policy = _part(_part(spec, "runPolicy"), "schedulingPolicy") or _part(spec, "schedulingPolicy")
        if policy.get("minAvailable") is not None:
            return _number(policy, "minAvailable", 1)
        done = _part(status, "replicaStatuses")
        replicas = _part(spec, field)
        return sum(
            max(0, _wanted(spec, role, _part(replicas, role)) - _number(_part(done, role), "succeeded", 0))
            for role in replicas
        )

    return size


def _wanted(spec: Document, role: str, replica: Document) -> int:
    """Replicas of a role: elastic workers have a minimum, and a launcher may have to wait until the workers run."""
    if role == "Launcher" and spec.get("launcherCreationPolicy") == "WaitForWorkersReady":
        return 0
    elastic = _part(spec, "elasticPolicy").get("minReplicas") if role == "Worker" else None
    return (
        _number(replica, "replicas", 1) if elastic is None else _number(_part(spec, "elasticPolicy"), "minReplicas", 1)
    )


_RULES: Mapping[tuple[str, str], Callable[[Document, Document], int]] = {
    ("batch", "Job"): _job,
    ("jobset.x-k8s.io", "JobSet"): _job_set,
    ("ray.io", "RayCluster"): _ray_cluster,
    **{
        (_KUBEFLOW, kind): _training_job(f"{field}ReplicaSpecs")
        for kind, field in (
            ("PyTorchJob", "pytorch"),
            ("TFJob", "tf"),
            ("MPIJob", "mpi"),
            ("XGBoostJob", "xgb"),
            ("PaddleJob", "paddle"),
            ("JAXJob", "jax"),
            ("MXJob", "mx"),
        )
    },
}
OWNERS: tuple[tuple[str, str], ...] = tuple(_RULES)
"""Group and kind of every owner that is read."""
