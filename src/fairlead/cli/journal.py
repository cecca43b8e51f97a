"""`fairlead journal`: what is wrong with a data directory of `fairlead up`, and a new database of what can be read."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from fairlead.cluster.store.journal_repair import Findings

_DIRECTORY = click.Path(path_type=Path, file_okay=False, exists=True)
_MOST_NAMED = 50


@click.group("journal")
def journal_group() -> None:
    """Check and repair what `fairlead up --data DIR` keeps, while no cluster runs on it.

    \b
      fairlead journal check DIR
      fairlead journal repair DIR
    """


@journal_group.command("check")
@click.argument("directory", metavar="DIR", type=_DIRECTORY)
def check_command(directory: Path) -> None:
    """Read everything in DIR and say what is damaged. Nothing is changed. The exit code is 1 if something is."""
    from fairlead.cluster.store.journal_repair import examine

    with _held(directory):
        found = examine(directory)
    _say(found)
    click.echo(f"{len(found.rows)} objects can be read, {len(found.damaged)} are damaged")
    if not found.sound:
        click.echo(f"try: fairlead journal repair {directory}", err=True)
        sys.exit(1)


@journal_group.command("repair")
@click.argument("directory", metavar="DIR", type=_DIRECTORY)
def repair_command(directory: Path) -> None:
    """Make a new database of what can be read in DIR, and keep the old one beside it."""
    from fairlead.cluster.store.journal_repair import repair

    with _held(directory):
        done = repair(directory)
    found = done.found
    _say(found)
    if found.from_pages:
        click.echo(f"{found.from_pages} objects were found in single pages; deleted ones may be among them")
    click.echo(f"kept {len(found.rows)} objects and left out {len(found.damaged)}; what was there is {done.kept_as}")


@contextmanager
def _held(directory: Path) -> Iterator[None]:
    """While this lasts, no cluster starts on the directory."""
    from fairlead.cluster.store.journal import locked

    lock = locked(directory)
    try:
        yield
    finally:
        os.close(lock)


def _say(found: Findings) -> None:
    for problem in found.problems:
        click.echo(f"damaged: {problem}")
    for row in list(found.damaged.values())[:_MOST_NAMED]:
        click.echo(f"damaged: {row}: {row.why}")
    if len(found.damaged) > _MOST_NAMED:
        click.echo(f"damaged: {len(found.damaged) - _MOST_NAMED} more objects")
    if found.aside:
        click.echo(f"set aside earlier: {found.aside} objects")
