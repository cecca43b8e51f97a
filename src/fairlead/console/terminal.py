"""What every command shares of the terminal: progress bars on standard error, and logs for those who ask.

Results go to standard output and nothing else does, so they can be piped: then no line is broken and no table cut, at
whatever width. Progress is shown only on a terminal. Square brackets are printed as they are: texts come from users and
plugins (`exceedDimensions: [cpu]`), so no text is read as markup, and what is bold or coloured is a Text of parts.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table
    from rich.text import Text

_PLAIN = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


_PIPE = 1_000_000
"""Columns of what is no terminal: more than any line has."""


def output() -> Console:
    """Standard output for people to read. Lines are broken by the terminal only, so what is copied from it is whole."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else _PIPE
    return Console(highlight=False, markup=False, emoji=False, soft_wrap=True, width=width)


def line(*parts: str | tuple[str, str]) -> Text:
    """A line of parts, each a text or a text and its style."""
    from rich.text import Text

    return Text.assemble(*parts)


def put_table(console: Console, table: Table | None) -> None:
    """Print a table, if there is one. On a terminal its cells are broken to the width, and never cut."""
    if table is not None:
        for column in table.columns:
            column.overflow = "fold"
        console.print(table, soft_wrap=False)


@contextmanager
def working(title: str) -> Iterator[None]:
    """A sign of life on the terminal while something takes long, with the seconds that it took so far."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True, markup=False), transient=True) as progress:
        progress.add_task(title, total=None)
        yield


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
