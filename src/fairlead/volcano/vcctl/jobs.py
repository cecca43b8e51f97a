"""`vcctl job`: run, list, view, suspend, resume, delete."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from fairlead.core.model.kinds import EVENT
from fairlead.volcano.kinds import VC_JOB
from fairlead.volcano.vcctl.job_view import shown_job
from fairlead.volcano.vcctl.work import VcFault, VcWork, read_yaml

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_LABEL = "job.volcano.sh"
_TYPE = "volcano.sh/job-type"
_HEAD = (
    ("Creation", 15), ("Phase", 12), ("JobType", 12), ("Replicas", 12), ("Min", 6), ("Pending", 10), ("Running", 10),
    ("Succeeded", 12), ("Failed", 10), ("Unknown", 12), ("RetryCount", 10),
)  # fmt: skip


async def run(work: VcWork) -> None:
    values = work.values
    if not work.name and not values["filename"]:
        raise VcFault("job name cannot be left blank")
    requests, limits = (_resources(values[field]) for field in ("requests", "limits"))
    job = _read(values["filename"]) if values["filename"] else _made(work, requests, limits)
    job.setdefault("metadata", {})["namespace"] = work.namespace
    stored = await work.create(VC_JOB, job)
    work.out(f"run job {stored['metadata']['name']} successfully")


def _resources(text: str) -> dict[str, str]:
    found = {}
    for part in text.split(",") if text else ():
        name, equals, value = part.partition("=")
        if not equals or "=" in value:
            raise VcFault(f"invalid argument syntax {part}, expected <resource>=<value>")
        found[name] = value
    return found


def _read(path: str) -> Doc:
    if ".yaml" not in path and ".yml" not in path:
        raise VcFault("only support yaml file")
    try:
        documents = read_yaml(path)
    except VcFault as error:
        raise VcFault(f"failed to read file, err: {error}") from error
    return documents[0] if documents else {"apiVersion": VC_JOB.api_version, "kind": "Job", "metadata": {}, "spec": {}}


def _made(work: VcWork, requests: dict[str, str], limits: dict[str, str]) -> Doc:
    values, name = work.values, work.name
    scheduler, image = values["scheduler"], values["image"]
    if scheduler == "volcano":
        scheduler = os.environ.get("VOLCANO_SCHEDULER_NAME", scheduler)
    if image == "busybox":
        image = os.environ.get("VOLCANO_DEFAULT_IMAGE", image)
    container = {
        "name": name,
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "resources": {"limits": limits, "requests": requests},
    }
    template = {
        "metadata": {"name": name, "labels": {_LABEL: name}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": VC_JOB.api_version,
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "minAvailable": values["min"],
            "schedulerName": scheduler,
            "tasks": [{"replicas": values["replicas"], "template": template}],
        },
    }


async def list_jobs(work: VcWork) -> None:
    values = work.values
    jobs = await work.listed(VC_JOB, "" if values["all-namespaces"] else work.namespace)
    jobs = [
        job
        for job in jobs
        if (not values["scheduler"] or job["spec"].get("schedulerName") == values["scheduler"])
        and (not values["queue"] or job["spec"].get("queue") == values["queue"])
        and values["selector"] in job["metadata"]["name"]
    ]
    if not jobs:
        work.out("No resources found")
        return
    name_width = max(len("Name"), *(len(job["metadata"]["name"]) for job in jobs)) + 3
    space_width = max(len("Namespace"), *(len(job["metadata"]["namespace"]) for job in jobs)) + 3
    head = [("Name", name_width), *_HEAD]
    if values["all-namespaces"]:
        head = [("Namespace", space_width), *head]
    work.out("".join(title.ljust(width) for title, width in head))
    for job in jobs:
        cells = _cells(job)
        shown = cells if values["all-namespaces"] else cells[1:]
        work.out("".join(str(cell).ljust(width) for cell, (_, width) in zip(shown, head, strict=True)))


def _cells(job: Doc) -> list[Any]:
    metadata, status = job["metadata"], job.get("status") or {}
    counters = ("pending", "running", "succeeded", "failed", "unknown", "retryCount")
    return [
        metadata["namespace"],
        metadata["name"],
        (metadata.get("creationTimestamp") or "")[:10],
        (status.get("state") or {}).get("phase") or "",
        (metadata.get("labels") or {}).get(_TYPE) or "Batch",
        sum(int(task.get("replicas") or 0) for task in job["spec"].get("tasks") or ()),
        status.get("minAvailable") or 0,
        *(status.get(counter) or 0 for counter in counters),
    ]


async def view(work: VcWork) -> None:
    if not work.name:
        raise VcFault("job name (specified by --name or -N) is mandatory to view a particular job")
    job = await work.api.get(VC_JOB, work.namespace, work.name)
    events = [
        event
        for event in await work.listed(EVENT, work.namespace)
        if event["metadata"]["name"].startswith(f"{work.name}.")
    ]
    work.out("\n".join(shown_job(job, events, work.now())))


async def suspend(work: VcWork) -> None:
    await _ask(work, "AbortJob", "suspend")


async def resume(work: VcWork) -> None:
    await _ask(work, "ResumeJob", "resume")


async def _ask(work: VcWork, action: str, verb: str) -> None:
    if not work.name:
        raise VcFault(f"job name is mandatory to {verb} a particular job")
    job = await work.api.get(VC_JOB, work.namespace, work.name)
    await work.command(VC_JOB, job, action, work.namespace)


async def delete(work: VcWork) -> None:
    if not work.name:
        raise VcFault("job name is mandatory to delete a particular job")
    await work.remove(VC_JOB, work.namespace, work.name)
    work.out(f"delete job {work.name} successfully")
