"""`fairlead status`: leader, lag of each watch, queues, pods a second, the last error and drift of a running scheduler.

It is found as `fairlead explain` finds it (`console/scheduler_search.py`). A replica that stands by sends on to the one
that leads; where that cannot be reached, it is shown itself. Exit code 0 if the scheduler is ready and can work, 3 if
something is wrong, 1 if no scheduler answers.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import TYPE_CHECKING, Any

import click

from fairlead.console.cluster_access import cluster_options
from fairlead.console.scheduler_search import NotAScheduler, SchedulerChoice, first_answer, server_options
from fairlead.errors import FairleadError, NotLeading

if TYPE_CHECKING:
    from fairlead.client.client import KubeApi

UNWELL = 3
LAGS = 75.0
"""Seconds without a word of a watch, of which bookmarks come each minute."""
_WAITS_FOR = {
    "leaderElection": "it cannot read its lease, or holds one that should have been renewed",
    "shutdown": "it is stopping",
    "sched-handler-sync": "it has not seen the whole cluster yet: the log names the kinds that it may not list",
    "api": "the API server does not answer it, or lets it in no more",
    "modes": "a part of it waits for kinds that it may not list",
}
"""What a check of /readyz that fails means."""


@click.command("status")
@cluster_options
@server_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def status_command(output: str, **options: Any) -> None:
    """Show how a running scheduler is.

    \b
      fairlead status
      fairlead status --server https://127.0.0.1:10259 --token-file token      (after kubectl port-forward)

    \b
    Exit code 0: it is ready. 3: something is wrong. 1: no scheduler answers.
    """
    document = asyncio.run(_ask(SchedulerChoice.of(options)))
    troubles = troubles_of(document)
    click.echo(json.dumps(document, indent=2) if output == "json" else "\n".join(as_text(document, troubles)))
    sys.exit(UNWELL if troubles else 0)


async def _ask(asked: SchedulerChoice) -> dict[str, Any]:
    """The status of the leader, or of a replica that stands by if that is all that can be reached."""
    from fairlead.cluster.server.asking import STATUS_PATH

    standby: dict[str, Any] = {}

    async def status(api: KubeApi) -> dict[str, Any]:
        answer = json.loads(await api.raw(STATUS_PATH))
        if not isinstance(answer, dict) or answer.get("kind") != "SchedulerStatus":
            raise NotAScheduler(f"{api.connection} is not a fairlead")
        if not answer["leader"]["leading"]:
            standby.update(answer)
            raise NotLeading(f"it stands by; {answer['leader']['holder'] or 'nobody'} leads")
        return answer

    try:
        return await first_answer(asked, status)
    except FairleadError:
        if not standby:
            raise
        return standby


def troubles_of(document: dict[str, Any]) -> list[str]:
    """What is wrong, in words."""
    found = [f"not ready: {_WAITS_FOR.get(check, check)}" for check in document["notReady"]]
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
    who = f"leads since {leader['since']}" if leader["leading"] else f"stands by; {leader['holder'] or 'nobody'} leads"
    longest = max(watches, key=lambda watch: watch["silentSeconds"], default=None)
    lag = "none yet" if longest is None else f"{len(watches)}, longest silence {longest['silentSeconds']:.0f} s"
    error = document["lastError"]
    return [
        f"scheduler   fairlead {document['version']}, {who}, started {document['startedAt']}",
        f"profiles    {', '.join(document['profiles'])}",
        f"cluster     {document['nodes']} nodes, {document['pods']} pods",
        "queues      " + ", ".join(f"{count} {queue}" for queue, count in document["queues"].items()),
        f"bound       {document['boundPerSecond']:.1f} pods/s over the last minute",
        f"watches     {lag}" + (f" ({longest['resource']})" if longest else ""),
        f"last error  {error['time']} {error['text']}" if error else "last error  none",
        f"drift       {document['drift']}, {document['exceptions']} exceptions, {document['quarantined']} quarantined",
        *(f"WRONG       {trouble}" for trouble in troubles),
    ]
