"""How commands put a question: the objects are read and expanded here, the scheduler that is meant answers.

    files ─▶ expand, with what admission reads of the cluster ─▶ question ─▶ the scheduler of a cluster or snapshot

The scheduler is found as `fairlead explain` finds it (`console/scheduler_search.py`).
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.console.cluster_access import cluster_options
from fairlead.console.scheduler_search import SchedulerChoice, cluster_of, first_answer, namespace_of, server_options
from fairlead.errors import Forbidden, MethodNotAllowed, NotFound

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import Connection
    from fairlead.core.model.flow import Doc

WAITS = 3


@dataclass(frozen=True, slots=True)
class Whom:
    """Which scheduler is asked."""

    asked: SchedulerChoice
    snapshot: Path | None = None
    volcano: str | None = None
    config: Path | None = None


def asking_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which a scheduler is found, and the form of the answer."""
    for option in reversed(
        (
            click.option(
                "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True
            ),
            cluster_options,
            server_options,
            click.option(
                "--from",
                "snapshot",
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="SNAPSHOT",
                help="Ask about a file of `fairlead snapshot save` instead of a running cluster.",
            ),
            click.option(
                "--volcano-conf",
                "volcano",
                metavar="FILE|PRESET",
                help="With --from: how pods of the Volcano scheduler are placed.  [default: default]",
            ),
            click.option(
                "--config",
                type=click.Path(path_type=Path, dir_okay=False),
                metavar="FILE",
                help="With --from: the scheduler's configuration.",
            ),
        )
    ):
        command = option(command)
    return command


def whom(options: dict[str, Any]) -> Whom:
    """Takes the options of `asking_options` out of a command's."""
    return Whom(SchedulerChoice.of(options), *(options.pop(name) for name in ("snapshot", "volcano", "config")))


def own_namespace(whom: Whom) -> str:
    """The namespace that is meant when none is named."""
    return namespace_of(whom.asked) or "default"


def put_question(whom: Whom, question: Doc, documents: Sequence[Doc] = ()) -> Doc:
    """The answer. `documents` are expanded into the question's objects first."""
    if whom.snapshot is not None:
        return _ask_snapshot(whom, whom.snapshot, question, documents)
    return asyncio.run(_ask(whom, question, documents))


def _ask_snapshot(whom: Whom, snapshot: Path, question: Doc, documents: Sequence[Doc]) -> Doc:
    from fairlead.testing.asking import answer_of
    from fairlead.testing.harness import Harness

    config = None if whom.config is None else str(whom.config)
    cluster = Harness.from_snapshot(
        snapshot, housekeeping="volcano-queue-controller", config=config, volcano=whom.volcano or "default"
    )
    cluster.settle()
    return answer_of(cluster, question, documents)


async def _ask(whom: Whom, question: Doc, documents: Sequence[Doc]) -> Doc:
    from fairlead.cluster.server.asking import QUESTIONS_PATH

    objects: list[Doc] | None = None if documents else []

    async def put(api: KubeApi) -> Doc:
        nonlocal objects
        if objects is None:
            objects = await _expanded(cluster_of(whom.asked), documents)
        return await api.post(QUESTIONS_PATH, {**question, "objects": objects} if objects else question)

    return await first_answer(whom.asked, put)


async def _expanded(connection: Connection | None, documents: Sequence[Doc]) -> list[Doc]:
    """What the documents would become in the cluster; where none is known, what they say by themselves."""
    from fairlead.assembly.expansion import expand
    from fairlead.client.client import KubeApi

    if connection is None:
        return expand([_in_namespace(doc, "") for doc in documents], [], now=time.time())
    api = KubeApi(connection, attempts=2)
    try:
        placed = [_in_namespace(doc, connection.namespace) for doc in documents]
        return expand(placed, await context_of_cluster(api, placed), now=time.time())
    finally:
        await api.close()


async def context_of_cluster(api: KubeApi, documents: Sequence[Doc]) -> list[Doc]:
    """What admission and controllers read of a cluster for these objects."""
    from fairlead.assembly.expansion import needed
    from fairlead.client.port import Query

    found: list[Doc] = []
    for kind in needed(documents):
        try:
            page = await api.list(kind, Query())
            found += [{"apiVersion": kind.api_version, "kind": kind.kind, **doc} for doc in page.items]
        except (NotFound, Forbidden, MethodNotAllowed):
            continue
    return found


def _in_namespace(doc: Doc, namespace: str) -> Doc:
    if doc["metadata"].get("namespace"):
        return doc
    return {**doc, "metadata": {**doc["metadata"], "namespace": namespace or "default"}}


def print_answer(answer: Doc, output: str, show: Callable[[Any, Doc], None]) -> None:
    if output == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    elif output == "yaml":
        import yaml

        click.echo(yaml.safe_dump(answer, sort_keys=False, allow_unicode=True), nl=False)
    else:
        from rich.console import Console

        show(Console(highlight=False, soft_wrap=True), answer)
