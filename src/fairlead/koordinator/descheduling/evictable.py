"""Which pods may be moved, and now: the rules of Koordinator's MigrationController before it makes or lets in a job.

Some pods are never moved (`Movable.never`): a job for one fails. Others have to wait because too many are on the way
(`Movable.must_wait`). A pod with the annotation `descheduler.alpha.kubernetes.io/evict` passes all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import create, event_about, patch
from fairlead.core.model.durations import format_duration
from fairlead.core.model.hashes import safe_hash
from fairlead.core.model.kinds import NODE, POD
from fairlead.koordinator.descheduling.limits import ObjectLimiters, most_of
from fairlead.koordinator.descheduling.pod_order import NEVER, eviction_cost
from fairlead.koordinator.descheduling.settings import RESERVATION_FIRST, DeschedulerSettings
from fairlead.koordinator.kinds import KOORD_MIGRATION_JOB

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView, Write
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.descheduling.facts import ClusterFacts
    from fairlead.koordinator.descheduling.settings import MigrationSettings

EVICT_ANNOTATION = "descheduler.alpha.kubernetes.io/evict"
PASSED = "descheduler.koordinator.sh/passed-arbitration"
REASON, TRIGGER, CREATED_BY = (
    "koordinator.sh/evict-reason",
    "koordinator.sh/evict-trigger",
    "koordinator.sh/job-created-by",
)
COMPONENT = "koord-descheduler"
OVER = ("Succeeded", "Failed", "Aborted")
_CRITICAL = 2_000_000_000


class MigrationIndex:
    """The PodMigrationJobs that are not over, those that were just requested among them."""

    def __init__(self) -> None:
        self.jobs: dict[str, Doc] = {}

    def observe(self, job: Doc, *, gone: bool) -> None:
        name = job["metadata"]["name"]
        self.jobs.pop(name, None)
        if not gone and phase_of(job) not in OVER:
            self.jobs[name] = job

    def under_way(self, *, arbitrating: bool) -> Iterator[Doc]:
        """Jobs that count against limits: all, or while arbitrating those that have been let in."""
        for job in self.jobs.values():
            if not arbitrating or phase_of(job) == "Running" or has_passed(job):
                yield job


def phase_of(job: Doc) -> str:
    return str((job.get("status") or {}).get("phase") or "Pending")


def has_passed(job: Doc) -> bool:
    return (job["metadata"].get("annotations") or {}).get(PASSED) == "true"


def pod_key_of(job: Doc) -> str:
    named = job["spec"].get("podRef") or {}
    return f"{named.get('namespace', '')}/{named.get('name', '')}"


def is_of(job: Doc, pod: Pod) -> bool:
    """Whether a job is about this pod, by uid or by name."""
    named = job["spec"].get("podRef") or {}
    return named.get("uid") == pod.uid or pod_key_of(job) == pod.key


class Movable:
    """The rules, over what is known of the cluster and its jobs."""

    def __init__(
        self, settings: MigrationSettings, facts: ClusterFacts, migrations: MigrationIndex, view: DocView
    ) -> None:
        self._settings, self._facts, self._migrations, self._view = settings, facts, migrations, view

    def never(self, pod: Pod) -> bool:
        """Whether a job for this pod fails at once."""
        if EVICT_ANNOTATION in pod.annotations:
            return False
        settings = self._settings
        if not (self._skips("Namespaces") or settings.namespaces.has(pod.namespace)):
            return True
        return eviction_cost(pod) == NEVER or self._is_protected(pod) or self._is_too_small(pod)

    def must_wait(self, pod: Pod, *, arbitrating: bool) -> bool:
        """Whether too many pods of the cluster, its node, its namespace or its workload are on the way."""
        if EVICT_ANNOTATION in pod.annotations:
            return False
        jobs = [job for job in self._migrations.under_way(arbitrating=arbitrating) if not _has_uid(job, pod)]
        settings = self._settings
        on_node = sum(self._on_node(job, pod) for job in jobs) if pod.node_name else 0
        in_namespace = sum((job["spec"].get("podRef") or {}).get("namespace") == pod.namespace for job in jobs)
        counted = (
            ("MaxMigratingGlobally", settings.most_globally, len(jobs)),
            ("MaxMigratingPerNode", settings.most_per_node, on_node),
            ("MaxMigratingPerNamespace", settings.most_per_namespace, in_namespace),
        )
        if any(0 < most <= count and not self._skips(gate) for gate, most, count in counted):
            return True
        return pod.owner is not None and self._workload_is_busy(pod, jobs)

    def has_job(self, pod: Pod) -> bool:
        return any(is_of(job, pod) for job in self._migrations.under_way(arbitrating=False))

    def may_reserve(self, pod: Pod) -> bool:
        """Whether the pod's scheduler knows reservations, where moving begins with one."""
        return self._settings.mode != RESERVATION_FIRST or pod.scheduler_name in self._settings.schedulers

    def _skips(self, gate: str) -> bool:
        return gate in self._settings.skipped

    def _is_protected(self, pod: Pod) -> bool:
        settings, annotations = self._settings, pod.annotations
        if pod.terminating or "kubernetes.io/config.mirror" in annotations:
            return True
        if annotations.get("kubernetes.io/config.source", "api") != "api":
            return True
        if pod.owner is not None and pod.owner.kind == "DaemonSet":
            return True
        bare_stays = not (settings.all_bare_pods or self._skips("BarePods"))
        if not pod.first_owner and bare_stays and not (settings.failed_bare_pods and pod.phase == "Failed"):
            return True
        if not (settings.critical_pods or self._skips("SystemCritical")):
            threshold = None if self._skips("PriorityThreshold") else settings.priority_below
            if pod.priority >= _CRITICAL:
                return True
            if threshold is not None and pod.shape.has_priority and pod.priority >= threshold:
                return True
        selector = None if self._skips("LabelSelector") else settings.selector
        return self._has_kept_volumes(pod) or (selector is not None and not selector.matches(pod.labels))

    def _has_kept_volumes(self, pod: Pod) -> bool:
        settings = self._settings
        keeps_local = not (settings.local_storage_pods or self._skips("LocalStorage"))
        keeps_claims = settings.ignores_claims and not self._skips("PVC")
        if not (keeps_local or keeps_claims):
            return False
        doc = self._view.get(POD, pod.namespace, pod.name) or {}
        volumes = (doc.get("spec") or {}).get("volumes") or ()
        local = any("hostPath" in volume or "emptyDir" in volume for volume in volumes)
        return (keeps_local and local) or (
            keeps_claims and any("persistentVolumeClaim" in volume for volume in volumes)
        )

    def _is_too_small(self, pod: Pod) -> bool:
        """Whether a pod's workload would be gone, or all of it on the way, without the pod."""
        settings = self._settings
        if pod.owner is None or settings.ignores_replicas or self._skips("ExpectedReplicas"):
            return False
        _, replicas = self._facts.workload(pod)
        most = (most_of(replicas, settings.most_per_workload), most_of(replicas, settings.most_unavailable))
        return replicas == 1 or replicas in most

    def _on_node(self, job: Doc, pod: Pod) -> bool:
        other = self._facts.pods.get(pod_key_of(job))
        return other is not None and other.uid != pod.uid and other.node_name == pod.node_name

    def _workload_is_busy(self, pod: Pod, jobs: list[Doc]) -> bool:
        counts_migrating, counts_absent = (
            not self._skips(gate) for gate in ("MaxMigratingPerWorkload", "MaxUnavailablePerWorkload")
        )
        if not (counts_migrating or counts_absent) or pod.owner is None:
            return False
        siblings, replicas = self._facts.workload(pod)
        migrating = set()
        for job in jobs:
            other = self._facts.pods.get(pod_key_of(job))
            if other is not None and other.owner is not None and other.owner.uid == pod.owner.uid:
                migrating.add(other.key)
        settings = self._settings
        if counts_migrating and migrating and len(migrating) >= most_of(replicas, settings.most_per_workload):
            return True
        absent = self._facts.unavailable(siblings) | migrating
        return counts_absent and len(absent) >= most_of(replicas, settings.most_unavailable)


def _has_uid(job: Doc, pod: Pod) -> bool:
    return (job["spec"].get("podRef") or {}).get("uid") == pod.uid


@dataclass(slots=True)
class Evictor:
    """What plugins of one pass ask to evict: it becomes PodMigrationJobs. Limits of the pass count here."""

    settings: DeschedulerSettings
    movable: Movable
    migrations: MigrationIndex
    limiters: ObjectLimiters
    view: DocView
    now: float
    writes: list[Write] = field(default_factory=list)
    _counts: dict[tuple[str, str], int] = field(default_factory=dict)

    def may_evict(self, pod: Pod) -> bool:
        movable = self.movable
        if movable.has_job(pod) or not movable.may_reserve(pod) or movable.never(pod):
            return False
        return not movable.must_wait(pod, arbitrating=False)

    def evict(self, pod: Pod, plugin: str, reason: str, *, dry_run: bool = False) -> bool:
        """Ask for the eviction of a pod; whether that was done (or would have been, where nothing shall happen)."""
        if dry_run:
            self._say(pod, plugin, reason)
            return True
        settings = self.settings
        places = (("node", pod.node_name), ("namespace", pod.namespace), ("", ""))
        limits = (settings.most_per_node, settings.most_per_namespace, settings.most_in_total)
        if any(
            most is not None and self._counts.get(place, 0) >= most for place, most in zip(places, limits, strict=True)
        ):
            return False
        if settings.dry_run or settings.profile.migration.dry_run:
            self._say(pod, plugin, reason)
        elif not self.may_evict(pod) or self.limiters.exceeded(pod, self.now):
            return False
        else:
            job = new_job(pod, plugin, reason, settings.profile.migration, self.now)
            self.migrations.observe(job, gone=False)
            self.writes.append(create(KOORD_MIGRATION_JOB, job))
        for place in places:
            self._counts[place] = self._counts.get(place, 0) + 1
        return True

    def cordon(self, node: Node, *, cordoned: bool) -> None:
        doc = self.view.get(NODE, "", node.name)
        if doc is not None:
            self.writes.append(patch(NODE, doc, {"spec": {"unschedulable": True if cordoned else None}}))

    def _say(self, pod: Pod, plugin: str, reason: str) -> None:
        """A dry run leaves nothing but an Event."""
        doc = self.view.get(POD, pod.namespace, pod.name)
        if doc is not None:
            words = f"{plugin} would evict the pod (dry run): {reason}"
            self.writes.append(event_about(POD, doc, reason="DryRun", message=words, now=self.now, component=COMPONENT))


def new_job(pod: Pod, plugin: str, reason: str, settings: MigrationSettings, now: float) -> Doc:
    """The job that moves a pod."""
    spec: dict[str, object] = {
        "podRef": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
        "mode": settings.mode,
    }
    if settings.ttl:
        spec["ttl"] = format_duration(settings.ttl)
    options: Mapping[str, object] | None = settings.delete_options
    if options is not None:
        spec["deleteOptions"] = dict(options)
    annotations = {REASON: reason, TRIGGER: plugin, CREATED_BY: "fairlead"}
    return {
        "apiVersion": KOORD_MIGRATION_JOB.api_version,
        "kind": KOORD_MIGRATION_JOB.kind,
        "metadata": {"name": f"{pod.uid}-{safe_hash(repr(now))}", "annotations": annotations},
        "spec": spec,
        "status": {"phase": "Pending"},
    }
