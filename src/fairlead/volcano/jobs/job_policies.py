"""Lifecycle policies of Volcano Jobs: which action an event calls for, and actions that are put off.

A policy with a timeout does not act at once: the action is put off, and is dropped if the pod recovers meanwhile or
another action of the same scope is carried out first.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.model.durations import parse_duration
from fairlead.volcano.jobs.job_pods import (
    ANY_EVENT,
    INTERNAL_EVENTS,
    POD_EVICTED,
    POD_FAILED,
    POD_PENDING,
    POD_RUNNING,
    JobRequest,
)
from fairlead.volcano.jobs.phases import (
    ABORT_JOB,
    COMPLETE_JOB,
    RESTART_JOB,
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    RESUME_JOB,
    SYNC_JOB,
    TERMINATE_JOB,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.records.quirks import Quirks

_SCOPES = {
    **dict.fromkeys((ABORT_JOB, RESTART_JOB, TERMINATE_JOB, COMPLETE_JOB, RESUME_JOB), "job"),
    RESTART_TASK: "task",
    RESTART_POD: "pod",
    RESTART_PARTITION: "partition",
}


class Chosen(NamedTuple):
    """An action, and for how many seconds it is put off."""

    action: str
    delay: float | None = None


_SYNC = Chosen(SYNC_JOB)


def choose_action(job: Doc, request: JobRequest, *, version: int) -> Chosen:
    """The action that a request calls for; `version` is that of the Job now."""
    if request.action:
        return Chosen(request.action)
    if request.event in INTERNAL_EVENTS:
        return _SYNC
    if request.job_uid and request.job_uid != job["metadata"]["uid"]:
        return _SYNC  # about pods of an older Job of the same name
    if request.version is not None and request.version < version:
        return _SYNC  # about pods that a kill has already dealt with
    for policy in _policies(job["spec"], request.task):
        if _matches(policy, request):
            return Chosen(policy.get("action") or SYNC_JOB, _timeout(policy))
    return _SYNC


def _policies(spec: Doc, task_name: str) -> Iterator[Doc]:
    """Those of the task first, then the Job's."""
    for task in spec.get("tasks") or ():
        if task_name and task.get("name") == task_name:
            yield from task.get("policies") or ()
    yield from spec.get("policies") or ()


def _matches(policy: Doc, request: JobRequest) -> bool:
    events = {policy.get("event"), *(policy.get("events") or ())}
    # A pod is always pending at first: that alone is no reason to act.
    counts = request.event != POD_PENDING or policy.get("timeout") is not None
    if counts and (request.event in events or ANY_EVENT in events):
        return True
    return policy.get("exitCode") is not None and policy["exitCode"] == request.exit_code


def _timeout(policy: Doc) -> float | None:
    text = policy.get("timeout")
    try:
        return None if text is None else parse_duration(str(text))
    except ValueError:
        return None


@dataclass(slots=True)
class _Delay:
    request: JobRequest
    action: str
    seconds: float
    due: float


@dataclass(slots=True)
class Delays:
    """The actions of one Job that are put off: at most one per pod, and whatever still fires though replaced."""

    by_pod: dict[str, _Delay] = field(default_factory=dict)
    replaced: list[_Delay] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.by_pod or self.replaced)

    def put_off(self, request: JobRequest, chosen: Chosen, now: float, quirks: Quirks) -> bool:
        """Remember an action; says whether it is new. The same action put off again keeps its first time."""
        assert chosen.delay is not None
        known = self.by_pod.get(request.pod)
        if known is not None and known.action == chosen.action:
            return False
        if known is not None and quirks.replaced_delay_still_fires:
            self.replaced.append(known)
        self.by_pod[request.pod] = _Delay(request, chosen.action, chosen.delay, now + chosen.delay)
        return True

    def note_request(self, request: JobRequest) -> None:
        """Drop what a request makes void: the pod came to run, or what it waited for was decided otherwise."""
        if not self.by_pod:
            return
        known = self.by_pod.get(request.pod)
        if known is None or not request.pod:
            return
        cause, same_pod = known.request.event, known.request.pod_uid == request.pod_uid
        recovered = request.event == POD_RUNNING and cause in (POD_FAILED, POD_EVICTED)
        decided = same_pod and cause == POD_PENDING and request.event in (POD_RUNNING, POD_FAILED, POD_EVICTED)
        if recovered or decided:
            del self.by_pod[request.pod]

    def carried_out(self, request: JobRequest, action: str) -> None:
        """Drop what has the same scope as an action that was carried out."""
        scope = _SCOPES.get(action)
        for pod, delay in list(self.by_pod.items()):
            if _SCOPES.get(delay.action) == scope and _covers(scope, request, delay.request):
                del self.by_pod[pod]

    def take_due(self, now: float) -> JobRequest | None:
        """The next action whose time has come."""
        if not self:
            return None
        ready = [delay for delay in (*self.replaced, *self.by_pod.values()) if delay.due <= now]
        if not ready:
            return None
        first = min(ready, key=lambda delay: delay.due)
        if first in self.replaced:
            self.replaced.remove(first)
        else:
            del self.by_pod[first.request.pod]
        return replace(first.request, action=first.action, delay=first.seconds)

    def next_due(self) -> float | None:
        return min((delay.due for delay in (*self.replaced, *self.by_pod.values())), default=None)


def _covers(scope: str | None, done: JobRequest, waiting: JobRequest) -> bool:
    match scope:
        case "job":
            return True
        case "task":
            return done.task == waiting.task
        case "pod":
            return (done.task, done.pod) == (waiting.task, waiting.pod)
        case "partition":
            return (done.task, done.partition) == (waiting.task, waiting.partition)
    return False
