"""What a controller that was killed leaves to its successor, and how that goes on from what stands in the API alone.

    before the first pod is deleted   the status notes the kill (KILL_NOTE), with the phase and the retry that it costs
    before a Command is deleted       the status notes its uid (COMMAND_NOTE)
    while nobody looked               pods failed, tasks completed, pods were lost: `first_requests` reports them

Both notes stand in `status.controlledResources`, which Volcano's own controller keeps as it finds it.
Invariant: a kill that is noted is carried out to its end before anything else is done for the Job.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import namespaced_name
from fairlead.volcano.jobs.job_pod_builder import WantedPods
from fairlead.volcano.jobs.job_pods import POD_EVICTED, TASK_COMPLETED, JobPod, JobPods, JobRequest, request_for
from fairlead.volcano.jobs.phases import (
    KEEP_FINISHED,
    PENDING,
    RESTART_PARTITION,
    RESTART_POD,
    RESTART_TASK,
    RESTARTING,
    RUNNING,
    JobState,
    Move,
    MoveKind,
    is_last_try,
    phase_of,
)

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.jobs.job_requests import JobWork
    from fairlead.volcano.records.quirks import Quirks

COMMAND_NOTE, KILL_NOTE = "fairlead-command", "fairlead-kill"
_MOST_LOST = 10_000
"""Lost pods of one task that are reported: the status may count any number."""
_ALL, _UNFINISHED = "all", "unfinished"


def commands_noted(controlled: Mapping[str, str]) -> list[str]:
    """Uids of Commands that were carried out and perhaps not deleted yet."""
    return [uid for uid in controlled.get(COMMAND_NOTE, "").split(",") if uid]


# ---- kills ----


def pods_to_delete(job: Doc, pods: Iterable[JobPod], move: Move, work: JobWork, state: JobState) -> list[JobPod] | None:
    """The pods that a kill deletes; None if it is about a partition that does not exist."""
    alive = [pod for pod in pods if not pod.deleting]
    if move.operation is MoveKind.KILL:
        keep = KEEP_FINISHED if is_last_try(job["spec"], state) else move.keep
        return [pod for pod in alive if pod.phase not in keep]
    if work.action == RESTART_PARTITION and not any(request.partition for request in work.requests):
        return None
    return [pod for pod in alive if any(_is_target(pod, work.action, request) for request in work.requests)]


def _is_target(pod: JobPod, action: str, request: JobRequest) -> bool:
    if action == RESTART_TASK:
        return pod.task == request.task
    if action == RESTART_POD:
        return pod.task == request.task and pod.name == request.pod
    return pod.task == request.task and pod.partition == request.partition


def note_kill(controlled: dict[str, str], move: Move, work: JobWork, *, last_try: bool) -> None:
    """Say in `controlled` which pods are about to be deleted."""
    if move.operation is MoveKind.KILL:
        controlled[KILL_NOTE] = _UNFINISHED if last_try or move.keep else _ALL
        return
    targets = {f"{work.action}:{one.task}:{one.pod}:{one.partition}": None for one in work.requests}
    controlled[KILL_NOTE] = ",".join(targets)


def unfinished_kill(job: Doc, pods: Iterable[JobPod]) -> list[JobPod]:
    """The pods that a noted kill has left alive."""
    note = ((job.get("status") or {}).get("controlledResources") or {}).get(KILL_NOTE)
    if not note:
        return []
    state = JobState.of(job)
    alive = [pod for pod in pods if not pod.deleting]
    if note in (_ALL, _UNFINISHED):
        keep = KEEP_FINISHED if note == _UNFINISHED else ()
        return [pod for pod in alive if pod.version < state.version and pod.phase not in keep]
    targets = [_target(text) for text in note.split(",")]
    old = [pod for pod in alive if pod.retries < state.retries]
    return [pod for pod in old if any(_is_target(pod, action, request) for action, request in targets)]


def _target(text: str) -> tuple[str, JobRequest]:
    action, task, pod, partition = text.split(":")
    return action, JobRequest(task=task, pod=pod, partition=partition)


# ---- what happened meanwhile ----


def first_requests(job: Doc, known: JobPods, quirks: Quirks) -> Iterator[JobRequest]:
    """What the pods of a Job that was not known mean for it, as far as it may not know that."""
    if phase_of(job) not in ("", PENDING, RUNNING, RESTARTING):
        return
    pods = known.of(namespaced_name(job))
    tasks = {task.get("name") or "": task for task in job["spec"].get("tasks") or ()}
    completed: set[str] = set()
    for pod in sorted(pods.values(), key=lambda one: one.name):
        request = request_for(None, pod, tasks.get(pod.task, {}), known.tally(pod), quirks)
        if request is None or (request.event == TASK_COMPLETED and pod.task in completed):
            continue
        if request.event == TASK_COMPLETED:
            completed.add(pod.task)
        yield request
    yield from _lost_pods(job, pods)


def _lost_pods(job: Doc, pods: Mapping[str, JobPod]) -> Iterator[JobRequest]:
    """Pods that the status counts and that are gone, though nobody here deleted them: a kill takes them out of the
    status before it deletes them."""
    state, wanted = JobState.of(job), WantedPods(job)
    there = Counter(pod.task for name, pod in pods.items() if name in wanted)
    for task in job["spec"].get("tasks") or ():
        task_name = task.get("name") or ""
        lost = sum(state.counts.by_task.get(task_name, {}).values()) - there[task_name]
        for _, name in islice(wanted.missing_of(task_name, pods), min(max(0, lost), _MOST_LOST)):
            yield JobRequest(
                event=POD_EVICTED, task=task_name, pod=name, job_uid=job["metadata"]["uid"], version=state.version
            )
