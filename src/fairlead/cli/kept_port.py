"""KeptPort: the port that a cluster with `--data` listened on, so that its kubeconfig stays good."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from fairlead.api.server.pki import write_private

_FILE = "port"


class KeptPort:
    """`number` is the port of the last start, or 0 if there was none or it cannot be read."""

    def __init__(self, data: Path | None) -> None:
        self._path = None if data is None else data / _FILE
        self.number = 0
        if self._path is not None:
            with suppress(OSError, ValueError):
                number = int(self._path.read_text())
                self.number = number if 0 < number < 65536 else 0

    def keep(self, number: int) -> None:
        if self._path is not None and number != self.number:
            write_private(self._path, f"{number}\n".encode())
            self.number = number
