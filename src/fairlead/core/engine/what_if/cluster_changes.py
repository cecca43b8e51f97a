"""Changes of the cluster that might let a workload run: a label on nodes, more of a queue or a quota, evictions.

Each function yields ClusterChanges that are worth trying, the least first where one kind has several; least_change.py
tries them. A change is a function of a Trial, because it alters the copy of the cluster and not the workload.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model import kinds
from fairlead.core.model.flow import Happened
from fairlead.core.model.pod import compile_pod
from fairlead.core.model.quantity import format_quantity
from fairlead.koordinator.records.quotas import quota_line, quota_named_for, quotas_by_namespace

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.engine.what_if.workload import Workload
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.table import NodeTable
    from fairlead.koordinator.records.reservations import KoordReservation

Prepare = Callable[["Trial"], None]
MOST_EVICTED = 3
"""How many pods of one node are evicted together at most."""
_EVICTIONS, _NODES_LOOKED_AT, _PODS_LOOKED_AT = 24, 32, 12
"""How many sets of pods are tried, and of how many nodes and pods of a node they are made."""


# ---- labels of nodes ----


def label_wanted(workload: Workload, cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Labels that the pods' node selectors ask for, and that some nodes lack."""
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

    @property
    def target(self) -> str:
        return f"{self.kind.kind.lower()}/{self.name}"

    def prepare(self, more: Mapping[str, int]) -> Prepare:
        def put(trial: Trial) -> None:
            record = trial.scheduler.cluster.object_index.of(self.kind)[self.key]
            limits = {name: limit + more.get(name, 0) for name, limit in self.limits.items()}
            trial.put_record(self.kind, self.key, replace(record, **{self.field: limits}))

        return put

    def says(self, more: Mapping[str, int]) -> str:
        told = [
            f"{name} {format_quantity(self.limits[name] + amount, name)}"
            f" instead of {format_quantity(self.limits[name], name)}"
            for name, amount in more.items()
        ]
        return f"with {self.field} {', '.join(told)} in the {self.kind.kind} {self.name}"

    def patch(self, more: Mapping[str, int]) -> Doc:
        return {"spec": {self.field: {name: format_quantity(self.limits[name] + more[name], name) for name in more}}}

    def command(self, more: Mapping[str, int]) -> str:
        namespace = self.key.rpartition("/")[0]
        where = f" -n {namespace}" if namespace else ""
        patch = json.dumps(self.patch(more), separators=(",", ":"))
        return f"kubectl patch {self.kind.resource} {self.name}{where} --type=merge -p '{patch}'"


def allowance_lines(workload: Workload, cluster: Cluster) -> Iterator[tuple[Allowance, ...]]:
    """For each queue and quota of the workload what it and those above it allow, the own one first; those without a
    limit are left out. All of a line are raised together, because each of them may be the one that is full."""
    queues = cluster.object_index.of(kinds.VC_QUEUE)
    for name in dict.fromkeys(_queues(workload)):
        line: list[Allowance] = []
        above: set[str] = set()
        while name in queues and name not in above:
            above.add(name)
            if queues[name].capability:
                line.append(Allowance(kinds.VC_QUEUE, name, "capability", queues[name].capability))
            name = queues[name].parent
        if line:
            yield tuple(line)
    yield from _quota_lines(workload, cluster)


def _quota_lines(workload: Workload, cluster: Cluster) -> Iterator[tuple[Allowance, ...]]:
    shelf = cluster.object_index.of(kinds.KOORD_ELASTIC_QUOTA)
    quotas = {quota.name: quota for quota in shelf.values()}
    listed = quotas_by_namespace(quotas.values())
    names = (
        quota_named_for(pod["metadata"].get("labels") or {}, pod["metadata"]["namespace"], shelf, listed)
        for pod in workload.pods
    )
    for name in dict.fromkeys(names):
        above = [one for one in quota_line(name, quotas) if one.max]
        line = [Allowance(kinds.KOORD_ELASTIC_QUOTA, f"{one.namespace}/{one.name}", "max", one.max) for one in above]
        if line:
            yield tuple(line)


def raised(line: Sequence[Allowance], more: Mapping[tuple[int, str], int]) -> Prepare:
    """All of a line raised, by position and resource."""

    def put(trial: Trial) -> None:
        for at, one in enumerate(line):
            one.prepare({name: amount for (number, name), amount in more.items() if number == at})(trial)

    return put


def _queues(workload: Workload) -> Iterator[str]:
    for one in workload.objects:
        if one["kind"] == "PodGroup" and one["apiVersion"].startswith("scheduling.volcano.sh/"):
            yield (one.get("spec") or {}).get("queue") or "default"


def asked_by(workload: Workload, cluster: Cluster) -> dict[str, int]:
    """What all pods of a workload ask for together, in base units."""
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
    """The end of a reservation, of a Volcano group, or of a pod with all pods of its owner; None if it is none of them
    or of the workload itself."""
    if who.startswith("Reservation "):
        name = who.partition(" ")[2]
        found = next((one.record for one in cluster.reservations.by_uid.values() if one.record.name == name), None)
        if found is None:
            return None
        command = f"kubectl delete {kinds.KOORD_RESERVATION.resource} {name}"
        return HolderEnd(partial(_end_reservation, found), f"when the Reservation {name} has ended", command)
    own = {*workload.uids, *workload.replaces}
    if who in cluster.object_index.of(kinds.VC_POD_GROUP):
        pods = [one.seen for one in cluster.pods.values() if _group_of(one.seen) == who and one.seen.uid not in own]
        return HolderEnd(lambda trial: _end_group(trial, who, pods), f"when the group {who} has ended")
    holder = cluster.pods_by_key.get(who)
    if holder is None or holder.seen.uid in own:
        return None
    owner = holder.seen.owner
    pods = [
        one.seen for one in cluster.pods.values()
        if one is holder or (owner is not None and one.seen.owner is not None and one.seen.owner.uid == owner.uid)
    ]  # fmt: skip
    named = who if owner is None else f"{owner.kind} {holder.seen.namespace}/{owner.name}"
    return HolderEnd(lambda trial: trial.remove_pods(pods), f"when {named} has ended")


def _group_of(pod: Pod) -> str:
    ref = pod.group_ref
    return f"{pod.namespace}/{ref.name}" if ref is not None else ""


def _end_reservation(reservation: KoordReservation, trial: Trial) -> None:
    """Its reserve pod goes, and with it the room that it holds."""
    cluster = trial.scheduler.cluster
    reserve_pod = cluster.pods.get(reservation.uid)
    if reserve_pod is not None:
        trial.remove_pods([reserve_pod.seen])
    cluster.reservations.drop(reservation.uid)
    cluster.object_index.of(kinds.KOORD_RESERVATION).pop(reservation.name, None)


def _end_group(trial: Trial, key: str, pods: Sequence[Pod]) -> None:
    namespace, _, name = key.partition("/")
    trial.remove_pods(pods)
    trial.remove(kinds.VC_POD_GROUP, {"metadata": {"namespace": namespace, "name": name}})


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
