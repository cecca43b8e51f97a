"""Small rounds for tests: a cluster from documents, opened with some plugins."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

from fairlead.engine.rounds.opening import open_round
from fairlead.framework.profile import Rounds
from fairlead.framework.round import Round, Task
from fairlead.framework.tiers import Enabled, TierPlugin
from fairlead.model import kinds
from fairlead.model.flow import Change, Doc, Happened
from fairlead.model.quirks import Quirks
from fairlead.plugins.volcano.gang import GangTierPlugin
from fairlead.plugins.volcano.priority import Priority
from fairlead.state.cluster import Cluster
from fairlead.testing.builders import Builder, node, pod, podgroup, queue

GROUP = "scheduling.k8s.io/group-name"
ROLE = "volcano.sh/task-spec"


def cluster_with(*objects: Builder) -> Cluster:
    cluster = Cluster()
    for number, one in enumerate((queue("default"), *objects)):
        doc = one.doc()
        doc["metadata"].setdefault("uid", f"uid-{number:03}")
        kind = kinds.Registry().by_kind(doc["apiVersion"], doc["kind"])
        assert kind is not None
        cluster.apply(Change(Happened.ADDED, kind, doc))
    assert not cluster.refused
    return cluster


def room(name: str, cpu: str = "4", **more: str) -> Builder:
    return node(name).offers({"cpu": cpu, "memory": "16Gi", "pods": "110", **more})


def gang(
    name: str, members: int, *, at_least: int, role: str = "", status: Doc | None = None, **asks: str
) -> list[Builder]:
    """A group and its pods, `<name>-0` and so on."""
    group = podgroup(name, at_least).having(queue="default")
    group._doc["status"] = {"phase": "Inqueue", **(status or {})}
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
    tier = tuple(Enabled(plugin) for plugin in (plugins if plugins is not None else (Priority(), GangTierPlugin())))
    rounds = Rounds(actions, (tier,), quirks=Quirks.of(compatible=compatible))
    return open_round(cluster, rounds, uid="r", now=1e9, rng=Random(0))


def task(round: Round, name: str) -> Task:
    return next(t for job in round.jobs.values() for t in job.tasks.values() if t.name == name)
