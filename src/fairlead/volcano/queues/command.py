"""`fairlead queue list|get|explain`: the queues of Volcano, and what one holds, may hold, and why.

`list` and `get` read the objects of any cluster. `explain` asks the scheduler that keeps the accounts; where none
answers, it shows what the objects alone say.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.console.cluster_access import cluster_options
from fairlead.console.explanations import UnknownToScheduler, ask
from fairlead.console.scheduler_search import SchedulerChoice, cluster_of, server_options
from fairlead.console.terminal import output as standard_output
from fairlead.errors import ApiError, FairleadError, NotFound
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection
    from fairlead.core.model.flow import Doc

_NO_QUEUES = "there are no queues, so no scheduler here has a Volcano profile (fairlead up --volcano-conf default does)"
"""Every scheduler with that profile makes the queue `default` when it starts."""
_NO_VOLCANO = (
    "no scheduler here has a Volcano profile; `fairlead up` and `fairlead scheduler` do with --volcano-conf FILE"
)
_COUNTS = ("inqueue", "pending", "running", "unknown", "completed")


@click.group("queue")
def queue_group() -> None:
    """List queues; show what one holds, may hold, and why."""


def _where(command: Callable[..., None]) -> Callable[..., None]:
    for option in reversed(
        (
            click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True),
            cluster_options,
        )
    ):
        command = option(command)
    return command


@queue_group.command("list")
@_where
def list_command(output: str, kubeconfig: Path | None, context: str | None) -> None:
    """List all queues with their groups by phase."""
    cluster = _cluster(kubeconfig, context)
    queues = asyncio.run(_queues(cluster))
    if not queues:
        click.echo(_NO_QUEUES, err=True)
    _print(queues, output)
    if (
        queues
        and not _are_served(queues)
        and not asyncio.run(_are_accounted_for(SchedulerChoice(kubeconfig, context), queues[0]))
    ):
        click.echo(f"these queues wait: {_NO_VOLCANO}", err=True)


def _are_served(queues: Sequence[Doc]) -> bool:
    """Whether somebody let a group in: a scheduler with a Volcano profile, wherever its port is."""
    return any(queue["status"].get(phase) for queue in queues for phase in _COUNTS if phase != "pending")


def _cluster(kubeconfig: Path | None, context: str | None) -> Connection:
    from fairlead.client.credentials import connect

    return connect(None if kubeconfig is None else str(kubeconfig), context)


async def _are_accounted_for(asked: SchedulerChoice, queue: Doc) -> bool:
    """Whether the scheduler that answers knows a queue; also if none answers, because Volcano's own may be there."""
    try:
        await ask(asked, "", queue["metadata"]["name"], plural="queues")
    except UnknownToScheduler:
        return False
    except FairleadError:
        return True
    return True


@queue_group.command("get")
@click.argument("name")
@_where
def get_command(name: str, output: str, kubeconfig: Path | None, context: str | None) -> None:
    """Show one queue."""
    cluster = _cluster(kubeconfig, context)
    found = [queue for queue in asyncio.run(_queues(cluster)) if queue["metadata"]["name"] == name]
    if not found:
        raise FairleadError(f'queues.scheduling.volcano.sh "{name}" not found')
    _print(found, output)


@queue_group.command("explain")
@click.argument("name")
@_where
@server_options
def explain_command(name: str, output: str, **options: Any) -> None:
    """Show the sum of queue NAME line by line: what it may have, has, keeps for others, and what is left."""
    document = asyncio.run(_explanation(SchedulerChoice.of(options), name))
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
        return
    from fairlead.volcano.explain.text import show_queue

    show_queue(standard_output(), document)


async def _explanation(asked: SchedulerChoice, name: str) -> dict[str, Any]:
    """From a scheduler, else from the Queue itself if a cluster was named: a scheduler alone has no objects."""
    try:
        return await ask(asked, "", name, plural="queues")
    except FairleadError:
        cluster = None if asked.server is not None else cluster_of(asked)
        if cluster is None:
            raise
        queues = await _queues(cluster)
        if not queues:
            raise FairleadError(f'queues.scheduling.volcano.sh "{name}" not found: {_NO_QUEUES}') from None
        found = [queue for queue in queues if queue["metadata"]["name"] == name]
        if not found:
            raise FairleadError(f'queues.scheduling.volcano.sh "{name}" not found') from None
        return usage_of_objects(found[0])


def usage_of_objects(queue: Doc) -> dict[str, Any]:
    """What the object alone says, in the form of an explanation."""
    spec, status = queue.get("spec") or {}, queue.get("status") or {}
    lines = {
        "capability": spec.get("capability") or {},
        "guarantee": (spec.get("guarantee") or {}).get("resource") or {},
        "deserved": spec.get("deserved") or {},
        "allocated": status.get("allocated") or {},
    }
    resources = dict.fromkeys(name for amounts in lines.values() for name in amounts)
    return {
        "kind": "QueueExplanation",
        "queue": queue["metadata"]["name"],
        "state": status.get("state") or "",
        "weight": spec.get("weight", 1),
        "parent": spec.get("parent") or "",
        "plugin": "",
        "share": None,
        "place": None,
        "sums": {name: {line: amounts.get(name) for line, amounts in lines.items()} for name in resources},
        "holders": [],
        "waiting": [],
        "why": ["no scheduler that keeps its account answers: this is what the object says", _NO_VOLCANO],
    }


async def _queues(cluster: Connection) -> list[Doc]:
    from fairlead.client.client import KubeApi

    api = KubeApi(cluster, attempts=1)
    try:
        listed = json.loads(await api.raw(VC_QUEUE.path()))
        groups = json.loads(await api.raw(VC_POD_GROUP.path()))
    except NotFound as error:
        raise FairleadError("this cluster has no queues: the kind queues.scheduling.volcano.sh is not known") from error
    except (ApiError, json.JSONDecodeError) as error:
        raise FairleadError(str(error)) from error
    finally:
        await api.close()
    counted = _counted(listed.get("items") or (), groups.get("items") or ())
    return sorted(counted, key=lambda queue: str(queue["metadata"]["name"]))


def _counted(queues: Sequence[Doc], groups: Sequence[Doc]) -> Iterator[Doc]:
    """The queues with their PodGroups counted by phase, which their status could show but nothing writes."""
    found = Counter(
        ((group.get("spec") or {}).get("queue") or "default", (group.get("status") or {}).get("phase") or "Pending")
        for group in groups
    )
    for queue in queues:
        counts = {name: found[queue["metadata"]["name"], name.capitalize()] for name in _COUNTS}
        known = {name: count for name, count in counts.items() if count}
        yield {**queue, "status": {**(queue.get("status") or {}), **known}}


def _print(queues: Sequence[Doc], output: str) -> None:
    """In the columns that vcctl prints."""
    if output == "json":
        click.echo(json.dumps(list(queues), indent=2, ensure_ascii=False))
        return
    rows = [("Name", "Weight", "State", "Parent", *(name.capitalize() for name in _COUNTS))]
    for queue in queues:
        spec, status = queue.get("spec") or {}, queue.get("status") or {}
        counts = (str(status.get(name, 0)) for name in _COUNTS)
        weight, state = str(spec.get("weight", 1)), status.get("state") or ""
        rows.append((queue["metadata"]["name"], weight, state, spec.get("parent") or "", *counts))
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    for row in rows:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())
