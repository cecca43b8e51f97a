"""The order in which waiting PodMigrationJobs are let in.

The youngest job first, then by their pods in the order of what costs least (pod_order.py); jobs for the pods of one
batch Job stand together, those of a batch Job with more pods on the way in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.times import seconds_of
from fairlead.koordinator.descheduling.evictable import has_passed, is_of, phase_of, pod_key_of
from fairlead.koordinator.descheduling.pod_order import in_order

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.descheduling.evictable import MigrationIndex
    from fairlead.koordinator.descheduling.facts import ClusterFacts


def arbitration_order(jobs: Sequence[Doc], facts: ClusterFacts, migrations: MigrationIndex) -> list[Doc]:
    pods = {job["metadata"]["name"]: facts.pods.get(pod_key_of(job)) for job in jobs}
    found = sorted(jobs, key=lambda job: (-seconds_of(job["metadata"]["creationTimestamp"]), job["metadata"]["name"]))
    rank = {pod.key: at for at, pod in enumerate(in_order(pod for pod in pods.values() if pod is not None))}
    found.sort(key=lambda job: rank.get(pod_key_of(job), -1))
    places = _together(found, pods)
    found.sort(key=lambda job: places[job["metadata"]["name"]])
    moving = _moving(facts, migrations)
    found.sort(key=lambda job: -moving.get(_batch_job(pods[job["metadata"]["name"]]), 0))
    return found


def _together(jobs: Sequence[Doc], pods: Mapping[str, Pod | None]) -> dict[str, int]:
    """The place of each job: that of the first one for the same batch Job."""
    first: dict[str, int] = {}
    places = {}
    for at, job in enumerate(jobs):
        name = job["metadata"]["name"]
        owner = _batch_job(pods[name])
        places[name] = first.setdefault(owner, at) if owner else at
    return places


def _batch_job(pod: Pod | None) -> str:
    return pod.owner.uid if pod is not None and pod.owner is not None and pod.owner.kind == "Job" else ""


def _moving(facts: ClusterFacts, migrations: MigrationIndex) -> dict[str, int]:
    """How many pods of each batch Job are on the way."""
    counts: dict[str, int] = {}
    for job in migrations.jobs.values():
        pod = facts.pods.get(pod_key_of(job))
        owner = _batch_job(pod)
        if pod is not None and owner and is_of(job, pod) and (has_passed(job) or phase_of(job) == "Running"):
            counts[owner] = counts.get(owner, 0) + 1
    return counts
