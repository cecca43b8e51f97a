"""Rows for people of what Kubernetes has: groups, owners of pods, single pods, ResourceQuotas, devices of claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.rows import FamilyRows, QuotaRow, WorkloadRow
from fairlead.core.family import tables
from fairlead.core.model.kinds import RESOURCE_QUOTA
from fairlead.core.model.quantity import format_quantity
from fairlead.core.state.cluster import PodPlace
from fairlead.kube.claims.rows import device_rows

if TYPE_CHECKING:
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.state.cluster import Cluster


def workload_rows(scheduler: Scheduler) -> Iterator[WorkloadRow]:
    """Groups of the APIs that are no family's own, then owners of pods without a group, then pods without either."""
    cluster = scheduler.cluster
    of_others = tables("group_readers").keys()
    for gang in cluster.gangs:
        if gang.api not in of_others and gang.members:
            count, placed = len(gang), gang.scheduled
            yield WorkloadRow("PodGroup", gang.namespace, gang.name, count, placed, max(1, gang.minimum))
    yield from _owners_and_pods(cluster)


def _owners_and_pods(cluster: Cluster) -> Iterator[WorkloadRow]:
    counts: dict[tuple[str, str, str], list[int]] = {}
    for pod_state in cluster.pods.values():
        pod = pod_state.seen
        if pod.group_ref is not None or pod.group or pod.reported_as is not None:
            continue
        owner = pod.owner
        key = ("Pod", pod.namespace, pod.name) if owner is None else (owner.kind, pod.namespace, owner.name)
        count = counts.setdefault(key, [0, 0])
        count[0] += 1
        count[1] += pod_state.place is not PodPlace.PENDING
    for (kind, namespace, name), (pods, placed) in sorted(counts.items()):
        yield WorkloadRow(kind, namespace, name, pods, placed)


def quota_rows(scheduler: Scheduler) -> Iterator[QuotaRow]:
    """ResourceQuotas, if a profile has the scheduler watch them."""
    quotas = scheduler.cluster.object_index.of(RESOURCE_QUOTA)
    for quota in sorted(quotas.values(), key=lambda one: (one.namespace, one.name)):
        amounts = {
            name: {"used": format_quantity(quota.used.get(name, 0), name), "limit": format_quantity(hard, name)}
            for name, hard in sorted(quota.hard.items())
        }
        yield QuotaRow("ResourceQuota", quota.name, amounts, quota.namespace)


ROWS = FamilyRows(workloads=workload_rows, quotas=quota_rows, devices=device_rows)
