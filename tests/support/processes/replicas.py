"""Several `fairlead scheduler` processes on one embedded API: pods are dealt to them, and what comes of it is counted.

Each replica answers for a scheduler name of its own. They share the nodes in one of three ways: `optimistic`, all look
at all nodes and the API refuses what no longer fits; `preferred`, the same, but each prefers the nodes of its shard;
`shards`, each keeps to the nodes of its shard.
"""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from contextlib import ExitStack, aclosing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from fairlead.client.client import KubeApi
from fairlead.client.credentials import load_kubeconfig
from fairlead.client.port import Query
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import POD
from tests.support.processes.scheduler_process import PATIENCE, SchedulerProcess
from tests.support.processes.up import Up

OPTIMISTIC, PREFERRED, SHARDS = "optimistic", "preferred", "shards"
CPUS = 8
"""Of a node; a pod takes one."""
_AT_ONCE = 16
_CONFLICTS = re.compile(r'^rest_client_requests_total\{code="409",[^}]*method="POST"[^}]*\} (\S+)$', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class ReplicasOutcome:
    """`waits` are the seconds from a pod's creation to its node, `conflicts` the Bindings that were refused, and `full`
    the largest number of pods on one node."""

    seconds: float
    waits: list[float]
    conflicts: int
    full: int
    by_replica: Counter[str]


def share_nodes(directory: Path, *, way: str, replicas: int, nodes: int, pods: int) -> ReplicasOutcome:
    """Run a cluster with so many replicas until all pods have a node."""
    shapes = []
    for shard in range(replicas):
        count = nodes * (shard + 1) // replicas - nodes * shard // replicas
        shapes += ["--shape", f"{count}:name=s{shard},cpu={CPUS},memory=64Gi,pods=110,label.shard=s{shard}"]
    with ExitStack() as opened:
        up = opened.enter_context(
            Up(directory / "up", "--scheduler", "none", "--nodes", str(nodes), "--check-bindings", *shapes)
        )
        up.wait_ready()
        running = []
        for number in range(replicas):
            config = json.dumps(_config(number, way))
            process = SchedulerProcess(directory / f"replica-{number}", up.kubeconfig, config=config)
            opened.callback(process.close)
            running.append(process)
        for process in running:
            process.until(partial(_is_ready, process), "ready")
        seconds, waits = asyncio.run(_place(up.kubeconfig, replicas, pods))
        conflicts = sum(
            int(float(count)) for process in running for count in _CONFLICTS.findall(process.get("/metrics")[1])
        )
        placed = asyncio.run(_placed(up.kubeconfig))
    per_node = Counter(pod["spec"]["nodeName"] for pod in placed)
    by_replica = Counter(pod["spec"]["schedulerName"] for pod in placed)
    return ReplicasOutcome(seconds, waits, conflicts, max(per_node.values()), by_replica)


def _is_ready(process: SchedulerProcess) -> bool:
    return process.get("/readyz")[0] == 200


def _config(number: int, way: str) -> dict[str, Any]:
    expression = {"key": "shard", "operator": "In", "values": [f"s{number}"]}
    affinity: dict[str, Any] = {}
    if way == SHARDS:
        terms = [{"matchExpressions": [expression]}]
        affinity = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    elif way == PREFERRED:
        preference = {"weight": 100, "preference": {"matchExpressions": [expression]}}
        affinity = {"preferredDuringSchedulingIgnoredDuringExecution": [preference]}
    profile: dict[str, Any] = {"schedulerName": f"replica-{number}"}
    if affinity:
        profile["pluginConfig"] = [{"name": "NodeAffinity", "args": {"addedAffinity": affinity}}]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"qps": 5000, "burst": 5000},
        "profiles": [profile],
    }


def _pod(number: int, replicas: int) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
    spec = {"schedulerName": f"replica-{number % replicas}", "containers": [container]}
    return {"metadata": {"name": f"p{number}"}, "spec": spec}


async def _place(kubeconfig: Path, replicas: int, pods: int) -> tuple[float, list[float]]:
    """Create the pods and watch until each has a node: seconds from the first creation to the last node, and waits."""
    api = KubeApi(load_kubeconfig(kubeconfig))
    created: dict[str, float] = {}
    bound: dict[str, float] = {}
    began = time.monotonic()
    watching = asyncio.create_task(_watch(api, pods, bound))
    numbers = iter(range(pods))

    async def create() -> None:
        for number in numbers:
            created[f"p{number}"] = time.monotonic()
            await api.perform(Write(Verb.CREATE, POD, "default", f"p{number}", _pod(number, replicas)))

    try:
        await asyncio.gather(*(create() for _ in range(_AT_ONCE)))
        await asyncio.wait_for(watching, PATIENCE)
    finally:
        watching.cancel()
        await api.close()
    return max(bound.values()) - began, [bound[name] - created[name] for name in created]


async def _watch(api: KubeApi, pods: int, bound: dict[str, float]) -> None:
    async with aclosing(api.watch(POD, Query(namespace="default"), send_initial_events=True)) as events:
        async for event in events:
            if event.type in ("ADDED", "MODIFIED") and event.doc["spec"].get("nodeName"):
                bound.setdefault(event.doc["metadata"]["name"], time.monotonic())
                if len(bound) == pods:
                    return


async def _placed(kubeconfig: Path) -> list[dict[str, Any]]:
    api = KubeApi(load_kubeconfig(kubeconfig))
    try:
        pods = (await api.list(POD, Query(namespace="default"))).items
        return [pod for pod in pods if pod["spec"].get("nodeName")]
    finally:
        await api.close()
