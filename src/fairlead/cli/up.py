"""`fairlead up`: a cluster in the foreground, until Ctrl-C.

It prints one line that begins with `ready` when kubectl can be used, and nothing else on standard output. It ends with
exit code 0 on SIGINT and SIGTERM, also while it is starting, and leaves nothing behind that `--data` does not keep.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from fairlead.cli.device_flags import parse_device
from fairlead.cli.fleet import DEFAULT_NODES, Fleet, parse_shape, parse_zones
from fairlead.cli.gate_flags import compatible_option, gates_option, with_compatibility
from fairlead.cluster.housekeeping import choose_controllers
from fairlead.console.terminal import bars, log_to_stderr
from fairlead.errors import ConfigError, FairleadError
from fairlead.kube.config.gates import OWN_GATES
from fairlead.runtime.collecting import loading
from fairlead.volcano.cli.flags import volcano_options, volcano_setup

if TYPE_CHECKING:
    from fairlead.assembly.cluster import ClusterAssembly
    from fairlead.assembly.schedulers import SchedulerAssembly
    from fairlead.cli.embedded import EmbeddedCluster, UpOptions
    from fairlead.cli.kubeconfig_file import KubeconfigFile
    from fairlead.cluster.store.snapshot import Snapshot
    from fairlead.koordinator.descheduling.settings import DeschedulerSettings
    from fairlead.kube.config.records import KubeConfig
    from fairlead.volcano.config.setup import VolcanoSetup

log = logging.getLogger(__name__)

Parsed = TypeVar("Parsed")
ENDING = (signal.SIGINT, signal.SIGTERM)
USUAL_KUBECONFIG = Path("~/.kube/config")
DEFAULT_KUBECONFIG = Path("fairlead.kubeconfig")
_PASSED_ON = ("bind", "port", "data", "fsync", "leave_out_damaged", "devices", "check_bindings", "run_time")
"""Flags that are options of the cluster as they are."""


def _each(parse: Callable[[str], Parsed]) -> Callable[[click.Context, click.Parameter, Any], Any]:
    """A click callback that reports a wrong value as wrong usage."""

    def callback(context: click.Context, parameter: click.Parameter, value: Any) -> Any:
        try:
            return tuple(map(parse, value)) if isinstance(value, tuple) else parse(value)
        except ConfigError as error:
            raise click.BadParameter(str(error), context, parameter) from None

    return callback


def _not_the_users_own(context: click.Context, parameter: click.Parameter, path: Path) -> Path:
    if path.absolute().resolve() == USUAL_KUBECONFIG.expanduser().resolve():
        raise click.BadParameter("fairlead does not touch ~/.kube/config; name another file", context, parameter)
    return path


def _run_time(context: click.Context, parameter: click.Parameter, value: str | None) -> float | None:
    from fairlead.core.model.durations import parse_duration

    try:
        seconds = None if value is None else parse_duration(value, unit="s")
    except ValueError as error:
        raise click.BadParameter(f"{error}; for example 90, 30s or 10m", context, parameter) from None
    if seconds is not None and seconds < 0:
        raise click.BadParameter(f"{value} is before the start; for example 90, 30s or 10m", context, parameter)
    return seconds


def _an_address(context: click.Context, parameter: click.Parameter, address: str) -> str:
    """An address, or a name that stands for one."""
    try:
        socket.getaddrinfo(address, None, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError):
        text = f"{address!r} is neither an address nor the name of this machine; for example 127.0.0.1 or 0.0.0.0"
        raise click.BadParameter(text, context, parameter) from None
    return address


@click.command("up")
@click.option(
    "--nodes", type=click.IntRange(min=0), metavar="N", help=f"How many simulated nodes.  [default: {DEFAULT_NODES}]"
)
@click.option(
    "--zones",
    default="3",
    show_default=True,
    metavar="N|NAMES",
    callback=_each(parse_zones),
    help="How many zones the nodes are in, or their names (a,b,c).",
)
@click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="[COUNT:]RES=N,...",
    callback=_each(parse_shape),
    help="What nodes offer: cpu=8,memory=32Gi,pods=110,nvidia.com/gpu=8. Repeat for several shapes; "
    "5:cpu=64,memory=256Gi gives five such nodes. Also name=gpu, type=p4d.24xlarge, label.team=ml, "
    "taint.gpu=yes:NoSchedule.",
)
@click.option(
    "--nodes-file",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Shapes of nodes, or Node objects, in YAML; beside or in the place of --shape.",
)
@click.option(
    "--device",
    "devices",
    multiple=True,
    metavar="DRIVER:N[,NAME=VALUE...]",
    callback=_each(parse_device),
    help="Devices that every node has, for resource claims: gpu.example.com:8,model=H100,memory=80Gi. "
    "A DeviceClass of the driver's first word (gpu) is made. May be repeated.",
)
@click.option(
    "--kubeconfig",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT_KUBECONFIG,
    show_default=True,
    callback=_not_the_users_own,
    help="Where to write the kubeconfig once the cluster is ready. Never over a file that is not this "
    "cluster's; the default gives way to fairlead-2.kubeconfig and so on.",
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on.  [default: a free one]")
@click.option(
    "--bind",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    callback=_an_address,
    help="Address to listen on. Anything but loopback lets others reach this cluster.",
)
@click.option(
    "--data",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="Keep objects, certificates and the token in DIR, and go on from there the next time.",
)
@click.option("--fsync", is_flag=True, help="With --data: survive power cuts too, at the price of slower writes.")
@click.option(
    "--leave-out-damaged",
    is_flag=True,
    help="With --data: set objects aside that the disk has damaged, and start without them.",
)
@click.option(
    "--scheduler",
    type=click.Choice(["fairlead", "none"]),
    default="fairlead",
    show_default=True,
    help="Who places pods; `none` leaves it to you. Controllers and kubelets run either way.",
)
@click.option(
    "--check-bindings",
    is_flag=True,
    help="Refuse a Binding to a node without room for the pod, so that several schedulers can share nodes.",
)
@click.option(
    "--config",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="The scheduler's configuration (KubeSchedulerConfiguration).",
)
@click.option(
    "--descheduler",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="With a profile of Koordinator's: move pods by this configuration of its descheduler.",
)
@click.option(
    "--controllers",
    default="all",
    show_default=True,
    metavar="NAMES",
    callback=_each(choose_controllers),
    help="Which controllers run, by their names in kube-controller-manager: all, none, NAME,NAME,... or "
    "-NAME,... for all but these. Others may then do their work.",
)
@click.option(
    "--from",
    "snapshot",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Begin with the cluster in a file of `fairlead snapshot save`.",
)
@click.option(
    "--run-time",
    metavar="DURATION",
    callback=_run_time,
    help="How long pods of Jobs run that do not say it themselves (fairlead.io/run-time): 90, 30s, 10m.  [default: 1s]",
)
@click.option("-v", "--verbose", count=True, help="Say what happens on standard error (twice: everything).")
@gates_option("A=true,B=false, as `fairlead scheduler` takes them; what gangs need is on.", defaults=OWN_GATES)
@compatible_option
@volcano_options
def up_command(**flags: Any) -> None:
    """Start a cluster of simulated nodes in this terminal, and write a kubeconfig for it.

    It is a Kubernetes API on loopback with controllers, kubelets and a scheduler. When it is ready, one line says so:

    \b
      fairlead up --nodes 100 --shape cpu=16,memory=64Gi
      kubectl --kubeconfig fairlead.kubeconfig create deployment web --image=nginx --replicas=20

    Ctrl-C ends it, and everything in it is gone unless --data keeps it.
    """
    _leave_quietly_on_signals()
    log_to_stderr(flags["verbose"])
    volcano = volcano_setup(flags)
    _check(flags, volcano)
    flags["gates"] = with_compatibility(flags)
    fleet = _fleet(flags)
    kubeconfig = _kubeconfig_file(flags)

    with loading():
        options = _options(flags, fleet, kubeconfig, volcano)
    asyncio.run(_up(options))


def _options(
    flags: Mapping[str, Any], fleet: Fleet, kubeconfig: KubeconfigFile, volcano: VolcanoSetup | None
) -> UpOptions:
    """NumPy, aiohttp and the rest are imported here, once the options are known to be good."""
    from fairlead.cli.embedded import UpOptions

    return UpOptions(
        fleet=fleet,
        kubeconfig=kubeconfig,
        assembly=_assembly(flags, volcano),
        snapshot=None if flags["snapshot"] is None else _read(flags["snapshot"]),
        **{name: flags[name] for name in _PASSED_ON},
    )


def _check(flags: Mapping[str, Any], volcano: VolcanoSetup | None) -> None:
    """Options that make no sense together."""
    if flags["fsync"] and flags["data"] is None:
        raise click.UsageError("--fsync needs --data")
    if flags["leave_out_damaged"] and flags["data"] is None:
        raise click.UsageError("--leave-out-damaged needs --data")
    if flags["scheduler"] == "fairlead":
        return
    useless = {
        "--config": flags["config"] is not None,
        "--feature-gates": flags["gates"] != OWN_GATES,
        "--volcano-conf": volcano is not None,
    }
    for option, given in useless.items():
        if given:
            raise click.UsageError(f"{option} is for the scheduler, and --scheduler none runs none")


def _kubeconfig_file(flags: Mapping[str, Any]) -> KubeconfigFile:
    from fairlead.cli.kubeconfig_file import KubeconfigFile

    path = flags["kubeconfig"]
    if not path.absolute().parent.is_dir():
        raise ConfigError(f"the kubeconfig {path} cannot be written: {path.parent} is not a directory")
    chosen = click.get_current_context().get_parameter_source("kubeconfig") is not ParameterSource.DEFAULT
    file = KubeconfigFile(path, chosen=chosen, data=flags["data"])
    try:
        file.check()
    except FairleadError as error:
        raise click.BadParameter(str(error), param_hint="'--kubeconfig'") from None
    return file


def _fleet(flags: Mapping[str, Any]) -> Fleet:
    nodes, zones, shapes, file = flags["nodes"], flags["zones"], flags["shapes"], flags["nodes_file"]
    try:
        if file is None:
            return Fleet(nodes, zones, shapes)
        from fairlead.cli.fleet_file import read_fleet_file

        more, objects = read_fleet_file(file)
        return Fleet(nodes, zones, (*shapes, *more), objects)
    except ConfigError as error:
        raise click.UsageError(str(error)) from None


def _leave_quietly_on_signals() -> None:
    """Exit at once on a signal until the event loop handles signals: nothing has been started before that."""
    for number in ENDING:
        signal.signal(number, lambda *_: sys.exit(0))


def _assembly(flags: Mapping[str, Any], volcano: VolcanoSetup | None) -> ClusterAssembly:
    """The cluster that is wanted. A wrong file raises ConfigError."""
    from fairlead.assembly.cluster import ClusterAssembly

    descheduler = _descheduler(flags["descheduler"])
    settings = [] if descheduler is None else [descheduler]
    return ClusterAssembly(_schedulers(flags, volcano), names=flags["controllers"], settings=settings)


def _schedulers(flags: Mapping[str, Any], volcano: VolcanoSetup | None) -> SchedulerAssembly | None:
    """The scheduler that is wanted, if one is."""
    if flags["scheduler"] == "none":
        return None
    from fairlead.assembly.schedulers import SchedulerAssembly
    from fairlead.core.engine.explain.eviction_ledger import CONFIG_MAP
    from fairlead.core.engine.scheduler import Options

    options = Options(evictions_in=CONFIG_MAP)
    setups = [] if volcano is None else [volcano]
    return SchedulerAssembly(_config(flags), setups=setups, gates=flags["gates"], options=options)


def _config(flags: Mapping[str, Any]) -> KubeConfig:
    """The file, or the default. What it says that changes nothing is named in the log."""
    from fairlead.assembly.loading import read_config
    from fairlead.assembly.registry import PluginRegistry
    from fairlead.kube.config.kube import default_kube_config

    given, capabilities = flags["config"], PluginRegistry().capabilities
    if given is None:
        config = default_kube_config(capabilities=capabilities, gates=flags["gates"])
    else:
        config = read_config(given, capabilities=capabilities, gates=flags["gates"])
    for notice in config.notices:
        log.warning(notice)
    return config


def _descheduler(file: Path | None) -> DeschedulerSettings | None:
    if file is None:
        return None
    from fairlead.koordinator.descheduling.reading import read_descheduler_file

    return read_descheduler_file(file)


def _read(snapshot: Path) -> Snapshot:
    from fairlead.cluster.store.snapshot import read_snapshot

    return read_snapshot(snapshot)


async def _up(options: UpOptions) -> None:
    """Start and serve, until a signal or a failure; in every case stop."""
    from fairlead.cli.embedded import EmbeddedCluster

    interrupted = asyncio.Event()
    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    cluster = EmbeddedCluster(options)
    serving = asyncio.create_task(_serve(cluster))
    ending = asyncio.create_task(interrupted.wait())
    try:
        await asyncio.wait([serving, ending], return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (serving, ending):
            task.cancel()
        await asyncio.wait([serving, ending])
        await cluster.stop()
    if not serving.cancelled():
        serving.result()


async def _serve(cluster: EmbeddedCluster) -> None:
    from fairlead.assembly.asking import prepare_for_questions

    with bars(nodes=len(cluster.options.fleet)) as shown:
        await cluster.start(shown["nodes"].reach)
    path = cluster.options.kubeconfig.path
    if cluster.options.kubeconfig.moved:
        click.echo(f"{DEFAULT_KUBECONFIG} exists and is not this cluster's: this one's kubeconfig is {path}", err=True)
    how = f"kubectl --kubeconfig {path} get nodes"
    click.echo(f"ready {cluster.url} with {cluster.nodes} nodes; try: {how} (Ctrl-C ends it)")
    try:
        await asyncio.to_thread(prepare_for_questions)
    except (OSError, ImportError) as error:  # such as no free file descriptor: the first question will try again
        log.warning("questions could not be prepared for: %s", error)
    await cluster.failed()
