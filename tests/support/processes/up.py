"""`fairlead up` as a child process of a test."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

PATIENCE = 120.0
COMMAND = (sys.executable, "-W", "error", "-m", "fairlead", "up")
"""With warnings: a socket or file left open is told on standard error."""


class Up:
    """Starts in a directory of its own, where the kubeconfig appears."""

    def __init__(self, directory: Path, *options: str, command: tuple[str, ...] = COMMAND) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.directory = directory
        self.kubeconfig = directory / "fairlead.kubeconfig"
        self._errors = (directory / "stderr").open("w+")
        self._process = subprocess.Popen(
            [*command, *options], cwd=directory, stdout=subprocess.PIPE, stderr=self._errors, text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )  # fmt: skip

    def wait_ready(self) -> str:
        """The line that says so."""
        assert self._process.stdout is not None
        readable, _, _ = select.select([self._process.stdout], [], [], PATIENCE)
        line = self._process.stdout.readline() if readable else ""
        assert line.startswith("ready "), f"{line!r} after {PATIENCE:g} s at most; {self.errors()}"
        return line

    def errors(self) -> str:
        self._errors.seek(0)
        return self._errors.read()

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def wait(self) -> int:
        return self._process.wait(PATIENCE)

    def kill(self) -> None:
        """As `kill -9` does, and whatever it is doing."""
        self._process.kill()
        self._process.wait(PATIENCE)
        self.close()

    def close(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait(PATIENCE)
        assert self._process.stdout is not None
        self._process.stdout.close()
        self._errors.close()

    def __enter__(self) -> Up:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
