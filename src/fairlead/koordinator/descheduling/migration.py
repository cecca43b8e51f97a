"""MigrationSteps: carries out PodMigrationJobs, which move a pod to another node without losing its place in between.

    Pending ─arbitration─▶ Running ─▶ Reservation made ─▶ scheduled ─▶ pod evicted ─▶ Reservation used ─▶ Succeeded

In the mode EvictDirectly the pod is evicted at once and that is all. A job whose time is over fails and takes its
Reservation along; a job that is over is deleted five minutes after its time. Steps, conditions and words are those of
Koordinator's migration controller.

Invariant: no pod is evicted before its Reservation has another node, and a step is written only once the one before it
is known to have been done.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import condition, create, delete, patch, patch_status, with_condition
from fairlead.core.model.durations import parse_duration
from fairlead.core.model.flow import Change, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.core.model.times import seconds_of, timestamp
from fairlead.errors import AlreadyExists
from fairlead.koordinator.descheduling.evictable import (
    COMPONENT,
    EVICT_ANNOTATION,
    OVER,
    PASSED,
    REASON,
    TRIGGER,
    MigrationIndex,
    Movable,
    has_passed,
    phase_of,
    pod_key_of,
)
from fairlead.koordinator.descheduling.facts import WORKLOADS, ClusterFacts
from fairlead.koordinator.descheduling.limits import ObjectLimiters, TokenBucket
from fairlead.koordinator.descheduling.reserving import reservation_for, waits_for_pod
from fairlead.koordinator.descheduling.settings import (
    DELETE,
    EVICT_DIRECTLY,
    EVICTION,
    SOFT_EVICTION,
    MigrationSettings,
)
from fairlead.koordinator.kinds import KOORD_MIGRATION_JOB, KOORD_NODE_METRIC, KOORD_RESERVATION
from fairlead.koordinator.records.reservations import FAILED, PREFIX, SUCCEEDED

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_AGAIN = 3.0
_KEPT, _KEPT_WITHOUT_TTL = 300.0, 1800.0
_POLICY_LABEL = "koordinator.sh/evict-policy"
_SOFT_EVICTION = PREFIX + "soft-eviction"
_TOO_MANY = "TooManyEvictions"


class MigrationSteps(Reconciler[str]):
    """Keys are names of jobs; a subclass may have others, which it visits itself."""

    component = COMPONENT
    watches: Sequence[Watch] = tuple(
        Watch(kind) for kind in (KOORD_MIGRATION_JOB, KOORD_RESERVATION, POD, NODE, KOORD_NODE_METRIC, *WORKLOADS)
    )

    def __init__(self, view: DocView, settings: MigrationSettings, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self.settings = settings
        self.facts, self.migrations = ClusterFacts(self.view), MigrationIndex()
        self.movable = Movable(settings, self.facts, self.migrations, self.view)
        self.limiters = ObjectLimiters(settings, self.facts)
        self._pace = TokenBucket(settings.evictions_per_second, settings.evictions_at_once)
        self._by_reservation: dict[str, str] = {}  # name of a Reservation -> its job
        self._by_pod: dict[str, str] = {}  # pod -> its job
        self._evicted: set[str] = set()  # uids of jobs whose eviction was taken
        self._not_made: dict[str, str] = {}  # job -> why its Reservation was refused

    def observe(self, change: Change) -> None:
        gone, name = change.gone, change.doc["metadata"]["name"]
        if change.kind is KOORD_MIGRATION_JOB:
            self.migrations.observe(change.doc, gone=gone)
            self._by_reservation[_reservation_name(change.doc)] = name
            self._by_pod[pod_key_of(change.doc)] = name
            self.queue.add(name)
        elif change.kind is KOORD_RESERVATION:
            if name in self._by_reservation:
                self.queue.add(self._by_reservation[name])
        else:
            self.facts.observe(change)
            job = self._by_pod.get(f"{change.doc['metadata'].get('namespace', '')}/{name}")
            if change.kind is POD and job is not None:
                self.queue.add(job)

    def visit_job(self, key: str, now: float) -> Iterable[Write]:
        """Bring one job one step further."""
        job = self.view.get(KOORD_MIGRATION_JOB, "", key)
        if job is None:
            yield from self._forget(key)
            return
        ends = _ends_at(job)
        if phase_of(job) in OVER or now >= _kept_until(job):
            yield from self._scavenge(job, now)
            return
        if job["spec"].get("paused"):
            return
        if ends is not None and now >= ends:
            yield from self._release(job)
            yield from self._fail(job, "Timeout", "Abort job caused by timeout")
            return
        self.queue.add_at(key, now + _AGAIN if ends is None else min(ends, now + _AGAIN))
        if phase_of(job) == "Pending":
            yield from self._start(job)
        elif not self._is_held_back(job, now):
            direct = (job["spec"].get("mode") or self.settings.mode) == EVICT_DIRECTLY
            yield from self._evict_directly(job, now) if direct else self._migrate(job, now)

    def _is_held_back(self, job: Doc, now: float) -> bool:
        """Whether the pod's workload lost one so lately that this one has to wait."""
        pod = self.facts.pods.get(pod_key_of(job))
        if pod is None or condition(job, "Eviction") is not None or job["metadata"]["uid"] in self._evicted:
            return False
        said = job["metadata"].get("annotations") or {}
        return EVICT_ANNOTATION not in said and self.limiters.exceeded(pod, now)

    # ---- the beginning and the end ----

    def _start(self, job: Doc) -> Iterable[Write]:
        """Let a job run that arbitration has let in."""
        named = job["spec"].get("podRef") or {}
        if not has_passed(job):
            return
        if not named.get("namespace") or not named.get("name"):
            yield from self._fail(job, "InvalidPodRef", "Abort job caused by invalid PodRef")
            return
        pod = self.view.get(POD, named["namespace"], named["name"])
        if pod is None:
            yield from self._missing(job)
            return
        if named.get("uid") != pod["metadata"]["uid"]:
            yield patch(KOORD_MIGRATION_JOB, job, {"spec": {"podRef": {"uid": pod["metadata"]["uid"]}}})
        yield patch_status(KOORD_MIGRATION_JOB, job, {"phase": "Running"})

    def let_in(self, job: Doc) -> Write:
        """What shows that arbitration has let a job in."""
        return patch(KOORD_MIGRATION_JOB, job, {"metadata": {"annotations": {PASSED: "true"}}})

    def forbid(self, job: Doc) -> Iterable[Write]:
        """What shows that a job's pod is never moved."""
        words = f'Pod "{pod_key_of(job)}" is forbidden to migrate because it does not meet the requirements'
        return self._fail(job, "ForbiddenMigratePod", words)

    def _scavenge(self, job: Doc, now: float) -> Iterable[Write]:
        until = _kept_until(job)
        if now < until:
            self.queue.add_at(job["metadata"]["name"], until)
            return
        yield from self._release(job)
        yield delete(KOORD_MIGRATION_JOB, job)

    def _forget(self, key: str) -> Iterable[Write]:
        """A job is gone: so is the Reservation that it made."""
        for name, job in list(self._by_reservation.items()):
            if job == key:
                del self._by_reservation[name]
                found = self.view.get(KOORD_RESERVATION, "", name)
                if found is not None:
                    yield delete(KOORD_RESERVATION, found)
        for pod, job in list(self._by_pod.items()):
            if job == key:
                del self._by_pod[pod]

    def _release(self, job: Doc) -> Iterable[Write]:
        reference = (job["spec"].get("reservationOptions") or {}).get("reservationRef") or {}
        found = self.view.get(KOORD_RESERVATION, "", reference["name"]) if reference.get("name") else None
        if found is not None:
            yield delete(KOORD_RESERVATION, found)

    # ---- reservation first ----

    def _migrate(self, job: Doc, now: float) -> Iterable[Write]:
        reference = (job["spec"].get("reservationOptions") or {}).get("reservationRef")
        if reference is None:
            yield from self._reserve(job, now)
            return
        reservation = self.view.get(KOORD_RESERVATION, "", reference["name"])
        if reservation is None:
            words = f'Abort job caused by missing Reservation "/{reference["name"]}"'
            yield from self._fail(job, "MissingReservation", words)
            return
        if not _is_true(job, "ReservationCreated"):
            yield self._condition(job, "ReservationCreated", "True", now)
            return
        status = reservation.get("status") or {}
        refused = condition(reservation, "Scheduled") or {}
        if not _is_true(job, "ReservationScheduled") and refused.get("reason") == "Unschedulable":
            words = refused.get("message", "")
            known = condition(job, "ReservationScheduled") or {}
            if known.get("message") != words:
                yield self._condition(job, "ReservationScheduled", "False", now, "Unschedulable", words)
                yield from self.event(KOORD_MIGRATION_JOB, job, "Unschedulable", words, warning=True)
                return
        if status.get("phase") in (None, "", "Pending"):
            return
        if status["phase"] == FAILED and (condition(reservation, "Ready") or {}).get("reason") == "Expired":
            yield from self._fail(job, "ReservationExpired", "Reservation expired", announced=False)
        elif not status.get("nodeName"):
            yield from self._fail(job, "Unschedulable", refused.get("message", ""), announced=False)
        else:
            yield from self._with_node(job, reservation, now)

    def _reserve(self, job: Doc, now: float) -> Iterable[Write]:
        """Make the Reservation, and name it in the job once it is there."""
        pod = self._pod(job)
        if pod is None:
            yield from self._missing(job)
            return
        made = reservation_for(job, pod, now)
        name = made["metadata"]["name"]
        self._by_reservation[name] = job["metadata"]["name"]
        found = self.view.get(KOORD_RESERVATION, "", name)
        if found is None:
            yield from self._make(job, made, now)
            return
        template = {"metadata": made["metadata"], "spec": made["spec"]}
        reference = {
            "apiVersion": KOORD_RESERVATION.version,
            "kind": KOORD_RESERVATION.kind,
            "name": name,
            "uid": found["metadata"]["uid"],
        }
        options = {"reservationRef": reference, "template": template}
        yield patch(KOORD_MIGRATION_JOB, job, {"spec": {"reservationOptions": options}})
        words = f'Successfully create Reservation "{name}"'
        yield from self.event(KOORD_MIGRATION_JOB, job, "ReservationCreated", words)

    def _make(self, job: Doc, made: Doc, now: float) -> Iterable[Write]:
        refusal = self._not_made.get(job["metadata"]["name"])
        known = condition(job, "ReservationCreated") or {}
        if refusal is not None and known.get("message") != refusal:
            yield self._condition(job, "ReservationCreated", "False", now, "FailedCreateReservation", refusal)
            yield from self.event(KOORD_MIGRATION_JOB, job, "FailedCreateReservation", refusal, warning=True)
            return
        yield create(KOORD_RESERVATION, made)

    def _with_node(self, job: Doc, reservation: Doc, now: float) -> Iterable[Write]:
        node, name = reservation["status"]["nodeName"], reservation["metadata"]["name"]
        if not _is_true(job, "ReservationScheduled"):
            pod = self._pod(job)
            if pod is not None and pod["spec"].get("nodeName") == node:
                words = f'Scheduler assignes the Reservation "{name}" on the same node as the Pod'
                yield from self._fail(job, "ForbiddenMigratePod", words)
                return
            yield self._condition(job, "ReservationScheduled", "True", now, more={"nodeName": node})
            words = f'Assigned Reservation "{name}" to node "{node}"'
            yield from self.event(KOORD_MIGRATION_JOB, job, "ReservationScheduled", words)
        elif waits_for_pod(reservation):
            yield from self._follow_pending(job, reservation, now)
        elif not _is_true(job, "Eviction"):
            yield from self._evict(job, now, reservation)
        else:
            yield from self._finish(job, reservation, now)

    def _follow_pending(self, job: Doc, reservation: Doc, now: float) -> Iterable[Write]:
        """Wait until a pod that had no node gets the reserved one."""
        pod = self._pod(job)
        if pod is None:
            yield from self._missing(job)
            return
        scheduled = condition(pod, "PodScheduled") or {"status": "False"}
        if scheduled["status"] == "False":
            owner: Doc = next(iter((reservation.get("status") or {}).get("currentOwners") or ()), {})
            if (reservation.get("status") or {}).get("phase") == SUCCEEDED and owner.get("uid") != pod["metadata"][
                "uid"
            ]:
                yield from self._bound_by_another(job)
                return
            words, known = scheduled.get("message", ""), condition(job, "PodScheduled")
            if known is None or known.get("message", "") != words:
                yield self._condition(job, "PodScheduled", "False", now, "Unschedulable", words)
            return
        words = f'Assign Pod "{pod_key_of(job)}" to node "{pod["spec"].get("nodeName", "")}"'
        yield from self._succeed(job, words, conditions=_conditions(job, now, ("PodScheduled", "")))

    # ---- eviction ----

    def _evict(self, job: Doc, now: float, reservation: Doc | None = None) -> Iterable[Write]:
        """Evict the pod, say so, and say when it is gone."""
        pod, known = self._pod(job), condition(job, "Eviction")
        if known is None and job["metadata"]["uid"] in self._evicted:
            node = "" if pod is None else pod["spec"].get("nodeName", "")
            words = f'Pod "{pod_key_of(job)}" evicted from node "{node}" by the reason "{_reason(job)}"'
            yield self._condition(job, "Eviction", "False", now, "Evicting", words)
            yield from self.event(KOORD_MIGRATION_JOB, job, "Evicting", words)
        elif pod is None and known is None:
            yield from self._missing(job)
        elif pod is None:
            yield self._condition(job, "Eviction", "True", now, "EvictComplete")
            words = f'Pod "{pod_key_of(job)}" has been evicted'
            yield from self.event(KOORD_MIGRATION_JOB, job, "EvictComplete", words)
        elif known is None:
            if reservation is not None and (reservation.get("status") or {}).get("phase") == SUCCEEDED:
                yield from self._bound_by_another(job)
            elif self._pace.take(now):
                yield self._eviction(job, pod, now)
            else:
                self.queue.add_at(job["metadata"]["name"], now + 1 / self._pace.rate)

    def _eviction(self, job: Doc, pod: Doc, now: float) -> Write:
        labels, metadata = pod["metadata"].get("labels") or {}, pod["metadata"]
        policy = labels.get(_POLICY_LABEL) or (job["metadata"].get("labels") or {}).get(_POLICY_LABEL)
        if policy not in (EVICTION, DELETE, SOFT_EVICTION):
            policy = self.settings.policy
        given = job["spec"].get("deleteOptions") or self.settings.delete_options or {}
        namespace, name = metadata["namespace"], metadata["name"]
        if policy == SOFT_EVICTION:
            said = {"timestamp": timestamp(now), "deleteOptions": dict(given) or None, "initiator": _trigger(job)}
            kept = {key: value for key, value in {**said, "reason": _reason(job)}.items() if value}
            return patch(POD, pod, {"metadata": {"annotations": {_SOFT_EVICTION: json.dumps(kept)}}})
        options = {**given, "preconditions": {"uid": metadata["uid"]}}
        if policy == DELETE:
            body = {"kind": "DeleteOptions", "apiVersion": "v1", **options}
            return Write(Verb.DELETE, POD, namespace, name, body=body)
        eviction = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": options,
        }
        return Write(Verb.CREATE, POD, namespace, name, body=eviction, subresource="eviction")

    def welcomed(self, key: str, reply: Reply, now: float) -> Iterable[Write]:
        job = self.view.get(KOORD_MIGRATION_JOB, "", key)
        if reply.write.kind is POD and job is not None:
            self._evicted.add(job["metadata"]["uid"])
            pod = self.facts.pods.get(pod_key_of(job))
            document = self._pod(job)
            if pod is not None:
                self.limiters.evicted(pod, now)
            if document is not None:
                words = f'Pod evicted from node "{document["spec"].get("nodeName", "")}" by the reason "{_reason(job)}"'
                yield from self.event(POD, document, "Descheduled", words)
        if job is not None:
            self.queue.add(key)

    def refused(self, key: str, reply: Reply, now: float) -> None:
        write, error = reply.write, reply.error
        if write.kind is not KOORD_RESERVATION or write.verb is not Verb.CREATE:
            return
        if error is not None and not isinstance(error, AlreadyExists):
            self._not_made[key] = f"Failed to create Reservation caused by {error.message}"

    def _evict_directly(self, job: Doc, now: float) -> Iterable[Write]:
        if _is_true(job, "Eviction"):
            yield from self._succeed(job, f'Pod "{pod_key_of(job)}" has been evicted', announced=False)
        else:
            yield from self._evict(job, now)

    # ---- after the eviction ----

    def _finish(self, job: Doc, reservation: Doc, now: float) -> Iterable[Write]:
        owners = (reservation.get("status") or {}).get("currentOwners") or ()
        if not owners:
            if condition(job, "PodBoundReservation") is None:
                yield self._condition(job, "PodBoundReservation", "False", now, "WaitForPodBindReservation")
                words = "Waiting for Pod bind Reservation"
                yield from self.event(KOORD_MIGRATION_JOB, job, "WaitForPodBindReservation", words)
            return
        namespace, name = owners[0].get("namespace", ""), owners[0].get("name", "")
        if not _is_true(job, "ReservationBound"):
            bound = _conditions(job, now, ("ReservationBound", ""))
            yield patch_status(KOORD_MIGRATION_JOB, job, {"podRef": owners[0], "conditions": bound})
            words = f'Reservation bound by pod "{namespace}/{name}"'
            yield from self.event(KOORD_MIGRATION_JOB, job, "PodBoundReservation", words)
            return
        pod = self.view.get(POD, namespace, name)
        self._by_pod[f"{namespace}/{name}"] = job["metadata"]["name"]
        if pod is not None and (condition(pod, "Ready") or {}).get("status") != "True":
            if condition(job, "BoundPodReady") is None:
                yield self._condition(job, "BoundPodReady", "False", now, "WaitForBoundPodReady")
                words = f"Waiting for Bound Pod {namespace}/{name} Ready"
                yield from self.event(KOORD_MIGRATION_JOB, job, "WaitForBoundPodReady", words)
            return
        words = f'Bind Pod "{namespace}/{name}" in Reservation "{reservation["metadata"]["name"]}"'
        met = _conditions(job, now, ("BoundPodReady", ""), ("PodBoundReservation", words))
        yield from self._succeed(job, words, conditions=met, more={"podRef": owners[0]})

    # ---- what is written ----

    def _pod(self, job: Doc) -> Doc | None:
        """The pod of a job, if it is still the same one."""
        named = job["spec"].get("podRef") or {}
        found = self.view.get(POD, named.get("namespace", ""), named.get("name", ""))
        if found is not None and named.get("uid") and found["metadata"]["uid"] != named["uid"]:
            return None
        return found

    def _missing(self, job: Doc) -> Iterable[Write]:
        return self._fail(job, "MissingPod", f'Abort job caused by missing Pod "{pod_key_of(job)}"')

    def _bound_by_another(self, job: Doc) -> Iterable[Write]:
        return self._fail(job, "ForbiddenMigratePod", "Reservation is already bound by another Pod")

    def _fail(self, job: Doc, reason: str, message: str, *, announced: bool = True) -> Iterable[Write]:
        yield patch_status(KOORD_MIGRATION_JOB, job, {"phase": "Failed", "reason": reason, "message": message})
        if announced:
            yield from self.event(KOORD_MIGRATION_JOB, job, reason, message, warning=True)

    def _succeed(
        self,
        job: Doc,
        words: str,
        *,
        conditions: list[Doc] | None = None,
        more: Doc | None = None,
        announced: bool = True,
    ) -> Iterable[Write]:
        status = {"phase": "Succeeded", "status": "Complete", "reason": None, "message": words, **(more or {})}
        if conditions is not None:
            status["conditions"] = conditions
        yield patch_status(KOORD_MIGRATION_JOB, job, status)
        if announced:
            yield from self.event(KOORD_MIGRATION_JOB, job, "Complete", words)

    def _condition(
        self,
        job: Doc,
        type_: str,
        status: str,
        now: float,
        reason: str = "",
        message: str = "",
        more: Doc | None = None,
    ) -> Write:
        """A condition, which is also what the job's `status.status` says."""
        new = {
            "type": type_,
            "status": status,
            "lastTransitionTime": timestamp(now),
            "reason": reason,
            "message": message,
        }
        conditions = with_condition(list((job.get("status") or {}).get("conditions") or ()), new)
        said = {"status": type_, "reason": reason, "message": message, "conditions": conditions, **(more or {})}
        return patch_status(KOORD_MIGRATION_JOB, job, said)


def _reservation_name(job: Doc) -> str:
    options = job["spec"].get("reservationOptions") or {}
    named = (options.get("reservationRef") or {}).get("name")
    desired = ((options.get("template") or {}).get("metadata") or {}).get("name")
    return str(named or desired or job["metadata"].get("uid", ""))


def _ends_at(job: Doc) -> float | None:
    seconds = _ttl(job)
    return seconds_of(job["metadata"]["creationTimestamp"]) + seconds if seconds > 0 else None


def _ttl(job: Doc) -> float:
    given = job["spec"].get("ttl")
    return parse_duration(str(given)) if given else 0.0


def _kept_until(job: Doc) -> float:
    """When a job is deleted, whatever became of it."""
    seconds = _ttl(job)
    kept = seconds + _KEPT if seconds > 0 else _KEPT_WITHOUT_TTL
    return seconds_of(job["metadata"]["creationTimestamp"]) + kept


def _is_true(job: Doc, type_: str) -> bool:
    return (condition(job, type_) or {}).get("status") == "True"


def _conditions(job: Doc, now: float, *met: tuple[str, str]) -> list[Doc]:
    found = list((job.get("status") or {}).get("conditions") or ())
    for type_, message in met:
        new = {"type": type_, "status": "True", "lastTransitionTime": timestamp(now), "reason": "", "message": message}
        found = with_condition(found, new)
    return found


def _trigger(job: Doc) -> str:
    return str((job["metadata"].get("annotations") or {}).get(TRIGGER, ""))


def _reason(job: Doc) -> str:
    return str((job["metadata"].get("annotations") or {}).get(REASON) or _trigger(job) or "NotSet")
