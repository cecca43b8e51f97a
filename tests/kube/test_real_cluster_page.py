"""The commands of docs/real-cluster.md that are marked with ✓, as they stand there, on a real API server."""

from __future__ import annotations

import os
import re
import ssl
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.real.contenders import node_document
from tests.support.real.control_plane import ControlPlane, free_port, real_binary

pytestmark = pytest.mark.kube

HOUSE = Path(__file__).resolve().parents[2]
PAGE = HOUSE / "docs" / "real-cluster.md"


class Reader:
    """Somebody who types what the page says, in the repository, with a cluster and ports of their own."""

    def __init__(self, plane: ControlPlane, directory: Path) -> None:
        self.plane, self.directory = plane, directory
        self.port = free_port()
        self.left = re.findall(r"^(\S.*?) +# ✓$", PAGE.read_text(), re.MULTILINE)
        binaries = [str(Path(sys.executable).parent), str(Path(real_binary("kubectl")).parent)]
        path = os.pathsep.join([*binaries, os.environ["PATH"]])
        self.environment = {**os.environ, "PATH": path, "KUBECONFIG": str(plane.kubeconfig), "HOME": str(directory)}

    def take(self, beginning: str) -> str:
        """The next marked command that begins like this."""
        command = next(command for command in self.left if command.startswith(beginning))
        self.left.remove(command)
        return command.replace("deploy/", f"{HOUSE}/deploy/").replace(":10259", f":{self.port}")

    def type(self, beginning: str, *, more: str = "") -> str:
        done = subprocess.run(
            ["/bin/bash", "-c", self.take(beginning) + more], cwd=self.directory, env=self.environment,
            capture_output=True, text=True, timeout=200, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{beginning}: {done.stdout}{done.stderr}"
        return done.stdout

    @contextmanager
    def running(self, command: str) -> Iterator[None]:
        log = self.directory / "scheduler.log"
        with log.open("w") as file:
            process = subprocess.Popen(
                ["/bin/bash", "-c", f"exec {command}"],
                cwd=self.directory,
                env=self.environment,
                stdout=file,
                stderr=file,
            )
        try:
            yield
        except AssertionError as error:
            raise AssertionError(f"{error}\n{log.read_text()[-2000:]}") from None
        finally:
            process.terminate()
            process.wait(60)

    def kubectl(self, words: str) -> str:
        command = f"kubectl {words}"
        done = subprocess.run(["/bin/bash", "-c", command], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def until(self, words: str, wanted: str) -> None:
        ends = time.monotonic() + 150
        while wanted not in self.kubectl(words):
            assert time.monotonic() < ends, f"{words}: no {wanted}"
            time.sleep(0.5)

    def until_served(self) -> None:
        """Wait until the scheduler knows the cluster; health is open to everybody."""
        context = ssl._create_unverified_context()
        ends = time.monotonic() + 150
        while True:
            try:
                with urllib.request.urlopen(f"https://127.0.0.1:{self.port}/readyz", timeout=10, context=context):
                    return
            except OSError:
                assert time.monotonic() < ends, "the scheduler is not ready"
                time.sleep(0.5)


def test_the_page_leads_to_pods_that_are_placed(tmp_path: Path) -> None:
    plane = ControlPlane(tmp_path)
    try:
        plane.start()
        reader = Reader(plane, tmp_path)
        _tried_from_a_terminal(reader)
        _installed_and_looked_at(reader)
        assert reader.left == [], "every marked command was typed"
    finally:
        plane.stop()


def _tried_from_a_terminal(reader: Reader) -> None:
    (here,) = re.findall(r"second.yaml <<EOF\n(.*?\n)EOF", PAGE.read_text(), re.DOTALL)
    (reader.directory / "second.yaml").write_text(here)
    node = reader.directory / "node.yaml"
    node.write_text(str(node_document("n0")).replace("'", '"'))
    reader.kubectl(f"create -f {node}")
    reader.kubectl("create serviceaccount default || true")
    with reader.running(reader.take("fairlead scheduler") + f" --secure-port {reader.port}"):
        reader.type("kubectl run hello")
        reader.until("get pod hello -o wide", "n0")
        assert "n0" in reader.type("kubectl get pod hello")
        assert "n0" in reader.type("fairlead explain pod hello", more=f" --server https://127.0.0.1:{reader.port}")
        assert "leads" in reader.type("fairlead status", more=f" --server https://127.0.0.1:{reader.port}")


def _installed_and_looked_at(reader: Reader) -> None:
    reader.type("helm install")
    reader.until("-n fairlead-system get deployment,lease", "fairlead")
    for beginning in ("kubectl create serviceaccount", "kubectl create clusterrolebinding", "kubectl create token"):
        reader.type(beginning)
    words = f"--config second.yaml --bind-address 0.0.0.0 --secure-port {reader.port}"
    with reader.running(f"fairlead scheduler {words}"):  # in the place of the pod and the forwarded port
        reader.until_served()
        assert "leads" in reader.type("fairlead status")
        assert "n0" in reader.type("fairlead explain pod hello")
    reader.type("helm upgrade")
    reader.type("helm rollback")
    reader.type("helm uninstall")
    reader.type("kubectl apply -k")
    reader.type("kubectl apply -f")
