"""`fairlead scheduler` as a child process of a test, beside `fairlead up --scheduler none`."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from fairlead.kube.config.gates import DEFAULT_GATES, OWN_GATES
from tests.support.real.control_plane import free_port

PATIENCE = 180.0
GANG_GATES = ",".join(f"{name}=true" for name in sorted(OWN_GATES - DEFAULT_GATES))
"""What our own clusters have on and others have not."""
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 3s, renewDeadline: 2s, retryPeriod: 200ms}
clientConnection: {qps: 5000, burst: 5000}
"""


class SchedulerProcess:
    def __init__(self, directory: Path, kubeconfig: Path, *options: str, config: str = CONFIG) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.config = directory / "scheduler.yaml"
        self.config.write_text(config)
        self.log = directory / "log"
        self.port = free_port()
        command = [sys.executable, "-W", "error", "-m", "fairlead", "scheduler", "--config", str(self.config)]
        command += ["--kubeconfig", str(kubeconfig), "--secure-port", str(self.port), "-v", "2", *options]
        self.environment = {**os.environ, "XDG_RUNTIME_DIR": str(directory)}
        """In which commands find this scheduler."""
        self.credentials = directory / "fairlead" / f"{self.port}.json"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(command, stderr=log, stdout=log, env=self.environment)

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def get(self, path: str) -> tuple[int, str]:
        """As the user whose process it is: with the token and the certificate in its file."""
        try:
            said = json.loads(self.credentials.read_text())
            context = ssl.create_default_context(cadata=said["certificate"])
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            request = urllib.request.Request(self.url + path, headers={"Authorization": f"Bearer {said['token']}"})
            with urllib.request.urlopen(request, timeout=5, context=context) as response:
                return response.status, response.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def until(self, condition: Callable[[], bool], what: str) -> None:
        ends = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < ends, f"{what}: not within {PATIENCE:g} s\n{self.log.read_text()}"
            assert self.process.poll() is None, f"the scheduler ended\n{self.log.read_text()}"
            time.sleep(0.05)

    def end(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(PATIENCE)
