"""What `fairlead scheduler` joins together: configuration, api, lease, runtime, telemetry and the port to watch it on.

configuration ─▶ connect ─▶ serve health ─▶ stand by for the lease ─▶ schedule ... ─signal▶ finish writes ─▶ release
                                                  └──────lost──────▶ exit code 1
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.assembly.asking import Ask, answerer, prepare_for_questions
from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.registry import BUILT_IN
from fairlead.assembly.schedulers import Look, SchedulerAssembly
from fairlead.cli.dumping import ApiState, compare, dump
from fairlead.cli.observation import SchedulerObservation
from fairlead.cli.refusals import announce_on
from fairlead.cli.reloading import follow_files, log_config_change
from fairlead.cli.scheduler_config import connection_of, with_leader_flags
from fairlead.cli.scheduler_election import elector_of, leading_of, not_leading, vitals_of
from fairlead.cli.scheduler_port import Port
from fairlead.client.client import KubeApi
from fairlead.client.retry import Throttle
from fairlead.cluster.kubelets.refused_pods import RefusedPods
from fairlead.cluster.server.asking import Asked
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.ops_server import OpsServer, Pages
from fairlead.config.watcher import ConfigWatcher
from fairlead.console.leading import in_background, lead, may_write_of, stop_on_signals
from fairlead.console.logs import DECISIONS
from fairlead.console.roles.needs import Tasks, tasks_of_plugins
from fairlead.console.roles.review import review_rights
from fairlead.core.engine.explain.figures import figures_of
from fairlead.core.engine.scheduler import Options, Scheduler
from fairlead.core.model import kinds
from fairlead.errors import ApiError, NotFound
from fairlead.kube.config.document import to_document
from fairlead.runtime.api_health import ApiHealth
from fairlead.runtime.live import LiveRuntime, RuntimeLimits
from fairlead.runtime.metrics import about_process, metrics_of_families
from fairlead.runtime.reporting import ApiReporter
from fairlead.runtime.status import SchedulerStatus
from fairlead.runtime.telemetry import Telemetry
from fairlead.runtime.usage import UsageCollector
from fairlead.runtime.worlds import Remote
from fairlead.runtime.writers import SendingRules
from fairlead.volcano.grants import CARDS, ROUNDS, SHARDS
from fairlead.volcano.rounds.partition import Sharding

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from fairlead.assembly.schedulers import Reload
    from fairlead.cli.scheduler_flags import PortFlags, SchedulerFlags
    from fairlead.client.credentials import Connection
    from fairlead.client.mirror import Mirror
    from fairlead.core.model.flow import Doc
    from fairlead.kube.config.records import KubeConfig
    from fairlead.runtime.lease_chain import Candidate
    from fairlead.runtime.tracing import CycleTracer

log = logging.getLogger("fairlead.scheduler")

IN_FLIGHT = 112
"""Requests on their way at once, each on a connection: 42 binds, 28 statuses, 28 events, 14 deletions."""


def throttle_of(config: KubeConfig) -> Throttle | None:
    client = config.client_connection
    return Throttle(client.qps, max(1, client.burst)) if client.qps > 0 else None


def assembled(flags: SchedulerFlags, config: KubeConfig) -> ClusterAssembly:
    """What this process brings to the cluster: a scheduler, and the controllers that are requested."""
    setups = [] if flags.volcano is None else [flags.volcano]
    schedulers = SchedulerAssembly(config, setups=setups, options=_options(flags))
    return ClusterAssembly(schedulers, names=schedulers.controllers if flags.volcano_controllers else ())


async def run(flags: SchedulerFlags, config: KubeConfig) -> None:
    """Run until a signal. Raises FairleadError when the lease is lost."""
    connection = connection_of(flags.cluster, config)
    async with AsyncExitStack() as opened:
        port = Port(flags.port, connection)
        elector = elector_of(opened, connection, flags, config, port)
        reporter = ApiReporter()
        api, world = _reached(opened, connection, config, may_write_of(elector), reporter)
        cluster = assembled(flags, config)
        assembly = cluster.schedulers
        assert assembly is not None
        scheduler = assembly.scheduler(world.view, config_maps=await _config_maps(assembly, api))
        scheduler.ledger.restore(await _evictions(api, flags.evictions_in))
        telemetry = _telemetry(
            flags,
            requests=lambda: _requests(connection, api),
            leading=lambda: leading_of(elector, config),
            also=lambda: (*health.metrics(), *about_process(assembly.refused, vitals.failures())),
        )
        refused = RefusedPods(world.view, scheduler.profiles, replace=flags.replace_refused_pods)
        observation = SchedulerObservation(
            scheduler, telemetry, refused=refused, tracer=_tracer(flags.tracing_endpoint, opened)
        )
        runtime = LiveRuntime(
            world,
            [scheduler, refused, *cluster.joining(world.view)],
            limits=RuntimeLimits(in_flight=IN_FLIGHT),
            on_step=observation.after_step,
            on_turn=observation.after_turn,
        )
        health = ApiHealth(reporter, world.view.silences, runtime.writing)
        stopping = stop_on_signals(runtime)
        waits, asking = elector is not None and config.delay_cache_until_active, partial(runtime.ask, scheduler)
        vitals = vitals_of(elector, runtime, stopping, health, standing_by=lambda: waits or world.view.listed)
        status = _status(asking, scheduler, world.view, elector, telemetry, reporter, vitals.failing)
        opened.enter_context(status.keeping_last_error())
        reporter.waiting = lambda: sum(runtime.writing().waiting.values())
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR2, partial(_ask_for_dump, runtime, scheduler, world.view))
        ending = partial(loop.call_soon_threadsafe, partial(_end, runtime, stopping))
        in_background(opened, follow_files(_looks(assembly, flags, ending), asking))
        _collect_usage(opened, assembly, world.view, api)
        server = OpsServer(
            vitals=vitals,
            pages=Pages(
                metrics=partial(observation.exposition, runtime),
                reset=telemetry.reset,
                config=lambda: to_document(assembly.current),
                status=status.document,
            ),
            asked=Asked([asking], [answerer(asking)]),
            at=Endpoint(flags.port.bind_address, flags.port.secure_port, port.tls),
            guard=port.guard(opened),
            always_allowed=flags.port.authorization_always_allow_paths,
            standing_by=partial(not_leading, elector),
        )
        await _serve(opened, flags.port, server, port)
        in_background(opened, _review_rights(flags, connection, config, cluster, scheduler))
        in_background(opened, announce_on(connection, lambda: assembly.refused))
        in_background(opened, asyncio.to_thread(prepare_for_questions))
        await lead(elector, runtime, stopping, stands_by=not waits)


def _reached(
    opened: AsyncExitStack,
    connection: Connection,
    config: KubeConfig,
    may_write: Callable[[], bool],
    reporter: ApiReporter,
) -> tuple[KubeApi, Remote]:
    """The API and the cluster behind it."""
    throttle = throttle_of(config)
    api = KubeApi(connection, throttle=throttle, may_write=may_write)
    opened.push_async_callback(api.close)
    rules = SendingRules(may_write, throttle, throttle_of(config), reporter.answered)
    return api, Remote(api, on_error=reporter.watch_failed, on_contact=reporter.watch_answered, rules=rules)


def _telemetry(
    flags: SchedulerFlags,
    *,
    requests: Callable[[], Mapping[tuple[str, str, str], int]],
    leading: Callable[[], tuple[str, bool] | None],
    also: Callable[[], Iterable[Metric]],
) -> Telemetry:
    return Telemetry(
        requests=requests,
        leading=leading,
        sources=metrics_of_families(),
        also=also,
        log_decisions=flags.verbosity >= DECISIONS,
        built_in=frozenset(BUILT_IN),
    )


def _status(
    ask: Ask,
    scheduler: Scheduler,
    view: Mirror,
    elector: Candidate | None,
    telemetry: Telemetry,
    reporter: ApiReporter,
    failing: Callable[[], list[str]],
) -> SchedulerStatus:
    return SchedulerStatus(
        partial(ask, figures_of),
        elector=elector,
        bound=telemetry.bound,
        unreachable=lambda: reporter.unreachable_for,
        silences=view.silences,
        profiles=lambda: list(scheduler.profiles),
        failing=failing,
    )


async def _review_rights(
    flags: SchedulerFlags, connection: Connection, config: KubeConfig, cluster: ClusterAssembly, scheduler: Scheduler
) -> None:
    """Say which rights this process lacks."""
    volcano, election = flags.volcano, config.leader_election
    of_volcano = {
        ROUNDS: volcano is not None,
        SHARDS: volcano is not None and volcano.options.partition.sharding is not Sharding.NONE,
        CARDS: cluster.schedulers is not None and bool(cluster.schedulers.config_maps),
    }
    of_families = [("volcano", task) for task, done in of_volcano.items() if done]
    tasks = Tasks(
        places=True,
        kube=volcano is None or not volcano.only,
        of_families=[*of_families, *tasks_of_plugins(scheduler.watches)],
        controllers=tuple(cluster.names),
        elects=election.leader_elect,
        asks_who=flags.port.asks_who,
        replaces=flags.replace_refused_pods,
        keeps_evictions=flags.evictions_in is not None,
    )
    lease = (election.resource_namespace, election.resource_name)
    leases = [lease, *([flags.first_lease] if flags.first_lease and election.leader_elect else [])]
    await review_rights(connection, tasks.needs(scheduler.watches), leases)


def _tracer(endpoint: str | None, opened: AsyncExitStack) -> CycleTracer | None:
    """What sends a span for each cycle, if that is requested."""
    if endpoint is None:
        return None
    from fairlead.runtime.tracing import tracer_to

    tracer = tracer_to(endpoint)
    opened.callback(tracer.close)
    return tracer


def _options(flags: SchedulerFlags) -> Options:
    return Options(
        instance=socket.gethostname(),
        seed=random.SystemRandom().randrange(2**32),
        unschedulable_limit=flags.unschedulable_limit,
        evictions_in=flags.evictions_in,
    )


async def _evictions(api: KubeApi, place: tuple[str, str] | None) -> Doc | None:
    """What a process before this one wrote down of its evictions."""
    if place is None:
        return None
    try:
        return await api.get(kinds.CONFIG_MAP, *place)
    except NotFound:
        return None
    except ApiError as error:
        log.warning("evictions before this start are not known: ConfigMap %s/%s: %s", *place, error.message)
        return None


async def _config_maps(assembly: SchedulerAssembly, api: KubeApi) -> Mapping[tuple[str, str], Doc | None]:
    """The ConfigMaps that are read once at the start, such as Volcano's settings of accelerator cards."""
    return {where: await _config_map(api, where) for where in assembly.config_maps}


async def _config_map(api: KubeApi, where: tuple[str, str]) -> Doc | None:
    try:
        return await api.get(kinds.CONFIG_MAP, *where)
    except ApiError as error:
        log.info("the cards' ConfigMap %s/%s is not used: %s", *where, error)
        return None


def _end(runtime: LiveRuntime, stopping: asyncio.Event) -> None:
    stopping.set()
    runtime.stop()


def _looks(assembly: SchedulerAssembly, flags: SchedulerFlags, end: Callable[[], object]) -> list[Look]:
    """The files that are followed: that of the kube profiles and those of the setups. `end` ends the process."""
    looks: list[Look] = []
    if flags.config.config is not None:
        load = partial(_load, assembly, flags, flags.config.config)
        watcher = ConfigWatcher(flags.config.config, load, log_config_change)
        assembly.follow(watcher)
        looks.append(partial(_look, assembly, watcher, end))
    return looks + assembly.looks_of_setups(log_config_change)


def _look(assembly: SchedulerAssembly, watcher: ConfigWatcher[KubeConfig], end: Callable[[], object]) -> Reload | None:
    """Look at the file of the kube profiles. Another lease is nothing to go over to while running: the holder of
    the old one has no right to the names that the new one stands for. So the process ends, to stand for it anew."""
    reload = assembly.look_at(watcher)
    if reload is None or watcher.current.leader_election == assembly.current.leader_election:
        return reload
    log.warning("leaderElection has changed: this process ends, and its next start takes the new configuration")
    end()
    return None


def _load(assembly: SchedulerAssembly, flags: SchedulerFlags, file: Path, text: str) -> KubeConfig:
    """The configuration in a file that has changed. What takes effect only with a start is said."""
    config, now = with_leader_flags(assembly.load(text, file=str(file)), flags.leader), assembly.current
    if now.client_connection != config.client_connection:
        log.warning("clientConnection takes effect with the next start")
    return config


def _collect_usage(opened: AsyncExitStack, assembly: SchedulerAssembly, view: Mirror, api: KubeApi) -> None:
    """Keep asking how busy nodes are, if Volcano's file ever says where."""

    def names() -> list[str]:
        return [doc["metadata"]["name"] for doc in view.list(kinds.NODE)]

    for board in assembly.usage_boards:
        in_background(opened, UsageCollector(board, names=names, raw=api.raw, now=time.time).run())


def _ask_for_dump(runtime: LiveRuntime, scheduler: Scheduler, view: Mirror) -> None:
    """Have what is in memory written to the log, and compared with what the API sent up to now."""
    api_state = ApiState.by(view) if view.listed else None

    def dumped(asked: Scheduler) -> None:
        try:
            dump(asked)
            if api_state is not None:
                compare(asked, api_state)
        except Exception:
            log.exception("the dump failed")

    runtime.ask(scheduler, dumped)


async def _serve(opened: AsyncExitStack, flags: PortFlags, server: OpsServer, port: Port) -> None:
    if not flags.secure_port:
        return
    await server.start()
    opened.push_async_callback(server.stop)
    port.publish(server, opened)
    in_background(opened, port.follow(server))


def _requests(connection: Connection, api: KubeApi) -> Mapping[tuple[str, str, str], int]:
    host = connection.server.partition("://")[2]
    return {(code, host, method): count for (code, method), count in dict(api.responses).items()}
