"""What `fairlead scheduler` joins together: configuration, api, lease, runtime, telemetry and the port to watch it on.

configuration ─▶ connect ─▶ serve health ─▶ stand by for the lease ─▶ schedule ... ─signal▶ finish writes ─▶ release
                                                  └──────lost──────▶ exit code 1
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import random
import signal
import socket
import ssl
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from fairlead.api.client.client import KubeApi
from fairlead.api.client.credentials import Connection, connect
from fairlead.api.client.retry import Throttle
from fairlead.api.server.ops_server import OpsServer, Vitals
from fairlead.api.server.pki import Credentials
from fairlead.cli.leading import lead
from fairlead.cli.logs import DECISIONS
from fairlead.cli.reloading import ReloadingScheduler, Told, compare, dump
from fairlead.config.assemble import profiles_of
from fairlead.config.extenders import extenders_of, without_what_extenders_manage
from fairlead.config.kube import default_kube_config
from fairlead.config.kube_document import to_document
from fairlead.config.loading import load_config, read_config
from fairlead.config.policy import policy_from_config_map, read_policy
from fairlead.config.registry import BUILT_IN, PluginRegistry
from fairlead.config.watcher import ConfigWatcher, ReloadOutcome
from fairlead.controllers.housekeeping import VOLCANO_CONTROLLERS, housekeepers
from fairlead.engine.explain.figures import figures_of, take
from fairlead.engine.scheduler import Options, Scheduler
from fairlead.errors import ApiError, ConfigError, FairleadError, NotFound
from fairlead.framework.meter import Meter
from fairlead.model import kinds
from fairlead.runtime.leader import Election, Elector
from fairlead.runtime.live import LiveRuntime, RuntimeLimits
from fairlead.runtime.telemetry import Telemetry
from fairlead.runtime.usage import UsageCollector
from fairlead.runtime.worlds import Remote

if TYPE_CHECKING:
    from fairlead.api.client.mirror import Mirror
    from fairlead.api.port import ClusterApi
    from fairlead.cli.volcano_flags import VolcanoFlags
    from fairlead.config.gates import Gates
    from fairlead.config.kube_records import KubeConfig
    from fairlead.framework.profile import Profile
    from fairlead.model.flow import Controller, Doc, DocView, Write

log = logging.getLogger("fairlead.scheduler")

IN_FLIGHT = 128
"""Writes on their way at once."""


@dataclass(frozen=True, slots=True)
class Flags:
    """The command line. None is what was not said."""

    config: Path | None
    policy_config_file: Path | None
    policy_configmap: str | None
    policy_configmap_namespace: str
    kubeconfig: Path | None
    context: str | None
    master: str | None
    write_config_to: Path | None
    bind_address: str
    secure_port: int
    tls_cert_file: Path | None
    tls_private_key_file: Path | None
    authentication_token_file: Path | None
    kube_api_qps: float | None
    kube_api_burst: int | None
    unschedulable_limit: float
    leader_elect: bool | None
    leader_elect_lease_duration: float | None
    leader_elect_renew_deadline: float | None
    leader_elect_retry_period: float | None
    leader_elect_resource_name: str | None
    leader_elect_resource_namespace: str | None
    gates: Gates
    verbosity: int
    volcano: VolcanoFlags | None = None
    volcano_controllers: bool = False

    @property
    def on_loopback(self) -> bool:
        try:
            return ipaddress.ip_address(self.bind_address).is_loopback
        except ValueError:
            return self.bind_address == "localhost"


# ---- configuration ----


def effective_config(flags: Flags) -> KubeConfig:
    """The file, or the default with the flags that a file would make meaningless; and flags about leading over both."""
    registry = PluginRegistry()
    if flags.policy_configmap is not None:
        config_map = asyncio.run(_config_map(flags, flags.policy_configmap))
        config = policy_from_config_map(config_map, capabilities=registry.capabilities, gates=flags.gates)
    elif flags.policy_config_file is not None:
        config = read_policy(flags.policy_config_file, capabilities=registry.capabilities, gates=flags.gates)
    elif flags.config is not None:
        config = read_config(flags.config, capabilities=registry.capabilities, gates=flags.gates)
    else:
        config = default_kube_config(capabilities=registry.capabilities, gates=flags.gates)
        client = _overridden(config.client_connection, qps=flags.kube_api_qps, burst=flags.kube_api_burst)
        config = replace(config, client_connection=client)
    for notice in config.notices:
        log.warning(notice)
    return with_leader_flags(config, flags)


async def _config_map(flags: Flags, name: str) -> Doc:
    """The ConfigMap with the policy, read once at the start, as kube-scheduler did."""
    api = KubeApi(connection_of(flags, default_kube_config()))
    try:
        found = await api.get(kinds.CONFIG_MAP, flags.policy_configmap_namespace, name)
        return {**found, "kind": kinds.CONFIG_MAP.kind, "apiVersion": kinds.CONFIG_MAP.api_version}
    except ApiError as error:
        where = f"ConfigMap {flags.policy_configmap_namespace}/{name}"
        raise ConfigError(f"cannot be read: {error}", file=where) from error
    finally:
        await api.close()


def with_leader_flags(config: KubeConfig, flags: Flags) -> KubeConfig:
    election = _overridden(
        config.leader_election,
        leader_elect=flags.leader_elect,
        lease_duration=flags.leader_elect_lease_duration,
        renew_deadline=flags.leader_elect_renew_deadline,
        retry_period=flags.leader_elect_retry_period,
        resource_name=flags.leader_elect_resource_name,
        resource_namespace=flags.leader_elect_resource_namespace,
    )
    return replace(config, leader_election=election)


def _overridden(record: Any, **said: Any) -> Any:
    return replace(record, **{name: value for name, value in said.items() if value is not None})


def written_config(config: KubeConfig) -> str:
    return yaml.safe_dump(to_document(config), sort_keys=True)


# ---- the world ----


def connection_of(flags: Flags, config: KubeConfig) -> Connection:
    if flags.master and not (flags.kubeconfig or config.client_connection.kubeconfig):
        return Connection.to(flags.master)
    flag = None if flags.kubeconfig is None else str(flags.kubeconfig)
    found = connect(flag, flags.context, configured=config.client_connection.kubeconfig)
    return replace(found, server=flags.master.rstrip("/")) if flags.master else found


def throttle_of(config: KubeConfig) -> Throttle | None:
    client = config.client_connection
    return Throttle(client.qps, max(1, client.burst)) if client.qps > 0 else None


class EventsApart:
    """One cluster over two apis: events have connections and a limit of their own, so that telling never holds up
    binding. Everything else is the first one's."""

    def __init__(self, main: ClusterApi, events: ClusterApi) -> None:
        self._main, self._events = main, events
        self.get, self.list, self.watch = main.get, main.list, main.watch

    async def perform(self, write: Write) -> Doc:
        return await (self._events if write.kind is kinds.EVENT_V1 else self._main).perform(write)

    async def close(self) -> None:
        await self._main.close()
        await self._events.close()


class SchedulerFactory:
    """From configurations to a Scheduler, and to what replaces its profiles."""

    def __init__(self, flags: Flags, view: DocView) -> None:
        self._flags, self._view = flags, view
        self.current: KubeConfig
        self._volcano = None if flags.volcano is None else flags.volcano.looking_at(view)
        self._volcano_config = None if flags.volcano is None else flags.volcano.first_config()

    def scheduler(self, config: KubeConfig) -> Scheduler:
        made = Scheduler(
            self._profiles(config),
            Options(
                instance=socket.gethostname(),
                seed=random.SystemRandom().randrange(2**32),
                initial_backoff=config.pod_initial_backoff_seconds,
                max_backoff=config.pod_max_backoff_seconds,
                unschedulable_limit=self._flags.unschedulable_limit,
            ),
        )
        made.meter = Meter(time.monotonic)
        return made

    def reload(self, scheduler: Scheduler, config: KubeConfig) -> None:
        """Other profiles from now on. What only a start can change is said."""
        before = self.current
        profiles = self._profiles(config)
        scheduler.reconfigure(
            profiles,
            initial_backoff=config.pod_initial_backoff_seconds,
            max_backoff=config.pod_max_backoff_seconds,
        )
        names = ", ".join(profile.name for profile in profiles)
        log.info("the new configuration is in force", extra={"profiles": names})
        if (before.leader_election, before.client_connection) != (config.leader_election, config.client_connection):
            log.warning("leaderElection and clientConnection take effect with the next start")

    def follow_volcano(self, scheduler: Scheduler) -> list[Callable[[], None]]:
        """The look at Volcano's file, if there is one to be followed."""
        watcher = None if self._volcano is None else self._volcano.watcher(_tell_of_file)
        if watcher is None:
            return []

        def look() -> None:
            if watcher.look() is ReloadOutcome.CHANGED:
                self._volcano_config = watcher.current
                scheduler.reconfigure(self._profiles(self.current))
                log.info("the new configuration is in force", extra={"actions": ", ".join(watcher.current.actions)})

        return [look]

    def load(self, text: str) -> KubeConfig:
        """A configuration that can be used: its plugins are made, to find out."""
        registry = PluginRegistry()
        config = load_config(
            text, file=str(self._flags.config), capabilities=registry.capabilities, gates=self._flags.gates
        )
        profiles_of(without_what_extenders_manage(config), registry)
        return with_leader_flags(config, self._flags)

    def _profiles(self, config: KubeConfig) -> list[Profile]:
        profiles: list[Profile] = []
        if self._volcano is None or not self._volcano.only:
            profiles = profiles_of(without_what_extenders_manage(config), extenders=extenders_of(config, self._view))
        if self._volcano is not None and self._volcano_config is not None:
            self._volcano.check_names(profiles)
            profiles.append(self._volcano.profile(self._volcano_config))
        self.current = config
        return profiles


# ---- running ----


async def run(flags: Flags, config: KubeConfig) -> None:
    """Until a signal. Raises FairleadError when the lease is lost."""
    connection = connection_of(flags, config)
    async with AsyncExitStack() as opened:
        apis = [KubeApi(connection, throttle=throttle_of(config)) for _ in range(2)]
        for one in apis:
            opened.push_async_callback(one.close)
        flags = await _knowing_cards(flags, apis[0])
        world = Remote(EventsApart(*apis), on_error=_tell_of_watch)
        making = SchedulerFactory(flags, world.view)
        scheduler = making.scheduler(config)
        attended = ReloadingScheduler(
            scheduler, world.view,
            watcher=ConfigWatcher(flags.config, making.load, _tell_of_file) if flags.config is not None else None,
            reload=lambda changed: making.reload(scheduler, changed),
            also_look=making.follow_volcano(scheduler),
        )  # fmt: skip
        _collect_usage(opened, flags, world.view, apis[0])
        elector = await _elector(opened, connection, config)
        telemetry = Telemetry(
            requests=lambda: _requests(connection, apis), leading=lambda: _leading(elector, config),
            tell=flags.verbosity >= DECISIONS, built_in=frozenset(BUILT_IN),
        )  # fmt: skip
        runtime = LiveRuntime(
            world, [attended, *_volcano_company(flags, world.view)],
            limits=RuntimeLimits(in_flight=IN_FLIGHT), on_step=lambda stepped: telemetry.after_step(),
            on_turn=_handing_over(telemetry, attended, scheduler),
        )  # fmt: skip
        stopping = _stop_on_signals(runtime)
        dumping = partial(_ask_for_dump, runtime, attended, scheduler, world.view)
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR2, dumping)
        waits = elector is not None and config.delay_cache_until_active
        vitals = _vitals(elector, runtime, stopping, standing_by=lambda: waits or world.view.listed)

        async def metrics() -> bytes:
            asked = runtime.ask(attended, lambda _: figures_of(scheduler))
            return telemetry.exposition(await asyncio.wrap_future(asked))

        server = OpsServer(
            vitals=vitals, metrics=metrics, reset=telemetry.reset,
            config=lambda: to_document(making.current), explainers=[partial(runtime.ask, attended)],
            host=flags.bind_address, port=flags.secure_port, token=_token(flags), tls=_tls(flags),
        )  # fmt: skip
        await _serve(opened, flags, server)
        await lead(elector, runtime, stopping, stands_by=not waits)


async def _knowing_cards(flags: Flags, api: KubeApi) -> Flags:
    """With what the cluster says of its accelerator cards; read once at the start, as Volcano does."""
    where = flags.volcano.device_config_map() if flags.volcano is not None else None
    if flags.volcano is None or where is None:
        return flags
    try:
        found = await api.get(kinds.CONFIG_MAP, *where)
    except ApiError as error:
        log.info("the cards' ConfigMap %s/%s is not used: %s", *where, error)
        found = None
    return replace(flags, volcano=flags.volcano.knowing_cards(found))


def _collect_usage(opened: AsyncExitStack, flags: Flags, view: Mirror, api: KubeApi) -> None:
    """Keep asking how busy nodes are, if Volcano's file ever says where."""
    if flags.volcano is None:
        return
    collector = UsageCollector(
        flags.volcano.options.usage,
        names=lambda: [doc["metadata"]["name"] for doc in view.list(kinds.NODE)], raw=api.raw, now=time.time,
    )  # fmt: skip
    collecting = asyncio.create_task(collector.run())
    opened.push_async_callback(asyncio.wait, [collecting])
    opened.callback(collecting.cancel)


def _volcano_company(flags: Flags, view: DocView) -> list[Controller]:
    """What Volcano's manner needs beside a scheduler and a cluster does not have by itself."""
    if flags.volcano is None:
        return []
    company = [flags.volcano.first_queues(view)]
    if flags.volcano_controllers:
        company += housekeepers(
            view, names=VOLCANO_CONTROLLERS, volcano_names=flags.volcano.options.scheduler_names
        )  # fmt: skip
    return company


async def _elector(opened: AsyncExitStack, connection: Connection, config: KubeConfig) -> Elector | None:
    """With an api of its own: a queue of writes must not cost the lease."""
    election = config.leader_election
    if not election.leader_elect:
        return None
    api = KubeApi(connection)
    opened.push_async_callback(api.close)
    return Elector(
        api,
        Election(
            election.resource_name, election.resource_namespace,
            lease=election.lease_duration, renew=election.renew_deadline, retry=election.retry_period,
        ),
    )  # fmt: skip


def _stop_on_signals(runtime: LiveRuntime) -> asyncio.Event:
    stopping = asyncio.Event()

    def stop() -> None:
        log.info("stopping")
        stopping.set()
        runtime.stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop)
    return stopping


def _ask_for_dump(runtime: LiveRuntime, attended: ReloadingScheduler, scheduler: Scheduler, view: Mirror) -> None:
    """Have what is in memory written to the log, and compared with what the API told up to now."""
    told = Told.by(view) if view.listed else None

    def dumped(_: ReloadingScheduler) -> None:
        try:
            dump(scheduler)
            if told is not None:
                compare(scheduler, told)
        except Exception:
            log.exception("the dump failed")

    runtime.ask(attended, dumped)


def _handing_over(
    telemetry: Telemetry, attended: ReloadingScheduler, scheduler: Scheduler
) -> Callable[[Controller], None]:
    """After each step of the scheduler, hand what it left behind to telemetry."""
    reader = scheduler.decisions.reader()

    def after(controller: Controller) -> None:
        if controller is attended:
            telemetry.hand_over(take(scheduler, reader))

    return after


async def _serve(
    opened: AsyncExitStack,
    flags: Flags,
    server: OpsServer,
) -> None:
    if not flags.secure_port:
        return
    await server.start()
    opened.push_async_callback(server.stop)
    log.info("serving health, metrics and explanations", extra={"url": server.url})


def _token(flags: Flags) -> str:
    path = flags.authentication_token_file
    try:
        token = path.read_text().strip() if path is not None else ""
    except OSError as error:
        raise FairleadError(f"{path}: {error.strerror}") from error
    if path is not None and not token:
        raise FairleadError(f"{path}: the token is empty")
    return token


def _tls(flags: Flags) -> ssl.SSLContext | None:
    """The certificate that was given; off loopback one of our own, as the original makes one for itself."""
    if flags.tls_cert_file is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        try:
            context.load_cert_chain(flags.tls_cert_file, flags.tls_private_key_file)
        except (OSError, ssl.SSLError) as error:
            raise FairleadError(f"{flags.tls_cert_file}: cannot be used: {error}") from error
        return context
    if flags.on_loopback:
        return None
    return Credentials.generate(now=time.time(), hosts=(socket.gethostname(),)).tls()


def _vitals(
    elector: Elector | None, runtime: LiveRuntime, stopping: asyncio.Event, *, standing_by: Callable[[], bool]
) -> Vitals:
    election = {"leaderElection": lambda: elector.healthy} if elector is not None else {}

    def synced() -> bool:
        return runtime.stepping or (elector is not None and not elector.leading and standing_by())

    ping = {"ping": lambda: True}
    return Vitals(
        healthz=election or ping,
        livez=ping,
        readyz={**election, "shutdown": lambda: not stopping.is_set(), "sched-handler-sync": synced},
    )


def _requests(connection: Connection, apis: list[KubeApi]) -> Mapping[tuple[str, str, str], int]:
    host = connection.server.partition("://")[2]
    counts: Counter[tuple[str, str, str]] = Counter()
    for api in apis:
        for (code, method), count in dict(api.responses).items():
            counts[code, host, method] += count
    return counts


def _leading(elector: Elector | None, config: KubeConfig) -> tuple[str, bool] | None:
    return None if elector is None else (config.leader_election.resource_name, elector.leading)


def _tell_of_file(words: str) -> None:
    """A file that cannot be used is more than news."""
    log.log(logging.WARNING if "stays in force" in words else logging.INFO, words)


def _tell_of_watch(watch: Any, error: Exception, pause: float) -> None:
    level = logging.DEBUG if isinstance(error, NotFound) else logging.WARNING
    log.log(level, "watching %s failed, again in %.1f s: %s", watch.kind.resource, pause, error)
