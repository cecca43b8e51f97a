"""The command `fairlead vcctl`: vcctl's arguments in, vcctl's output and exit codes out.

What goes wrong in the work itself is printed on standard output as `Failed to <verb> <thing>: <error>` with exit code
255; arguments that cannot be read go to standard error with exit code 1; a word after `job` or `queue` that is no
command prints their help.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.errors import ApiError, FairleadError
from fairlead.volcano.vcctl import jobs, pods, queues, stored
from fairlead.volcano.vcctl.flags import UsageFault, VcCommand, help_text, parse, unknown_command
from fairlead.volcano.vcctl.tree import SHORT_TOOLS, TREE
from fairlead.volcano.vcctl.work import VcFault, VcWork

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi

_VERSION = """\
API Version: v1alpha1
Version: v1.15.1
Git SHA: Not provided.
Built At: Not provided.
Go Version: none, this is fairlead
Go OS/Arch: linux/amd64
"""
_FAILED, _WRONG = 255, 1

Action = Callable[[VcWork], Awaitable[None]]
Open = Callable[[Mapping[str, Any]], "ClusterApi"]
_ACTIONS: Mapping[tuple[str, str], Action] = {
    ("job", "run"): jobs.run,
    ("job", "list"): jobs.list_jobs,
    ("job", "view"): jobs.view,
    ("job", "suspend"): jobs.suspend,
    ("job", "resume"): jobs.resume,
    ("job", "delete"): jobs.delete,
    ("queue", "create"): queues.create,
    ("queue", "delete"): queues.delete,
    ("queue", "get"): queues.get,
    ("queue", "list"): queues.list_queues,
    ("queue", "operate"): queues.operate,
    ("pod", "list"): pods.list_pods,
    **{(kind, verb): action for kind in ("jobflow", "jobtemplate") for verb, action in stored.ACTIONS.items()},
}


@click.command("vcctl", context_settings={"ignore_unknown_options": True, "help_option_names": []})
@click.option("--as", "tool", type=click.Choice(list(SHORT_TOOLS)), help="Be one of Volcano's short tools.")
@click.argument("words", nargs=-1, type=click.UNPROCESSED)
def vcctl_command(tool: str | None, words: tuple[str, ...]) -> None:
    """Take vcctl's arguments and print what it prints."""
    if tool is not None:
        words = as_tool(tool, words)
    sys.exit(asyncio.run(run_vcctl(words, _connected, out=click.echo, err=lambda text: click.echo(text, err=True))))


def as_tool(tool: str, words: Sequence[str]) -> tuple[str, ...]:
    """A short tool's arguments as vcctl's: -n is the name there, and -N the namespace."""
    swapped = {"-n": "--name", "-N": "--namespace"} if SHORT_TOOLS[tool][0] == "job" else {}
    return (*SHORT_TOOLS[tool], *(swapped.get(word, word) for word in words))


async def run_vcctl(
    words: Sequence[str],
    connect: Open,
    *,
    out: Callable[[str], None],
    err: Callable[[str], None],
    now: Callable[[], float] = time.time,
) -> int:
    """Do what the arguments say and return the exit code. `out` and `err` get text without its last line end."""
    path, command = _find(words)
    rest = words[len(path) :]
    if command is TREE and rest and not rest[0].startswith("-"):
        err(unknown_command(rest[0], list(TREE.commands)).removesuffix("\n"))
        return _WRONG
    if path == ("version",):
        out(_VERSION.removesuffix("\n"))
        return 0
    if command.commands or path == ("help",):
        out(help_text(path if command.commands else (), command if command.commands else TREE).removesuffix("\n"))
        return 0
    return await _run(path, command, rest, connect, out=out, err=err, now=now)


def _find(words: Sequence[str]) -> tuple[tuple[str, ...], VcCommand]:
    """The command that the first words name, and those words."""
    command: VcCommand = TREE
    path: tuple[str, ...] = ()
    while len(path) < len(words) and words[len(path)] in command.commands:
        command, path = command.commands[words[len(path)]], (*path, words[len(path)])
    return path, command


async def _run(
    path: tuple[str, ...],
    command: VcCommand,
    rest: Sequence[str],
    connect: Open,
    *,
    out: Callable[[str], None],
    err: Callable[[str], None],
    now: Callable[[], float],
) -> int:
    try:
        values = parse(command, rest)
    except UsageFault as error:
        err(f"Error: {error}")
        return _WRONG
    if values is None:
        out(help_text(path, command).removesuffix("\n"))
        return 0
    api: ClusterApi | None = None
    try:
        api = connect(values)
        await _ACTIONS[path[0], path[1]](VcWork(path[0], values, api, out, now))
    except FairleadError as error:
        out(f"Failed to {command.verb}: {error.message if isinstance(error, ApiError) else error}")
        return _FAILED
    finally:
        if api is not None:
            await api.close()
    return 0


def _connected(values: Mapping[str, Any]) -> ClusterApi:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import connect

    path = values.get("kubeconfig") or ""
    if path and not Path(path).exists():
        raise VcFault(f"stat {path}: no such file or directory")
    if not path and not os.environ.get("KUBECONFIG") and Path("fairlead.kubeconfig").exists():
        path = "fairlead.kubeconfig"
    return KubeApi(connect(path or None, None), attempts=1)
