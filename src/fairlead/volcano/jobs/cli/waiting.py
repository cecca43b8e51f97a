"""Why a Volcano Job waits, in sentences, from the objects alone: the Job, its queue, its PodGroup and its pods.

The first thing that holds a Job up is said first. Invariant: a Job that is over or runs in full waits for nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_groups import group_name
from fairlead.volcano.jobs.job_pod_builder import WantedPods, waiting_tasks
from fairlead.volcano.jobs.job_pods import read_job_pod
from fairlead.volcano.jobs.phases import (
    ABORTED,
    ABORTING,
    COMPLETING,
    FINISHED,
    RESTARTING,
    TERMINATING,
    phase_of,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_ENDING = {
    ABORTING: "before it is suspended", RESTARTING: "before it starts again", COMPLETING: "before it is completed",
    TERMINATING: "before it is terminated",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class JobScene:
    """A Job and what it depends on; `queue` and `group` are None if they do not exist."""

    job: Doc
    queue: Doc | None = None
    group: Doc | None = None
    pods: Sequence[Doc] = ()
    events: Sequence[Doc] = field(default=())


def reasons_of_waiting(scene: JobScene) -> list[str]:
    return list(_reasons(scene))


def _reasons(scene: JobScene) -> Iterator[str]:
    phase, name = phase_of(scene.job), scene.job["metadata"]["name"]
    if phase in FINISHED:
        return
    if not phase:
        yield "no controller has looked at it: is `fairlead controllers` or vc-controller-manager running?"
        return
    if phase == ABORTED:
        yield f"it is suspended: `fairlead job resume {name}` lets it go on"
        return
    if phase in _ENDING:
        ending = sum(bool(pod["metadata"].get("deletionTimestamp")) for pod in scene.pods)
        yield f"{_count(ending, 'pod has', 'pods have')} to end {_ENDING[phase]}"
        return
    yield from _queue_reasons(scene)
    yield from _group_reasons(scene)
    yield from _pod_reasons(scene)


def _queue_reasons(scene: JobScene) -> Iterator[str]:
    name = scene.job["spec"].get("queue") or "default"
    if scene.queue is None:
        yield f'queue "{name}" does not exist'
    else:
        state = (scene.queue.get("status") or {}).get("state") or "Open"
        if state != "Open":
            yield f'queue "{name}" is {state}: nothing new is let in'


def _group_reasons(scene: JobScene) -> Iterator[str]:
    if scene.group is None:
        yield f'its PodGroup "{group_name(scene.job)}" has not been made yet'
        return
    status = scene.group.get("status") or {}
    if (status.get("phase") or "Pending") == "Pending":
        refusal = _last_refusal(status.get("conditions") or ())
        yield f"the scheduler has not let it into its queue{': ' + refusal if refusal else ''}"


def _last_refusal(conditions: Sequence[Doc]) -> str:
    refusals = [one for one in conditions if one.get("type") == "Unschedulable" and one.get("status") == "True"]
    return str(refusals[-1].get("message") or "") if refusals else ""


def _pod_reasons(scene: JobScene) -> Iterator[str]:
    if scene.group is None or ((scene.group.get("status") or {}).get("phase") or "Pending") == "Pending":
        return
    known = [pod for pod in map(read_job_pod, scene.pods) if pod is not None]
    for task in sorted(waiting_tasks(scene.job, known)):
        before = next(one for one in scene.job["spec"]["tasks"] if one.get("name") == task)["dependsOn"]["name"]
        yield f'task "{task}" waits for {" and ".join(before)}'
    unbound: Counter[str] = Counter()
    for pod in scene.pods:
        if not pod["spec"].get("nodeName"):
            unbound[_unscheduled(pod)] += 1
    for refusal, count in unbound.most_common():
        yield f"{_count(count, 'pod has', 'pods have')} no node{': ' + refusal if refusal else ''}"
    starting = [pod for pod in scene.pods if pod["spec"].get("nodeName") and _phase(pod) == "Pending"]
    if starting:
        yield f"{_count(len(starting), 'pod is', 'pods are')} starting"
    missing = WantedPods(scene.job).total - len(known)
    if missing > 0 and (warning := _last_warning(scene.events)):
        yield f"{_count(missing, 'pod is', 'pods are')} missing: {warning}"


def _phase(pod: Doc) -> str:
    phase: str = (pod.get("status") or {}).get("phase") or "Pending"
    return phase


def _unscheduled(pod: Doc) -> str:
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return str(condition.get("message") or "")
    return ""


def _last_warning(events: Sequence[Doc]) -> str:
    warnings = [event for event in events if event.get("type") == "Warning"]
    return str(warnings[-1].get("message") or "") if warnings else ""


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
