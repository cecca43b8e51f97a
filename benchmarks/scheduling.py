"""The scheduler alone, and the virtual runtime alone: no sockets, no disk, nobody else's time.

`SchedulingBasic` is scheduler_perf's workload of that name with every node scored: nodes of 4 cores and 32Gi, pods of
one shape. Changes and replies are handed to `Scheduler.step` as a runtime would, the watch's confirmation of every
binding included; only the time inside `step` counts.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from benchmarks.row import Row
from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.schedulers import SchedulerAssembly, default_scheduler
from fairlead.core.model.flow import Change, Doc, Happened, Reply, Verb, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.runtime.virtual import VirtualClock
from fairlead.testing.builders import node, pod

if TYPE_CHECKING:
    from fairlead.cluster.store.store import Store

NODES, PODS = 5_000, 10_000
LIVES, HOSTS, ARRIVALS = 3_000, 50, 200
START = 1_767_225_600.0


def basic_nodes(count: int) -> list[Change]:
    offered = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    zones = ("zone-a", "zone-b", "zone-c")
    docs = [node(f"node-{number}").offers(offered).in_zone(zones[number % 3]).doc() for number in range(count)]
    return [Change(Happened.ADDED, NODE, _stored(doc, number)) for number, doc in enumerate(docs)]


def basic_pods(count: int) -> list[Doc]:
    template = pod("template").asks(cpu="100m", memory="500Mi").doc()
    return [
        _stored({**template, "metadata": {**template["metadata"], "name": f"pod-{number}"}}, number)
        for number in range(count)
    ]


def _stored(doc: Doc, number: int) -> Doc:
    """With what a server would have added."""
    extra = {
        "uid": f"{doc['kind']}-{number}",
        "resourceVersion": str(number + 1),
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    return {**doc, "metadata": {**doc["metadata"], **extra}, "status": doc.get("status") or {"phase": "Pending"}}


def bench_basic() -> Iterable[Row]:
    scheduler = default_scheduler()
    pods = basic_pods(PODS)
    scheduler.step(START, basic_nodes(NODES), ())
    by_name = {doc["metadata"]["name"]: doc for doc in pods}
    changes: Sequence[Change] = [Change(Happened.ADDED, POD, doc) for doc in pods]
    replies: list[Reply] = []
    bound, spent, used = 0, 0.0, 0.0
    while bound < PODS:
        start, start_cpu = time.perf_counter(), time.process_time()
        writes = scheduler.step(START + spent, changes, replies)
        spent, used = spent + time.perf_counter() - start, used + time.process_time() - start_cpu
        bindings = [write for write in writes if write.subresource == "binding"]
        if not (bindings or changes or replies):
            raise AssertionError(f"{PODS - bound} pods were not placed")
        bound += len(bindings)
        replies = [Reply(write, write.body) for write in writes]
        changes = [Change(Happened.MODIFIED, POD, _bound(by_name[write.name], write)) for write in bindings]
    judged = sum(evaluator.rows_judged for evaluator in scheduler.pods.evaluators.values())
    note = f"core only, every node scored; {judged / PODS:,.1f} rows judged and {used / PODS * 1e6:,.0f} µs CPU per pod"
    yield Row("SchedulingBasic/5000Nodes", PODS / spent, "pods/s", 5_000, nodes=NODES, pods=PODS, note=note)


def _bound(doc: Doc, write: Write) -> Doc:
    return {**doc, "spec": {**doc["spec"], "nodeName": write.body["target"]["name"]}}


class Stopwatch:
    """The time spent inside some calls, counted once where they are nested."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.calls = 0
        self._inside = False

    def around(self, call: Any) -> Any:
        def timed(*arguments: Any, **named: Any) -> Any:
            if self._inside:
                return call(*arguments, **named)
            self.calls += 1
            self._inside, start = True, time.perf_counter()
            try:
                return call(*arguments, **named)
            finally:
                self.seconds += time.perf_counter() - start
                self._inside = False

        return timed

    def own_cost(self, calls: int = 100_000) -> float:
        """What it takes by itself for each call, apart from what it counts."""
        other = Stopwatch()
        nothing = other.around(lambda *_: None)
        start = time.perf_counter()
        for _ in range(calls):
            nothing()
        return (time.perf_counter() - start - other.seconds) / calls


def bench_virtual_runtime() -> Iterable[Row]:
    """Pods arrive, are bound, run for ten seconds and end. What the Store and the controllers take is subtracted."""
    clock = VirtualClock(START)
    assembly = ClusterAssembly(SchedulerAssembly(), seed=1)
    store = assembly.store(clock)
    inside = Stopwatch()
    runtime = assembly.over(store).virtual(clock)
    for number in range(HOSTS):
        store.perform(Write(Verb.CREATE, NODE, "", f"node-{number}", node(f"node-{number}").doc()))
    body = pod("life").asks(cpu="100m").restarting("Never").running_for("10s").doc()
    for number in range(LIVES):
        doc = {**body, "metadata": {**body["metadata"], "name": f"life-{number}"}}
        write = Write(Verb.CREATE, POD, "default", f"life-{number}", doc)
        runtime.at(START + 1 + number / ARRIVALS, partial(_do, store, write))
    store.perform = inside.around(store.perform)  # type: ignore[method-assign]
    store._commits._settle = inside.around(store._commits._settle)  # type: ignore[method-assign]
    for driven in runtime._driven:
        driven.controller.step = inside.around(driven.controller.step)  # type: ignore[method-assign]
        driven.controller.wake_at = inside.around(driven.controller.wake_at)  # type: ignore[method-assign]
    start = time.perf_counter()
    runtime.run(until=START + 30 + LIVES / ARRIVALS)
    total = time.perf_counter() - start
    ended = sum(doc["status"]["phase"] == "Succeeded" for doc in store.list(POD))
    if ended != LIVES:
        raise AssertionError(f"{ended} of {LIVES} pods ended")
    note = f"runtime alone; {total / LIVES * 1e6:,.0f} µs with Store, scheduler and all controllers"
    value = (total - inside.seconds - inside.calls * inside.own_cost()) / LIVES * 1e6
    yield Row("VirtualRuntime/PodLife", value, "µs", 30, nodes=HOSTS, pods=LIVES, note=note, higher_is_better=False)


def _do(store: Store, write: Write) -> None:
    store.perform(write)


def bench_idle_hour() -> Iterable[Row]:
    """Seconds that an hour of virtual time takes in which nothing happens."""
    from fairlead.testing.harness import Harness

    nodes = 1000
    cluster = Harness(nodes=nodes)
    cluster.run(10)
    began = time.perf_counter()
    cluster.run(3600)
    yield Row(
        "VirtualRuntime/IdleHour",
        time.perf_counter() - began,
        "s",
        1,
        nodes=nodes,
        pods=0,
        note="nothing happens for an hour",
        higher_is_better=False,
    )
