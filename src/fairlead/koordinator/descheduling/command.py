"""`fairlead descheduler`: moves pods on a cluster with Koordinator's objects, in koord-descheduler's place."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import click

from fairlead.console.cluster_access import controller_cluster_options
from fairlead.console.joined_cluster import JoinFlags, joined
from fairlead.console.terminal import log_to_stderr

if TYPE_CHECKING:
    from fairlead.koordinator.descheduling.settings import DeschedulerSettings

log = logging.getLogger("fairlead.descheduler")


@click.command("descheduler")
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="A DeschedulerConfiguration, or `koordinator` for the one that Koordinator ships.",
)
@controller_cluster_options
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Act only while holding the lease koord-descheduler.",
)
@click.option("--leader-elect-resource-namespace", "namespace", default="koordinator-system", show_default=True)
@click.option("--check", is_flag=True, help="Only say whether the file can be used.")
@click.option("-v", "--verbose", count=True, help="Say what happens on standard error (twice: everything).")
def descheduler_command(
    config: Path,
    kubeconfig: Path | None,
    context: str | None,
    leader_elect: bool,
    namespace: str,
    check: bool,
    verbose: int,
) -> None:
    """Move pods off nodes that are used too much, by PodMigrationJobs, and carry out those of others.

    \b
      fairlead descheduler --config koord-descheduler.yaml --kubeconfig ~/.kube/config
    """
    from fairlead.koordinator.descheduling.reading import read_descheduler_file

    settings = read_descheduler_file(config)
    listed = [one for profile in settings.profiles for one in profile.balance]
    plugins = ", ".join(type(one).__name__.removesuffix("Settings") for one in listed)
    how = f"every {settings.interval:g}s" if settings.interval else "once"
    said = f"{plugins or 'no plugin'} {how}, then PodMigrationJobs as they come"
    if check:
        click.echo(f"{config}: {said}")
        return
    log_to_stderr(max(verbose, 1))
    log.info("running %s", said)
    lease = (namespace, "koord-descheduler") if leader_elect else None
    asyncio.run(_run(JoinFlags(kubeconfig, context, lease, 50.0, 100), settings))


async def _run(cluster: JoinFlags, settings: DeschedulerSettings) -> None:
    from fairlead.console.leading import lead, stop_on_signals
    from fairlead.console.roles.needs import Tasks
    from fairlead.koordinator.descheduling.controller import Descheduler
    from fairlead.koordinator.grants import DESCHEDULING
    from fairlead.runtime.live import LiveRuntime

    async with joined(cluster) as reached:
        moves = Descheduler(reached.world.view, settings)
        runtime = LiveRuntime(reached.world, [moves])
        stopping = stop_on_signals(runtime)
        reached.review(Tasks(of_families=[("koordinator", DESCHEDULING)], elects=cluster.lease is not None), [moves])
        await lead(reached.elector, runtime, stopping, stands_by=False)
