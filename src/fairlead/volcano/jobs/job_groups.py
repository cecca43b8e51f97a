"""The PodGroup of a Volcano Job: how many pods it needs at least, of which tasks, and what they request together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import owner_reference
from fairlead.core.model.kinds import PRIORITY_CLASS
from fairlead.volcano.jobs.job_pods import PARTITION_ID, TASK_SPEC
from fairlead.volcano.jobs.podgroups import quota_needs
from fairlead.volcano.kinds import VC_JOB, VC_POD_GROUP

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView
    from fairlead.volcano.records.quirks import Quirks

_FOLLOWED = ("priorityClassName", "minMember", "minResources", "minTaskMember", "subGroupPolicy")
"""Fields of an existing PodGroup that follow the Job's spec."""


def group_name(job: Doc) -> str:
    return f"{job['metadata']['name']}-{job['metadata']['uid']}"


def find_group(view: DocView, job: Doc) -> Doc | None:
    """The PodGroup of a Job; older Volcanos called it as the Job."""
    namespace, name = job["metadata"]["namespace"], job["metadata"]["name"]
    return view.get(VC_POD_GROUP, namespace, group_name(job)) or view.get(VC_POD_GROUP, namespace, name)


def is_waiting(group: Doc) -> bool:
    """Whether the scheduler has not let the PodGroup in yet."""
    return ((group.get("status") or {}).get("phase") or "Pending") == "Pending"


def pending_text(job: Doc, group: Doc | None) -> str:
    """What the latest true condition of a PodGroup says against its start; empty if nothing does."""
    conditions = ((group or {}).get("status") or {}).get("conditions") or ()
    latest = next((one for one in reversed(conditions) if one.get("status") == "True"), None)
    if latest is None or latest.get("type") == "Scheduled":
        return ""
    place = f"{job['metadata']['namespace']}:{job['metadata']['name']}"
    return f"PodGroup {place} {str(latest.get('type')).lower()}, reason: {latest.get('message') or ''}"


class JobGroups:
    """PodGroups as Jobs want them. A spec is worked out once for each spec of a Job, because every sync requests it."""

    def __init__(self, view: DocView, quirks: Quirks) -> None:
        self._view, self._quirks = view, quirks
        self._known: dict[str, tuple[Doc, Doc]] = {}  # uid of a Job -> its spec, and that of its PodGroup

    def forget(self, uid: str | None = None) -> None:
        """A Job is gone; without a uid: the values of priority classes have changed."""
        if uid is None:
            self._known.clear()
        else:
            self._known.pop(uid, None)

    def build(self, job: Doc) -> Doc:
        metadata: Doc = {
            "namespace": job["metadata"]["namespace"],
            "name": group_name(job),
            "ownerReferences": [owner_reference(VC_JOB, job)],
        }
        for field in ("annotations", "labels"):
            if job["metadata"].get(field):
                metadata[field] = dict(job["metadata"][field])
        return {
            "apiVersion": VC_POD_GROUP.api_version,
            "kind": VC_POD_GROUP.kind,
            "metadata": metadata,
            "spec": self._spec(job),
            "status": {"phase": "Pending"},
        }

    def changes(self, job: Doc, group: Doc) -> Doc:
        """What an existing PodGroup's spec has to follow of the Job's, as a merge patch; empty if nothing."""
        wanted, known = self._spec(job), group.get("spec") or {}
        changed = {}
        for field in _FOLLOWED:
            if wanted.get(field) != known.get(field):
                changed[field] = _replacing(known.get(field), wanted.get(field))
        return changed

    def _spec(self, job: Doc) -> Doc:
        uid, spec = job["metadata"]["uid"], job["spec"]
        known = self._known.get(uid)
        if known is None or (known[0] is not spec and known[0] != spec):
            known = self._known[uid] = (spec, _group_spec(self._view, job, self._quirks))
        return known[1]


def _replacing(known: object, wanted: object) -> object:
    """A merge patch that makes one value of the other."""
    if isinstance(known, dict) and isinstance(wanted, dict):
        return {**dict.fromkeys(known), **wanted}
    return wanted


def _group_spec(view: DocView, job: Doc, quirks: Quirks) -> Doc:
    spec = job["spec"]
    made: Doc = {
        "minMember": int(spec.get("minAvailable") or 0),
        "minTaskMember": {task.get("name") or "": _minimum(task) for task in spec.get("tasks") or ()},
        "queue": spec.get("queue"),
        "priorityClassName": spec.get("priorityClassName"),
        "networkTopology": spec.get("networkTopology"),
        "minResources": _min_resources(view, spec, quirks),
        "subGroupPolicy": [_sub_group(task) for task in spec.get("tasks") or () if task.get("partitionPolicy")],
    }
    return {field: value for field, value in made.items() if value or field == "minResources"}


def _minimum(task: Doc) -> int:
    if task.get("minAvailable") is not None:
        return int(task["minAvailable"])
    policy = task.get("partitionPolicy")
    if policy:
        return int(policy.get("minPartitions") or 0) * int(policy["partitionSize"])
    return int(task.get("replicas") or 0)


def _sub_group(task: Doc) -> Doc:
    policy = task["partitionPolicy"]
    made = {
        "name": task["name"],
        "subGroupSize": policy["partitionSize"],
        "minSubGroups": policy.get("minPartitions") or 0,
        "labelSelector": {"matchLabels": {TASK_SPEC: task["name"]}},
        "matchLabelKeys": [PARTITION_ID],
    }
    if policy.get("networkTopology"):
        made["networkTopology"] = policy["networkTopology"]
    return made


# ---- minResources ----


def _min_resources(view: DocView, spec: Doc, quirks: Quirks) -> dict[str, str]:
    """What the pods request that the minimum of the Job is made of: tasks of high priority first."""
    tasks = sorted(spec.get("tasks") or (), key=lambda task: -_priority(view, task))
    minimum = int(spec.get("minAvailable") or 0)
    total = sum(_count(task, "minAvailable", default=_count(task, "replicas")) for task in tasks)
    taken = _take_in_order(tasks, minimum) if minimum < total else _take_minima(tasks, minimum)
    pods = [({"spec": _pod_spec(task, quirks)}, count) for task, count in taken if count]
    return quota_needs(pods)


def _take_in_order(tasks: Iterable[Doc], minimum: int) -> Iterator[tuple[Doc, int]]:
    for task in tasks:
        count = min(_count(task, "replicas"), minimum)
        minimum -= count
        yield task, count


def _take_minima(tasks: list[Doc], minimum: int) -> Iterator[tuple[Doc, int]]:
    """Each task's own minimum, and then of what is left until the Job's minimum is reached."""
    for task in tasks:
        if task.get("minAvailable") is not None:
            count = min(_count(task, "minAvailable"), minimum)
            minimum -= count
            yield task, count
    for task in tasks:
        count = max(0, min(_count(task, "replicas") - _count(task, "minAvailable"), minimum))
        minimum -= count
        yield task, count


def _count(task: Doc, field: str, default: int = 0) -> int:
    value = task.get(field)
    return default if value is None else int(value)


def _priority(view: DocView, task: Doc) -> int:
    name = ((task.get("template") or {}).get("spec") or {}).get("priorityClassName")
    found = view.get(PRIORITY_CLASS, "", name) if name else None
    return 0 if found is None else int(found.get("value") or 0)


def _pod_spec(task: Doc, quirks: Quirks) -> Doc:
    spec: Doc = (task.get("template") or {}).get("spec") or {}
    return spec if quirks.min_resources_as_written else with_requests_from_limits(spec)


def with_requests_from_limits(spec: Doc) -> Doc:
    """As the API server will fill in a pod: what is limited and not requested is requested."""
    filled = dict(spec)
    for field in ("containers", "initContainers"):
        if spec.get(field):
            filled[field] = [_filled(container) for container in spec[field]]
    return filled


def _filled(container: Doc) -> Doc:
    resources = container.get("resources") or {}
    if not resources.get("limits"):
        return container
    requests = {**resources["limits"], **(resources.get("requests") or {})}
    return {**container, "resources": {**resources, "requests": requests}}
