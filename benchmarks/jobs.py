"""Volcano Jobs from submission to Running: a thousand Jobs of one pod, and one Job of a thousand pods.

Everything is in one process: the API, admission, Volcano's controllers, the scheduler with Volcano's shipped
configuration, and the kubelets of a thousand simulated nodes. The time that counts is the processor's, from the first
Job that is sent until the last pod runs; virtual time jumps over all waiting.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING

from benchmarks.row import Row
from fairlead.assembly.schedulers import SchedulerAssembly
from fairlead.core.engine.options import Options
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.testing.builders import nodes
from fairlead.testing.harness import Harness
from fairlead.volcano.config.setup import VolcanoSetup
from fairlead.volcano.kinds import VC_JOB
from fairlead.volcano.queues.controller import FirstQueues

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

NODES = 1_000
SHAPES = {"1000x1": (1_000, 1, 300.0), "1x1000": (1, 1_000, 600.0)}
"""Name -> Jobs, pods of each, and how many pods a second shall run."""


def rows_of_jobs() -> tuple[str, ...]:
    return tuple(f"VolcanoJobs/{name}" for name in SHAPES)


def bench_jobs() -> Iterator[Row]:
    for name, (jobs, pods, bar) in SHAPES.items():
        spent, writes = measure(jobs, pods)
        total = jobs * pods
        yield Row(
            f"VolcanoJobs/{name}",
            total / spent,
            "pods/s",
            bar,
            NODES,
            total,
            f"{spent:.2f} s of processor time, {writes / total:.1f} API writes a pod (Events among them)",
        )


def measure(jobs: int, pods: int) -> tuple[float, int]:
    """Seconds of processor time until all pods run, and the writes to the API in that time."""
    volcano = VolcanoSetup("shipped", only=True)
    scheduler = SchedulerAssembly(setups=[volcano], options=Options(seed=1)).scheduler()
    cluster = Harness(nodes=list(nodes(NODES)), schedulers=[lambda _: scheduler], controllers=[FirstQueues])
    cluster.run(5)
    before, began = cluster.store.resource_version, time.process_time()
    for index in range(jobs):
        job = _job(f"job-{index}", pods)
        cluster.perform(Write(Verb.CREATE, VC_JOB, "default", job["metadata"]["name"], body=job))
    running = partial(_running, cluster)
    while running() < jobs * pods:
        cluster.run(1)
    return time.process_time() - began, cluster.store.resource_version - before


def _running(cluster: Harness) -> int:
    return sum((pod.get("status") or {}).get("phase") == "Running" for pod in cluster.store.list(kinds.POD))


def _job(name: str, pods: int) -> Doc:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    template = {
        "metadata": {"annotations": {"fairlead.io/run-time": "3600s"}},
        "spec": {"restartPolicy": "Never", "containers": [container]},
    }
    return {
        "apiVersion": VC_JOB.api_version,
        "kind": VC_JOB.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"minAvailable": pods, "tasks": [{"name": "t", "replicas": pods, "template": template}]},
    }
