"""The pods of Volcano Jobs: what the controller remembers of each, and the event that a change of one stands for.

Pods are found by the namespace and the name of their Job, not by its uid: pods of a deleted Job of the same name are
still in the way of the new one. Invariant: a JobPod is as new as the newest change or reply observed.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import controller_of, delete, patch
from fairlead.core.model.kinds import POD
from fairlead.core.model.records import record
from fairlead.volcano.kinds import VC_JOB

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change, Doc, Write
    from fairlead.volcano.records.quirks import Quirks

Key = tuple[str, str]

TASK_SPEC, TASK_INDEX = "volcano.sh/task-spec", "volcano.sh/task-index"
JOB_NAME, JOB_NAMESPACE = "volcano.sh/job-name", "volcano.sh/job-namespace"
JOB_VERSION, RETRY_COUNT = "volcano.sh/job-version", "volcano.sh/job-retry-count"
QUEUE_NAME, TEMPLATE_UID = "volcano.sh/queue-name", "volcano.sh/template-uid"
PARTITION_ID, OUT_OF_SYNC = "volcano.sh/partition-id", "volcano.sh/controller-out-of-sync"

ANY_EVENT, POD_FAILED, POD_EVICTED, POD_PENDING = "*", "PodFailed", "PodEvicted", "PodPending"
UNKNOWN_EVENT, TASK_COMPLETED, TASK_FAILED = "Unknown", "TaskCompleted", "TaskFailed"
OUT_OF_SYNC_EVENT, COMMAND_ISSUED, POD_RUNNING = "OutOfSync", "CommandIssued", "PodRunning"
INTERNAL_EVENTS = frozenset({OUT_OF_SYNC_EVENT, COMMAND_ISSUED, POD_RUNNING})
_DEFAULT_RESTARTS = 3


@record(frozen=True, slots=True)
class JobPod:
    namespace: str
    name: str
    uid: str
    job: Key
    job_uid: str
    task: str
    partition: str
    version: int
    phase: str
    deleting: bool
    out_of_sync: bool
    ready: bool
    restarts: int
    exit_code: int
    retries: int = 0
    """Of the Job when the pod was made."""

    @property
    def doc(self) -> Doc:
        """Just enough of a document to write to this pod."""
        return {"metadata": {"namespace": self.namespace, "name": self.name, "uid": self.uid}}


@record(frozen=True, slots=True)
class JobRequest:
    """Something happened that concerns a Job, or somebody requested an `action`."""

    event: str = OUT_OF_SYNC_EVENT
    action: str = ""
    task: str = ""
    pod: str = ""
    pod_uid: str = ""
    partition: str = ""
    exit_code: int = 0
    job_uid: str = ""
    version: int | None = None
    """Of the Job when the pod was made; None if the request is not about pods of some version."""
    command: tuple[str, str, str] | None = None
    """Namespace, name and uid of the Command that requested the action."""
    delay: float | None = None
    """The action was put off for so many seconds, which are over."""


@dataclass(slots=True)
class TaskTally:
    """Of the pods of one task: how many have succeeded, and how often those restarted that have not ended. It is kept
    up to date pod by pod, because every change of a pod requests it."""

    succeeded: int = 0
    restarts: int = 0

    def count(self, pod: JobPod, sign: int) -> None:
        self.succeeded += sign * (pod.phase == "Succeeded")
        self.restarts += sign * (pod.restarts if pod.phase in ("Running", "Pending") else 0)


@dataclass(slots=True)
class PodsNotMade:
    """Pods of Jobs that could not be created: the names that pods of others have (`taken`), and why the API refused
    the latest (`reasons`), until an Event reports it."""

    taken: dict[Key, set[str]] = field(default_factory=dict)
    reasons: dict[Key, str] = field(default_factory=dict)


class JobPods:
    """JobPods by Job and name."""

    def __init__(self) -> None:
        self._pods: dict[Key, dict[str, JobPod]] = {}
        self._tallies: dict[Key, dict[str, TaskTally]] = {}

    def tally(self, pod: JobPod) -> TaskTally:
        """That of the pod's task."""
        return self._tallies.get(pod.job, {}).get(pod.task) or TaskTally()

    def _count(self, pod: JobPod, sign: int) -> None:
        self._tallies.setdefault(pod.job, {}).setdefault(pod.task, TaskTally()).count(pod, sign)

    def of(self, job: Key) -> dict[str, JobPod]:
        return self._pods.get(job, {})

    def observe(self, change: Change) -> tuple[JobPod | None, JobPod | None]:
        """Take in a change of a pod; returns what was known and what is known now."""
        metadata = change.doc["metadata"]
        if "ownerReferences" not in metadata and not self._knows(change.doc):
            return None, None
        new = None if change.gone else read_job_pod(change.doc)
        job = new.job if new is not None else self._job_of(change.doc)
        if job is None:
            return None, None
        siblings = self._pods.setdefault(job, {})
        old = siblings.get(metadata["name"])
        if new is not None:
            siblings[new.name] = new
            self._count(new, 1)
        elif old is not None and old.uid == metadata["uid"]:
            del siblings[old.name]
        if old is not None and siblings.get(old.name) is not old:
            self._count(old, -1)
        if not siblings:
            del self._pods[job]
            self._tallies.pop(job, None)
        return old, new

    def _knows(self, doc: Doc) -> bool:
        return self._job_of(doc) is not None

    def _job_of(self, doc: Doc) -> Key | None:
        """The Job of a pod of which perhaps only the name is known."""
        metadata = doc["metadata"]
        namespace, name = metadata.get("namespace", ""), metadata["name"]
        job_name = (metadata.get("annotations") or {}).get(JOB_NAME)
        if job_name or not self._pods:
            return (namespace, job_name) if job_name else None
        parts = name.split("-")
        candidates = ((namespace, "-".join(parts[:cut])) for cut in range(len(parts) - 1, 0, -1))
        return next((job for job in candidates if name in self._pods.get(job, ())), None)


def read_job_pod(pod: Doc) -> JobPod | None:
    """What matters of a pod; None if it is not one of a Volcano Job."""
    metadata, status = pod["metadata"], pod.get("status") or {}
    owner = controller_of(pod)
    if owner is None or owner.get("kind") != VC_JOB.kind or owner.get("apiVersion") != VC_JOB.api_version:
        return None
    notes = metadata.get("annotations") or {}
    version = _number(notes.get(JOB_VERSION))
    if version is None or JOB_NAME not in notes or TASK_SPEC not in notes:
        return None
    statuses = status.get("containerStatuses") or []
    return JobPod(
        namespace=metadata.get("namespace", ""),
        name=metadata["name"],
        uid=metadata["uid"],
        job=(metadata.get("namespace", ""), notes[JOB_NAME]),
        job_uid=owner["uid"],
        task=notes[TASK_SPEC],
        partition=(metadata.get("labels") or {}).get(PARTITION_ID, ""),
        version=version,
        phase=status.get("phase") or "Pending",
        deleting=bool(metadata.get("deletionTimestamp")),
        out_of_sync=notes.get(OUT_OF_SYNC) == "true",
        ready=all(one.get("ready") for one in statuses),
        restarts=sum(one.get("restartCount") or 0 for one in (*statuses, *(status.get("initContainerStatuses") or ()))),
        exit_code=_exit_code(statuses),
        retries=_number(notes.get(RETRY_COUNT)) or 0,
    )


def _exit_code(statuses: list[Doc]) -> int:
    """Of the first container alone."""
    ended = ((statuses[0].get("state") or {}).get("terminated") or {}) if statuses else {}
    return int(ended.get("exitCode") or 0)


def _number(text: str | None) -> int | None:
    try:
        return None if text is None else int(text)
    except ValueError:
        return None


def dismissal(pod: JobPod) -> tuple[Write, Write]:
    """Mark a pod, so that its deletion is known to be ours, and delete it."""
    mark = patch(POD, pod.doc, {"metadata": {"annotations": {OUT_OF_SYNC: "true"}}})
    return mark, delete(POD, pod.doc)


# ---- events ----


def request_for(
    old: JobPod | None, new: JobPod | None, task: Doc, tally: TaskTally, quirks: Quirks
) -> JobRequest | None:
    """What a change of a pod means for its Job. `task` is the pod's task in the Job's spec, empty if there is none."""
    pod = new or old
    if pod is None:
        return None
    if pod.out_of_sync or (new is None and old is None):
        event = OUT_OF_SYNC_EVENT
    elif new is None:
        event = POD_EVICTED
    elif old is None or old.uid != new.uid:
        event = _first_event(new, task, tally, quirks)
    else:
        event = _event_of_update(old, new, task, tally)
    return JobRequest(
        event=event,
        task=pod.task,
        pod=pod.name,
        pod_uid=pod.uid,
        partition=pod.partition,
        exit_code=pod.exit_code if event == POD_FAILED else 0,
        job_uid=pod.job_uid,
        version=pod.version,
    )


def _first_event(pod: JobPod, task: Doc, tally: TaskTally, quirks: Quirks) -> str:
    """Of a pod that was not known. The repaired controller, started anew, still gets what has happened to it."""
    if quirks.commands_deleted_first or pod.phase == "Pending":
        return POD_PENDING
    return _event_of_update(replace(pod, phase=""), pod, task, tally)


def _event_of_update(old: JobPod, new: JobPod, task: Doc, tally: TaskTally) -> str:
    if new.phase == "Failed" and old.phase != "Failed":
        return POD_FAILED
    if new.phase == "Succeeded" and old.phase != "Succeeded":
        return TASK_COMPLETED if task and tally.succeeded >= int(task.get("replicas") or 0) else OUT_OF_SYNC_EVENT
    if new.phase in ("Running", "Pending"):
        if old.phase != new.phase:
            return POD_RUNNING if new.phase == "Running" else POD_PENDING
        if task and _restarted_too_often(task, tally):
            return TASK_FAILED
    return OUT_OF_SYNC_EVENT


def _restarted_too_often(task: Doc, tally: TaskTally) -> bool:
    limit = int(task.get("maxRetry") or _DEFAULT_RESTARTS)
    return tally.restarts >= limit if limit >= 0 else False
