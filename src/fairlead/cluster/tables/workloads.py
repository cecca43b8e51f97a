"""Rows of apps and batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.tables.columns import (
    NONE,
    UNSET,
    age,
    age_of,
    containers_and_images,
    human_duration,
    joined_labels,
    name,
    selector_text,
    truth,
)
from fairlead.core.model import kinds as k
from fairlead.core.model.times import seconds_of

if TYPE_CHECKING:
    from fairlead.cluster.tables.columns import Cells
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind


def _deployment(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    return [
        name(doc),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        age(doc, now),
        *_wide(spec),
    ]


def _wide(spec: Doc) -> list[str]:
    return [*containers_and_images(spec.get("template", {})), selector_text(spec.get("selector"))]


def _replica_set(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name(doc), *counts, age(doc, now), *_wide(spec)]


def _stateful_set(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    ready = f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}"
    return [name(doc), ready, age(doc, now), *containers_and_images(spec.get("template", {}))]


_DAEMON_COUNTS = (
    "desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled", "numberAvailable",
)  # fmt: skip


def _daemon_set(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    nodes = spec.get("template", {}).get("spec", {}).get("nodeSelector")
    counts = [status.get(field, 0) for field in _DAEMON_COUNTS]
    return [name(doc), *counts, joined_labels(nodes), age(doc, now), *_wide(spec)]


def _revision(doc: Doc, now: float) -> list[Any]:
    owner = next((one for one in doc["metadata"].get("ownerReferences", ()) if one.get("controller")), None)
    controller = NONE
    if owner:
        group = owner.get("apiVersion", "").rpartition("/")[0]
        controller = f"{owner['kind'].lower()}{'.' + group if group else ''}/{owner['name']}"
    return [name(doc), controller, str(doc.get("revision", 0)), age(doc, now)]


def _job(doc: Doc, now: float) -> list[Any]:
    spec = doc.get("spec", {})
    return [name(doc), _job_status(doc), _completions(doc), _duration(doc, now), age(doc, now), *_wide(spec)]


_FINAL_CONDITIONS = (("Complete", "Complete"), ("Failed", "Failed"))
_OTHER_CONDITIONS = (
    ("Suspended", "Suspended"), ("FailureTarget", "FailureTarget"), ("SuccessCriteriaMet", "SuccessCriteriaMet"),
)  # fmt: skip


def _job_status(doc: Doc) -> str:
    true = {one.get("type") for one in doc.get("status", {}).get("conditions", ()) if one.get("status") == "True"}
    for condition, word in _FINAL_CONDITIONS:
        if condition in true:
            return word
    if "deletionTimestamp" in doc["metadata"]:
        return "Terminating"
    return next((word for condition, word in _OTHER_CONDITIONS if condition in true), "Running")


def _completions(doc: Doc) -> str:
    spec, done = doc.get("spec", {}), doc.get("status", {}).get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{done}/{spec['completions']}"
    parallel = spec.get("parallelism", 0)
    return f"{done}/1 of {parallel}" if parallel > 1 else f"{done}/1"


def _duration(doc: Doc, now: float) -> str:
    status = doc.get("status", {})
    if not status.get("startTime"):
        return ""
    end = seconds_of(status["completionTime"]) if status.get("completionTime") else now
    return human_duration(end - seconds_of(status["startTime"]))


def _cron_job(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    last = status.get("lastScheduleTime")
    inner = spec.get("jobTemplate", {}).get("spec", {})
    return [
        name(doc),
        spec.get("schedule", ""),
        spec.get("timeZone") or NONE,
        truth(spec.get("suspend")),
        len(status.get("active", ())),
        age_of(last, now) if last else NONE,
        age(doc, now),
        *_wide(inner),
    ]


def _autoscaler(doc: Doc, now: float) -> list[Any]:
    spec, status = doc.get("spec", {}), doc.get("status", {})
    target = spec.get("scaleTargetRef", {})
    return [
        name(doc),
        f"{target.get('kind', '')}/{target.get('name', '')}",
        ", ".join(_metric(one) for one in spec.get("metrics", ())) or NONE,
        str(spec.get("minReplicas", UNSET)),
        spec.get("maxReplicas", 0),
        status.get("currentReplicas", 0),
        age(doc, now),
    ]


def _metric(metric: Doc) -> str:
    """Current values come from a metrics pipeline, which an embedded cluster does not have."""
    resource = metric.get("resource", {})
    goal = resource.get("target", {})
    if "averageUtilization" in goal:
        return f"{resource.get('name', '')}: <unknown>/{goal['averageUtilization']}%"
    return f"{resource.get('name', '')}: <unknown>/{goal.get('averageValue', '<auto>')}"


WORKLOAD_CELLS: dict[Kind, Cells] = {
    k.DEPLOYMENT: _deployment,
    k.REPLICA_SET: _replica_set,
    k.STATEFUL_SET: _stateful_set,
    k.DAEMON_SET: _daemon_set,
    k.CONTROLLER_REVISION: _revision,
    k.JOB: _job,
    k.CRON_JOB: _cron_job,
    k.HORIZONTAL_POD_AUTOSCALER: _autoscaler,
}
