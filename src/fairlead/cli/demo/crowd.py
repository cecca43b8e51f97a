"""A whole cluster in this process, a load that mostly fits, and a look at where everything went.

Store, controllers, kubelets and scheduler run as they do under `fairlead up`, only without a server in front. Some pods
need what no node has, so that their reasons can be seen.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.cluster.store.store import StoreApi
from fairlead.console.terminal import bars, line, put_table
from fairlead.core.model import kinds
from fairlead.core.model.flow import Reply, Verb, Write
from fairlead.errors import FairleadError
from fairlead.runtime.live import Clock
from fairlead.testing.builders import Builder, deployment, job, node, pod

if TYPE_CHECKING:
    from rich.console import Console

    from fairlead.assembly.cluster import AssembledCluster
    from fairlead.cluster.store.store import Store
    from fairlead.console.terminal import Bar
    from fairlead.core.engine.scheduler import Scheduler

NODES, GPU_NODES = 100, 10
ZONES = ("zone-a", "zone-b", "zone-c")
FITTING, HOPELESS = 500, 12
PATIENCE = 60.0
_GPU = "nvidia.com/gpu"


@dataclass(slots=True)
class DemoTally:
    """What has happened to the pods so far, from the replies to everybody's writes."""

    created: int = 0
    placed: int = 0
    started: set[str] = field(default_factory=set)
    """By name: a kubelet may write the status of a running pod more than once."""
    refused: set[str] = field(default_factory=set)
    first: float = 0.0
    last: float = 0.0

    def note(self, controller: str, reply: Reply) -> None:
        write, doc = reply.write, reply.doc
        if write.kind is not kinds.POD or reply.error is not None or doc is None:
            return
        if write.subresource == "binding":
            self.placed += 1
            self.last = time.monotonic()
        elif write.verb is Verb.CREATE:
            self.created += 1
            self.first = self.first or time.monotonic()
        elif controller == "scheduler":
            self.refused.add(write.name)
        elif doc["status"].get("phase") == "Running" and write.subresource == "status":
            self.started.add(write.name)

    @property
    def running(self) -> int:
        return len(self.started)

    @property
    def complete(self) -> bool:
        return self.running >= FITTING and len(self.refused) >= HOPELESS

    @property
    def per_second(self) -> float:
        return self.placed / (self.last - self.first) if self.last > self.first else 0.0


def show_crowd(console: Console) -> None:
    """Print where FITTING pods go on NODES nodes in three zones, and why HOPELESS pods cannot."""
    clock, assembly = Clock(), ClusterAssembly(SchedulerAssembly())
    cluster = assembly.over(assembly.store(clock.now))
    tally = asyncio.run(_play(cluster, clock))
    assert cluster.scheduler is not None
    _report(console, cluster.store, cluster.scheduler, tally)
    if not tally.complete:
        raise FairleadError(f"not everything happened within {PATIENCE:g} seconds")


async def _play(cluster: AssembledCluster, clock: Clock) -> DemoTally:
    """Nodes, then load, until every pod runs or has been refused."""
    tally = DemoTally()
    runtime = cluster.live(clock=clock, on_write=tally.note)
    running = asyncio.create_task(runtime.run_until_stopped())
    try:
        api = StoreApi(cluster.store)
        for one in (*_nodes(), *_fitting(), *_hopeless()):
            await api.perform(_creation(one))
        with bars(created=FITTING + HOPELESS, placed=FITTING, running=FITTING) as shown:
            await _follow(tally, shown, running)
    finally:
        runtime.stop()
        await running
    return tally


async def _follow(tally: DemoTally, shown: dict[str, Bar], running: asyncio.Task[None]) -> None:
    ends = time.monotonic() + PATIENCE
    while not tally.complete and not running.done() and time.monotonic() < ends:
        await asyncio.sleep(0.02)
        for title, bar in shown.items():
            bar.reach(getattr(tally, title))


def _creation(one: Builder) -> Write:
    doc = one.doc()
    kind = _KINDS[doc["kind"]]
    return Write(Verb.CREATE, kind, doc["metadata"].get("namespace", ""), doc["metadata"]["name"], body=doc)


_KINDS = {kind.kind: kind for kind in (kinds.NODE, kinds.DEPLOYMENT, kinds.JOB)}


def _nodes() -> Sequence[Builder]:
    plain = [node(f"node-{number}").offers(cpu="8", memory="32Gi") for number in range(NODES - GPU_NODES)]
    large = [
        node(f"gpu-{number}").offers({_GPU: "8"}, cpu="32", memory="128Gi").tainted(_GPU) for number in range(GPU_NODES)
    ]
    return [one.in_zone(ZONES[number % len(ZONES)]) for number, one in enumerate([*plain, *large])]


def _fitting() -> Sequence[Builder]:
    """FITTING pods of five kinds."""
    trainer = pod("train").asks({_GPU: "1"}, cpu="1", memory="8Gi").tolerates(_GPU)
    return [
        deployment("web").replicas(180).of(pod("web").asks(cpu="500m", memory="1Gi")),
        deployment("api").replicas(120).of(pod("api").asks(cpu="1", memory="2Gi")),
        deployment("cache").replicas(60).of(pod("cache").asks(cpu="250m", memory="4Gi")),
        job("render").times(100, at_once=100).of(pod("render").asks(cpu="2", memory="1Gi").running_for("1h")),
        deployment("train").replicas(40).of(trainer),
    ]


def _hopeless() -> Sequence[Builder]:
    """HOPELESS pods: larger than any node, for hardware or a zone that is not there."""
    return [
        deployment("giant").replicas(4).of(pod("giant").asks(cpu="64")),
        deployment("cluster-gpu").replicas(3).of(pod("cluster-gpu").asks({_GPU: "16"}).tolerates(_GPU)),
        deployment("archive").replicas(3).of(pod("archive").asks(cpu="1").selects(storage="tape")),
        deployment("elsewhere")
        .replicas(2)
        .of(pod("elsewhere").asks(cpu="1").requires_node("topology.kubernetes.io/zone", "zone-d")),
    ]


def _report(console: Console, store: Store, scheduler: Scheduler, tally: DemoTally) -> None:
    from fairlead.cli.render import pending_table, placement_table, utilisation_table

    pods, nodes = list(store.list(kinds.POD)), list(store.list(kinds.NODE))
    put_table(console, placement_table(pods, nodes, title="Where the pods went"))
    put_table(console, utilisation_table(pods, nodes, title="What the zones hold"))
    put_table(console, pending_table(pods, scheduler.explain, title="Why the others wait"))
    run = sum(one["status"].get("phase") == "Running" for one in pods)
    wait = sum(not one["spec"].get("nodeName") for one in pods)
    placed = f"{run} pods run, {wait} wait. {tally.placed} placed in {tally.last - tally.first:.2f} s: "
    rate = f"{tally.per_second:,.0f} pods per second"
    console.print(line(placed, (rate, "bold"), ", their creation and start included."))
