"""A job as the objects that are created when it arrives: pods with their group, a Job, or a Volcano Job.

Results are attributed to jobs by `job_of`. Pods that controllers make carry the job's name as a label; others have it
in their own names, so that equal pods of different jobs are equal for the scheduler. Durations, delays and exit codes
are the annotations that simulated kubelets read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from fairlead.cluster.kubelets.gang_work import RUN_TOGETHER, RUN_TOGETHER_AS
from fairlead.cluster.kubelets.pod_script import EXIT_CODE, RUN_TIME, START_DELAY
from fairlead.cluster.store.objects import private_copy
from fairlead.cluster.store.schema import decode
from fairlead.core.model import kinds
from fairlead.core.model.quantity import parse_quantity
from fairlead.koordinator.records.gangs import PREFIX
from fairlead.lab.scenario.fleet import priority_name
from fairlead.volcano.kinds import GROUP_ANNOTATION, VC_JOB, VC_POD_GROUP

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.lab.scenario.jobs import LabJob

JOB_LABEL = "fairlead.io/lab-job"
NAMESPACE = "default"
COSCHEDULING = "Coscheduling"
"""The plugin of Koordinator's profiles for which the pods of a gang name it themselves."""


def job_of(pod: Doc) -> str:
    """The name of the job that a pod belongs to; whatever else it may be, if the pod is none of an experiment's."""
    metadata = pod["metadata"]
    job: str = (metadata.get("labels") or {}).get(JOB_LABEL) or metadata["name"].rpartition("-")[0]
    return job


def objects_of(
    job: LabJob, *, scheduler_name: str, rounds: bool, coscheduling: bool = False, queue: str = ""
) -> list[tuple[kinds.Kind, Doc]]:
    """The objects of a job, in the order in which they are created; pods conform (see Write). `rounds` says that the
    scheduler has the Volcano profile, with which every pod has a group; elsewhere only gangs have one. `coscheduling`
    says that it has Koordinator's plugin for gangs, which pods name in annotations."""
    if coscheduling and job.minimum > 1 and job.made_as != "volcano-job":
        named = {f"{PREFIX}name": job.name, f"{PREFIX}min-available": str(job.minimum)}
        job = replace(job, annotations=named | dict(job.annotations), minimum=1, works_with=job.together)
    if job.made_as == "job":
        return [(kinds.JOB, _batch_job(job, _template(job, scheduler_name)))]
    if job.made_as == "volcano-job":
        return [(VC_JOB, _volcano_job(job, _template(job, scheduler_name), scheduler_name, queue))]
    made: list[tuple[kinds.Kind, Doc]] = []
    annotations = _annotations(job)
    metadata: Doc = {}
    if rounds or job.minimum > 1:
        made.append((VC_POD_GROUP, _group(job, queue)))
        annotations[GROUP_ANNOTATION] = job.name
    if annotations:
        metadata["annotations"] = annotations
    if job.labels:
        metadata["labels"] = dict(job.labels)
    spec = _conforming_spec(
        scheduler_name, tuple(job.resources.items()), job.priority, tuple(job.node_selector.items())
    )
    return made + [(kinds.POD, _pod(job, metadata, spec, number)) for number in range(job.pods)]


def _template(job: LabJob, scheduler_name: str) -> Doc:
    labels = {**job.labels, JOB_LABEL: job.name}
    spec = _spec(scheduler_name, job.resources, job.priority, job.node_selector)
    return {"metadata": {"annotations": _annotations(job), "labels": labels}, "spec": spec}


def _annotations(job: LabJob) -> dict[str, str]:
    annotations = dict(job.annotations)
    if job.duration is not None:
        annotations[RUN_TIME] = f"{job.duration:.6f}s"
    if job.start_delay:
        annotations[START_DELAY] = f"{job.start_delay:.6f}s"
    if job.together > 1:
        annotations = {RUN_TOGETHER: str(job.together), RUN_TOGETHER_AS: job.name} | annotations
    return annotations


def _spec(scheduler_name: str, amounts: Mapping[str, str], priority: int, node_selector: Mapping[str, str]) -> Doc:
    extended = {name: amount for name, amount in amounts.items() if "/" in name}
    resources = {"requests": dict(amounts), **({"limits": extended} if extended else {})}
    spec: Doc = {
        "schedulerName": scheduler_name,
        "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "pause", "resources": resources}],
    }
    if priority:
        spec["priorityClassName"] = priority_name(priority)
    if node_selector:
        spec["nodeSelector"] = dict(node_selector)
    return spec


def _pod(job: LabJob, metadata: Doc, spec: Doc, number: int) -> Doc:
    metadata = {**metadata, "name": f"{job.name}-{number}", "namespace": NAMESPACE}
    if number in job.failing:
        metadata["annotations"] = {**(metadata.get("annotations") or {}), EXIT_CODE: "1"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


@lru_cache(maxsize=2048)
def _conforming_spec(
    scheduler_name: str, amounts: tuple[tuple[str, str], ...], priority: int, node_selector: tuple[tuple[str, str], ...]
) -> Doc:
    """A pod's spec as a server would keep it, the same object for equal pods: decoding it once is enough."""
    spec = _spec(scheduler_name, dict(amounts), priority, dict(node_selector))
    body = private_copy({"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": spec})
    conforming: Doc = decode(kinds.POD, body).doc["spec"]
    return conforming


def _group(job: LabJob, queue: str) -> Doc:
    spec: dict[str, Any] = {"minMember": job.minimum}
    if queue:
        spec["queue"] = queue
    if job.priority:
        spec["priorityClassName"] = priority_name(job.priority)
    if job.resources:
        spec["minResources"] = {name: _times(amount, job.minimum) for name, amount in job.resources.items()}
    return _object(VC_POD_GROUP, job, spec)


def _times(amount: str, count: int) -> str:
    return amount if count == 1 else f"{parse_quantity(amount).nanos * count // 1_000_000}m"


def _batch_job(job: LabJob, template: Doc) -> Doc:
    metadata = template["metadata"]
    if job.minimum > 1:
        metadata["annotations"]["scheduling.fairlead.io/gang"] = "auto"
    spec = {"parallelism": job.pods, "completions": job.pods, "backoffLimit": 100, "template": template}
    return _object(kinds.JOB, job, spec)


def _volcano_job(job: LabJob, template: Doc, scheduler_name: str, queue: str) -> Doc:
    task = {"name": "task", "replicas": job.pods, "template": template}
    spec: dict[str, Any] = {"schedulerName": scheduler_name, "minAvailable": job.minimum, "tasks": [task]}
    spec["policies"] = [{"event": "PodEvicted", "action": "RestartTask"}]
    if queue:
        spec["queue"] = queue
    if job.priority:
        spec["priorityClassName"] = priority_name(job.priority)
    return _object(VC_JOB, job, spec)


def _object(kind: kinds.Kind, job: LabJob, spec: Doc) -> Doc:
    metadata = {"name": job.name, "namespace": NAMESPACE, "labels": {JOB_LABEL: job.name}}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": metadata, "spec": spec}
