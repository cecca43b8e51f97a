"""`fairlead capacity fit|need|drain|show`: how much still fits, which nodes to add, which nodes can go, and who has
what. Nothing is written.

Exit codes: 0 it fits, or can be done; 3 nothing fits, no shape helps, or a node cannot go or is not there; 2 the input
is wrong; 1 no scheduler answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
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
from fairlead.cli.what_if.text import show_drain, show_fit, show_need, show_rows


@click.group("capacity")
def capacity_group() -> None:
    """Ask a scheduler how much still fits, which nodes to add for something, and which nodes can go.

    \b
      fairlead capacity fit -f pod.yaml
      fairlead capacity need -f job.yaml
      fairlead capacity drain node-7
      fairlead capacity show quotas
    """


def _file(command: Callable[..., None]) -> Callable[..., None]:
    option = click.option(
        "-f",
        "--filename",
        "files",
        multiple=True,
        required=True,
        metavar="FILE",
        type=click.Path(path_type=Path),
        help="A manifest or a directory of manifests.",
    )
    return option(command)


@capacity_group.command("fit")
@_file
@click.option("--most", type=click.IntRange(1, 100_000), default=1000, show_default=True, help="Stop counting there.")
@asking_options
@namespace_option
@verbose_option
def fit_command(files: tuple[Path, ...], most: int, output: str, verbose: bool, **options: Any) -> None:
    """Say how many more copies of the objects in each FILE fit, and how scattered the free room is for them."""
    asked = whom(options)
    answers = [_about(asked, {"kind": "FitQuestion", "most": most}, file) for file in files]
    answer = answers[0] if len(answers) == 1 else {"kind": "CapacityFits", "items": answers}
    print_answer(answer, output, partial(show_fit, verbose=verbose))
    sys.exit(0 if all(one["fits"] for one in answers) else WAITS)


@capacity_group.command("need")
@_file
@asking_options
@namespace_option
def need_command(files: tuple[Path, ...], output: str, **options: Any) -> None:
    """Say how many nodes of which shape have to be added so that the objects in FILE run."""
    documents = [doc for file in files for doc in _read(file)]
    answer = put_question(whom(options), {"kind": "NeedQuestion"}, documents)
    print_answer(answer, output, show_need)
    sys.exit(0 if answer["runs"] or answer["shapes"] else WAITS)


@capacity_group.command("drain")
@click.argument("nodes", nargs=-1)
@asking_options
@click.option("-n", "--namespace", default="", help="Name only pods of this namespace; all of them count.")
@verbose_option
def drain_command(nodes: tuple[str, ...], output: str, namespace: str, verbose: bool, **options: Any) -> None:
    """Say which of the NODES can go, one at a time, and what becomes of their pods; without names, the emptiest."""
    answer = put_question(whom(options), {"kind": "DrainQuestion", "nodes": list(nodes)})
    for one in answer["nodes"]:
        for field in ("pods", "victims"):
            one[field] = [pod for pod in one[field] if namespace in ("", pod["namespace"])]
    print_answer(answer, output, partial(show_drain, verbose=verbose))
    sys.exit(0 if not answer["unknown"] and all(one["canGo"] for one in answer["nodes"]) else WAITS)


@capacity_group.command("show")
@click.argument("what", type=click.Choice(["workloads", "quotas", "devices"]))
@click.argument("nodes", nargs=-1)
@asking_options
def show_command(what: str, nodes: tuple[str, ...], output: str, **options: Any) -> None:
    """List workloads, queues and quotas, or the devices of NODES, of all families in one form."""
    if nodes and what != "devices":
        raise click.UsageError(f"{what} are not of nodes: name nodes after `devices` only")
    answer = put_question(whom(options), {"kind": "RowsQuestion", "of": what, "nodes": list(nodes)})
    print_answer(answer, output, show_rows)
    sys.exit(WAITS if answer.get("unknown") else 0)


def _about(asked: Any, question: dict[str, Any], file: Path) -> dict[str, Any]:
    return {"file": str(file), **put_question(asked, question, _read(file))}


def _read(file: Path) -> list[dict[str, Any]]:
    from fairlead.testing.manifests import read_manifests

    return read_manifests(file)
