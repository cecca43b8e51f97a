"""Small clusters for rounds with the Volcano profile, without a scheduler around them.

    scenario = RoundScenario(a="8", b="8").queue("default").job("low", priority=10).runs("low", "a", "a", cpu="4")
    round = scenario.job("high", priority=100, least=1).waits("high", 1, cpu="4").act("preempt")
    assert evicted(round) == ["low-1"]
    assert promised(round) == {"high-0": "a"}

`open` gives a round before its first action, to ask plugins; `run` plays the actions of some plugins to the end;
`act` plays named actions with the default tiers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, Self

import numpy as np

from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.profile import profile_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc, Happened
from fairlead.core.model.usage import NodeUsage, UsageBoard
from fairlead.core.state.cluster import Cluster
from fairlead.core.state.nodes import Nodes
from fairlead.kube.binder import DefaultBinder
from fairlead.testing.builders import Builder, pod, podgroup
from fairlead.testing.builders import node as node_builder
from fairlead.volcano.kinds import VC_HYPER_NODE, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.plugins.conformance import Conformance
from fairlead.volcano.plugins.gang import GangTierPlugin
from fairlead.volcano.plugins.nodeorder import NodeOrder
from fairlead.volcano.plugins.predicates import Predicates
from fairlead.volcano.plugins.priority import Priority
from fairlead.volcano.queues.proportion import Proportion
from fairlead.volcano.records.quirks import Quirks
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.arguments import Arguments
from fairlead.volcano.rounds.closing import close_round
from fairlead.volcano.rounds.opening import RoundContext, open_round
from fairlead.volcano.rounds.round import Round, Task, Witness
from fairlead.volcano.rounds.settings import Rounds
from fairlead.volcano.rounds.tiers import Enabled, TierPlugin
from tests.support.documents import GROUP, LONG_AGO
from tests.support.documents import node as node_doc
from tests.support.scenario import Scenario, kind_of, put

Tier = Sequence[TierPlugin | Enabled]
NOW = 1_800_000_000.0
LATER = 2_000_000_000.0
"""When `act` plays: late enough that nothing is waited for that began with the cluster."""
ROLE = "volcano.sh/task-spec"


class RoundScenario(Scenario):
    """Nodes by name with their cores, each with memory and pods enough; queues, groups and their pods."""

    def __init__(self, **cores: str) -> None:
        super().__init__()
        self._pods: Counter[str] = Counter()
        self._docs: dict[str, Doc] = {}
        for name, cpu in cores.items():
            self.node(name, cpu=cpu, memory="1000Gi", pods="1000")

    # ---- documents ----

    def node(
        self,
        name: str,
        labels: Mapping[str, str] | None = None,
        *,
        annotations: Mapping[str, str] | None = None,
        **offered: str,
    ) -> Self:
        """A node of 8 cores and 32Gi, unless told otherwise; `gpu` is short for nvidia.com/gpu."""
        given = {"nvidia.com/gpu" if resource == "gpu" else resource: amount for resource, amount in offered.items()}
        room = {"cpu": "8", "memory": "32Gi", "pods": "110", **given}
        doc = node_doc(name, labels, allocatable=room)
        doc["metadata"]["annotations"] = dict(annotations or {})
        doc["status"]["capacity"] = room
        return self.put(kinds.NODE, doc)

    def queue(
        self, name: str, *, annotations: Mapping[str, str] | None = None, state: str = "Open", **spec: Any
    ) -> Self:
        metadata = {"name": name, "annotations": dict(annotations or {})}
        return self.put(VC_QUEUE, {"metadata": metadata, "spec": spec, "status": {"state": state}})

    def hyper_node(self, name: str, tier: int, *nodes: str) -> Self:
        members = [{"type": "Node", "selector": {"exactMatch": {"name": node}}} for node in nodes]
        return self.put(VC_HYPER_NODE, {"metadata": {"name": name}, "spec": {"tier": tier, "members": members}})

    def group(
        self,
        name: str,
        *,
        phase: str = "Inqueue",
        annotations: Mapping[str, str] | None = None,
        created: str | None = None,
        **spec: Any,
    ) -> Self:
        """A PodGroup of at least one pod in the queue `default`, unless its spec says otherwise."""
        metadata: Doc = {"name": name, "uid": name, "namespace": "default", "annotations": dict(annotations or {})}
        if created:
            metadata["creationTimestamp"] = created
        defaults = {"minMember": 1, "queue": "default"}
        return self.put(VC_POD_GROUP, {"metadata": metadata, "spec": defaults | spec, "status": {"phase": phase}})

    def job(self, name: str, *, priority: int = 0, least: int = 1, **more: Any) -> Self:
        """A PodGroup with a priority class of its own; its pods come by `runs` and `waits`."""
        self.put(kinds.PRIORITY_CLASS, {"metadata": {"name": f"p{priority}"}, "value": priority})
        return self.group(name, created=LONG_AGO, minMember=least, priorityClassName=f"p{priority}", **more)

    def runs(self, job: str, *nodes: str, **options: Any) -> Self:
        """Pods of a job that run, one on each node named."""
        for node in nodes:
            self._add(job, node, **options)
        return self

    def waits(self, job: str, count: int, **options: Any) -> Self:
        """So many pods of a job that wait."""
        for _ in range(count):
            self._add(job, "", **options)
        return self

    def _add(self, job: str, node: str, *, cpu: str = "", labels: Mapping[str, str] | None = None, **more: Any) -> None:
        name = f"{job}-{self._pods[job]}"
        self._pods[job] += 1
        options = {"priority": 0, "labels": {"job": job, **(labels or {})}, "created": LONG_AGO, **more}
        self.pod(name, job, on=node, asks={"cpu": cpu} if cpu else {}, **options)

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
        status: Mapping[str, Any] | None = None,
        created: str | None = None,
        leaving: bool = False,
        container: Mapping[str, Any] | None = None,
        **spec: Any,
    ) -> Self:
        """A pod of a Volcano scheduler that asks for a core and 1Gi unless told otherwise; its uid is its name."""
        resources = {"requests": dict(asks if asks is not None else {"cpu": "1", "memory": "1Gi"})}
        if limits is not None:
            resources["limits"] = dict(limits)
        metadata: Doc = {"name": name, "uid": name, "namespace": namespace, "labels": dict(labels or {})}
        metadata["annotations"] = ({GROUP: group} if group else {}) | dict(annotations or {})
        times = {"creationTimestamp": created, "deletionTimestamp": "2026-01-01T00:00:30Z" if leaving else None}
        metadata |= {field: time for field, time in times.items() if time}
        main = {"name": "main", "resources": resources, **(container or {})}
        body = {"schedulerName": "volcano", "containers": [main], **({"nodeName": on} if on else {}), **spec}
        phase = {"phase": "Running" if on else "Pending", **(status or {})}
        self._docs[name] = {"metadata": metadata, "spec": body, "status": phase}
        return self.put(kinds.POD, self._docs[name])

    # ---- rounds ----

    def open(
        self, *plugins: TierPlugin, compatible: bool = False, actions: Sequence[str] = ("allocate",), now: float = NOW
    ) -> Round:
        """A round of one tier, before its first action."""
        tiers = (tuple(Enabled(plugin) for plugin in plugins),)
        rounds = Rounds(actions=tuple(actions), tiers=tiers, quirks=Quirks.of(compatible=compatible))
        return open_round(self.cluster, rounds, uid="round", now=now, rng=Random(1))

    def run(self, *plugins: TierPlugin, compatible: bool = False, actions: Sequence[str] = ("allocate",)) -> Round:
        """A whole round of one tier, closed."""
        round = self.open(*plugins, compatible=compatible, actions=actions)
        _play(round)
        close_round(round)
        return round

    def act(
        self,
        *actions: str,
        tiers: Sequence[Tier] | None = None,
        compatible: bool = False,
        witness: Witness | None = None,
        **configurations: Mapping[str, Any],
    ) -> Round:
        """These actions with these tiers, or the default ones; the round is left open."""
        listed = default_tiers() if tiers is None else tiers
        rounds = Rounds(
            actions=actions,
            tiers=tuple(tuple(p if isinstance(p, Enabled) else Enabled(p) for p in tier) for tier in listed),
            configurations=configurations,
            quirks=Quirks.of(compatible=compatible),
        )
        round = open_round(
            self.cluster, rounds, uid="round", now=LATER, rng=Random(1), context=RoundContext(witness=witness)
        )
        _play(round)
        return round

    def afterwards(self, round: Round) -> Self:
        """What was evicted is gone, what was bound runs."""
        bound, gone = binds(round), evicted(round)
        round.overlay.hide()
        for name, node in bound.items():
            doc = self._docs[name]
            doc = self._docs[name] = {**doc, "spec": {**doc["spec"], "nodeName": node}, "status": {"phase": "Running"}}
            self.put(kinds.POD, doc, happened=Happened.MODIFIED)
        self.remove(kinds.POD, *(self._docs.pop(name) for name in gone))
        return self


def _play(round: Round) -> None:
    for _ in run_actions(round):
        pass


def default_tiers() -> list[list[TierPlugin | Enabled]]:
    none = Arguments()
    return [
        [Priority(), Enabled(GangTierPlugin(), {"enablePreemptable": False}), Conformance()],
        [Predicates.of(none), Proportion.of(none), NodeOrder.of(none)],
    ]


# ---- rounds over builders' documents ----


def cluster_of(*objects: Builder) -> Cluster:
    """The queue `default` and these objects."""
    scenario = Scenario()
    scenario.put(VC_QUEUE, {"metadata": {"name": "default", "uid": "uid-queue"}, "spec": {"weight": 1}})
    for number, one in enumerate(objects):
        doc = one.doc()
        doc["metadata"].setdefault("uid", f"uid-{number:03}")
        put(scenario.cluster, kind_of(doc), doc)
    return scenario.cluster


def small_node(name: str, cpu: str = "4", **more: str) -> Builder:
    return node_builder(name).offers({"cpu": cpu, "memory": "16Gi", "pods": "110", **more})


def gang(
    name: str, members: int, *, at_least: int, role: str = "", status: Doc | None = None, **asks: str
) -> list[Builder]:
    """A group that was let in, and its pods, `<name>-0` and so on."""
    group = podgroup(name, at_least).in_queue("default").showing(**{"phase": "Inqueue", **(status or {})})
    notes = {GROUP: name, **({ROLE: role} if role else {})}
    pods = [pod(f"{name}-{i}").annotated(notes).scheduled_by("volcano").asks(**asks) for i in range(members)]
    return [group, *pods]


def round_over(
    cluster: Cluster,
    *,
    plugins: Sequence[TierPlugin] | None = None,
    actions: tuple[str, ...] = ("allocate", "backfill"),
    compatible: bool = False,
) -> Round:
    """A round over a cluster, with priority and gang unless plugins are named, before its first action."""
    tier = tuple(Enabled(plugin) for plugin in (plugins if plugins is not None else (Priority(), GangTierPlugin())))
    rounds = Rounds(actions, (tier,), quirks=Quirks.of(compatible=compatible))
    return open_round(cluster, rounds, uid="r", now=1e9, rng=Random(0))


def open_with_cycles(yard: RoundScenario, plugin: Any, *, compatible: bool = False) -> Round:
    """A round before its first action, with a Cycle for every task, to which plugins write what binding needs."""
    round = yard.open(plugin, compatible=compatible)
    profile = profile_of("volcano", [DefaultBinder()])
    for job in round.jobs.values():
        for one in job.tasks.values():
            round.cycles[one.uid] = Cycle(
                pod=one.pod, cluster=round.cluster, profile=profile, now=round.now, rng=round.rng, effects=round.effects
            )
    return round


def measured(**usage: NodeUsage) -> UsageBoard:
    """A board with the measured usage of nodes by name."""
    board = UsageBoard()
    board.put(usage)
    return board


# ---- what came of it ----


def task(round: Round, name: str) -> Task:
    """A task of some job, or one that only takes up room."""
    in_jobs = (one for job in round.jobs.values() for one in job.tasks.values())
    found = next((one for one in in_jobs if one.name == name), None)
    return found or next(one for on in round.resources.on for one in on.values() if one.name == name)


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
    """Who is bound to which node."""
    return {task.name: round.cluster.table.name(row) for task, row in round.outcome.binds}


def evicted(round: Round) -> list[str]:
    """Whom the round evicts for good, in order."""
    return [task.name for task, _ in round.outcome.evictions]


def promised(round: Round) -> dict[str, str]:
    """Who is promised which node."""
    waiting = (task for job in round.jobs.values() for task in job.in_status(TaskStatus.PIPELINED))
    return {task.name: round.cluster.table.name(task.row) for task in waiting}


class StepLog(Witness):
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
