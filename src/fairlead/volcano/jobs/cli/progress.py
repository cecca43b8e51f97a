"""Follow Jobs until they are where somebody waits for them to be, with their tasks in view meanwhile.

On a terminal the tasks are shown in place and redrawn; elsewhere a line is written whenever something has changed.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

import click

from fairlead.volcano.jobs.cli.tables import age
from fairlead.volcano.jobs.phases import COUNTERS, FINISHED, phase_of

if TYPE_CHECKING:
    from rich.table import Table

    from fairlead.core.model.flow import Doc

LOOK_EVERY = 0.5
_BAR = 24
_NEW = "new"
"""A Job that no controller has looked at yet; it has no phase."""

Look = Callable[[], Awaitable[Sequence["Doc"]]]


class _View(Protocol):
    def show(self, jobs: Sequence[Doc]) -> None: ...

    def close(self) -> None: ...


class _Lines:
    """For pipes and logs."""

    def __init__(self) -> None:
        self._last: dict[str, str] = {}

    def show(self, jobs: Sequence[Doc]) -> None:
        for job in jobs:
            line = summary(job)
            if self._last.get(job["metadata"]["name"]) != line:
                self._last[job["metadata"]["name"]] = line
                click.echo(line, err=True)

    def close(self) -> None:
        pass


class _Screen:
    """For people."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._live = Live(console=Console(stderr=True), transient=True, auto_refresh=False)
        self._live.start()

    def show(self, jobs: Sequence[Doc]) -> None:
        self._live.update(_bars(jobs), refresh=True)

    def close(self) -> None:
        self._live.stop()


def summary(job: Doc) -> str:
    status = job.get("status") or {}
    counts = ", ".join(f"{status[name]} {name}" for name in (*COUNTERS.values(), "terminating") if status.get(name))
    return f"{job['metadata']['name']}: {phase_of(job) or _NEW}{' (' + counts + ')' if counts else ''}"


def _bars(jobs: Sequence[Doc]) -> Table:
    from rich.table import Table

    shown = Table("job", "task", "", "pods", "phase", box=None, pad_edge=False)
    for job in jobs:
        counted = (job.get("status") or {}).get("taskStatusCount") or {}
        phase = f"{phase_of(job) or '-'} {age(job['metadata'].get('creationTimestamp'), time.time())}"
        for number, task in enumerate(job["spec"].get("tasks") or ()):
            phases = (counted.get(task.get("name")) or {}).get("phase") or {}
            first = (job["metadata"]["name"], phase) if number == 0 else ("", "")
            replicas = int(task.get("replicas") or 0)
            shown.add_row(first[0], task.get("name") or "-", bar(phases, replicas), _counts(phases, replicas), first[1])
    return shown


def bar(phases: dict[str, int], replicas: int) -> str:
    """A task as a bar: succeeded, failed, running and waiting pods from left to right."""
    marks = (("Succeeded", "█"), ("Failed", "x"), ("Running", "▒"), ("Pending", "·"))
    if not replicas:
        return ""
    drawn = "".join(mark * round(_BAR * int(phases.get(phase) or 0) / replicas) for phase, mark in marks)
    return drawn[:_BAR].ljust(_BAR)


def _counts(phases: dict[str, int], replicas: int) -> str:
    ended = int(phases.get("Succeeded") or 0) + int(phases.get("Failed") or 0)
    return f"{ended}/{replicas} ended, {int(phases.get('Running') or 0)} running"


async def follow(look: Look, names: Iterable[str], wanted: str, *, patience: float | None) -> dict[str, str]:
    """Wait until every Job is in the phase `wanted` (empty: until it is over) or is over otherwise; returns the phases.
    A Job that is gone has none. What is not reached in time is printed as it is."""
    ends = None if patience is None else time.monotonic() + patience
    view: _View = _Screen() if sys.stderr.isatty() else _Lines()
    missing = set(names)
    try:
        while True:
            jobs = await look()
            view.show(jobs)
            phases = dict.fromkeys(missing, "") | {job["metadata"]["name"]: phase_of(job) or _NEW for job in jobs}
            under_way = any(phase not in ("", wanted) and phase not in FINISHED for phase in phases.values())
            if not under_way or (ends is not None and time.monotonic() >= ends):
                return phases
            await asyncio.sleep(LOOK_EVERY)
    finally:
        view.close()
