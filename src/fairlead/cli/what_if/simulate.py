"""`fairlead simulate -f FILE`: would this run now, where, and whom would it cost? Nothing is written anywhere.

Exit codes: 0 all pods would get a node now, if need be after evictions; 3 some would wait; 2 the input is wrong;
1 no scheduler answers.
"""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import click

from fairlead.cli.what_if.asking import (
    WAITS,
    asking_options,
    namespace_option,
    print_answer,
    put_question,
    verbose_option,
    whom,
)


@click.command("simulate")
@click.option(
    "-f",
    "--filename",
    "files",
    multiple=True,
    required=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="A manifest or a directory of manifests; may be repeated.",
)
@asking_options
@namespace_option
@verbose_option
@click.option("--changes/--no-changes", default=True, help="Whether to look for the least change that would help.")
def simulate_command(files: tuple[Path, ...], output: str, changes: bool, verbose: bool, **options: Any) -> None:
    """Say what would happen if the objects in FILE were applied now, without applying them.

    Of what is there already it says what would happen to it, as `kubectl diff` is about both.

    \b
      fairlead simulate -f job.yaml
      fairlead simulate -f job.yaml --from prod.snapshot -o json

    \b
    Exit code 0: all pods would get a node. 3: some would wait. 2: the input is wrong. 1: no scheduler answers.
    """
    from fairlead.cli.what_if.text import show_simulation
    from fairlead.testing.manifests import read_manifests

    documents = [doc for file in files for doc in read_manifests(file)]
    answer = put_question(whom(options), {"kind": "SimulateQuestion", "changes": changes}, documents)
    print_answer(answer, output, partial(show_simulation, verbose=verbose))
    sys.exit(WAITS if answer["verdict"] == "Waits" else 0)
