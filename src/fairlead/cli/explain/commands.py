"""`fairlead explain pod NAME`, `explain podgroup NAME`: why it is where it is, or waits, from the one that decided.

`console/scheduler_search.py` says how the scheduler is found.

Exit codes: 0 the pod is placed; 3 it waits; 1 it is not known, or no scheduler answers; 2 wrong usage.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.what_if.asking import verbose_option
from fairlead.console.cluster_access import ask_cluster, cluster_options
from fairlead.console.explanations import ask
from fairlead.console.scheduler_search import SchedulerChoice, namespace_of, server_options
from fairlead.console.terminal import output as standard_output
from fairlead.core.family import families, resolve
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from rich.console import Console

    from fairlead.client.client import KubeApi

WAITS = 3
PLACED = ("Scheduled", "Binding", "Completed")
_SHORT = {
    "po": "pod",
    "deploy": "deployment",
    "rs": "replicaset",
    "sts": "statefulset",
    "ds": "daemonset",
    "pg": "podgroup",
}
"""kubectl's short names."""


class _KindAndName(click.Group):
    """Also takes `pod/NAME`, as kubectl does and prints it, and options alone, which request everything that waits."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and "/" in args[0] and not args[0].startswith("-"):
            args = [*args[0].split("/", 1), *args[1:]]
        elif not args or (args[0].startswith("-") and args[0] not in ("-h", "--help")):
            args = ["waiting", *args]
        return super().parse_args(ctx, [self._command_for(args[0]), *args[1:]])

    def _command_for(self, word: str) -> str:
        """The command for a kind as kubectl takes it: `deploy`, `deployments` and `deployment.apps` are one."""
        kind = word.partition(".")[0] if "." in word else word
        kind = _SHORT.get(kind, kind)
        singular = kind.removesuffix("s")
        return next((one for one in (kind, singular) if one in self.commands), word)


@click.group("explain", cls=_KindAndName)
def explain_group() -> None:
    """Say why a pod, a group or a workload is where it is, or why it waits. Without a word: everything that waits."""


def _not_empty(context: click.Context, parameter: click.Parameter, name: str) -> str:
    if not name.strip():
        raise click.BadParameter("a name is needed", context, parameter)
    return name


def _asking(command: Callable[..., None]) -> Callable[..., None]:
    """The options by which a scheduler is found."""
    for option in reversed(
        (
            click.argument("name", callback=_not_empty),
            click.option("-n", "--namespace", default="", help="Default: the one of the kubeconfig's context."),
            click.option(
                "-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True
            ),
            cluster_options,
            server_options,
        )
    ):
        command = option(command)
    return command


_changes_option = click.option(
    "--changes", is_flag=True, help="Also say which least changes would let it run; each is tried."
)


@explain_group.command("pod")
@_asking
@click.option("--nodes", "limit", type=int, default=5, show_default=True, help="How many nodes to name per reason.")
@_changes_option
@click.option("-v", "--verbose", is_flag=True, help="Also the whole traceback of a plugin that raised.")
def pod_command(
    name: str, namespace: str, output: str, limit: int, changes: bool, verbose: bool, **options: Any
) -> None:
    """Explain where the pod NAME is, or why it is nowhere yet.

    \b
    Exit code 0: it is placed. 3: it waits. 1: nobody knows it, or no scheduler answers.
    """
    asked = SchedulerChoice.of(options)
    where = namespace or namespace_of(asked)
    document = asyncio.run(ask(asked, where, name))
    if changes and document["verdict"] not in PLACED:
        from fairlead.cli.what_if.waiting import changes_for
        from fairlead.core.model.kinds import POD

        document |= changes_for(asked, POD, where, name)
    _answer(document, output, lambda console: show_pod(console, document, limit, verbose=verbose))


@explain_group.command("podgroup")
@_asking
@_changes_option
def podgroup_command(
    name: str, namespace: str, output: str, changes: bool = False, called: str = "podgroup", **options: Any
) -> None:
    """Explain how much of the group NAME has places, and what the rest lacks.

    \b
    Exit code 0: enough members are placed. 3: it waits. 1: nobody knows it, or no scheduler answers.
    """
    asked = SchedulerChoice.of(options)
    where = namespace or namespace_of(asked)
    document = asyncio.run(ask(asked, where, name, plural="podgroups", called=called))
    _add_quota_lacks(document, where, name, (asked.kubeconfig, asked.context))
    if changes and document["verdict"] not in PLACED:
        from fairlead.cli.what_if.waiting import changes_for_group

        document |= changes_for_group(asked, document["podGroup"])
    _answer(document, output, lambda console: show_group(console, document))


def _add_quota_lacks(
    document: dict[str, Any], namespace: str, name: str, cluster: tuple[Path | None, str | None]
) -> None:
    """If members are missing, say which ResourceQuota keeps them from being made. Not every scheduler's cluster can be
    asked, and then nothing is said of it."""
    from fairlead.cli.explain.quota_lacks import missing_member, quota_lacks

    members = document["members"]
    missing = (members["needed"] or 0) - members["known"]
    if missing <= 0:
        return

    async def lacking(api: KubeApi, _: str) -> list[dict[str, Any]]:
        member = await missing_member(api, namespace, name)
        return [] if member is None else await quota_lacks(api, namespace, member, missing)

    try:
        lacks = ask_cluster(lacking, *cluster)
    except FairleadError:
        return
    if lacks:
        document["lacks"] = [*document.get("lacks", ()), *lacks]


@explain_group.command("job")
@_asking
@_changes_option
@click.pass_context
def job_command(command: click.Context, /, **options: Any) -> None:
    """Explain the group of the job NAME, Volcano's or a plain one, as `explain podgroup` does.

    Other owners of pods that Volcano schedules (a StatefulSet, a ReplicaSet) are found by their names too.

    \b
    Exit code 0: enough members are placed. 3: it waits. 1: nobody knows it, or no scheduler answers.
    """
    try:
        command.invoke(podgroup_command, called="job", **options)
    except FairleadError as unknown:
        try:
            _explain_workload("job", options["name"], options)
        except FairleadError:
            raise unknown from None


def _explain_workload(word: str, name: str, options: Mapping[str, Any]) -> None:
    """`options` are those of the command line."""
    from fairlead.cli.explain.workload import WORKLOADS, show_workload, waiting_explanation, workload_explanation

    namespace = options["namespace"]

    def question(api: KubeApi, own_namespace: str) -> Coroutine[Any, Any, dict[str, Any]]:
        if word == "waiting":
            return waiting_explanation(api, namespace)
        return workload_explanation(api, word, namespace or own_namespace, name)

    document = ask_cluster(question, options["kubeconfig"], options["context"])
    if options.get("changes") and document["verdict"] not in PLACED:
        from fairlead.cli.what_if.waiting import changes_for

        asked = SchedulerChoice.of(dict(options))
        document |= changes_for(asked, WORKLOADS[word], document["namespace"], name)
    verbose = bool(options.get("verbose"))
    _answer(document, options["output"], lambda console: show_workload(console, document, verbose=verbose))


def _workload_command(word: str) -> click.Command:
    def command(name: str, **options: Any) -> None:
        _explain_workload(word, name, options)

    command.__doc__ = f"""Say where the pods of the {word} NAME are, and why the others wait, grouped by reason.

    \b
    Exit code 0: all have a node. 3: some wait. 1: there is no such {word}.
    """
    return click.command(word)(_asking(_changes_option(verbose_option(command))))


for _word in ("deployment", "replicaset", "statefulset", "daemonset"):
    explain_group.add_command(_workload_command(_word))


@explain_group.command("waiting")
@click.option("-n", "--namespace", default="", help="Default: all namespaces.")
@click.option("-o", "--output", type=click.Choice(["text", "json", "yaml"]), default="text", show_default=True)
@cluster_options
@verbose_option
def waiting_command(**options: Any) -> None:
    """Say which pods wait for a node, grouped by reason; `fairlead explain` alone does the same."""
    _explain_workload("waiting", "", options)


def _answer(document: dict[str, Any], output: str, show: Callable[[Console], None]) -> None:
    if output == "json":
        click.echo(json.dumps(document, indent=2, ensure_ascii=False))
    elif output == "yaml":
        import yaml

        click.echo(yaml.safe_dump(document, sort_keys=False, allow_unicode=True), nl=False)
    else:
        show(standard_output())
    sys.exit(0 if document["verdict"] in PLACED else WAITS)


def show_pod(console: Console, document: dict[str, Any], limit: int, *, verbose: bool) -> None:
    """Print the Explanation of a pod, `limit` nodes per reason; `verbose` with the whole traceback of a plugin."""
    from fairlead.cli.explain.pod_text import show
    from fairlead.cli.what_if.text import show_changes

    show(console, document, limit=limit, verbose=verbose)
    show_changes(console, document)


def show_group(console: Console, document: dict[str, Any]) -> None:
    """Print the Explanation of a group, and the changes that would help if the document has them."""
    from fairlead.cli.what_if.text import show_changes
    from fairlead.console.gang_text import show

    show(console, document)
    for family in families():
        for field, target in family.explainers.items():
            if field in document:
                resolve(target)(console, document)
    show_changes(console, document)
