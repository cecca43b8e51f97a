"""Clusters in which a pod finds no room, and what a search for victims says of them."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from fairlead.engine.cycle.attempt import place
from fairlead.engine.cycle.placement import Blocked, Placed, Search
from fairlead.framework.cycle import Cycle
from fairlead.framework.evaluate import Evaluator
from fairlead.framework.plugin import Plugin
from fairlead.framework.profile import Profile, profile_of
from fairlead.framework.refusals import Refusals
from fairlead.framework.sums import sums_alone
from fairlead.model import kinds
from fairlead.model.flow import Change, Happened
from fairlead.model.pod import Pod
from fairlead.model.reasons import Verdict
from fairlead.plugins.node_affinity import NodeAffinityPlugin
from fairlead.plugins.node_basics import NodeUnschedulable, PrioritySort
from fairlead.plugins.node_ports import NodePorts
from fairlead.plugins.resources import NodeResourcesFit
from fairlead.plugins.victims import VictimNode, budgets_of, select_victims
from fairlead.state.cluster import Cluster
from fairlead.state.touchlog import TouchLog

Doc = dict[str, Any]
NOW = 1_767_229_200.0


def filters(*more: Plugin) -> Profile:
    plugins = [PrioritySort(), NodeUnschedulable(), NodeAffinityPlugin(), NodePorts(), NodeResourcesFit(), *more]
    return profile_of("default-scheduler", plugins)


def node(name: str, *, cpu: int = 4, pods: int = 10) -> Doc:
    return {
        "metadata": {"name": name, "uid": name},
        "status": {"allocatable": {"cpu": str(cpu), "memory": "8Gi", "pods": str(pods)}},
    }


def pod(
    name: str,
    *,
    cpu: str = "1",
    on: str = "",
    priority: int = 0,
    port: int = 0,
    started: str = "",
    terminating: bool = False,
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Doc:
    ports = [{"containerPort": port, "hostPort": port}] if port else []
    metadata: Doc = {"name": name, "uid": name, "namespace": "default", "labels": labels or {}}
    if terminating:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "metadata": metadata,
        "spec": {
            "containers": [{"name": "c", "resources": {"requests": {"cpu": cpu}}, "ports": ports}],
            "nodeName": on,
            "priority": priority,
            **spec,
        },
        "status": {"startTime": started} if started else {},
    }


def budget(name: str, labels: dict[str, str], *, allowed: int = 0, disrupted: Sequence[str] = ()) -> Doc:
    return {
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}},
        "status": {"disruptionsAllowed": allowed, "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z")},
    }


class Arena:
    def __init__(self, *docs: Doc, profile: Profile | None = None) -> None:
        self.cluster = Cluster()
        self.profile = profile or filters()
        self.evaluator = Evaluator(self.profile)
        self.put(kinds.NODE, *docs)

    def put(self, kind: kinds.Kind, *docs: Doc) -> None:
        for doc in docs:
            self.cluster.apply(Change(Happened.ADDED, kind, doc))
        assert not self.cluster.refused, self.cluster.refused

    def pod_state(self, *docs: Doc) -> None:
        self.put(kinds.POD, *docs)

    def challenge(
        self, doc: Doc, *, nominated: dict[int, list[Pod]] | None = None, promises: TouchLog | None = None
    ) -> tuple[Cycle, Refusals] | None:
        """What comes of looking for a place: the cycle and why there is none; None if there is one."""
        applied = self.cluster.apply(Change(Happened.ADDED, kinds.POD, doc))
        assert applied is not None
        cycle = Cycle(pod=applied.new, cluster=self.cluster, profile=self.profile, now=NOW, rng=Random(0))
        answer = place(cycle, self.evaluator, Search(nominated=nominated or {}, promises=promises))
        if isinstance(answer, Placed):
            return None
        assert isinstance(answer, Blocked), answer
        return cycle, answer.refusals

    def search(self, cycle: Cycle, refusals: Refusals, row: int, *, by_sums: bool = False) -> VictimNode | Verdict:
        sums = sums_alone(cycle) if by_sums else None
        return select_victims(cycle, refusals, row, budgets_of(self.cluster), sums)

    def victims(self, doc: Doc, name: str = "n") -> list[str]:
        """Who would have to go from a node, the most important first; or why that does not help."""
        found = self.challenge(doc)
        assert found is not None
        answer = self.search(*found, self.cluster.table.row_of[name])
        return [p.name for p in answer.victims] if isinstance(answer, VictimNode) else list(answer.reasons)
