"""CronJobs: a Job whenever its schedule is due, as far as policy and deadline let it.

A Job is named after the minute it was due in, so it is never made twice, and carries that time in an annotation; what
the CronJob's status says is counted from its Jobs. Of times that were missed (nobody was running, or the CronJob was
suspended) only the last is made up for, and only within its deadline.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from fairlead.cluster.controllers.workloads.cron_schedule import Schedule, ScheduleError, parse_schedule
from fairlead.cluster.controllers.workloads.owners import Key, KnownOwners
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import (
    controller_of,
    create,
    delete,
    identity,
    identity_of_controller,
    namespaced_name,
    owner_reference,
    patch_status,
)
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import CRON_JOB, JOB, Kind
from fairlead.core.model.times import seconds_of, timestamp

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"
_MANY = 100
"""So many missed times are worth a warning."""


class CronRun(NamedTuple):
    """One of a CronJob's Jobs."""

    namespace: str
    name: str
    uid: str
    version: str
    ending: str  # Complete, Failed, another word for an end that counts as neither, or empty while it runs
    started: str
    completed: str
    scheduled: str

    @property
    def doc(self) -> Doc:
        return {"metadata": {"namespace": self.namespace, "name": self.name, "uid": self.uid}}

    def reference(self, kind: Kind) -> Doc:
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
            "resourceVersion": self.version,
        }


class _Due(NamedTuple):
    """The last time that was due and not yet served, how many there were, and the next to come."""

    last: float | None
    missed: int
    next: float | None


class CronJobs(Reconciler[Key]):
    """CronJobs of batch/v1. A subclass serves another kind of CronJob: it says which, and how it words its Events."""

    name = "cronjob-controller"
    watches: Sequence[Watch] = (Watch(CRON_JOB), Watch(JOB))
    kind: Kind = CRON_JOB
    job_kind: Kind = JOB
    scheduled_note = SCHEDULED
    emits_cleaning = False

    def run_of(self, job: Doc) -> CronRun:
        """What is to be known of a Job."""
        return _run(job)

    def emit_ended(self, doc: Doc, run: CronRun) -> Iterable[Write]:
        return self.event(self.kind, doc, "SawCompletedJob", f"Saw completed job: {run.name}, condition: {run.ending}")

    def emit_created(self, doc: Doc, name: str) -> Iterable[Write]:
        return self.event(self.kind, doc, "SuccessfulCreate", f"Created job {name}")

    def emit_deleted(self, doc: Doc, name: str) -> Iterable[Write]:
        return self.event(self.kind, doc, "SuccessfulDelete", f"Deleted job {name}")

    def emit_forbidden(self, doc: Doc) -> Iterable[Write]:
        text = "Not starting job because prior execution is running and concurrency policy is Forbid"
        return self.event(self.kind, doc, "JobAlreadyActive", text)

    def emit_replaced(self, doc: Doc) -> Iterable[Write]:
        return ()

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._known = KnownOwners(self.queue)
        self._runs: dict[str, dict[str, CronRun]] = {}  # identity of the CronJob -> by name
        self._owners: dict[str, str] = {}  # uid of a Job -> identity of its CronJob

    def observe(self, change: Change) -> None:
        if change.kind is self.kind:
            self._known.observe(change)
        elif change.kind is self.job_kind:
            self._observe_job(change)

    def _observe_job(self, change: Change) -> None:
        """Of a Job that was deleted there may be no more than its name and uid."""
        uid, name = change.doc["metadata"]["uid"], change.doc["metadata"]["name"]
        reference = controller_of(change.doc) or {}
        owner = self._owners.pop(uid, "")
        if owner:
            self._runs[owner].pop(name, None)
            if not self._runs[owner]:
                del self._runs[owner]
        ours = (reference.get("apiVersion"), reference.get("kind")) == (self.kind.api_version, self.kind.kind)
        if not change.gone and ours:
            owner = self._owners[uid] = identity_of_controller(change.doc)
            self._runs.setdefault(owner, {})[name] = self.run_of(change.doc)
        self._known.visit(owner)

    # Visits

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        doc = self.view.get(self.kind, *key)
        if doc is None or not self._known.knows(doc):
            return
        runs = self._runs.get(identity(doc), {})
        yield from self._report(doc, runs, now)
        if doc["metadata"].get("deletionTimestamp"):
            return
        yield from self._tidy(doc, runs)
        if not doc["spec"].get("suspend"):
            yield from self._serve(key, doc, runs, now)

    def _serve(self, key: Key, doc: Doc, runs: dict[str, CronRun], now: float) -> Iterable[Write]:
        spec = doc["spec"]
        try:
            schedule = parse_schedule(spec["schedule"], spec.get("timeZone") or "")
        except ScheduleError as error:
            zone = str(error).startswith("unknown time zone")
            reason = "UnknownTimeZone" if zone else "UnparseableSchedule"
            shown = spec.get("timeZone") if zone else spec["schedule"]
            text = f'invalid timeZone: "{shown}": {error}' if zone else f'unparseable schedule: "{shown}" : {error}'
            yield from self.event(self.kind, doc, reason, text, warning=True)
            return
        due = _due(doc, schedule, runs.values(), now)
        if due.next is not None:
            self.queue.add_at(key, due.next)
        if due.missed > _MANY:
            text = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            yield from self.event(self.kind, doc, "TooManyMissedTimes", text, warning=True)
        if due.last is not None:
            yield from self._start(doc, due.last, runs, now)

    def _start(self, doc: Doc, scheduled: float, runs: dict[str, CronRun], now: float) -> Iterable[Write]:
        name = f"{doc['metadata']['name']}-{int(scheduled) // 60}"
        active = [run for run in runs.values() if not run.ending]
        if name in runs:
            return
        policy = doc["spec"].get("concurrencyPolicy", "Allow")
        if policy == "Forbid" and active:
            yield from self.emit_forbidden(doc)
            return
        if policy == "Replace" and active:
            yield from self.emit_replaced(doc)
            for run in active:
                yield delete(self.job_kind, run.doc, propagation="Background")
                yield from self.emit_deleted(doc, run.name)
        yield create(self.job_kind, self._job(doc, name, scheduled))

    def _tidy(self, doc: Doc, runs: dict[str, CronRun]) -> Iterable[Write]:
        """Finished Jobs beyond the limits go, the oldest first."""
        for ending, field, usual in (
            ("Complete", "successfulJobsHistoryLimit", 3),
            ("Failed", "failedJobsHistoryLimit", 1),
        ):
            limit = doc["spec"].get(field)
            ended = sorted((run for run in runs.values() if run.ending == ending), key=lambda run: run.started)
            for run in ended[: max(0, len(ended) - (usual if limit is None else int(limit)))]:
                yield delete(self.job_kind, run.doc, propagation="Background")
                if self.emits_cleaning:
                    yield from self.emit_deleted(doc, run.name)

    # Status and events

    def _report(self, doc: Doc, runs: dict[str, CronRun], now: float) -> Iterable[Write]:
        known = doc.get("status") or {}
        listed = {one["uid"]: one for one in known.get("active") or ()}
        by_uid = {run.uid: run for run in runs.values()}
        for uid, reference in listed.items():
            run = by_uid.get(uid)
            if run is None:
                text = f"Active job went missing: {reference['name']}"
                yield from self.event(self.kind, doc, "MissingJob", text)
            elif run.ending:
                yield from self.emit_ended(doc, run)
        status = _status(self.job_kind, known, runs.values(), listed)
        if any((known.get(name) or None) != (value or None) for name, value in status.items()):
            yield patch_status(self.kind, doc, status)

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        if reply.write.verb is Verb.CREATE:
            doc = self.view.get(self.kind, *key)
            if doc is not None:
                yield from self.emit_created(doc, reply.write.name)

    def _job(self, doc: Doc, name: str, scheduled: float) -> Doc:
        template, kind = doc["spec"]["jobTemplate"], self.job_kind
        given = template.get("metadata") or {}
        metadata = {
            "namespace": doc["metadata"]["namespace"],
            "name": name,
            "annotations": {**(given.get("annotations") or {}), self.scheduled_note: _local(doc, scheduled)},
            "ownerReferences": [owner_reference(self.kind, doc)],
        }
        if given.get("labels"):
            metadata["labels"] = given["labels"]
        return {
            "apiVersion": kind.api_version,
            "kind": kind.kind,
            "metadata": metadata,
            "spec": template.get("spec") or {},
        }


def _run(job: Doc) -> CronRun:
    metadata, status = job["metadata"], job.get("status") or {}
    ended = [
        one["type"]
        for one in status.get("conditions") or ()
        if one["type"] in ("Complete", "Failed") and one.get("status") == "True"
    ]
    return CronRun(
        *namespaced_name(job),
        uid=metadata["uid"],
        version=metadata.get("resourceVersion") or "",
        ending=ended[0] if ended else "",
        started=status.get("startTime") or metadata.get("creationTimestamp") or "",
        completed=status.get("completionTime") or "",
        scheduled=(metadata.get("annotations") or {}).get(SCHEDULED) or "",
    )


def _due(doc: Doc, schedule: Schedule, runs: Iterable[CronRun], now: float) -> _Due:
    since = doc["metadata"]["creationTimestamp"]
    served = [
        one for one in ((doc.get("status") or {}).get("lastScheduleTime"), *(run.scheduled for run in runs)) if one
    ]
    moment = max(map(seconds_of, [since, *served]))
    deadline = doc["spec"].get("startingDeadlineSeconds")
    if deadline is not None:
        moment = max(moment, now - deadline)
    last, missed, following = None, 0, schedule.next_after(moment)
    while following is not None and following <= now and missed <= _MANY:
        last, missed, following = following, missed + 1, schedule.next_after(following)
    if missed > _MANY:
        last, following = schedule.last_until(now), schedule.next_after(now)
    return _Due(last, missed, following)


def _local(doc: Doc, scheduled: float) -> str:
    """The scheduled time as clocks in the CronJob's zone show it."""
    zone = doc["spec"].get("timeZone")
    if not zone:
        return timestamp(scheduled)
    return parse_schedule(doc["spec"]["schedule"], zone).clock(scheduled)


def _status(kind: Kind, known: Doc, runs: Iterable[CronRun], listed: dict[str, Doc]) -> Doc:
    runs = list(runs)
    active = sorted((run for run in runs if not run.ending), key=lambda run: (run.scheduled, run.name))
    times = [one for one in (known.get("lastScheduleTime"), *(run.scheduled for run in runs)) if one]
    good = [one for one in (known.get("lastSuccessfulTime"), *(run.completed for run in runs)) if one]
    last = max(times, key=seconds_of, default=None)
    return {
        # A reference stays as it was first written: the Job's version moves on, its identity does not.
        "active": [listed.get(run.uid) or run.reference(kind) for run in active] or None,
        "lastScheduleTime": timestamp(seconds_of(last)) if last else None,
        "lastSuccessfulTime": max(good, key=seconds_of, default=None),
    }
