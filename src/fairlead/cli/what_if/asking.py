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
from fairlead.console.terminal import output as standard_output
from fairlead.console.terminal import working
from fairlead.errors import Forbidden, MethodNotAllowed, NotFound

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi
    from fairlead.client.credentials import Connection
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

WAITS = 3


@dataclass(frozen=True, slots=True)
class Whom:
    """Which scheduler is asked."""

    asked: SchedulerChoice
    snapshot: Path | None = None
    volcano: str | None = None
    config: Path | None = None
    namespace: str = ""
    """The namespace of objects that name none; empty for the one of the kubeconfig's context."""


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
    """Takes the options of `asking_options` out of a command's, and its namespace if it has one."""
    names = ("snapshot", "volcano", "config", "namespace")
    return Whom(SchedulerChoice.of(options), **{name: options.pop(name) for name in names if name in options})


def own_namespace(whom: Whom) -> str:
    """The namespace that is meant when none is named."""
    return namespace_of(whom.asked) or "default"


def put_question(whom: Whom, question: Doc, documents: Sequence[Doc] = ()) -> Doc:
    """The answer. The question is about `documents`, and about what exists of them in the cluster."""
    with working("the scheduler tries it"):
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
    return answer_of(cluster, question, _placed(documents, whom.namespace))


async def _ask(whom: Whom, question: Doc, documents: Sequence[Doc]) -> Doc:
    from fairlead.cluster.server.asking import QUESTIONS_PATH

    about: Doc | None = None if documents else {}

    async def put(api: KubeApi) -> Doc:
        nonlocal about
        if about is None:
            placed, commands = _placed(documents, whom.namespace), bool(question.get("commands"))
            about = await _about(cluster_of(whom.asked), placed, commands)
        return await api.post(QUESTIONS_PATH, {**about, **question})

    return await first_answer(whom.asked, put)


def _placed(documents: Sequence[Doc], namespace: str) -> list[Doc]:
    from fairlead.assembly.questions import in_namespace

    return [in_namespace(doc, namespace) if namespace else doc for doc in documents]


async def _about(connection: Connection | None, documents: Sequence[Doc], commands: bool) -> Doc:
    from fairlead.assembly.questions import DEPENDENTS, in_namespace, live_tree, question_about
    from fairlead.client.client import KubeApi

    if connection is None:
        placed = [in_namespace(doc, "default") for doc in documents]
        return question_about(placed, [], live_tree([], []), now=time.time(), commands=commands)
    api = KubeApi(connection, attempts=2)
    try:
        placed = [in_namespace(doc, connection.namespace) for doc in documents]
        found = [known for doc in placed if (known := await live_object(api, doc)) is not None]
        namespaces = {doc["metadata"].get("namespace", "") for doc in found}
        listed = [doc for kind in DEPENDENTS for name in namespaces for doc in await listed_objects(api, kind, name)]
        live = live_tree(found, listed)
        context = await context_of_cluster(api, placed)
        return question_about(placed, context, live, now=time.time(), commands=commands)
    finally:
        await api.close()


async def live_object(api: KubeApi, document: Doc) -> Doc | None:
    """What the cluster has under the name of a document; None if it has nothing, or nobody may read it."""
    from fairlead.core.engine.what_if.workload import kind_of

    kind, metadata = kind_of(document), document["metadata"]
    if kind is None or not metadata.get("name"):
        return None
    try:
        doc = await api.get(kind, metadata["namespace"] if kind.namespaced else "", metadata["name"])
    except (NotFound, Forbidden, MethodNotAllowed):
        return None
    return {"apiVersion": kind.api_version, "kind": kind.kind, **doc}


async def listed_objects(api: KubeApi, kind: Kind, namespace: str) -> list[Doc]:
    """All objects of a kind in a namespace, or in all; none of a kind that the cluster has not or nobody may read."""
    from fairlead.client.port import Query

    try:
        page = await api.list(kind, Query(namespace=namespace))
    except (NotFound, Forbidden, MethodNotAllowed):
        return []
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **doc} for doc in page.items]


async def context_of_cluster(api: KubeApi, documents: Sequence[Doc]) -> list[Doc]:
    """What admission and controllers read of a cluster for these objects."""
    from fairlead.assembly.expansion import needed

    return [doc for kind in needed(documents) for doc in await listed_objects(api, kind, "")]


def namespace_option(command: Callable[..., None]) -> Callable[..., None]:
    """`-n`, for objects that name no namespace."""
    words = "The namespace of objects that name none.  [default: the one of the kubeconfig's context]"
    return click.option("-n", "--namespace", default="", help=words)(command)


verbose_option = click.option("-v", "--verbose", is_flag=True, help="What kube-scheduler says, in full.")


def print_answer(answer: Doc, output: str, show: Callable[[Any, Doc], None]) -> None:
    if output == "json":
        click.echo(json.dumps(answer, indent=2, ensure_ascii=False))
    elif output == "yaml":
        import yaml

        click.echo(yaml.safe_dump(answer, sort_keys=False, allow_unicode=True), nl=False)
    else:
        show(standard_output(), answer)
