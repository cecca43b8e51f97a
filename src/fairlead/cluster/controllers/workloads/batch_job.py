"""Jobs of batch/v1: pods until enough have succeeded, or too many have failed.

    suspended ◀──▶ running ──enough succeeded──▶ SuccessCriteriaMet ──no pod left──▶ Complete ──ttl──▶ deleted
                     └──too many failed, too late──▶ FailureTarget ──no pod left──▶ Failed ────ttl──▶ deleted

Progress is counted in job_progress.py, without the original's tracking finalizer on pods. Not built: per-index backoff
limits, pod failure policies and success policies; a Job that requests them is run as if it did not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from fairlead.cluster.controllers.pod_facts import COMPLETION_INDEX, OwnedPods, PodFact, deletion_order, pod_fact
from fairlead.cluster.controllers.workloads.job_progress import (
    FinishedPods,
    condition_of,
    indexes_text,
    is_finished,
    is_indexed,
    put_condition,
)
from fairlead.cluster.controllers.workloads.owners import Key, KnownOwners
from fairlead.cluster.controllers.workloads.pod_templates import pod_from_template
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import (
    condition,
    create,
    delete,
    identity,
    patch_status,
)
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import JOB, POD
from fairlead.core.model.times import seconds_of, timestamp

_BURST = 500
_OURS = "kubernetes.io/job-controller"


class _Ending(NamedTuple):
    succeeded: bool
    reason: str
    message: str


_REACHED = _Ending(True, "CompletionsReached", "Reached expected number of succeeded pods")
_TOO_MANY_FAILURES = _Ending(False, "BackoffLimitExceeded", "Job has reached the specified backoff limit")
_TOO_LATE = _Ending(False, "DeadlineExceeded", "Job was active longer than specified deadline")


class Jobs(Reconciler[Key]):
    name = "job-controller"
    only_owned_pods = True
    watches: Sequence[Watch] = (Watch(JOB), Watch(POD))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._pods = OwnedPods(JOB)
        self._known = KnownOwners(self.queue)
        self._tallies: dict[str, FinishedPods] = {}

    def observe(self, change: Change) -> None:
        if change.kind is JOB:
            own = self._known.observe(change)
            if change.gone:
                self._tallies.pop(own, None)
        elif change.kind is POD:
            self._observe_pod(change)

    def _observe_pod(self, change: Change) -> None:
        old, new = self._pods.observe(change)
        gone = change.gone
        if gone and old is not None:
            new = pod_fact(change.doc, owner=old.owner) if "status" in change.doc else old
        known = new or old
        if known is None:
            return
        owner = known.owner
        if new is not None:
            self._tallies.setdefault(owner, FinishedPods()).count(new, self.now, gone=gone)
        if not self._known.visit(owner) and gone and not self._pods.of(owner):
            self._tallies.pop(owner, None)

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        job = self.view.get(JOB, *key)
        if job is None or not self._known.knows(job) or job["metadata"].get("deletionTimestamp"):
            return
        if job["spec"].get("managedBy", _OURS) != _OURS:
            return
        if is_finished(job):
            yield from self._expire(key, job, now)
            return
        tally = self._tallies.setdefault(identity(job), FinishedPods())
        tally.begin(job.get("status") or {})
        pods = self._pods.of(identity(job))
        active = [pod for pod in pods if pod.is_active]
        ending = self._ending(job, tally, active, now)
        if ending is not None and not ending.succeeded:
            yield from [delete(POD, pod.doc) for pod in active]  # these count as failed
        elif ending is not None or job["spec"].get("suspend"):
            yield from self._dismiss(tally, active)
        else:
            yield from self._balance(key, job, tally, active, now)
        yield from self._report(key, job, tally, pods, ending, now)

    def _ending(self, job: Doc, tally: FinishedPods, active: list[PodFact], now: float) -> _Ending | None:
        limit = _number(job, "backoffLimit", 6)
        conditions = {one["type"]: one for one in (job.get("status") or {}).get("conditions") or ()}
        if "FailureTarget" in conditions:
            failure = conditions["FailureTarget"]
            return _Ending(False, failure["reason"], failure["message"])
        if tally.failures > limit or self._restarted_too_often(job, active, limit):
            return _TOO_MANY_FAILURES
        deadline = _deadline(job)
        if deadline is not None and deadline <= now and not job["spec"].get("suspend"):
            return _TOO_LATE
        return _REACHED if self._is_done(job, tally, active) else None

    def _restarted_too_often(self, job: Doc, active: list[PodFact], limit: int) -> bool:
        if (job["spec"]["template"].get("spec") or {}).get("restartPolicy") != "OnFailure":
            return False
        restarts = sum(pod.restarts for pod in active)
        return restarts > 0 if limit == 0 else restarts >= limit

    def _is_done(self, job: Doc, tally: FinishedPods, active: list[PodFact]) -> bool:
        completions = job["spec"].get("completions")
        if completions is None:
            return tally.successes > 0 and not active
        return _successes(job, tally) >= int(completions)

    # Pods

    def _balance(self, key: Key, job: Doc, tally: FinishedPods, active: list[PodFact], now: float) -> Iterable[Write]:
        wanted = self._wanted(job, tally, active)
        if len(active) > wanted:
            return self._dismiss(tally, deletion_order(active, {})[: len(active) - wanted])
        if len(active) == wanted:
            return ()
        if tally.next_attempt() > now:
            self.queue.add_at(key, tally.next_attempt())
            return ()
        return self._create(key, job, tally, active, wanted - len(active))

    def _wanted(self, job: Doc, tally: FinishedPods, active: list[PodFact]) -> int:
        parallelism, completions = _number(job, "parallelism", 1), job["spec"].get("completions")
        if completions is None:
            return min(parallelism, len(active)) if tally.successes else parallelism
        return min(parallelism, max(0, int(completions) - _successes(job, tally)))

    def _create(self, key: Key, job: Doc, tally: FinishedPods, active: list[PodFact], missing: int) -> Iterable[Write]:
        # After a refusal one at a time; each that comes names the Job again, and so the rest follows.
        missing = min(missing, 1 if self.queue.failures(key) else _BURST)
        if not is_indexed(job):
            return [create(POD, _pod(job)) for _ in range(missing)]
        taken = tally.indexes | {pod.index for pod in active}
        free = (index for index in range(int(job["spec"]["completions"])) if index not in taken)
        return [create(POD, _indexed_pod(job, index)) for index, _ in zip(free, range(missing), strict=False)]

    def _dismiss(self, tally: FinishedPods, pods: Iterable[PodFact]) -> Iterable[Write]:
        for pod in pods:
            tally.dismissed.add(pod.uid)
            yield delete(POD, pod.doc)

    # Status and events

    def _report(
        self, key: Key, job: Doc, tally: FinishedPods, pods: list[PodFact], ending: _Ending | None, now: float
    ) -> Iterable[Write]:
        known = job.get("status") or {}
        status = _counts(job, tally, pods)
        suspended = bool(job["spec"].get("suspend"))
        status["conditions"] = _suspension(known.get("conditions") or [], suspended=suspended, now=now)
        yield from self._suspension_event(job, status["conditions"])
        if suspended:
            status["startTime"] = None
        elif not known.get("startTime"):
            status["startTime"] = timestamp(now)
        if ending is not None:
            yield from self._end(job, status, ending, now)
        self._wait_for_deadline(key, {**job, "status": {**known, **status}}, now)
        if any((known.get(name) or None) != (value or None) for name, value in status.items()):
            yield patch_status(JOB, job, status)

    def _end(self, job: Doc, status: Doc, ending: _Ending, now: float) -> Iterable[Write]:
        """Say what decided the Job, and, once no pod is left, that it is over."""
        types = ["SuccessCriteriaMet" if ending.succeeded else "FailureTarget"]
        if not status["active"] and not status["terminating"]:
            types.append("Complete" if ending.succeeded else "Failed")
            if ending.succeeded:
                status["completionTime"] = timestamp(now)
            yield from self._end_event(job, ending)
        for type_ in types:
            new = condition_of(type_, reason=ending.reason, message=ending.message, now=now)
            status["conditions"] = put_condition(status["conditions"], new)

    def _wait_for_deadline(self, key: Key, job: Doc, now: float) -> None:
        deadline = _deadline(job)
        if deadline is not None and deadline > now:
            self.queue.add_at(key, deadline)

    def _suspension_event(self, job: Doc, conditions: list[Doc]) -> Iterable[Write]:
        before = (condition(job, "Suspended") or {}).get("status")
        after = (condition({"status": {"conditions": conditions}}, "Suspended") or {}).get("status")
        if before != after:
            reason, message = ("Suspended", "Job suspended") if after == "True" else ("Resumed", "Job resumed")
            yield from self.event(JOB, job, reason, message)

    def _end_event(self, job: Doc, ending: _Ending) -> Iterable[Write]:
        if ending.succeeded:
            yield from self.event(JOB, job, "Completed", "Job completed")
        else:
            yield from self.event(JOB, job, ending.reason, ending.message, warning=True)

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        if reply.write.kind is not POD or reply.doc is None:
            return
        job = self.view.get(JOB, *key)
        if job is None:
            return
        if reply.write.verb is Verb.CREATE:
            yield from self.event(JOB, job, "SuccessfulCreate", f"Created pod: {reply.doc['metadata']['name']}")
        elif reply.write.verb is Verb.DELETE:
            yield from self.event(JOB, job, "SuccessfulDelete", f"Deleted pod: {reply.write.name}")

    def _expire(self, key: Key, job: Doc, now: float) -> Iterable[Write]:
        """Delete a Job that has been finished for its time to live."""
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        if ttl is None:
            return
        ended = condition(job, "Complete") or condition(job, "Failed") or {}
        due = seconds_of(ended["lastTransitionTime"]) + ttl
        if now < due:
            self.queue.add_at(key, due)
        else:
            yield delete(JOB, job, propagation="Foreground")


def _successes(job: Doc, tally: FinishedPods) -> int:
    if not is_indexed(job):
        return tally.successes
    return len([index for index in tally.indexes if index < int(job["spec"]["completions"])])


def _counts(job: Doc, tally: FinishedPods, pods: list[PodFact]) -> dict[str, Any]:
    status: dict[str, Any] = {
        "active": sum(pod.is_active for pod in pods),
        "ready": sum(pod.is_active and pod.ready_since is not None for pod in pods),
        "terminating": sum(pod.deleting and not pod.is_finished for pod in pods),
        "succeeded": _successes(job, tally),
        "failed": tally.failures,
        "uncountedTerminatedPods": {},
    }
    if is_indexed(job):
        status["completedIndexes"] = indexes_text(tally.indexes)
    return status


def _suspension(conditions: list[Doc], *, suspended: bool, now: float) -> list[Doc]:
    if suspended:
        return put_condition(
            conditions, condition_of("Suspended", reason="JobSuspended", message="Job suspended", now=now)
        )
    if any(one["type"] == "Suspended" for one in conditions):
        resumed = condition_of("Suspended", reason="JobResumed", message="Job resumed", now=now, holds=False)
        return put_condition(conditions, resumed)
    return conditions


def _pod(job: Doc) -> Doc:
    pod = pod_from_template(JOB, job, job["spec"]["template"])
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    labels = {
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
        "controller-uid": uid,
        "job-name": name,
    }
    pod["metadata"]["labels"] = labels | pod["metadata"].get("labels", {})
    return pod


def _indexed_pod(job: Doc, index: int) -> Doc:
    pod = _pod(job)
    metadata, spec, text = pod["metadata"], dict(pod["spec"]), str(index)
    metadata["generateName"] = f"{job['metadata']['name']}-{index}-"
    metadata["labels"][COMPLETION_INDEX] = text
    metadata["annotations"] = {**metadata.get("annotations", {}), COMPLETION_INDEX: text}
    spec["hostname"] = f"{job['metadata']['name']}-{index}"
    for field in ("initContainers", "containers"):
        if spec.get(field):
            spec[field] = [_with_index(container) for container in spec[field]]
    return {**pod, "spec": spec}


def _with_index(container: Doc) -> Doc:
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{COMPLETION_INDEX}']"}}
    known = container.get("env") or []
    if any(variable["name"] == "JOB_COMPLETION_INDEX" for variable in known):
        return container
    return {**container, "env": [*known, {"name": "JOB_COMPLETION_INDEX", "valueFrom": source}]}


def _deadline(job: Doc) -> float | None:
    seconds, since = job["spec"].get("activeDeadlineSeconds"), (job.get("status") or {}).get("startTime")
    return None if seconds is None or not since else seconds_of(since) + seconds


def _number(job: Doc, field: str, default: int) -> int:
    value = job["spec"].get(field)
    return default if value is None else int(value)
