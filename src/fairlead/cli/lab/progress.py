"""progress_bar: how far a run or an experiment is, on stderr, where that is a terminal; nothing is printed elsewhere.

The time that is left is computed from what is done: in a run from the share of its jobs, in an experiment from how long
runs of the same policy took.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress

    from fairlead.lab.play.run import LabRun

_BETWEEN = 0.2
"""Seconds between two looks at a run; looking costs a little."""


class LabProgress:
    """One bar with the time that is left."""

    def __init__(self, bar: Progress) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=None, left="", visible=False)
        self._looked = 0.0
        self._run: LabRun | None = None

    def follow(self, run: LabRun) -> None:
        """Show how many jobs of a run have ended."""
        began, total = time.monotonic(), len(run.jobs)
        self._run = run
        self._bar.update(self._task, description="jobs", total=total, visible=True)

        def look() -> None:
            now = time.monotonic()
            if now - self._looked < _BETWEEN:
                return
            self._looked = now
            done = total - run.recorder.unended
            left = (now - began) * (total - done) / done if done else None
            self._bar.update(self._task, completed=done, left=time_left(left))

        run.looked = look

    def finish(self) -> None:
        """Show how many jobs had ended at the end."""
        if self._run is not None:
            done = len(self._run.jobs) - self._run.recorder.unended
            self._bar.update(self._task, completed=done, left="")

    def runs(self, total: int, *, done: int) -> None:
        """Show how many runs there are, and how many were done before."""
        self._bar.update(self._task, description="runs", total=total, completed=done, visible=True)

    def run_done(self, name: str, left: float | None) -> None:
        """Count a run that is done."""
        self._bar.update(self._task, advance=1, description=name, left=time_left(left))


def time_left(seconds: float | None) -> str:
    """The time that is left, as hours, minutes and seconds; nothing where it is not known yet."""
    if seconds is None:
        return ""
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02} left"


@contextmanager
def progress_bar() -> Iterator[LabProgress]:
    """A bar that is shown while the block runs."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        shown = LabProgress(bar)
        yield shown
        shown.finish()
