"""A whole `fairlead up` of full size: how long it takes to be ready again from its data, and how much memory it holds.

The process is the real one: server, controllers, kubelets of all nodes, and the scheduler. Its peak counts, and it is
read half a minute of work after the start at most, once the first heartbeats are written.
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from benchmarks.row import Row
from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import NODE, POD
from fairlead.testing.builders import node, pod

NODES, PODS = 5_000, 50_000
BATCH = 500
SETTLE = 15.0


def bench_whole_cluster() -> Iterable[Row]:
    with tempfile.TemporaryDirectory() as directory:
        _fill(Path(directory, "data"))
        seconds, megabytes = _start(directory)
    note = "fairlead up --data: server, controllers, kubelets, scheduler"
    size = {"nodes": NODES, "pods": PODS, "note": note, "higher_is_better": False}
    yield Row("up.start", seconds, "s", 10, **size)  # type: ignore[arg-type]
    yield Row("up.memory", megabytes, "MB", 600, **size)  # type: ignore[arg-type]


def _fill(data: Path) -> None:
    """Nodes that are ready and pods that run on them, as the last life left them."""
    journal = Journal(data)
    store = Store(clock=time.time, rng=random.Random(1), journal=journal)
    nodes = [node(f"node-{number}").offers(cpu="32", memory="128Gi").doc() for number in range(NODES)]
    template = pod("template").asks(cpu="100m", memory="128Mi").labelled(app="web").doc()
    running = {"status": {"phase": "Running", "podIP": "10.0.0.1", "startTime": "2026-01-01T00:00:00Z"}}
    writes = [Write(Verb.CREATE, NODE, "", doc["metadata"]["name"], doc) for doc in nodes]
    for number in range(PODS):
        name = f"pod-{number}"
        body = {
            **template,
            "metadata": {**template["metadata"], "name": name},
            "spec": {**template["spec"], "nodeName": f"node-{number % NODES}"},
        }
        writes.append(Write(Verb.CREATE, POD, "default", name, body))
        writes.append(Write(Verb.PATCH, POD, "default", name, running, subresource="status"))
    for first in range(0, len(writes), BATCH):
        with store.batch():
            for write in writes[first : first + BATCH]:
                store.perform(write)
    store.close()


def _start(directory: str) -> tuple[float, float]:
    """Seconds until `ready`, and the peak of memory (MB) some time later."""
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "fairlead", "up", "--data", "data"], cwd=directory, stdout=subprocess.PIPE, text=True
    ) as up:
        assert up.stdout is not None
        try:
            line = up.stdout.readline()
            seconds = time.perf_counter() - began
            if not line.startswith("ready"):
                raise AssertionError(f"fairlead up said {line!r}")
            time.sleep(SETTLE)
            status = Path(f"/proc/{up.pid}/status").read_text()
        finally:
            up.terminate()
    (peak,) = (line for line in status.splitlines() if line.startswith("VmHWM:"))
    return seconds, int(peak.split()[1]) * 1024 / 1e6
