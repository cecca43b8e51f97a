"""Nodes and pods of Alibaba's 2023 GPU trace, and the arrivals that the paper makes of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.gpu_share.gpu_shares import COUNT, MILLI, MODEL, NO_GPU, WHOLE, GpuRequest
from fairlead.lab.omega.setup import read_rows
from papers.fragmentation.go_random import GoRandom

MIB = 1 << 20
INFLATION = 1.3
"""Arrivals ask for so many times the GPUs that there are."""
_WATCHES = 10
"""Before it names the nodes, the original begins so many watches, each of which draws its timeout."""


@dataclass(frozen=True, slots=True)
class TraceNode:
    name: str
    cpu: int
    memory_mib: int
    gpus: int
    model: str

    def document(self) -> dict[str, Any]:
        return {
            "metadata": {"name": self.name, "uid": self.name, "labels": {MODEL: self.model} if self.model else {}},
            "status": {
                "allocatable": {
                    "cpu": f"{self.cpu}m",
                    "memory": f"{self.memory_mib}Mi",
                    "pods": "10000",
                    COUNT: str(self.gpus),
                }
            },
        }


@dataclass(frozen=True, slots=True)
class TracePod:
    name: str
    cpu: int
    memory_mib: int
    gpu: GpuRequest

    def document(self, number: int) -> dict[str, Any]:
        """The pod as the `number`th arrival."""
        gpu = self.gpu
        annotations = {COUNT: str(gpu.count), MILLI: str(gpu.milli)} if gpu.count else {}
        if gpu.models:
            annotations[MODEL] = "|".join(gpu.models)
        name = f"pod-{number}"
        requests = {"cpu": f"{self.cpu}m", "memory": f"{self.memory_mib}Mi"}
        return {
            "metadata": {"name": name, "namespace": "default", "uid": name, "annotations": annotations},
            "spec": {"containers": [{"name": "main", "resources": {"requests": requests}}]},
        }


def read_nodes(path: Path) -> list[TraceNode]:
    return [
        TraceNode(row["sn"], int(row["cpu_milli"]), int(row["memory_mib"]), int(row["gpu"]), row["model"])
        for row in read_rows(path, ("sn", "cpu_milli", "memory_mib", "gpu", "model"))
    ]


def read_pods(path: Path) -> list[TracePod]:
    """The pods of a list. Those of a list without the column `gpu_spec` take any model."""
    columns = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli")
    return [
        TracePod(row["name"], int(row["cpu_milli"]), int(row["memory_mib"]), _request(row))
        for row in read_rows(path, columns)
    ]


def _request(row: dict[str, str]) -> GpuRequest:
    count = int(row["num_gpu"])
    models = tuple(filter(None, row.get("gpu_spec", "").split("|")))
    return GpuRequest(count, int(row["gpu_milli"]) if count == 1 else WHOLE, models) if count else NO_GPU


@dataclass(frozen=True, slots=True)
class Arrivals:
    """What one seed makes of a trace: nodes in the order in which ties take them, pods as they come, and the generator
    as it stands then, with which the policy Random goes on."""

    nodes: Sequence[TraceNode]
    pods: Sequence[TracePod]
    rng: GoRandom


def arrivals(pods: Sequence[TracePod], nodes: Sequence[TraceNode], seed: int) -> Arrivals:
    """The paper's inflation: all pods in random order, and random copies behind them until the next one would ask for
    too much; or without random pods, if they ask for too much already. Nodes get random names. All draws are those of
    the original, one after the other, so that its runs are repeated."""
    rng = GoRandom(seed)
    rng.int63()  # the original logs a first number
    listed = sorted(pods, key=lambda pod: pod.name)
    rng.shuffle(listed)
    wanted = INFLATION * WHOLE * sum(node.gpus for node in nodes)
    asked = sum(pod.gpu.total for pod in listed)
    if asked > wanted:
        while asked > wanted:
            asked -= listed.pop(rng.intn(len(listed))).gpu.total
    else:
        listed += _copies(pods, wanted - asked, rng)
    for _ in range(_WATCHES):
        rng.int63()
    by_name = sorted(nodes, key=lambda node: node.name)
    places = rng.permutation(len(nodes))
    named = [node for _, node in sorted(zip(places, by_name, strict=True), key=lambda pair: pair[0])]
    return Arrivals(named, listed, rng)


def _copies(pods: Sequence[TracePod], wanted: float, rng: GoRandom) -> list[TracePod]:
    copies: list[TracePod] = []
    while True:
        pod = pods[rng.intn(len(pods))]
        if pod.gpu.milli > wanted:  # the milli of one GPU, whatever the count, as in the original
            return copies
        copies.append(pod)
        wanted -= pod.gpu.total
