"""`fairlead controllers`: the controllers of Volcano on a real cluster, in vc-controller-manager's place.

Flags have the names and defaults of the original where they mean something here. Flags about its threads are taken and
mean nothing: one thread serves all controllers, in the order of what happens.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.console.cluster_access import controller_cluster_options
from fairlead.console.joined_cluster import JoinFlags, joined
from fairlead.console.terminal import log_to_stderr
from fairlead.errors import ConfigError
from fairlead.volcano.cli.controller_choice import VOLCANO_NAMES, choose_volcano_controllers
from fairlead.volcano.cli.controller_port import ControllerPorts
from fairlead.volcano.records.quirks import Quirks
from fairlead.volcano.sharding.shard_policies import (
    DEFAULT_SCHEDULERS,
    ShardConfig,
    scheduler_of_words,
    shard_period,
)

if TYPE_CHECKING:
    from fairlead.volcano.controller_settings import VolcanoSettings

log = logging.getLogger("fairlead.controllers")

_THREADS = (
    "worker-threads", "worker-threads-for-podgroup", "worker-threads-for-queue", "worker-threads-for-gc",
    "worker-threads-for-cronjob",
)  # fmt: skip


def _chosen(context: click.Context, parameter: click.Parameter, value: str) -> tuple[str, ...]:
    try:
        return choose_volcano_controllers(value)
    except ConfigError as error:
        raise click.BadParameter(str(error), context, parameter) from None


def _thread_options(command: Any) -> Any:
    for name in _THREADS:
        command = click.option(f"--{name}", type=int, hidden=True, expose_value=False)(command)
    return command


@click.command("controllers")
@click.option(
    "--controllers",
    "names",
    default="*,-sharding-controller",
    show_default=True,
    callback=_chosen,
    metavar="NAMES",
    help=f"Which run: *, NAME or +NAME, -NAME; {', '.join(VOLCANO_NAMES)}.",
)
@controller_cluster_options
@click.option(
    "--scheduler-name",
    "schedulers",
    multiple=True,
    metavar="NAME",
    help="Pods of this schedulerName need PodGroups; may be repeated.  [default: volcano]",
)
@click.option(
    "--leader-elect/--no-leader-elect",
    default=True,
    show_default=True,
    help="Act only while holding the lease vc-controller-manager.",
)
@click.option("--leader-elect-resource-namespace", "namespace", default="volcano-system", show_default=True)
@click.option(
    "--kube-api-qps",
    type=float,
    default=50.0,
    show_default=True,
    metavar="N",
    help="Requests a second; -1 is no limit.",
)
@click.option("--kube-api-burst", type=int, default=100, show_default=True, metavar="N", help="Requests at once.")
@click.option(
    "--max-requeue-num",
    "most_tries",
    type=int,
    default=15,
    show_default=True,
    metavar="N",
    help="A Job whose work fails more often is terminated; -1 is never.",
)
@click.option(
    "--inherit-owner-annotations",
    "inherits",
    type=bool,
    default=True,
    show_default=True,
    help="Give PodGroups of plain pods the annotations of their owners.",
)
@click.option("--enable-healthz", "health", is_flag=True, help="Serve /healthz.")
@click.option("--healthz-address", default=":11251", show_default=True, metavar="HOST:PORT")
@click.option("--enable-metrics", "metrics", is_flag=True, help="Serve /metrics.")
@click.option("--listen-address", default=":8081", show_default=True, metavar="HOST:PORT")
@click.option(
    "--scheduler-configs",
    "shards",
    multiple=True,
    metavar="NAME:TYPE:MIN:MAX:WARM:LEAST:MOST",
    help="Who shares the nodes, for the sharding-controller, where no ConfigMap says so.",
)
@click.option("--shard-sync-period", "period", default="60s", show_default=True, metavar="DURATION")
@click.option(
    "--enable-node-event-trigger",
    "follows_nodes",
    type=bool,
    default=True,
    show_default=True,
    help="Divide nodes anew when one comes or goes.",
)
@click.option("--volcano-compatible", "compatible", is_flag=True, help="Keep the original's slips.")
@click.option("-v", "--verbose", count=True, help="Say what happens on standard error (twice: everything).")
@_thread_options
def controllers_command(
    names: tuple[str, ...],
    kubeconfig: Path | None,
    context: str | None,
    schedulers: tuple[str, ...],
    leader_elect: bool,
    namespace: str,
    kube_api_qps: float,
    kube_api_burst: int,
    most_tries: int,
    inherits: bool,
    health: bool,
    healthz_address: str,
    metrics: bool,
    listen_address: str,
    shards: tuple[str, ...],
    period: str,
    follows_nodes: bool,
    compatible: bool,
    verbose: int,
) -> None:
    """Run Volcano's controllers on a cluster: Jobs, PodGroups, queues, flows, cron jobs, HyperNodes, shards.

    \b
      fairlead controllers --kubeconfig ~/.kube/config
      fairlead controllers --controllers='*,-jobflow-controller'
    """
    from fairlead.volcano.config.controller_settings import controller_settings

    log_to_stderr(max(verbose, 1))
    shared = _shards(shards, period, follows_nodes=follows_nodes) if "volcano-sharding-controller" in names else None
    lease = (namespace, "vc-controller-manager") if leader_elect else None
    cluster = JoinFlags(kubeconfig, context, lease, kube_api_qps, kube_api_burst)
    settings = replace(
        controller_settings([], None),
        most_tries=most_tries,
        inherits_annotations=inherits,
        shards=shared,
        schedulers=schedulers or ("volcano",),
        quirks=Quirks.of(compatible=compatible),
    )
    ports = ControllerPorts(healthz_address if health else None, listen_address if metrics else None)
    asyncio.run(_run(cluster, names, settings, ports))


def _shards(words: tuple[str, ...], period: str, *, follows_nodes: bool) -> ShardConfig:
    described = [one for word in words for one in word.split(",")] or DEFAULT_SCHEDULERS
    return ShardConfig(tuple(map(scheduler_of_words, described)), shard_period(period), follows_nodes)


async def _run(cluster: JoinFlags, names: tuple[str, ...], settings: VolcanoSettings, ports: ControllerPorts) -> None:
    from fairlead.cluster.housekeeping import housekeepers
    from fairlead.console.leading import lead, stop_on_signals
    from fairlead.console.roles.needs import Tasks
    from fairlead.runtime.live import LiveRuntime
    from fairlead.volcano.jobs.figures import VolcanoFigures

    async with joined(cluster) as reached:
        world, elector = reached.world, reached.elector
        figures = VolcanoFigures(world.view)
        also = [figures] if ports.metrics is not None else []
        controllers = housekeepers(world.view, names=names, settings=[settings], also=also)
        runtime = LiveRuntime(world, controllers)
        for server in await ports.open(reached.opened, figures, elector):
            log.info("serving at %s", server.url)
        stopping = stop_on_signals(runtime)
        log.info("running %s", ", ".join(names))
        reached.review(Tasks(controllers=names, elects=elector is not None), controllers)
        await lead(elector, runtime, stopping, stands_by=False)
