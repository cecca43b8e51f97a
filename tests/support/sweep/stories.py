"""The runs of the sweep: one for each family of controllers and each manner of scheduling, of at most eighty events."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.cluster.housekeeping import needed_beside
from fairlead.core.engine.scheduler import Scheduler
from fairlead.core.model import kinds
from fairlead.core.model.flow import Controller, Doc, DocView
from fairlead.testing.builders import (
    Builder,
    PodBuilder,
    deployment,
    job,
    namespace,
    node,
    pod,
    podgroup,
    priority_class,
    queue,
    replica_set,
)
from fairlead.testing.harness import Harness
from fairlead.testing.scheduler_choice import scheduler_assembly
from fairlead.testing.storage_builders import storage_class
from fairlead.testing.workload_builders import daemon_set, disruption_budget, stateful_set
from tests.support import claims
from tests.support.documents import group
from tests.support.job_cases import FOR_EVER, Case, on, spec, task
from tests.support.koordinator import QUOTA, elastic_quota, gpu_devices, koord_group, koord_reservation
from tests.support.sweep.perturbed import Perturbation, Perturbed

Deed = Callable[[Harness], None]
PAUSE, SETTLE = 40.0, 110.0
"""Seconds after each deed: more than silence lasts, so that what comes of one deed is there before the next, whatever
happened. And seconds more after the last, as long as the longest backoff and Volcano's longest wait."""


@dataclass(frozen=True, eq=False)
class Story:
    """Deeds, one after the other, and whether the scheduler or the controllers are perturbed."""

    name: str
    deeds: Sequence[Deed]
    scheduler: bool = False
    begin: Sequence[Builder | Doc] = ()
    config: str | None = None
    volcano: str | None = None

    def play(self, perturbation: Perturbation | None = None) -> World:
        world = World(self, perturbation)
        for deed in self.deeds:
            deed(world.harness)
            world.harness.run(PAUSE)
        world.harness.run(SETTLE)
        return world


class World:
    """The cluster of a story: one of its processes reads what its watches bring, and is perturbed."""

    def __init__(self, story: Story, perturbation: Perturbation | None) -> None:
        self._story = story
        first = self._assembly()
        made: list[Perturbed] = []

        def perturbed(make: Callable[[DocView], Controller]) -> Callable[[Any], Controller]:
            def build(store: Any) -> Controller:
                made.append(Perturbed(store, make, perturbation))
                return made[0]

            return build

        schedule = perturbed(self._scheduler) if story.scheduler else self._scheduler
        others: list[Any] = [lambda store, at=at: first.first_objects(store)[at] for at in range(len(first.setups))]
        if not story.scheduler:
            others.append(perturbed(self._controllers))
        self.harness = Harness(
            nodes=(),
            schedulers=[schedule],
            controllers=others,
            housekeeping="all" if story.scheduler else "none",
            seed=1,
        )
        self.harness.apply(*story.begin)
        self.harness.run(3)
        self.perturbed = made[0]
        self.perturbed.begin()

    def _assembly(self) -> SchedulerAssembly:
        return scheduler_assembly(self._story.config, volcano=self._story.volcano, plugins=(), seed=1)

    def _scheduler(self, view: DocView) -> Scheduler:
        return self._assembly().scheduler(view)

    def _controllers(self, view: DocView) -> Controller:
        assembly = self._assembly()
        cluster = ClusterAssembly(assembly, seed=1)
        (made,) = cluster.controllers(view, beside=needed_beside([assembly.scheduler(view)]))
        return made

    @property
    def scheduler(self) -> Scheduler:
        one = self.perturbed.inner if self._story.scheduler else self.harness.assembled.schedulers[0]
        assert isinstance(one, Scheduler)
        return one


# ---- kube's controllers ----


def applying(*objects: Builder | Doc) -> Deed:
    def deed(cluster: Harness) -> None:
        cluster.apply(*objects)

    return deed


def deleting(kind: Any, name: str) -> Deed:
    return lambda cluster: cluster.delete(kind, name)


def waiting(cluster: Harness) -> None:
    """Time passes: a node that has failed is given up after 50 s."""


def deleting_first(prefix: str) -> Deed:
    """The first pod of those whose names begin so; the same whatever follows the prefix."""

    def deed(cluster: Harness) -> None:
        names = sorted(name for name in cluster.phases() if name.startswith(prefix))
        if names:
            cluster.delete(kinds.POD, names[0])

    return deed


def eight(count: int) -> list[Builder]:
    """Nodes of eight cores."""
    return [node(f"node-{at}") for at in range(count)]


def web(image: str, count: int) -> Builder:
    return deployment("web").replicas(count).of(pod("web").asks(cpu="1").from_image(image))


def quota(space: str, **most: str) -> Doc:
    metadata = {"name": "q", "namespace": space}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": most}}


def with_disks(count: int) -> Builder:
    return stateful_set("db").replicas(count).claiming("1Gi", storage_class="disks")


SOON_GONE = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 5,
}
WORKLOADS = Story(
    "a Deployment is rolled out and scaled",
    (applying(web("a:1", 1)), applying(web("a:2", 1)), deleting_first("web-"), applying(web("a:2", 2))),
    begin=eight(2),
)
STATEFUL = Story(
    "a StatefulSet with disks loses a pod and is scaled down",
    (
        applying(with_disks(2), disruption_budget("db").selecting({"app": "db"})),
        deleting(kinds.POD, "db-0"),
        applying(with_disks(1)),
    ),
    begin=[*eight(1), storage_class("disks")],
)
JOBS = Story(
    "a Job of which a pod fails, in a namespace that goes",
    (
        applying(
            namespace("team"),
            quota("team", pods="4"),
            job("work", "team").times(2).of(pod("work", "team").running_for("2s")),
            job("bad", "team").times(1).having(backoffLimit=0).of(pod("bad", "team").running_for("1s").exiting(3)),
        ),
        deleting(kinds.NAMESPACE, "team"),
        applying(job("more").times(1).of(pod("more").running_for("2s"))),
    ),
    begin=eight(1),
)
NODES = Story(
    "a node fails under a DaemonSet and a ReplicaSet, and goes",
    (
        applying(daemon_set("agent"), replica_set("web").replicas(1).of(pod("web").having(tolerations=[SOON_GONE]))),
        applying(node("node-0").failing()),
        waiting,
        deleting(kinds.NODE, "node-0"),
    ),
    begin=eight(2),
)

# ---- kube's manner ----


def big(name: str, cpu: str = "5") -> PodBuilder:
    return pod(name).asks(cpu=cpu)


def of_native(name: str) -> Builder:
    return big(name).having(schedulingGroup={"podGroupName": "gang"})


GANGS = Story(
    "a gang waits for room, loses a member and gets another",
    (
        applying(group("gang", 3), *(of_native(f"gang-{at}") for at in range(3))),
        applying(node("more")),
        deleting(kinds.POD, "gang-1"),
        applying(of_native("gang-3"), big("alone")),
    ),
    scheduler=True, begin=eight(2),
)  # fmt: skip
PREEMPTION = Story(
    "pods make room for more important ones",
    (
        applying(*(big(f"low-{at}") for at in range(2))),
        applying(*(big(f"high-{at}").of_priority("high") for at in range(2))),
        applying(node("more")),
        applying(big("late")),
        deleting(kinds.POD, "high-0"),
    ),
    scheduler=True, begin=[*eight(2), priority_class("high", 1000)],
)  # fmt: skip
CLAIMS = Story(
    "devices are claimed, given back and claimed again",
    (
        applying(claims.template("one", claims.devices()), claims.claim("shared", claims.devices())),
        applying(*(claims.pod(f"p{at}", of="one") for at in range(2))),
        applying(*(claims.pod(f"s{at}", shared="shared") for at in range(2))),
        deleting(kinds.POD, "p0"),
        applying(claims.gpus("node-1", 1)),
        applying(claims.pod("p2", of="one")),
    ),
    scheduler=True, begin=[*eight(2), claims.device_class(), claims.gpus("node-0", 2)],
)  # fmt: skip

# ---- Volcano's ----

WORK = spec(task("w", 2, run="3s"), plugins={"svc": [], "env": []})
FAILING = spec(
    task("bad", code=3), task("long", run=FOR_EVER), policies=on("PodFailed", "TerminateJob"), plugins={"svc": []}
)
VOLCANO_JOBS = Story(
    "a Volcano Job that completes and one that is terminated",
    (
        applying(Case("work", WORK, "Completed").document("default")),
        applying(Case("failing", FAILING, "Terminated").document("default")),
    ),
    begin=eight(2), volcano="shipped",
)  # fmt: skip


def volcano_gang(name: str, count: int, of: str) -> list[Builder]:
    members = [pod(f"{name}-{at}").asks(cpu="3").scheduled_by("volcano").in_group(name) for at in range(count)]
    return [podgroup(name, count).in_queue(of), *members]


ROUNDS = Story(
    "gangs of two queues, one of which is full",
    (
        applying(queue("small").capped_at(cpu="6"), queue("large")),
        applying(*volcano_gang("first", 2, "small")),
        applying(*volcano_gang("second", 1, "small")),
        applying(*volcano_gang("other", 3, "large")),
        deleting(kinds.POD, "first-0"),
        applying(node("more")),
    ),
    scheduler=True, begin=eight(2), volcano="shipped",
)  # fmt: skip

# ---- Koordinator's ----


def koord(name: str, quota: str = "team", **asks: str) -> PodBuilder:
    return pod(name).asks(asks).labelled({QUOTA + "name": quota}).scheduled_by("koord-scheduler")


def koord_member(name: str) -> Builder:
    return koord(name, cpu="1").labelled({"pod-group.scheduling.sigs.k8s.io": "g"})


GPU_NODE = node("gpu").offers(
    {"koordinator.sh/gpu": "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"}
)
TEAM = elastic_quota("team", least={"cpu": "1"}, most={"cpu": "5"})
KOORDINATOR = Story(
    "quotas, shared cards, a gang and a reservation",
    (
        applying(*(koord(f"card-{at}", **{"koordinator.sh/gpu": "60"}) for at in range(3))),
        applying(koord_group("g", least=2), koord_member("g-0"), koord_member("g-1")),
        applying(koord_reservation("r", request={"cpu": "2"}, owners={"app": "owner"}, ttl="24h")),
        applying(koord("owner", cpu="2").labelled(app="owner")),
        applying(koord("over", cpu="3")),
        deleting(kinds.POD, "card-0"),
        deleting(kinds.POD, "g-0"),
    ),
    scheduler=True, config="koordinator",
    begin=[GPU_NODE, *eight(1), gpu_devices("gpu", count=2), TEAM],
)  # fmt: skip

STORIES = (
    WORKLOADS, STATEFUL, JOBS, NODES, GANGS, PREEMPTION, CLAIMS, VOLCANO_JOBS, ROUNDS, KOORDINATOR,
)  # fmt: skip
