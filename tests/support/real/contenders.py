"""Schedulers for one cluster as child processes: kube-scheduler, Volcano's, and `fairlead scheduler`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.client.client import KubeApi
from fairlead.client.port import Query, WatchEvent
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import NAMESPACE, NODE, POD, Kind
from fairlead.volcano.config.presets import PRESETS
from tests.support.real.control_plane import real_binary

KUBE, FAIRLEAD = "kube-scheduler", "fairlead"
VOLCANO, FAIRLEAD_VOLCANO = "volcano", "fairlead, Volcano profile"
"""vc-scheduler, and fairlead with the configuration that Volcano's installer ships; the others serve kube profiles."""
PATIENCE = 180.0
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %s, qps: 5000, burst: 5000}
"""
_ESTABLISHED = "01"
"""The state of a connection, as the kernel writes it in net/tcp."""


@dataclass(frozen=True, slots=True)
class Contender:
    """A running scheduler."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def cpu_seconds(self) -> float:
        """What it has used so far, in user and system mode."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def connections(self) -> set[str]:
        """The TCP connections that it has open now, each by its inode."""
        own: set[str] = set()
        for entry in Path(f"/proc/{self.process.pid}/fd").iterdir():
            with suppress(OSError):  # closed meanwhile
                if (target := os.readlink(entry)).startswith("socket:["):
                    own.add(target[len("socket:[") : -1])
        lines = Path(f"/proc/{self.process.pid}/net/tcp").read_text().splitlines()[1:]
        established = {fields[9] for line in lines if (fields := line.split())[3] == _ESTABLISHED}
        return own & established

    @contextmanager
    def told_if_late(self) -> Iterator[None]:
        """The end of its log, when something did not happen in time."""
        try:
            yield
        except TimeoutError:
            tail = self.log.read_text(errors="replace")[-3000:]
            raise AssertionError(f"{self.name} did not do its work in time; the end of its log:\n{tail}") from None

    def check(self) -> None:
        code = self.process.poll()
        assert code is None, f"{self.name} ended with {code}:\n{self.log.read_text(errors='replace')[-3000:]}"


def _command(name: str, kubeconfig: Path, directory: Path) -> list[str]:
    fairlead = [sys.executable, "-m", "fairlead", "scheduler", "--secure-port=0"]
    if name in (VOLCANO, FAIRLEAD_VOLCANO):
        conf = directory / "volcano-scheduler.conf"
        conf.write_text(PRESETS["shipped"])
        both = ["--kubeconfig", str(kubeconfig), "--leader-elect=false", "--kube-api-qps=5000", "--kube-api-burst=5000"]
        if name == VOLCANO:
            quiet = ["--logtostderr", "--enable-healthz=false", "--enable-metrics=false"]
            return [real_binary("vc-scheduler"), *both, f"--scheduler-conf={conf}", *quiet]
        return [*fairlead, *both, "--volcano-only", "--volcano-conf", str(conf)]
    config = directory / "config.yaml"
    config.write_text(CONFIG % kubeconfig)
    own = [real_binary("kube-scheduler"), "--secure-port=0"] if name == KUBE else fairlead
    return [*own, "--config", str(config)]


@contextmanager
def contender(name: str, kubeconfig: Path, directory: Path) -> Iterator[Contender]:
    """Start it with the same configuration file, stop it whatever happens."""
    directory.mkdir(parents=True, exist_ok=True)
    log = directory / f"{name.partition(',')[0]}.log"
    with log.open("wb") as file:
        process = subprocess.Popen(
            _command(name, kubeconfig, directory), stdout=file, stderr=file, stdin=subprocess.DEVNULL
        )
    try:
        yield Contender(name, process, log)
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def node_document(name: str, *, cpu: str = "32", zone: str = "") -> dict[str, Any]:
    amounts = {"cpu": cpu, "memory": "256Gi", "pods": "110"}
    labels = {"kubernetes.io/hostname": name} | ({"topology.kubernetes.io/zone": zone} if zone else {})
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
    status = {"allocatable": amounts, "capacity": amounts, "conditions": [ready]}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": status}


def pod_document(name: str, **requests: str) -> dict[str, Any]:
    container = {"name": "c", "image": "registry.k8s.io/pause:3.10", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "labels": {"app": name.partition("-")[0]}},
        "spec": {"containers": [container]},
    }


async def create(
    api: KubeApi, kind: Any, namespace: str, documents: Sequence[dict[str, Any]], *, at_once: int = 32
) -> None:
    """All of them, several at a time."""
    waiting = iter(documents)

    async def work() -> None:
        for document in waiting:
            await api.perform(Write(Verb.CREATE, kind, namespace, document["metadata"]["name"], document))

    await asyncio.gather(*(work() for _ in range(at_once)))


async def make_cluster(api: KubeApi, nodes: int) -> None:
    """Nodes in ten zones; those that are there stay."""
    known = {node["metadata"]["name"] for node in (await api.list(NODE)).items}
    documents = [node_document(f"node-{number}", zone=f"zone-{number % 10}") for number in range(nodes)]
    await create(api, NODE, "", [document for document in documents if document["metadata"]["name"] not in known])


async def make_namespace(api: KubeApi, name: str) -> None:
    await api.perform(Write(Verb.CREATE, NAMESPACE, "", name, {"metadata": {"name": name}}))


async def until_bound(api: KubeApi, namespace: str, count: int, running: Contender) -> tuple[float, float]:
    """Wait until so many pods have a node; the answer is when the first and the last were seen to have it, by the
    monotonic clock."""
    bound: dict[str, float] = {}
    with running.told_if_late():
        while True:
            page = await api.list(POD, Query(namespace=namespace))
            for pod in page.items:
                if pod["spec"].get("nodeName"):
                    bound.setdefault(pod["metadata"]["name"], time.monotonic())
            if len(bound) >= count:
                return min(bound.values()), max(bound.values())
            # The server ends a watch that cannot follow; then from the start.
            async for event in _watched(api, namespace, page.resource_version):
                running.check()
                if event.type == "MODIFIED" and event.doc["spec"].get("nodeName"):
                    bound.setdefault(event.doc["metadata"]["name"], time.monotonic())
                    if len(bound) >= count:
                        return min(bound.values()), max(bound.values())


async def _watched(api: KubeApi, namespace: str, version: str) -> AsyncIterator[WatchEvent]:
    """A watch in which a long silence is a TimeoutError."""
    async with aclosing(api.watch(POD, Query(namespace=namespace, resource_version=version))) as watch:
        while True:
            try:
                yield await asyncio.wait_for(anext(watch), PATIENCE)
            except StopAsyncIteration:
                return


async def until_ready(
    api: KubeApi, namespace: str, running: Contender, probe: Mapping[Kind, list[dict[str, Any]]] | None = None
) -> None:
    """It is, when it has placed a pod: one with objects of its own, in the order in which they are to be made."""
    for kind, documents in (probe or {POD: [pod_document("probe", cpu="1m")]}).items():
        await create(api, kind, namespace, documents)
    await until_bound(api, namespace, 1, running)


async def clear(api: KubeApi, namespace: str) -> None:
    """Delete all pods of a namespace, at once and for good."""
    options = {"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0}
    async with asyncio.timeout(PATIENCE):
        while (await api.list(POD, Query(namespace=namespace, limit=1))).items:
            await api.perform(Write(Verb.DELETE, POD, namespace, "", options))
