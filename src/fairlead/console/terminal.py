"""What every command shares of the terminal: progress bars on standard error, and logs for those who ask.

Results go to standard output and nothing else does, so they can be piped. Progress is shown only on a terminal.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class Bar(Protocol):
    """Progress towards a known end."""

    def reach(self, done: int) -> None: ...


class _Silent:
    def reach(self, done: int) -> None:
        pass


class _Shown:
    def __init__(self, progress: Progress, title: str, total: int) -> None:
        self._progress = progress
        self._task = progress.add_task(title, total=total)

    def reach(self, done: int) -> None:
        self._progress.update(self._task, completed=done)


@contextmanager
def bars(**totals: int) -> Iterator[dict[str, Bar]]:
    """One bar per title, gone when all is done."""
    if not sys.stderr.isatty():
        yield {title: _Silent() for title in totals}
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:>10}"), BarColumn(40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        yield {title: _Shown(progress, title, total) for title, total in totals.items()}


class KeyValues(logging.Formatter):
    """Lines for people and for grep: `12:00:01 warning fairlead.runtime "message" controller=kubelet`."""

    def __init__(self, *, dated: bool = False) -> None:
        super().__init__(datefmt="%Y-%m-%dT%H:%M:%S" if dated else "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        extras = " ".join(f"{key}={value}" for key, value in vars(record).items() if key not in _PLAIN)
        words = (self.formatTime(record, self.datefmt), record.levelname.lower(), record.name, record.getMessage())
        line = " ".join(filter(None, (*words, extras)))
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def log_to_stderr(verbosity: int) -> None:
    """Warnings always; with -v what happens, with -vv everything."""
    handler = logging.StreamHandler()
    handler.setFormatter(KeyValues())
    level = (logging.WARNING, logging.INFO, logging.DEBUG)[min(verbosity, 2)]
    root = logging.getLogger("fairlead")
    root.handlers[:] = [handler]
    root.setLevel(level)
    root.propagate = False
