"""`fairlead controllers`: the controllers of Volcano on a real cluster, in vc-controller-manager's place.

Flags have the names and defaults of the original where they mean something here. Flags about its threads are taken and
mean nothing: one thread serves all controllers, in the order of what happens.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AsyncExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fairlead.cli.terminal import log_to_stderr
from fairlead.controllers.volcano_choice import VOLCANO_NAMES, choose_volcano_controllers
from fairlead.errors import ConfigError
from fairlead.model.quirks import Quirks

if TYPE_CHECKING:
    from fairlead.runtime.leader import Elector

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
@click.option("--controllers", "names", default="*,-sharding-controller", show_default=True, callback=_chosen,
              metavar="NAMES", help=f"Which run: *, NAME or +NAME, -NAME; {', '.join(VOLCANO_NAMES)}.")  # fmt: skip
@click.option("--kubeconfig", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE",
              help="Default: KUBECONFIG, ./fairlead.kubeconfig, ~/.kube/config, the pod's own.")  # fmt: skip
@click.option("--context", metavar="NAME", help="Another context of the kubeconfig than the current one.")
@click.option("--scheduler-name", "schedulers", multiple=True, metavar="NAME",
              help="Pods of this schedulerName need PodGroups; may be repeated.  [default: volcano]")  # fmt: skip
@click.option("--leader-elect/--no-leader-elect", default=True, show_default=True,
              help="Act only while holding the lease vc-controller-manager.")  # fmt: skip
@click.option("--leader-elect-resource-namespace", "namespace", default="volcano-system", show_default=True)
@click.option("--volcano-compatible", "compatible", is_flag=True, help="Keep the original's slips.")
@click.option("-v", "--verbose", count=True, help="Say what happens on standard error (twice: everything).")
@_thread_options
def controllers_command(
    names: tuple[str, ...], kubeconfig: Path | None, context: str | None, schedulers: tuple[str, ...],
    leader_elect: bool, namespace: str, compatible: bool, verbose: int,
) -> None:  # fmt: skip
    """Run Volcano's controllers on a cluster: Jobs, PodGroups, queues, flows, cron jobs.

    \b
      fairlead controllers --kubeconfig ~/.kube/config
      fairlead controllers --controllers='*,-jobflow-controller'
    """
    log_to_stderr(max(verbose, 1))
    path, quirks = None if kubeconfig is None else str(kubeconfig), Quirks.of(compatible=compatible)
    lease_in = namespace if leader_elect else None
    asyncio.run(_run(names, path, context, schedulers or ("volcano",), lease_in, quirks))


async def _run(
    names: tuple[str, ...], kubeconfig: str | None, context: str | None, schedulers: tuple[str, ...],
    lease_namespace: str | None, quirks: Quirks,
) -> None:  # fmt: skip
    from fairlead.api.client.client import KubeApi
    from fairlead.api.client.credentials import connect
    from fairlead.cli.leading import lead, stop_on_signals
    from fairlead.config.job_plugins import installed_job_plugins
    from fairlead.controllers.housekeeping import housekeepers
    from fairlead.runtime.leader import Election, Elector
    from fairlead.runtime.live import LiveRuntime
    from fairlead.runtime.ssh_keys import make_ssh_keys
    from fairlead.runtime.worlds import Remote

    connection = connect(kubeconfig, context)
    async with AsyncExitStack() as opened:
        api = KubeApi(connection)
        opened.push_async_callback(api.close)
        world = Remote(api)
        runtime = LiveRuntime(
            world,
            housekeepers(
                world.view, names=names, volcano_names=schedulers, quirks=quirks, make_keys=make_ssh_keys,
                job_plugins=installed_job_plugins(),
            ),
        )  # fmt: skip
        elector: Elector | None = None
        if lease_namespace is not None:
            own = KubeApi(connection)
            opened.push_async_callback(own.close)
            elector = Elector(own, Election("vc-controller-manager", lease_namespace))
        stopping = stop_on_signals(runtime)
        log.info("running %s", ", ".join(names))
        await lead(elector, runtime, stopping, stands_by=False)
