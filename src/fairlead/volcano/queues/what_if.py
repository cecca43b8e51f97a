"""Queues in questions about what would happen: in which ones a workload counts, what they allow, and other ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.core.engine.what_if.cluster_changes import Allowance
from fairlead.core.engine.what_if.edits import Edit, group_edits
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster


def queues_of(workload: Workload) -> list[str]:
    """The queues of a workload's groups."""
    return list(dict.fromkeys(_queue_of(one) for one in workload.objects if _is_group(one)))


def allowances(workload: Workload, cluster: Cluster) -> Iterator[tuple[Allowance, ...]]:
    """The capability of each queue and of those above it."""
    queues = cluster.object_index.of(VC_QUEUE)
    for name in queues_of(workload):
        line: list[Allowance] = []
        above: set[str] = set()
        while name in queues and name not in above:
            above.add(name)
            if queues[name].capability:
                line.append(Allowance(VC_QUEUE, name, "capability", queues[name].capability))
            name = queues[name].parent
        if line:
            yield tuple(line)


def other_queues(workload: Workload, cluster: Cluster) -> Iterator[Edit]:
    """Each group in each other queue of the cluster."""
    for one in workload.objects:
        if not _is_group(one):
            continue
        for queue in cluster.object_index.of(VC_QUEUE):
            if queue not in (_queue_of(one), "root"):
                yield from group_edits(workload, one, "queue", 25, f"in the queue {queue}", {"spec": {"queue": queue}})


def _is_group(document: Doc) -> bool:
    group, _, _ = str(document["apiVersion"]).partition("/")
    return group == VC_POD_GROUP.group and document["kind"] == VC_POD_GROUP.kind


def _queue_of(group: Doc) -> str:
    return str((group.get("spec") or {}).get("queue") or "default")
