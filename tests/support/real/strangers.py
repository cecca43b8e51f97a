"""Programs nobody here wrote on `fairlead up`: the real kube-scheduler and kube-controller-manager."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.processes.up import Up
from tests.support.real.control_plane import real_binary

Doc = dict[str, Any]
JSON_ONLY = "--kube-api-content-type=application/json"
PATIENCE = 240.0
"""For what real processes do on a machine that may be busy with other things."""


class Strangers:
    """A cluster of ours, and what runs on it. Use it in a `with`: everything is stopped at the end."""

    def __init__(self, directory: Path, *options: str) -> None:
        self._directory = directory
        self._up = Up(directory, *options)
        self._running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Strangers:
        self._up.wait_ready()
        return self

    def __exit__(self, *_: object) -> None:
        for process in reversed(self._running):
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._up.close()

    def start_scheduler(self) -> None:
        self._start("kube-scheduler", "--leader-elect=false", "--secure-port=0", JSON_ONLY)

    def start_next_scheduler(self, gates: str) -> None:
        """That of the next Kubernetes, speaking protobuf, as it does by itself."""
        self._start("kube-scheduler-next", "--leader-elect=false", "--secure-port=0", f"--feature-gates={gates}")

    def start_controllers(self, names: Sequence[str]) -> None:
        self._start(
            "kube-controller-manager",
            "--leader-elect=false",
            "--secure-port=0",
            JSON_ONLY,
            "--use-service-account-credentials=false",
            f"--controllers={','.join(names)}",
        )

    def _start(self, name: str, *options: str) -> None:
        with (self._directory / f"{name}.log").open("wb") as log:
            command = [real_binary(name), "--kubeconfig", str(self._up.kubeconfig), *options]
            self._running.append(subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL))

    def kubectl(self, *words: str, given: str = "") -> str:
        command = [real_binary("kubectl"), "--kubeconfig", str(self._up.kubeconfig), *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def apply(self, *documents: Doc) -> None:
        self.kubectl("apply", "-f", "-", given="\n---\n".join(map(json.dumps, documents)))

    def all(self, resource: str) -> list[Doc]:
        items: list[Doc] = json.loads(self.kubectl("get", resource, "-o", "json"))["items"]
        return items

    def until(self, holds: Callable[[], bool]) -> None:
        end = time.monotonic() + PATIENCE
        while not holds():
            for process in self._running:
                assert process.poll() is None, self._logs()
            assert time.monotonic() < end, self._logs()
            time.sleep(0.3)

    def _logs(self) -> str:
        logs = [path.read_text(errors="replace")[-3000:] for path in self._directory.glob("kube-*.log")]
        return "\n".join(["not true in time", *logs, "fairlead up:", self._up.errors()[-3000:]])
