"""JobFlows: Volcano Jobs made from JobTemplates, each when those that it depends on are completed.

    "" ─▶ Pending ─▶ Running ─▶ Succeed (its jobs are deleted if the flow says so)
             └──────────┴─────▶ Failed

The job of a flow's step is `<flow>-<template>`; a job of that name that is there already is left alone. JobTemplates
list which jobs were made from them. What steps say of probes and patches is stored and not acted on, as in the
original.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from fairlead.cluster.controllers.workqueue import ControllerContext, Reconciler
from fairlead.cluster.controllers.writes import (
    create,
    delete,
    merge_patch,
    namespaced_name,
    owner_reference,
    patch_status,
)
from fairlead.core.model.durations import parse_duration
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.times import seconds_of, timestamp
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.jobs.phases import COMPLETED, FAILED, PENDING, RUNNING, TERMINATED, phase_of
from fairlead.volcano.kinds import VC_JOB, VC_JOB_FLOW, VC_JOB_TEMPLATE
from fairlead.volcano.records.quirks import FIXED, Quirks

Key = tuple[str, str]

CREATED_BY_TEMPLATE, CREATED_BY_FLOW = "volcano.sh/createdByJobTemplate", "volcano.sh/createdByJobFlow"
SUCCEED = "Succeed"
_LISTS = {
    PENDING: "pendingJobs", RUNNING: "runningJobs", FAILED: "failedJobs", COMPLETED: "completedJobs",
    TERMINATED: "terminatedJobs",
}  # fmt: skip
_UNLISTED = ("Completing", "Terminating")


class JobFlows(Reconciler[Key]):
    name = "volcano-jobflow-controller"
    component = "vc-controller-manager"
    watches: Sequence[Watch] = (Watch(VC_JOB_FLOW), Watch(VC_JOB_TEMPLATE), Watch(VC_JOB))

    def __init__(self, view: DocView, *, announce: bool = True, quirks: Quirks = FIXED) -> None:
        super().__init__(view, announce=announce)
        self._quirks = quirks
        self._flows: dict[Key, set[str]] = {}  # flow -> templates that it names
        self._jobs: dict[Key, dict[str, None]] = {}  # flow -> names of its jobs

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        return cls(context.view, announce=context.announce, quirks=context.of(VolcanoSettings).quirks)

    def observe(self, change: Change) -> None:
        doc, gone = change.doc, change.gone
        if change.kind is VC_JOB_FLOW:
            key = namespaced_name(doc)
            self._flows.pop(key, None)
            if not gone:
                self._flows[key] = {step["name"] for step in _steps(doc)}
                self.queue.add(key)
        elif change.kind is VC_JOB_TEMPLATE:
            namespace, name = namespaced_name(doc)
            for key, templates in self._flows.items():
                if key[0] == namespace and name in templates:
                    self.queue.add(key)
        else:
            self._observe_job(doc, gone=gone)

    def _observe_job(self, job: Doc, *, gone: bool) -> None:
        namespace, name = namespaced_name(job)
        flow = (job["metadata"].get("labels") or {}).get(CREATED_BY_FLOW, "").removeprefix(f"{namespace}.")
        for key in [(namespace, flow)] if flow else [key for key, jobs in self._jobs.items() if name in jobs]:
            jobs = self._jobs.setdefault(key, {})
            if gone:
                jobs.pop(name, None)
            else:
                jobs[name] = None
            self.queue.add(key)

    # Visits

    def visit(self, key: Key, now: float) -> Iterator[Write]:
        flow = self.view.get(VC_JOB_FLOW, *key)
        if flow is None or flow["metadata"].get("deletionTimestamp"):
            return
        phase = ((flow.get("status") or {}).get("state") or {}).get("phase") or ""
        jobs = [job for name in self._jobs.get(key, ()) if (job := self.view.get(VC_JOB, key[0], name)) is not None]
        if phase == SUCCEED and flow["spec"].get("jobRetainPolicy") == "delete":
            yield from (delete(VC_JOB, job) for job in jobs if not job["metadata"].get("deletionTimestamp"))
        elif phase not in (FAILED, "Terminating"):
            yield from self._advance(key, flow, phase, jobs, now)

    def _advance(self, key: Key, flow: Doc, phase: str, jobs: list[Doc], now: float) -> Iterator[Write]:
        known = {job["metadata"]["name"]: job for job in jobs}
        for name, template in self._ready_steps(key, flow, known):
            if template is not None:
                yield create(VC_JOB, _job(flow, template, name))
            elif self._quirks.missing_template_stops_flow:
                return
        status = _status(flow, sorted(jobs, key=lambda job: str(job["metadata"]["name"])), now)
        status["state"] = {"phase": self._next_phase(phase, flow, status)}
        before = flow.get("status") or {}
        if status != before:
            yield patch_status(VC_JOB_FLOW, flow, merge_patch(before, status))

    def _ready_steps(self, key: Key, flow: Doc, known: dict[str, Doc]) -> Iterator[tuple[str, Doc | None]]:
        """The jobs whose time has come, with their templates. One that is not there yet is waited for."""
        for step in _steps(flow):
            name, targets = _job_name(flow, step["name"]), (step.get("dependsOn") or {}).get("targets") or []
            ready = all(_is_completed(known.get(_job_name(flow, target))) for target in targets)
            if ready and self.view.get(VC_JOB, key[0], name) is None:
                yield name, self.view.get(VC_JOB_TEMPLATE, key[0], step["name"])

    def _next_phase(self, phase: str, flow: Doc, status: Doc) -> str:
        failed, terminated = bool(status.get("failedJobs")), bool(status.get("terminatedJobs"))
        completed = status.get("completedJobs") or []
        if phase in ("", PENDING):
            if (status.get("runningJobs") or completed) and not failed:
                return RUNNING
            return FAILED if failed or terminated else PENDING
        if phase == RUNNING:
            if len(completed) == len(_steps(flow)):
                return SUCCEED
            return FAILED if failed or (terminated and not self._quirks.flow_ignores_terminated_jobs) else RUNNING
        return phase

    def forgives(self, key: Key, reply: Reply) -> bool:
        return reply.error is not None and reply.error.code == 409 and reply.write.verb is Verb.CREATE

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        flow = self.view.get(VC_JOB_FLOW, *key)
        if reply.write.verb is Verb.CREATE and flow is not None:
            yield from self.event(VC_JOB_FLOW, flow, "Created", f"create a job named {reply.write.name}!")


def _steps(flow: Doc) -> list[Doc]:
    return (flow.get("spec") or {}).get("flows") or []


def _job_name(flow: Doc, template: str) -> str:
    return f"{flow['metadata']['name']}-{template}"


def _is_completed(job: Doc | None) -> bool:
    return job is not None and phase_of(job) == COMPLETED


def _job(flow: Doc, template: Doc, name: str) -> Doc:
    namespace = flow["metadata"]["namespace"]
    marks = {
        CREATED_BY_TEMPLATE: f"{namespace}.{template['metadata']['name']}",
        CREATED_BY_FLOW: f"{namespace}.{flow['metadata']['name']}",
    }
    metadata = {
        "namespace": namespace,
        "name": name,
        "labels": marks,
        "annotations": dict(marks),
        "ownerReferences": [owner_reference(VC_JOB_FLOW, flow)],
    }
    return {"apiVersion": VC_JOB.api_version, "kind": "Job", "metadata": metadata, "spec": template.get("spec") or {}}


# ---- status ----


def _status(flow: Doc, jobs: list[Doc], now: float) -> Doc:
    """Jobs by phase, one by one with their history, and what their own status says."""
    status: Doc = {}
    listed = {one["name"]: one for one in (flow.get("status") or {}).get("jobStatusList") or ()}
    for job in jobs:
        name, phase = job["metadata"]["name"], phase_of(job)
        if phase not in _UNLISTED:
            status.setdefault(_LISTS.get(phase, "unKnowJobs"), []).append(name)
        listed[name] = _job_status(job, listed.get(name) or {}, now)
        entry = {"phase": phase, "createTime": job["metadata"].get("creationTimestamp")}
        for field in ("runningDuration", "taskStatusCount"):
            entry[field] = (job.get("status") or {}).get(field)
        status.setdefault("conditions", {})[name] = {field: value for field, value in entry.items() if value}
    if listed:
        status["jobStatusList"] = list(listed.values())
    return status


def _job_status(job: Doc, known: Doc, now: float) -> Doc:
    status, created = job.get("status") or {}, job["metadata"].get("creationTimestamp")
    entry = {"name": job["metadata"]["name"], "state": phase_of(job), "startTimestamp": created}
    if status.get("runningDuration"):
        entry["endTimestamp"] = timestamp(seconds_of(created) + parse_duration(status["runningDuration"]))
    if status.get("retryCount"):
        entry["restartCount"] = status["retryCount"]
    history = list(known.get("runningHistories") or ())
    if phase_of(job) and (not history or history[-1].get("state") != phase_of(job)):
        if history:
            history[-1] = {**history[-1], "endTimestamp": timestamp(now)}
        history.append({"startTimestamp": timestamp(now), "state": phase_of(job)})
    if history:
        entry["runningHistories"] = history
    return {field: value for field, value in entry.items() if value}


class JobTemplates(Reconciler[Key]):
    """Writes into every JobTemplate which jobs were made from it."""

    name = "volcano-jobtemplate-controller"
    component = "vc-controller-manager"
    watches: Sequence[Watch] = (Watch(VC_JOB_TEMPLATE), Watch(VC_JOB))

    def __init__(self, view: DocView, *, announce: bool = True, quirks: Quirks = FIXED) -> None:
        super().__init__(view, announce=announce)
        self._quirks = quirks
        self._jobs: dict[Key, dict[str, None]] = {}  # template -> jobs made from it

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        return cls(context.view, announce=context.announce, quirks=context.of(VolcanoSettings).quirks)

    def observe(self, change: Change) -> None:
        namespace, name = namespaced_name(change.doc)
        if change.kind is VC_JOB_TEMPLATE:
            self.queue.add((namespace, name))
            return
        template = (change.doc["metadata"].get("labels") or {}).get(CREATED_BY_TEMPLATE, "")
        template = template.removeprefix(f"{namespace}.")
        for key in [(namespace, template)] if template else [key for key, jobs in self._jobs.items() if name in jobs]:
            jobs = self._jobs.setdefault(key, {})
            if not change.gone:
                jobs[name] = None
            else:
                jobs.pop(name, None)
                if self._quirks.template_keeps_deleted_jobs:
                    continue
            self.queue.add(key)

    def visit(self, key: Key, now: float) -> Iterator[Write]:
        template = self.view.get(VC_JOB_TEMPLATE, *key)
        if template is None:
            return
        jobs = sorted(self._jobs.get(key, ()))
        if jobs != ((template.get("status") or {}).get("jobDependsOnList") or []):
            yield patch_status(VC_JOB_TEMPLATE, template, {"jobDependsOnList": jobs or None})
