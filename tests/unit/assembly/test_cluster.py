"""A ClusterAssembly over a Store, live and on virtual time: the same controllers, told apart by nobody."""

from __future__ import annotations

import asyncio
from random import Random

from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.schedulers import SchedulerAssembly, default_scheduler
from fairlead.cli.demo.crowd import DemoTally
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import Reply, Verb, Write
from fairlead.core.model.kinds import DEPLOYMENT, NODE, POD
from fairlead.runtime.live import Clock, LiveRuntime
from fairlead.runtime.virtual import VirtualClock
from fairlead.runtime.worlds import Remote
from fairlead.testing.builders import deployment, node, pod


def create(store: Store, kind: object, doc: dict[str, object]) -> None:
    metadata: dict[str, str] = doc["metadata"]  # type: ignore[assignment]
    store.perform(Write(Verb.CREATE, kind, metadata.get("namespace", ""), metadata["name"], doc))  # type: ignore[arg-type]


async def run_until(runtime: LiveRuntime, store: Store, phase: str, count: int) -> None:
    """Drive it until so many pods are placed and in a phase."""
    changed = asyncio.Event()
    store.subscribe(POD, wake=changed.set)
    running = asyncio.create_task(runtime.run_until_stopped())
    try:
        async with asyncio.timeout(30):
            while _placed(store, phase) < count:
                await changed.wait()
                changed.clear()
    finally:
        runtime.stop()
        await running


def _placed(store: Store, phase: str) -> int:
    return sum(bool(doc["spec"].get("nodeName")) and doc["status"]["phase"] == phase for doc in store.list(POD))


async def test_a_live_cluster_makes_pods_of_a_deployment_and_runs_them() -> None:
    clock, assembly = Clock(), ClusterAssembly(SchedulerAssembly())
    store = assembly.store(clock.now)
    create(store, NODE, node("n").doc())
    create(store, DEPLOYMENT, deployment("web").replicas(3).doc())
    await run_until(assembly.over(store).live(clock=clock), store, "Running", 3)


async def test_a_scheduler_alone_only_places_and_leaves_running_to_kubelets() -> None:
    clock = Clock()
    store = Store(clock=clock.now, rng=Random(1))
    create(store, NODE, node("n").doc())
    create(store, POD, pod("p").doc())
    await run_until(LiveRuntime(Remote(StoreApi(store)), [default_scheduler()], clock=clock), store, "Pending", 1)


def test_a_virtual_cluster_does_the_same_without_waiting() -> None:
    clock, assembly = VirtualClock(1_767_225_600.0), ClusterAssembly(SchedulerAssembly(), seed=1)
    store = assembly.store(clock)
    create(store, NODE, node("n").doc())
    create(store, DEPLOYMENT, deployment("web").replicas(3).doc())
    assembly.over(store).virtual(clock).run(until=clock.now + 5)
    assert _placed(store, "Running") == 3


def test_a_pod_of_the_demo_runs_once_however_often_its_status_is_written() -> None:
    tally, running = DemoTally(), {"status": {"phase": "Running"}}
    write = Write(Verb.PATCH, POD, "default", "a", subresource="status")
    for _ in range(2):
        tally.note("kubelet", Reply(write, running))
    assert tally.running == 1
