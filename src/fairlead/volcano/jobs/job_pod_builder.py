"""The pods that a Volcano Job wants: their names, documents, and which tasks have to wait for others."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator
from copy import deepcopy
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from fairlead.cluster.controllers.writes import owner_reference
from fairlead.volcano.jobs.job_pods import (
    JOB_NAME,
    JOB_NAMESPACE,
    JOB_VERSION,
    PARTITION_ID,
    QUEUE_NAME,
    RETRY_COUNT,
    TASK_INDEX,
    TASK_SPEC,
    TEMPLATE_UID,
    JobPod,
)
from fairlead.volcano.kinds import GROUP_ANNOTATION, VC_JOB

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.jobs.phases import JobState

PREEMPTABLE, COOLDOWN = "volcano.sh/preemptable", "volcano.sh/cooldown-time"
_FROM_JOB = (PREEMPTABLE, COOLDOWN, "volcano.sh/revocable-zone")
_BUDGETS = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")
_NUMA = "volcano.sh/numa-topology-policy"
_DEFAULT_TASK = "default"
_DIGITS = 20
"""Longer numbers are no index: reading them would take a time that grows with their length."""
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def pod_name(job: str, task: str, index: int) -> str:
    return f"{job}-{task}-{index}"


def random_word(*seed: str) -> str:
    """Twelve letters that look random and are the same for the same seed, so that a retry makes the same object."""
    digest = sha256("/".join(seed).encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:12])


class WantedPods:
    """The pods that a Job's spec requests, by name. Nothing is built for those that nobody asks about, because a task
    may have two thousand million replicas."""

    def __init__(self, job: Doc) -> None:
        self._job: str = job["metadata"]["name"]
        self._tasks: dict[str, tuple[Doc, int]] = {}
        for task in job["spec"].get("tasks") or ():
            self._tasks[task.get("name") or ""] = (task, max(0, int(task.get("replicas") or 0)))

    def __contains__(self, name: str) -> bool:
        head, _, index = name.rpartition("-")
        _, replicas = self._tasks.get(head.removeprefix(f"{self._job}-"), ({}, 0))
        if not (head.startswith(f"{self._job}-") and index.isascii() and index.isdecimal() and len(index) < _DIGITS):
            return False
        return int(index) < replicas and str(int(index)) == index

    @property
    def total(self) -> int:
        return sum(replicas for _, replicas in self._tasks.values())

    def missing(self, there: Container[str], without: Container[str] = ()) -> Iterator[tuple[Doc, int]]:
        """Task and index of each pod that is not `there`, task by task, but for tasks `without`."""
        for task_name, (task, _) in self._tasks.items():
            if task_name not in without:
                yield from ((task, index) for index, _ in self.missing_of(task_name, there))

    def missing_of(self, task_name: str, there: Container[str]) -> Iterator[tuple[int, str]]:
        """Index and name of each pod of one task that is not `there`."""
        for index in range(self._tasks[task_name][1]):
            if (name := pod_name(self._job, task_name, index)) not in there:
                yield index, name


def build_pod(job: Doc, task: Doc, index: int, *, group: str, state: JobState) -> Doc:
    """A pod as the template says, before job plugins have added to it. Nothing of it is shared with the Job."""
    template = deepcopy(task.get("template") or {})
    metadata, spec = template.get("metadata") or {}, template.get("spec") or {}
    job_spec, job_name, task_name = job["spec"], job["metadata"]["name"], task.get("name") or _DEFAULT_TASK
    if not spec.get("schedulerName"):
        spec["schedulerName"] = job_spec.get("schedulerName") or ""
    if not spec.get("priorityClassName") and job_spec.get("priorityClassName"):
        spec["priorityClassName"] = job_spec["priorityClassName"]
    _mount_volumes(job, spec)
    labels = {
        **(metadata.get("labels") or {}),
        TASK_INDEX: str(index),
        TASK_SPEC: task_name,
        JOB_NAME: job_name,
        JOB_NAMESPACE: job["metadata"]["namespace"],
        QUEUE_NAME: job_spec.get("queue") or "",
        **_present(job["metadata"].get("labels"), (PREEMPTABLE, COOLDOWN)),
    }
    if task.get("partitionPolicy"):
        labels[PARTITION_ID] = str(index // int(task["partitionPolicy"]["partitionSize"]))
    notes = {
        **(metadata.get("annotations") or {}),
        TASK_INDEX: str(index),
        TASK_SPEC: task_name,
        GROUP_ANNOTATION: group,
        JOB_NAME: job_name,
        QUEUE_NAME: job_spec.get("queue") or "",
        JOB_VERSION: str(state.version),
        RETRY_COUNT: str(state.retries),
        TEMPLATE_UID: f"{job_name}-{task_name}",
        **_annotations_of_job(job),
    }
    if task.get("topologyPolicy"):
        notes[_NUMA] = task["topologyPolicy"]
    made = {
        "name": pod_name(job_name, task.get("name") or "", index),
        "namespace": job["metadata"]["namespace"],
        "labels": labels,
        "annotations": notes,
        "ownerReferences": [owner_reference(VC_JOB, job)],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": spec}


def _annotations_of_job(job: Doc) -> dict[str, str]:
    given = job["metadata"].get("annotations") or {}
    budget = next((key for key in _BUDGETS if key in given), None)
    return _present(given, (*_FROM_JOB, *((budget,) if budget else ())))


def _present(given: dict[str, str] | None, names: Iterable[str]) -> dict[str, str]:
    return {name: given[name] for name in names if given and name in given}


def _mount_volumes(job: Doc, spec: dict[str, Any]) -> None:
    """Mount each claim of the Job once, in every container that is not an init container."""
    mounted: set[str] = set()
    for volume in job["spec"].get("volumes") or ():
        claim = volume.get("volumeClaimName") or ""
        if claim in mounted:
            continue
        mounted.add(claim)
        name = f"{job['metadata']['name']}-{random_word(job['metadata']['uid'], 'mount', claim)}"
        spec["volumes"] = [*(spec.get("volumes") or ()), {"name": name, "persistentVolumeClaim": {"claimName": claim}}]
        for container in spec.get("containers") or ():
            mount = {"name": name, "mountPath": volume["mountPath"]}
            container["volumeMounts"] = [*(container.get("volumeMounts") or ()), mount]


# ---- dependsOn ----


def waiting_tasks(job: Doc, pods: Iterable[JobPod]) -> set[str]:
    """Tasks whose pods are not to be made yet, because a task that they depend on is not ready."""
    tasks = {task.get("name"): task for task in job["spec"].get("tasks") or ()}
    if not any((task.get("dependsOn") or {}).get("name") for task in tasks.values()):
        return set()
    ready: dict[str, int] = {}
    for pod in pods:
        if pod.phase == "Succeeded" or (pod.phase == "Running" and pod.ready):
            ready[pod.task] = ready.get(pod.task, 0) + 1
    return {str(name) for name, task in tasks.items() if not _may_start(task, tasks, ready)}


def _may_start(task: Doc, tasks: dict[Any, Doc], ready: dict[str, int]) -> bool:
    depends = task.get("dependsOn") or {}
    names = depends.get("name") or []
    if not names:
        return True
    states = [_is_ready(name, tasks, ready) for name in names]
    return any(states) if depends.get("iteration") == "any" and len(names) > 1 else all(states)


def _is_ready(name: str, tasks: dict[Any, Doc], ready: dict[str, int]) -> bool:
    minimum = (tasks.get(name) or {}).get("minAvailable")
    return minimum is None or ready.get(name, 0) >= int(minimum)
