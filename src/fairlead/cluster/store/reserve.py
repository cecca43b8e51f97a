"""Reserve: room on the disk of a data directory, kept for the moment when there is no other.

A full disk is freed by deletions, and a deletion needs room itself: it is a transaction like any other, and SQLite's
log, where it goes, can be copied back only if the database has room to grow by as much. So a file of zeros lies beside
the database; it is removed when a deletion finds the disk full, and made again when there is room.

Invariant: the reserve is 2.5 times as large as the log at which SQLite begins to copy it back. While that succeeds the
log is no larger; once it fails, less than a log's size is free, so the log cannot become twice as large.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

PAGE = 4096
LOG_PAGES = (1000, 250, 64, 16)
"""The log's size, in pages of the database, for which room is kept: SQLite's own, or what a small disk can spare."""
_PART_OF_THE_FREE = 8


class Reserve:
    """`log_pages` is the size of the log for which room is set aside; 0 if none is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        size = path.stat().st_size if path.exists() else 0
        self.log_pages = next((pages for pages in LOG_PAGES if _room(pages) <= size), 0)

    def take(self) -> bool:
        """Set room aside, no more than a part of what is free; whether there is some now."""
        if not self.log_pages:
            with suppress(OSError):
                space = os.statvfs(self._path.parent)
                most = space.f_bavail * space.f_frsize // _PART_OF_THE_FREE
                fitting = (pages for pages in LOG_PAGES if _room(pages) <= most and self._allocated(_room(pages)))
                self.log_pages = next(fitting, 0)
        return self.log_pages > 0

    def give_back(self) -> bool:
        """Whether that made room."""
        held, self.log_pages = self.log_pages > 0, 0
        with suppress(OSError):
            self._path.unlink(missing_ok=True)
        return held

    def _allocated(self, size: int) -> bool:
        try:
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(file.fileno(), 0, size)
                else:
                    file.write(bytes(size))
            return True
        except OSError:
            with suppress(OSError):
                self._path.unlink(missing_ok=True)
            return False


def _room(pages: int) -> int:
    return pages * PAGE * 5 // 2
