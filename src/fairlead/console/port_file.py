"""PortFile: where a scheduler on this machine says how to reach its port, for commands of the same user.

The port has a certificate that was made at its start, and wants a token. Both are in a file that only the user can
read, in a directory that only the user can write, named after the port: `fairlead status` works beside `fairlead
scheduler` as it is, and nobody else on the machine gets in.

    $XDG_RUNTIME_DIR/fairlead/10259.json, or fairlead-UID/10259.json in the directory for temporary files

A file is believed only if it and its directory belong to the user: the directory for temporary files is open to all.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class LocalPort:
    """A scheduler on this machine, as its file says."""

    server: str
    certificate: str
    token: str


class PortFile:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.token = secrets.token_urlsafe(32)
        self.server = ""
        self.written = False

    def write(self, server: str, certificate: str) -> None:
        """Write the file, for the user's eyes only. Raises OSError."""
        from fairlead.cluster.server.pki import write_private

        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not _is_private(self.path.parent):
            raise PermissionError(0, "its directory belongs to somebody else, or others can write there")
        self.server = server
        content = {"server": server, "certificate": certificate, "token": self.token}
        write_private(self.path, json.dumps(content, indent=1).encode())
        self.written = True

    def remove(self) -> None:
        """Remove the file, unless another process has written it meanwhile."""
        found = _read(self.path)
        if found is not None and found.token == self.token:
            with suppress(OSError):
                self.path.unlink()


def _directory() -> Path:
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    if runtime and Path(runtime).is_dir():
        return Path(runtime) / "fairlead"
    return Path(tempfile.gettempdir()) / f"fairlead-{os.geteuid()}"


def port_file_path(port: int) -> Path:
    return _directory() / f"{port}.json"


def local_ports() -> Iterator[LocalPort]:
    """The schedulers of this user on this machine, that of the usual port first."""
    directory = _directory()
    usual = port_file_path(10259)
    for path in sorted(directory.glob("*.json"), key=lambda path: (path != usual, path.name)):
        found = _read(path)
        if found is not None:
            yield found


def _read(path: Path) -> LocalPort | None:
    try:
        if not (_is_private(path.parent) and _is_private(path)):
            return None
        content = json.loads(path.read_text())
        return LocalPort(str(content["server"]), str(content["certificate"]), str(content["token"]))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _is_private(path: Path) -> bool:
    status = path.lstat()
    others = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid == os.geteuid() and not status.st_mode & others and not stat.S_ISLNK(status.st_mode)
