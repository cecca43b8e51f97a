"""KubeconfigFile: the kubeconfig that `fairlead up` writes, and what happens to it at the end; KeptPort keeps it good.

A kubeconfig is how people reach their clusters, so losing one is worse than not starting. A file that exists belongs to
somebody else, unless the data directory remembers having written exactly these bytes. The default name gives way to
`fairlead-2.kubeconfig` and so on, so that two clusters can be started in one directory; a name that the user chose is
refused if it is taken.

Invariant: no file is written over or deleted whose content this cluster did not write.
"""

from __future__ import annotations

import hashlib
import logging
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path

from fairlead.cluster.server.pki import write_private
from fairlead.errors import FairleadError

log = logging.getLogger("fairlead.cli")

_REMEMBERED, _PORT = "kubeconfig.sha256", "port"
"""In the data directory: the digest of the kubeconfig that was written last, and the port listened on."""


class KubeconfigFile:
    """`wanted` is where it shall be; `chosen` whether the user named that; `data` the directory that outlives us."""

    def __init__(self, wanted: Path, *, chosen: bool, data: Path | None = None) -> None:
        self.path = wanted
        self._wanted = wanted
        self._chosen = chosen
        self._memory = None if data is None else data / _REMEMBERED
        self._written = b""

    @property
    def moved(self) -> bool:
        """Whether the wanted name was taken, so that another is used."""
        return self.path != self._wanted

    def check(self) -> None:
        """Refuse a chosen name that is taken, before anything has been started."""
        if self._chosen and self._is_strange(self._wanted):
            raise FairleadError(
                f"{self._wanted} exists and was not written by this cluster, so it is left as it is; "
                "name another file with --kubeconfig, or delete it first"
            )

    def write(self, content: bytes) -> Path:
        """Write it, and say where."""
        try:
            for path in self._names():
                if self._put(path, content):
                    self.path, self._written = path, content
                    break
        except OSError as error:
            raise FairleadError(f"the kubeconfig {self._wanted} cannot be written: {error.strerror}") from error
        if self._memory is not None and self._remembered() != _digest(content):
            _remember(self._memory, _digest(content), "the next start takes its kubeconfig for somebody else's")
        return self.path

    def remove(self) -> None:
        """Delete it if it still holds what was written; otherwise it has become somebody else's."""
        with suppress(OSError):
            if self._written and self.path.read_bytes() == self._written:
                self.path.unlink()

    def _names(self) -> Iterator[Path]:
        self.check()
        yield self._wanted
        for number in count(2):
            yield self._wanted.with_name(f"{self._wanted.stem}-{number}{self._wanted.suffix}")

    def _put(self, path: Path, content: bytes) -> bool:
        """Whether the content is there now. A link is made only if the name is free, so two starts cannot both win."""
        if path.is_file() and not path.is_symlink() and not self._is_strange(path):
            write_private(path, content)
            return True
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            os.link(temporary, path)
            return True
        except FileExistsError:
            return False
        finally:
            Path(temporary).unlink(missing_ok=True)

    def _is_strange(self, path: Path) -> bool:
        """Whether something is there that this cluster, in this run or an earlier one, did not write."""
        if not path.exists() and not path.is_symlink():
            return False
        if self._memory is None:
            return True
        try:
            return _digest(path.read_bytes()) != self._remembered()
        except OSError:
            return True

    def _remembered(self) -> str:
        """The digest of what was written last; empty if nobody knows."""
        if self._memory is None:
            return ""
        with suppress(OSError, UnicodeDecodeError):
            return self._memory.read_text().strip()
        return ""


class KeptPort:
    """The port that a cluster with `--data` listened on, so that its kubeconfig stays good from start to start.
    `number` is 0 if there was none or it cannot be read."""

    def __init__(self, data: Path | None) -> None:
        self._path = None if data is None else data / _PORT
        self.number = 0
        if self._path is not None:
            with suppress(OSError, ValueError):
                number = int(self._path.read_text())
                self.number = number if 0 < number < 65536 else 0

    def keep(self, number: int) -> None:
        if self._path is not None and number != self.number:
            _remember(self._path, f"{number}\n", "the next start takes another port")
            self.number = number


def _remember(path: Path, text: str, otherwise: str) -> None:
    """Write a small file that a cluster can do without: on a full disk it starts nevertheless."""
    try:
        write_private(path, text.encode())
    except OSError as error:
        log.warning("%s cannot be written (%s): %s", path, error.strerror, otherwise)


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
