"""`fairlead status`: leader, lag of each watch, queues, pods a second, the last error and drift of a running scheduler.

The scheduler is found as `fairlead explain` finds it: through the kubeconfig (a cluster of `fairlead up`), then on the
port of this machine, or where `--server` says (for a pod of the chart, after `kubectl port-forward`). Exit code 0 if it
can work, 3 if something is wrong, 1 if no scheduler answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.console.cluster_access import cluster_options
from fairlead.console.explanations import connections, server_options
from fairlead.errors import ApiError, FairleadError

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection

UNWELL = 3
LAGS = 75.0
"""Seconds without a word of a watch, of which bookmarks come each minute."""


@click.command("status")
@cluster_options
@server_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status_command(
    kubeconfig: Path | None, context: str | None, server: str | None, token_file: Path | None, output: str
) -> None:
    """Show how a running scheduler is.

    \b
      fairlead status
      fairlead status --server https://127.0.0.1:10259 --token-file token      (after kubectl port-forward)

    \b
    Exit code 0: it can work. 3: something is wrong. 1: no scheduler answers.
    """
    asked, _ = connections(kubeconfig, context, server, token_file)
    document = asyncio.run(_first(asked))
    troubles = troubles_of(document)
    click.echo(json.dumps(document, indent=2) if output == "json" else "\n".join(as_text(document, troubles)))
    sys.exit(UNWELL if troubles else 0)


async def _first(asked: Sequence[Connection]) -> dict[str, Any]:
    troubles: list[str] = []
    for connection in asked:
        try:
            return await _ask(connection)
        except FairleadError as error:
            troubles.append(str(error))
    raise FairleadError(f"no scheduler answers: {'; '.join(troubles)}")


async def _ask(connection: Connection) -> dict[str, Any]:
    from fairlead.client.client import KubeApi
    from fairlead.cluster.server.asking import STATUS_PATH

    api = KubeApi(connection, attempts=1)
    try:
        answer = json.loads(await api.raw(STATUS_PATH))
    except (ApiError, json.JSONDecodeError) as error:
        raise FairleadError(str(error)) from error
    finally:
        await api.close()
    if not isinstance(answer, dict) or answer.get("kind") != "SchedulerStatus":
        raise FairleadError(f"{connection} is not a fairlead")
    return answer


def troubles_of(document: dict[str, Any]) -> list[str]:
    """What is wrong, in words."""
    found = []
    if document["leader"]["elected"] and not document["leader"]["holder"]:
        found.append("nobody leads")
    if document["apiUnreachableSeconds"]:
        found.append(f"the API server has not answered for {document['apiUnreachableSeconds']:.0f} s")
    silent = [watch["resource"] for watch in document["watches"] if watch["silentSeconds"] > LAGS]
    if silent:
        found.append(f"no news of {', '.join(silent)}")
    if document["quarantined"]:
        found.append(f"{document['quarantined']} objects are quarantined")
    if document["drift"]:
        found.append(f"the table differed from its pods {document['drift']} times, and was repaired")
    return found


def as_text(document: dict[str, Any], troubles: list[str]) -> list[str]:
    leader, watches = document["leader"], document["watches"]
    who = "leads" if leader["leading"] else f"stands by; {leader['holder'] or 'nobody'} leads"
    longest = max(watches, key=lambda watch: watch["silentSeconds"], default=None)
    lag = "none yet" if longest is None else f"{len(watches)}, longest silence {longest['silentSeconds']:.0f} s"
    error = document["lastError"]
    return [
        f"scheduler   fairlead {document['version']}, {who}, since {document['startedAt']}",
        f"profiles    {', '.join(document['profiles'])}",
        f"cluster     {document['nodes']} nodes, {document['pods']} pods",
        "queues      " + ", ".join(f"{count} {queue}" for queue, count in document["queues"].items()),
        f"bound       {document['boundPerSecond']:.1f} pods/s over the last minute",
        f"watches     {lag}" + (f" ({longest['resource']})" if longest else ""),
        f"last error  {error['time']} {error['text']}" if error else "last error  none",
        f"drift       {document['drift']}, {document['exceptions']} exceptions, {document['quarantined']} quarantined",
        *(f"WRONG       {trouble}" for trouble in troubles),
    ]
