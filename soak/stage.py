"""A real control plane with schedulers behind proxies, to be brought up and taken down by a scenario."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from soak.cluster import Cluster
from soak.proxy import Proxy
from soak.validator import Validator
from tests.kube.control_plane import ControlPlane, real_binary


@dataclass
class Instance:
    """One scheduler process and the proxy that it speaks through."""

    name: str
    proxy: Proxy
    process: subprocess.Popen[bytes]
    log: Path
    command: list[str] = field(default_factory=list)

    def kill(self, number: int = signal.SIGKILL) -> None:
        self.process.send_signal(number)

    def rss(self) -> float:
        """Megabytes of memory."""
        for line in Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1]) / 1024
        return 0.0

    def cpu(self) -> float:
        """Seconds of CPU so far."""
        parts = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")


@dataclass
class Stage:
    directory: Path
    plane: ControlPlane
    scheduler: str
    cluster: Cluster = field(init=False)
    validator: Validator = field(init=False)
    instances: list[Instance] = field(default_factory=list)
    say: Callable[[str], None] = print

    def open(self, nodes: int = 20, *, cpu: str = "8") -> None:
        """Nodes, priorities and the validator."""
        self.cluster = Cluster(self.plane.server, self.plane.token)
        self.cluster.make_nodes(nodes, cpu=cpu)
        self.validator = Validator(self.cluster)
        self.validator.start()

    def start(
        self, name: str = "one", *, elect: bool = False, qps: float = 0.0, arguments: tuple[str, ...] = ()
    ) -> Instance:
        proxy = Proxy(self.plane.server, self.plane.token, seed=len(self.instances) + 1)
        proxy.start()
        kubeconfig = self.directory / f"{name}.kubeconfig"
        kubeconfig.write_text(json.dumps(_kubeconfig(proxy.url, self.plane.token)))
        config = self.directory / f"{name}.config"
        config.write_text(json.dumps(_configuration(str(kubeconfig), elect=elect, qps=qps)))
        command = [*self._command(), "--config", str(config), *arguments]
        instance = Instance(name, proxy, self._run(name, command), self.directory / f"{name}.log", command)
        self.instances.append(instance)
        return instance

    def restart(self, instance: Instance) -> None:
        instance.process.wait(10)
        instance.process = self._run(instance.name, instance.command)

    def _command(self) -> list[str]:
        if self.scheduler == "kube":
            return [real_binary("kube-scheduler"), "--secure-port=0"]
        return [sys.executable, "-m", "fairlead", "scheduler", "--secure-port=0"]

    def _run(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def close(self) -> None:
        for instance in self.instances:
            if instance.process.poll() is None:
                instance.process.send_signal(signal.SIGCONT)
                instance.process.kill()
            instance.process.wait()
            instance.proxy.stop()
        if hasattr(self, "validator"):
            self.validator.stop()


@contextmanager
def staged(scheduler: str, *, nodes: int = 20, cpu: str = "8") -> Iterator[Stage]:
    """A fresh control plane, taken down at the end whatever happens."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        directory = Path(name)
        (directory / "plane").mkdir()
        plane = ControlPlane(directory / "plane")
        stage = Stage(directory, plane, scheduler)
        try:
            plane.start()
            time.sleep(1)
            stage.open(nodes, cpu=cpu)
            yield stage
        finally:
            stage.close()
            plane.stop()


def _kubeconfig(server: str, token: str) -> dict[str, object]:
    return {
        "apiVersion": "v1", "kind": "Config", "current-context": "soak",
        "clusters": [{"name": "soak", "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": {"token": token}}],
        "contexts": [{"name": "soak", "context": {"cluster": "soak", "user": "admin"}}],
    }  # fmt: skip


def _configuration(kubeconfig: str, *, elect: bool, qps: float) -> dict[str, object]:
    connection = {"kubeconfig": kubeconfig, "qps": qps or 10000, "burst": int(qps) or 10000}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": elect}, "clientConnection": connection,
    }  # fmt: skip
