"""A real control plane with schedulers behind proxies, to be brought up and taken down by a scenario.

One process of fairlead serves both scheduling modes: pods of `default-scheduler` as kube-scheduler does, pods of
`volcano` in rounds. Volcano's PodGroups and Queues are defined on its control planes. kube-scheduler serves its own
pods only.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from soak.cluster import Cluster
from soak.proxy import Proxy
from soak.validator import Validator
from tests.support.real.control_plane import ControlPlane, real_binary

KUBE, FAIRLEAD = "kube", "fairlead"
VOLCANO = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - {name: priority}
  - {name: gang}
  - {name: conformance}
- plugins:
  - {name: drf}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
"""
DEFINED = ("scheduling.volcano.sh_podgroups.yaml", "scheduling.volcano.sh_queues.yaml")


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
    volcano: bool = True
    """Whether a Volcano profile is served too, where the scheduler can do it."""
    cluster: Cluster = field(init=False)
    validator: Validator = field(init=False)
    instances: list[Instance] = field(default_factory=list)
    _closing: threading.Event = field(default_factory=threading.Event)
    say: Callable[[str], None] = print

    def __post_init__(self) -> None:
        self.volcano = self.volcano and self.scheduler != KUBE

    def open(self, nodes: int = 20, *, cpu: str = "8") -> None:
        """Nodes, priorities and the validator."""
        self.cluster = Cluster(self.plane.server, self.plane.token)
        if self.volcano:
            definitions = Path(real_binary("vc-scheduler")).parent / "volcano-definitions"
            self.cluster.define([yaml.safe_load((definitions / name).read_text()) for name in DEFINED])
            for name in ("root", "default"):
                self.cluster.make_queue(name)
        self.cluster.make_nodes(nodes, cpu=cpu)
        self.validator = Validator(self.cluster)
        self.validator.start()

    def start(
        self, name: str = "one", *, elect: bool = False, qps: float = 0.0, token_file: Path | None = None
    ) -> Instance:
        """A scheduler, by default with the control plane's own token; a `token_file` it has to follow."""
        proxy = Proxy(
            self.plane.server, self.plane.token, seed=len(self.instances) + 1, passes_tokens=token_file is not None
        )
        proxy.start()
        kubeconfig = self.directory / f"{name}.kubeconfig"
        user = {"token": self.plane.token} if token_file is None else {"tokenFile": str(token_file)}
        kubeconfig.write_text(json.dumps(_kubeconfig(proxy.url, user)))
        config = self.directory / f"{name}.config"
        config.write_text(json.dumps(_configuration(str(kubeconfig), elect=elect, qps=qps)))
        command = [*self._command(), "--config", str(config)]
        instance = Instance(name, proxy, self._run(name, command), self.directory / f"{name}.log", command)
        self.instances.append(instance)
        return instance

    def keep_running(self) -> None:
        """From now on start instances again that have ended, because they lost the lease, as a kubelet would."""
        threading.Thread(target=self._keep_running, daemon=True).start()

    def _keep_running(self) -> None:
        while not self._closing.wait(1.0):
            for instance in self.instances:
                if instance.process.poll() is not None:
                    instance.process = self._run(instance.name, instance.command)

    def restart(self, instance: Instance) -> None:
        instance.process.wait(60)
        instance.process = self._run(instance.name, instance.command)

    def _command(self) -> list[str]:
        if self.scheduler == KUBE:
            return [real_binary("kube-scheduler"), "--secure-port=0"]
        command = [sys.executable, "-m", "fairlead", "scheduler", "--secure-port=0"]
        if self.volcano:
            conf = self.directory / "volcano.conf"
            conf.write_text(VOLCANO)
            command += ["--volcano-conf", str(conf), "--schedule-period", "200ms"]
        return command

    def _run(self, name: str, command: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / f"{name}.log").open("ab") as log:
            return subprocess.Popen(command, stdout=log, stderr=log)

    def close(self) -> None:
        self._closing.set()
        for instance in self.instances:
            if instance.process.poll() is None:
                instance.process.send_signal(signal.SIGCONT)
                instance.process.kill()
            instance.process.wait()
            instance.proxy.stop()
        if hasattr(self, "validator"):
            self.validator.stop()


@contextmanager
def staged(scheduler: str, *, nodes: int = 20, cpu: str = "8", volcano: bool = True) -> Iterator[Stage]:
    """A fresh control plane, taken down at the end whatever happens."""
    with tempfile.TemporaryDirectory(prefix="soak-") as name:
        directory = Path(name)
        (directory / "plane").mkdir()
        plane = ControlPlane(directory / "plane")
        stage = Stage(directory, plane, scheduler, volcano)
        try:
            plane.start()
            time.sleep(1)
            stage.open(nodes, cpu=cpu)
            yield stage
        finally:
            stage.close()
            plane.stop()


def _kubeconfig(server: str, user: dict[str, str]) -> dict[str, object]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "soak",
        "clusters": [{"name": "soak", "cluster": {"server": server}}],
        "users": [{"name": "admin", "user": user}],
        "contexts": [{"name": "soak", "context": {"cluster": "soak", "user": "admin"}}],
    }


def _configuration(kubeconfig: str, *, elect: bool, qps: float) -> dict[str, object]:
    connection = {"kubeconfig": kubeconfig, "qps": qps or 10000, "burst": int(qps) or 10000}
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": elect},
        "clientConnection": connection,
    }
