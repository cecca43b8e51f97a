"""Square: a small cluster for rounds, without a scheduler around it: who runs where, who waits, and what a round did.

square = Square(a="8", b="8").queue("default").job("low", priority=10).runs("low", "a", "a", cpu="4")
round = square.job("high", priority=100, least=1).waits("high", 1, cpu="4").round("preempt")
evicted(round) == ["low-1"]; promised(round) == {"high-0": "a"}
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Self

from fairlead.engine.rounds.action_table import run_actions
from fairlead.engine.rounds.opening import open_round
from fairlead.framework.profile import Rounds
from fairlead.framework.round import Round, Witness
from fairlead.framework.tiers import Enabled, TierPlugin
from fairlead.model import kinds
from fairlead.model.flow import Change, Doc, Happened
from fairlead.model.kinds import Kind
from fairlead.model.quirks import Quirks
from fairlead.model.tasks import TaskStatus
from fairlead.plugins.volcano.arguments import Arguments
from fairlead.plugins.volcano.conformance import Conformance
from fairlead.plugins.volcano.gang import GangTierPlugin
from fairlead.plugins.volcano.nodeorder import NodeOrder
from fairlead.plugins.volcano.predicates import Predicates
from fairlead.plugins.volcano.priority import Priority
from fairlead.plugins.volcano.queues.proportion import Proportion
from fairlead.state.cluster import Cluster

Tier = Sequence[TierPlugin | Enabled]
GROUP = "scheduling.k8s.io/group-name"
NOW = 2_000_000_000.0


class Square:
    """Nodes by name with their cores; each has memory and pods enough."""

    def __init__(self, **cores: str) -> None:
        self.cluster = Cluster()
        self._pods: Counter[str] = Counter()
        self._docs: dict[str, Doc] = {}
        self._queue_of: dict[str, str] = {}
        for name, cpu in cores.items():
            self.node(name, cpu=cpu)

    def put(self, kind: Kind, doc: Doc, happened: Happened = Happened.ADDED) -> Self:
        metadata = {"uid": doc["metadata"]["name"], "creationTimestamp": "2026-01-01T00:00:00Z", **doc["metadata"]}
        self.cluster.apply(Change(happened, kind, {"apiVersion": kind.api_version, **doc, "metadata": metadata}))
        assert not self.cluster.refused, self.cluster.refused
        return self

    def node(self, name: str, labels: Mapping[str, str] | None = None, **offered: str) -> Self:
        listed = {"memory": "1000Gi", "pods": "1000", **offered}
        metadata = {"name": name, "labels": {"kubernetes.io/hostname": name, **(labels or {})}}
        return self.put(kinds.NODE, {"metadata": metadata, "status": {"allocatable": listed, "capacity": listed}})

    def queue(self, name: str, **spec: Any) -> Self:
        return self.put(kinds.VC_QUEUE, {"metadata": {"name": name}, "spec": spec, "status": {"state": "Open"}})

    def hyper_node(self, name: str, tier: int, *nodes: str) -> Self:
        members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
        return self.put(kinds.VC_HYPER_NODE, {"metadata": {"name": name}, "spec": {"tier": tier, "members": members}})

    def job(
        self,
        name: str,
        *,
        priority: int = 0,
        least: int = 1,
        queue: str = "default",
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> Self:
        self.put(kinds.PRIORITY_CLASS, {"metadata": {"name": f"p{priority}"}, "value": priority})
        body = {"minMember": least, "queue": queue, "priorityClassName": f"p{priority}", **spec}
        metadata = {"name": name, "namespace": "default", "annotations": dict(annotations or {})}
        return self.put(kinds.VC_POD_GROUP, {"metadata": metadata, "spec": body, "status": {"phase": "Inqueue"}})

    def runs(self, job: str, *nodes: str, **options: Any) -> Self:
        """Pods of a job that run, one on each node named."""
        for node in nodes:
            self._pod(job, node, **options)
        return self

    def waits(self, job: str, count: int, **options: Any) -> Self:
        for _ in range(count):
            self._pod(job, "", **options)
        return self

    def _pod(
        self,
        job: str,
        node: str,
        *,
        cpu: str = "",
        priority: int = 0,
        annotations: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
        status: Mapping[str, Any] | None = None,
        leaving: bool = False,
        **spec: Any,
    ) -> None:
        name = f"{job}-{self._pods[job]}"
        self._pods[job] += 1
        container = {
            "name": "main",
            "resources": {"requests": {"cpu": cpu} if cpu else {}},
            **spec.pop("container", {}),
        }
        body: Doc = {"containers": [container], "schedulerName": "volcano", "priority": priority, **spec}
        phase = {"phase": "Running" if node else "Pending", **(status or {})}
        if node:
            body["nodeName"] = node
        metadata: Doc = {"name": name, "namespace": "default", "annotations": {GROUP: job, **(annotations or {})}}
        if leaving:
            metadata["deletionTimestamp"] = "2026-01-01T00:00:30Z"
        metadata["labels"] = {"job": job, **(labels or {})}
        self._docs[name] = {"metadata": metadata, "spec": body, "status": phase}
        self.put(kinds.POD, self._docs[name])

    # ---- rounds ----

    def round(
        self,
        *actions: str,
        tiers: Sequence[Tier] | None = None,
        compatible: bool = False,
        witness: Witness | None = None,
        **configurations: Mapping[str, Any],
    ) -> Round:
        listed = default_tiers() if tiers is None else tiers
        rounds = Rounds(
            actions=actions,
            tiers=tuple(tuple(p if isinstance(p, Enabled) else Enabled(p) for p in tier) for tier in listed),
            configurations=configurations,
            quirks=Quirks.of(compatible=compatible),
        )
        round = open_round(self.cluster, rounds, uid="round", now=NOW, rng=Random(1), witness=witness)
        for _ in run_actions(round):
            pass
        return round

    def afterwards(self, round: Round) -> Self:
        """What was evicted is gone, what was bound runs."""
        bound = {task.name: self.cluster.table.name(row) for task, row in round.outcome.binds}
        gone = evicted(round)
        round.overlay.hide()
        for name, node in bound.items():
            doc = self._docs[name]
            doc = self._docs[name] = {**doc, "spec": {**doc["spec"], "nodeName": node}, "status": {"phase": "Running"}}
            self.put(kinds.POD, doc, Happened.MODIFIED)
        for name in gone:
            self.put(kinds.POD, self._docs.pop(name), Happened.DELETED)
        return self


def default_tiers() -> list[list[TierPlugin | Enabled]]:
    none = Arguments()
    return [
        [Priority(), Enabled(GangTierPlugin(), {"enablePreemptable": False}), Conformance()],
        [Predicates.of(none), Proportion.of(none), NodeOrder.of(none)],
    ]


def evicted(round: Round) -> list[str]:
    """Whom the round evicts for good, in order."""
    return [task.name for task, _ in round.outcome.evictions]


def promised(round: Round) -> dict[str, str]:
    """Who is promised which node."""
    waiting = (task for job in round.jobs.values() for task in job.in_status(TaskStatus.PIPELINED))
    return {task.name: round.cluster.table.name(task.row) for task in waiting}


class Diary(Witness):
    """Who was tried for whom, and how trials ended."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def evicted(self, task: Any, preemptor: Any) -> None:
        self.lines.append(f"evict {task.name}")

    def placed(self, task: Any, *, pipelined: bool) -> None:
        self.lines.append(f"place {task.name}")

    def committed(self) -> None:
        self.lines.append("commit")

    def discarded(self) -> None:
        self.lines.append("discard")
