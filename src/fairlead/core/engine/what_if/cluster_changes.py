"""Changes of the cluster that might let a workload run: a label on nodes, more of a queue or a quota, evictions.

Each function yields ClusterChanges that are worth trying, the least first where one kind has several; least_change.py
tries them. A change is a function of a Trial, because it alters the copy of the cluster and not the workload.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.what_if.families import what_ifs
from fairlead.core.model.flow import Happened
from fairlead.core.model.pod import compile_pod
from fairlead.core.model.quantity import format_quantity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.table import NodeTable

Prepare = Callable[["Trial"], None]
MOST_EVICTED = 3
"""How many pods of one node are evicted together at most."""
_EVICTIONS, _NODES_LOOKED_AT, _PODS_LOOKED_AT = 24, 32, 12
"""How many sets of pods are tried, and of how many nodes and pods of a node they are made."""


# ---- labels of nodes ----


def label_wanted(workload: Workload, cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Labels that the pods' node selectors request, and that some nodes lack."""
    wanted = {item for pod in workload.pods for item in (pod["spec"].get("nodeSelector") or {}).items()}
    for key, value in sorted(wanted):
        if any(node is not None and node.labels.get(key) != value for node in cluster.table.nodes):
            yield key, value


def with_label(cluster: Cluster, key: str, value: str, nodes: Sequence[str]) -> Prepare:
    """Nodes that have a label, whatever they had before."""

    def prepare(trial: Trial) -> None:
        for name in nodes:
            node = cluster.table.nodes[cluster.table.row_of[name]]
            assert node is not None
            trial.take_node(Happened.MODIFIED, replace(node, labels={**node.labels, key: value}))

    return prepare


def without_label(cluster: Cluster, key: str, value: str) -> list[str]:
    """Names of the nodes that do not have a label."""
    nodes = cluster.table.nodes
    return [name for name, row in cluster.table.row_of.items() if (one := nodes[row]) and one.labels.get(key) != value]


# ---- queues and quotas ----


@dataclass(frozen=True, slots=True)
class Allowance:
    """What a queue or a quota may use at most. `field` of its spec, and of its record, says so."""

    kind: Kind
    key: str
    field: str
    limits: Mapping[str, int]

    @property
    def name(self) -> str:
        return self.key.rpartition("/")[2]

    def prepare(self, more: Mapping[str, int]) -> Prepare:
        def put(trial: Trial) -> None:
            record = trial.scheduler.cluster.object_index.of(self.kind)[self.key]
            limits = {name: limit + more.get(name, 0) for name, limit in self.limits.items()}
            trial.put_record(self.kind, self.key, replace(record, **{self.field: limits}))

        return put

    def says(self, more: Mapping[str, int]) -> str:
        described = [
            f"{name} {format_quantity(self.limits[name] + amount, name)}"
            f" instead of {format_quantity(self.limits[name], name)}"
            for name, amount in more.items()
        ]
        return f"with {self.field} {', '.join(described)} in the {self.kind.kind} {self.name}"

    def patch(self, more: Mapping[str, int]) -> Doc:
        return {"spec": {self.field: {name: format_quantity(self.limits[name] + more[name], name) for name in more}}}

    def command(self, more: Mapping[str, int]) -> str:
        namespace = self.key.rpartition("/")[0]
        where = f" -n {namespace}" if namespace else ""
        patch = json.dumps(self.patch(more), separators=(",", ":"))
        return f"kubectl patch {self.kind.resource} {self.name}{where} --type=merge -p '{patch}'"


def allowance_lines(workload: Workload, cluster: Cluster) -> Iterator[tuple[Allowance, ...]]:
    """`WhatIf.allowances` of all families."""
    for one in what_ifs():
        yield from one.allowances(workload, cluster)


def raised(line: Sequence[Allowance], more: Mapping[tuple[int, str], int]) -> Prepare:
    """All of a line raised, by position and resource."""

    def put(trial: Trial) -> None:
        for at, one in enumerate(line):
            one.prepare({name: amount for (number, name), amount in more.items() if number == at})(trial)

    return put


def asked_by(workload: Workload, cluster: Cluster) -> dict[str, int]:
    """What all pods of a workload request together, in base units."""
    total: dict[str, int] = {}
    for document in workload.pods:
        for name, amount in compile_pod(document, cluster.shapes).shape.request.items():
            total[name] = total.get(name, 0) + amount
    return total


def most_free(cluster: Cluster, resource: str) -> int:
    """The most of a resource that one node has left."""
    table = cluster.table
    return max(0, int(_free(table, resource)[table.alive[: table.high]].max(initial=0)))


# ---- who holds what is short ----


@dataclass(frozen=True, slots=True)
class HolderEnd:
    """The end of somebody who holds what is short: how it is tried, what is said, and a command if it takes one."""

    prepare: Prepare
    says: str
    command: str = ""


def end_of(who: str, cluster: Cluster, workload: Workload) -> HolderEnd | None:
    """The end of what a family knows by that name, or of a pod with all pods of its owner. None if nothing in the
    cluster has that name, or if it belongs to the workload itself."""
    known = next((end for one in what_ifs() if (end := one.end_of(who, cluster, workload)) is not None), None)
    holder = cluster.pods_by_key.get(who)
    if known is not None or holder is None:
        return known
    owner = holder.seen.owner
    pods = [
        one.seen
        for one in cluster.pods.values()
        if one is holder or (owner is not None and one.seen.owner is not None and one.seen.owner.uid == owner.uid)
    ]
    if any(pod.uid in workload.own for pod in pods):
        return None
    named = who if owner is None else f"{owner.kind} {holder.seen.namespace}/{owner.name}"
    return HolderEnd(lambda trial: trial.remove_pods(pods), f"when {named} has ended")


# ---- evictions ----


def evictions(workload: Workload, cluster: Cluster) -> Iterator[tuple[Pod, ...]]:
    """Sets of pods of one node whose room one pod of the workload would need, the smallest sets first, and of equal
    sets those of lower priority."""
    asked = compile_pod(workload.pods[0], cluster.shapes).shape.request
    table = cluster.table
    found: dict[object, tuple[Pod, ...]] = {}
    for row in _nearly_free(table, asked):
        here = [pod for pod in table.pods[row] if _may_go(pod)][:_PODS_LOOKED_AT]
        free = {name: _free(table, name)[row].item() for name in asked}
        for size in range(1, MOST_EVICTED + 1):
            for pods in combinations(here, size):
                if _fits(asked, free, pods):
                    alike = (row, tuple(sorted((pod.shape.priority, id(pod.shape)) for pod in pods)))
                    found.setdefault(alike, pods)
    order = sorted(found.values(), key=lambda pods: (len(pods), sum(p.shape.priority for p in pods), _names(pods)))
    yield from order[:_EVICTIONS]


def evict(trial: Trial, pods: Sequence[Pod]) -> None:
    """Delete pods; controllers make theirs again. They are no victims of the scheduler."""
    for pod in pods:
        trial.delete(pod, again=pod.owner is not None and pod.owner.kind != "Node")
    trial.victims.clear()


def _may_go(pod: Pod) -> bool:
    return not pod.terminating and (pod.owner is None or pod.owner.kind not in ("DaemonSet", "Node"))


def _nearly_free(table: NodeTable, asked: Mapping[str, int]) -> list[int]:
    """Rows where the least is missing for a request."""
    missing = np.zeros(table.high)
    for name, amount in asked.items():
        missing += np.maximum(0, amount - _free(table, name)) / max(amount, 1)
    rows = np.flatnonzero(table.alive[: table.high] & (missing > 0))
    nearest: list[int] = rows[np.argsort(missing[rows], kind="stable")][:_NODES_LOOKED_AT].tolist()
    return nearest


def _free(table: NodeTable, resource: str) -> NDArray[np.int64]:
    high = table.high
    return table.allocatable_column(resource)[:high] - table.requested_column(resource)[:high]


def _fits(asked: Mapping[str, int], free: Mapping[str, int], pods: Sequence[Pod]) -> bool:
    """Whether it fits with these pods gone, and not without one of them."""

    def fits(gone: Sequence[Pod]) -> bool:
        return all(
            amount <= free[name] + sum(pod.shape.request.get(name, 0) for pod in gone) for name, amount in asked.items()
        )

    return fits(pods) and not any(fits([pod for pod in pods if pod is not one]) for one in pods)


def _names(pods: Sequence[Pod]) -> list[str]:
    return [pod.key for pod in pods]
