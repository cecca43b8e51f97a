"""Quotas in questions about what would happen: what the quotas of a workload's pods allow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.core.engine.what_if.cluster_changes import Allowance
from fairlead.koordinator.kinds import KOORD_ELASTIC_QUOTA
from fairlead.koordinator.records.quotas import quota_line, quota_named_for, quotas_by_namespace

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.state.cluster import Cluster


def allowances(workload: Workload, cluster: Cluster) -> Iterator[tuple[Allowance, ...]]:
    """The maximum of each quota and of those above it."""
    kind_index = cluster.object_index.of(KOORD_ELASTIC_QUOTA)
    quotas = {quota.name: quota for quota in kind_index.values()}
    listed = quotas_by_namespace(quotas.values())
    names = (
        quota_named_for(pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"], kind_index, listed)
        for pod in workload.pods
    )
    for name in dict.fromkeys(names):
        above = [one for one in quota_line(name, quotas) if one.max]
        line = [Allowance(KOORD_ELASTIC_QUOTA, f"{one.namespace}/{one.name}", "max", one.max) for one in above]
        if line:
            yield tuple(line)
