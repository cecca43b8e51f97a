"""A yard: nodes, queues, groups and pods said in a few words, and a round over them that asks some plugins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random
from typing import Any

import numpy as np

from fairlead.engine.rounds.action_table import run_actions
from fairlead.engine.rounds.closing import close_round
from fairlead.engine.rounds.opening import open_round
from fairlead.framework.profile import Rounds
from fairlead.framework.round import Round, Task
from fairlead.framework.tiers import Enabled, TierPlugin
from fairlead.model import kinds
from fairlead.model.flow import Change, Happened
from fairlead.model.kinds import Kind
from fairlead.model.quirks import Quirks
from fairlead.state.cluster import Cluster
from fairlead.state.nodes import Nodes

Doc = dict[str, Any]
NOW = 1_800_000_000.0
GROUP = "scheduling.k8s.io/group-name"


class Yard:
    def __init__(self) -> None:
        self.cluster = Cluster()

    def put(self, kind: Kind, doc: Doc) -> None:
        self.cluster.apply(Change(Happened.ADDED, kind, {"apiVersion": kind.api_version, "kind": kind.kind, **doc}))
        assert not self.cluster.refused, self.cluster.refused

    def node(self, name: str, labels: Mapping[str, str] | None = None, **allocatable: str) -> Yard:
        room = {"cpu": "8", "memory": "32Gi", "pods": "110"} | _spelt(allocatable)
        self.put(
            kinds.NODE, {"metadata": {"name": name, "labels": dict(labels or {})}, "status": {"allocatable": room}}
        )
        return self

    def annotated_node(self, name: str, annotations: Mapping[str, str], **allocatable: str) -> Yard:
        room = {"cpu": "8", "memory": "32Gi", "pods": "110"} | _spelt(allocatable)
        metadata = {"name": name, "annotations": dict(annotations)}
        self.put(kinds.NODE, {"metadata": metadata, "status": {"allocatable": room}})
        return self

    def queue(
        self, name: str, *, annotations: Mapping[str, str] | None = None, state: str = "Open", **spec: Any
    ) -> Yard:
        metadata = {"name": name, "annotations": dict(annotations or {})}
        self.put(kinds.VC_QUEUE, {"metadata": metadata, "spec": spec, "status": {"state": state}})
        return self

    def group(
        self,
        name: str,
        *,
        phase: str = "Inqueue",
        annotations: Mapping[str, str] | None = None,
        created: str | None = None,
        **spec: Any,
    ) -> Yard:
        metadata: Doc = {"name": name, "namespace": "default", "annotations": dict(annotations or {})}
        if created:
            metadata["creationTimestamp"] = created
        defaults = {"minMember": 1, "queue": "default"}
        self.put(kinds.VC_POD_GROUP, {"metadata": metadata, "spec": defaults | spec, "status": {"phase": phase}})
        return self

    def pod(
        self,
        name: str,
        group: str = "",
        *,
        on: str = "",
        asks: Mapping[str, str] | None = None,
        limits: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        annotations: Mapping[str, str] | None = None,
        namespace: str = "default",
        status: Doc | None = None,
        **spec: Any,
    ) -> Yard:
        said = {GROUP: group} if group else {}
        resources = {"requests": dict(asks if asks is not None else {"cpu": "1", "memory": "1Gi"})}
        if limits is not None:
            resources["limits"] = dict(limits)
        container = {"name": "main", "resources": resources}
        metadata = {"name": name, "uid": name, "namespace": namespace, "labels": dict(labels or {})}
        metadata["annotations"] = said | dict(annotations or {})
        body = {"schedulerName": "volcano", "containers": [container], **({"nodeName": on} if on else {}), **spec}
        self.put(
            kinds.POD,
            {"metadata": metadata, "spec": body, "status": {"phase": "Running" if on else "Pending"} | (status or {})},
        )
        return self

    # ---- asking ----

    def round(
        self, *plugins: TierPlugin, compatible: bool = False, actions: Sequence[str] = ("allocate",), now: float = NOW
    ) -> Round:
        tiers = (tuple(Enabled(plugin) for plugin in plugins),)
        rounds = Rounds(actions=tuple(actions), tiers=tiers, quirks=Quirks.of(compatible=compatible))
        return open_round(self.cluster, rounds, uid="round", now=now, rng=Random(1))

    def run(self, *plugins: TierPlugin, compatible: bool = False, actions: Sequence[str] = ("allocate",)) -> Round:
        """A whole round."""
        round = self.round(*plugins, compatible=compatible, actions=actions)
        for _ in run_actions(round):
            pass
        close_round(round)
        return round


def _spelt(allocatable: Mapping[str, str]) -> dict[str, str]:
    return {"nvidia.com/gpu" if name == "gpu" else name: amount for name, amount in allocatable.items()}


def task(round: Round, name: str) -> Task:
    """A task of some job, or one that only takes up room."""
    for job in round.jobs.values():
        if name in job.tasks:
            return job.tasks[name]
    return next(one for on in round.resources.on for one in on.values() if one.uid == name)


def scores(plugin: TierPlugin, round: Round, name: str) -> dict[str, float]:
    table = round.cluster.table
    given = plugin.node_order(task(round, name), Nodes(table, round.rows))
    return {table.name(int(row)): float(score) for row, score in zip(round.rows, given, strict=True)}


def refusals(plugin: TierPlugin, round: Round, name: str) -> dict[str, list[str]]:
    """By node, why it is refused; all of them final."""
    table = round.cluster.table
    found: dict[str, list[str]] = {}
    for reject in plugin.predicate(task(round, name), Nodes(table, round.rows)):
        for row in round.rows[np.flatnonzero(reject.rows)]:
            assert reject.reason.final
            found.setdefault(table.name(int(row)), []).append(reject.reason.text)
    return found


def binds(round: Round) -> dict[str, str]:
    return {task.name: round.cluster.table.name(row) for task, row in round.outcome.binds}
