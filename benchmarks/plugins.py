"""The whole default profile at 5,000 nodes, every node scored: the workloads of scheduler_perf, in the core alone.

Shapes are scheduler_perf's: nodes of 4 cores, 32Gi and 110 pods; pods of 100m and 500Mi. Each workload also runs with
10, 100 and 1,000 distinct shapes, because real clusters do not schedule ten thousand equal pods.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.drive import Driver
from benchmarks.row import Row
from fairlead.assembly.schedulers import default_scheduler
from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc

NODES = 5_000
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
SHAPES = (1, 10, 100, 1_000)
Make = Callable[[int], Doc]


def nodes(count: int, zones: int = 3) -> list[Doc]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": f"node-{i}", "labels": {HOSTNAME: f"node-{i}", ZONE: f"zone{i % zones + 1}"}},
            "status": {"allocatable": {"cpu": "4", "memory": "32Gi", "pods": "110"}},
        }
        for i in range(count)
    ]


def pods(count: int, shapes: int, prefix: str, *, labels: dict[str, str] | None = None, **spec: Any) -> list[Doc]:
    """Pods of so many distinct requests."""
    return [
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": f"{prefix}-{i}", "namespace": "default", "labels": labels or {}},
            "spec": {
                "containers": [
                    {
                        "name": "c",
                        "image": "pause",
                        "resources": {
                            "requests": {"cpu": f"{100 + i % shapes % 50}m", "memory": f"{500 - i % shapes // 50}Mi"}
                        },
                    }
                ],
                "schedulerName": "default-scheduler",
                **spec,
            },
        }
        for i in range(count)
    ]


def required(kind: str, key: str, color: str) -> Doc:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": {"color": color}}}
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}


def rows_of(name: str) -> tuple[str, ...]:
    """The rows of one workload: with one shape, and with more."""
    return tuple(f"{name}/5000Nodes" + ("" if shapes == 1 else f"/{shapes}Shapes") for shapes in SHAPES)


def measured(
    name: str,
    make: Callable[[int, int, str], list[Doc]],
    *,
    init: Callable[[int], list[Doc]],
    count: int,
    bar: float,
    zones: int = 3,
) -> Iterable[Row]:
    for title, shapes in zip(rows_of(name), SHAPES, strict=True):
        driver = Driver(default_scheduler())
        driver.load(kinds.NAMESPACE, [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "default"}}])
        driver.load(kinds.NODE, nodes(NODES, zones))
        already = init(shapes)
        if already:
            driver.schedule(already)
        spent = driver.schedule(make(count, shapes, "pod"))
        judged = sum(evaluator.rows_judged for evaluator in driver.scheduler.pods.evaluators.values())
        note = f"core only, every node scored, {judged / (count + len(already)):,.1f} rows judged per pod"
        yield Row(
            title,
            count / spent,
            "pods/s",
            bar if shapes < 1_000 else min(bar, 1_000),
            nodes=NODES,
            pods=count,
            note=note,
        )


def bench_pod_affinity() -> Iterable[Row]:
    spec = {"affinity": required("podAffinity", ZONE, "blue")}
    blue = {"color": "blue"}
    yield from measured(
        "SchedulingPodAffinity",
        lambda n, s, p: pods(n, s, p, labels=blue, **spec),
        init=lambda s: pods(500, s, "init", labels=blue, **spec),
        count=2_000,
        bar=1_000,
        zones=1,
    )


def bench_pod_anti_affinity() -> Iterable[Row]:
    spec = {"affinity": required("podAntiAffinity", HOSTNAME, "green")}
    green = {"color": "green"}
    yield from measured(
        "SchedulingPodAntiAffinity",
        lambda n, s, p: pods(n, s, p, labels=green, **spec),
        init=lambda s: pods(500, s, "init", labels=green, **spec),
        count=2_000,
        bar=1_000,
    )


def bench_topology_spreading() -> Iterable[Row]:
    blue = {"color": "blue"}
    constraint = {
        "maxSkew": 5,
        "topologyKey": ZONE,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": blue},
    }
    yield from measured(
        "TopologySpreading",
        lambda n, s, p: pods(n, s, p, labels=blue, topologySpreadConstraints=[constraint]),
        init=lambda s: pods(500, s, "init"),
        count=2_000,
        bar=2_000,
    )


def bench_node_affinity() -> Iterable[Row]:
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]}
    wish = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}
    yield from measured(
        "SchedulingNodeAffinity",
        lambda n, s, p: pods(n, s, p, affinity=wish),
        init=lambda s: [],
        count=5_000,
        bar=4_000,
    )


def bench_distinct() -> Iterable[Row]:
    """Every pod a shape of its own: nothing is remembered, every plugin looks at every node."""
    driver = Driver(default_scheduler())
    driver.load(kinds.NODE, nodes(NODES))
    count = 2_000
    spent = driver.schedule(pods(count, count, "pod"))
    yield Row(
        "SchedulingBasic/5000Nodes/AllDistinct",
        count / spent,
        "pods/s",
        1_000,
        nodes=NODES,
        pods=count,
        note="core only, every node scored",
    )


def bench_preemption() -> Iterable[Row]:
    """Four low pods of 900m on every node; then as many high ones of 3 cores, each at the price of three."""
    for count, bar in ((1_000, 300), (5_000, 0)):
        driver = Driver(default_scheduler())
        driver.load(kinds.NODE, nodes(count))
        low = pods(4 * count, 1, "low", priority=0)
        high = pods(count, 1, "high", priority=10)
        for doc, cpu in [(doc, "900m") for doc in low] + [(doc, "3000m") for doc in high]:
            doc["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
        driver.schedule(low)
        began = time.process_time()
        spent = driver.schedule(high)
        busy = time.process_time() - began
        note = f"{count / busy:,.0f} per CPU second, {driver.evicted} evictions, longest step {driver.longest:.2f} s"
        yield Row(
            f"PreemptionBasic/{count}Nodes", count / spent, "preemptors/s", bar, nodes=count, pods=5 * count, note=note
        )
