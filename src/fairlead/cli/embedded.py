"""EmbeddedCluster: Store, server, controllers, kubelets and (if wanted) a scheduler in one process.

    lock and load ─▶ listen ─▶ nodes ─▶ controllers step ─▶ /readyz is ok ─▶ kubeconfig ─▶ serve ... ─stop▶ undo all

What is opened is closed in reverse, whatever happens in between: after the end there is no task, no file and no lock
that was not there before, except what `data` keeps on purpose.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import ssl
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.assembly.asking import answerer
from fairlead.assembly.cluster import ClusterAssembly
from fairlead.assembly.registry import BUILT_IN
from fairlead.cli.first_objects import make_first_objects
from fairlead.cli.kubeconfig_file import KeptPort
from fairlead.cli.observation import SchedulerObservation
from fairlead.cluster.kubelets.pod_script import PodScript
from fairlead.cluster.kubelets.simulated_nodes import fails_from, is_simulated
from fairlead.cluster.server.asking import Asked
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import Probes, Server
from fairlead.cluster.store.journal import Journal
from fairlead.core.engine.explain.figures import figures_of
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.errors import ConfigError, FairleadError, NotFound
from fairlead.runtime.collecting import loading
from fairlead.runtime.live import Clock
from fairlead.runtime.metrics import metrics_of_families
from fairlead.runtime.status import SchedulerStatus
from fairlead.runtime.telemetry import Telemetry

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fairlead.assembly.schedulers import SchedulerAssembly
    from fairlead.cli.device_flags import SimulatedDevices
    from fairlead.cli.fleet import Fleet
    from fairlead.cli.kubeconfig_file import KubeconfigFile
    from fairlead.cluster.server.asking import Answerer
    from fairlead.cluster.server.explaining import AskExplainer
    from fairlead.cluster.store.snapshot import Snapshot
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.usage import UsageBoard
    from fairlead.runtime.live import LiveRuntime
    from fairlead.runtime.usage import UsageCollector

log = logging.getLogger("fairlead.cli")

TICK_SECONDS = 5.0
"""How often the Store forgets what is old."""
_AT_ONCE = 200
"""Nodes created between two looks at the event loop."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """What the user requested."""

    fleet: Fleet
    kubeconfig: KubeconfigFile
    assembly: ClusterAssembly = field(default_factory=ClusterAssembly)
    devices: Sequence[SimulatedDevices] = ()
    bind: str = "127.0.0.1"
    port: int = 0
    data: Path | None = None
    fsync: bool = False
    leave_out_damaged: bool = False
    snapshot: Snapshot | None = None
    check_bindings: bool = False
    run_time: float | None = None
    """Seconds that pods of Jobs run which say nothing themselves; None is the kubelets' default."""


class EmbeddedCluster:
    """Opened with `start`, closed with `stop`, which undoes as much as `start` did."""

    def __init__(self, options: UpOptions) -> None:
        self.options = options
        self._opened = AsyncExitStack()
        self._clock = Clock()
        self._ended: list[asyncio.Task[None]] = []
        self.nodes = 0
        self._was_ready = False

    async def start(self, on_node: Callable[[int], None]) -> None:
        """Returns when the cluster is ready and its kubeconfig written. `on_node` is called with how many nodes there
        are."""
        with loading():
            credentials = self._open_store()
            self._join_controllers()
            await self._listen(credentials)
            await self._add_nodes(on_node)
            self._run_controllers()
            await self._until_ready(credentials)
            self._write_kubeconfig(credentials)

    async def stop(self) -> None:
        await self._opened.aclose()

    async def failed(self) -> None:
        """Returns only if something that should run for ever has ended."""
        await asyncio.wait(self._ended, return_when=asyncio.FIRST_COMPLETED)
        for task in self._ended:
            if task.done() and (error := task.exception()) is not None:
                raise FairleadError(f"{task.get_name()} ended: {error!r}") from error

    @property
    def url(self) -> str:
        return self._server.url

    # ---- the parts, in order ----

    def _open_store(self) -> Credentials:
        options, hosts = self.options, (self.options.bind,)
        journal = None
        if options.data is not None:
            journal = Journal(options.data, fsync=options.fsync, leave_out_damaged=options.leave_out_damaged)
            self._opened.callback(journal.close)
            credentials = Credentials.kept_in(options.data, now=self._clock.now(), hosts=hosts)
        else:
            credentials = Credentials.generate(now=self._clock.now(), hosts=hosts)
        self.store = options.assembly.store(self._clock.now, journal=journal, check_bindings=options.check_bindings)
        if options.snapshot is not None:
            from fairlead.cli.snapshot import restored_into

            restored_into(self.store, options.snapshot, where=str(options.data))
        return credentials

    def _script(self) -> PodScript | None:
        """What simulated pods do that say nothing themselves."""
        run_time = self.options.run_time
        return None if run_time is None else PodScript(job_run_time=run_time)

    def _join_controllers(self) -> None:
        cluster = self.options.assembly.over(self.store, script=self._script())
        self._scheduler = cluster.scheduler
        self._attendance = cluster.attendance
        telemetry = Telemetry(sources=metrics_of_families(), built_in=frozenset(BUILT_IN))
        self._bound = telemetry.bound
        self._observation = SchedulerObservation(self._scheduler, telemetry)
        self._runtime = cluster.live(
            clock=self._clock, on_step=self._observation.after_step, on_turn=self._observation.after_turn
        )

    def _answerers(self) -> list[Answerer]:
        return [] if self._scheduler is None else [answerer(partial(self._runtime.ask, self._scheduler))]

    def _status(self) -> Callable[[], Awaitable[Doc]] | None:
        scheduler = self._scheduler
        if scheduler is None:
            return None
        figures = partial(self._runtime.ask, scheduler, figures_of)
        status = SchedulerStatus(figures, elector=None, bound=self._bound, profiles=lambda: list(scheduler.profiles))
        self._opened.enter_context(status.keeping_last_error())
        return status.document

    def _explainers(self) -> list[AskExplainer]:
        return [] if self._scheduler is None else [partial(self._runtime.ask, self._scheduler)]

    async def _listen(self, credentials: Credentials) -> None:
        options = self.options
        kept = KeptPort(options.data)
        ports = [options.port] if options.port or not kept.number else [kept.number, 0]
        for attempt, port in enumerate(ports, start=1):
            self._server = Server(
                self.store,
                token=credentials.token,
                at=Endpoint(options.bind, port, credentials.tls()),
                probes=Probes(self._is_ready, partial(self._observation.exposition, self._runtime), self._status()),
                asked=Asked(self._explainers(), self._answerers()),
                attendance=self._attendance,
            )
            try:
                await self._server.start()
                break
            except OSError as error:
                if attempt == len(ports) or error.errno != errno.EADDRINUSE:
                    raise FairleadError(_trouble_with_address(options, error)) from error
                log.warning("port %d, which this cluster had before, is in use: another is taken", port)
        kept.keep(self._server.port)
        self._opened.push_async_callback(self._server.stop)
        log.info("listening", extra={"url": self._server.url})

    async def _add_nodes(self, on_node: Callable[[int], None]) -> None:
        """Those of the fleet that are not there yet; none if the data has nodes and nobody requested a number."""
        make_first_objects(self.store)
        known = set(self._node_names())
        wanted = self.options.fleet.nodes
        if wanted is not None and wanted < len(known):
            raise ConfigError(
                f"--nodes {wanted} is fewer than the {len(known)} nodes that {self._origin()} has",
                hint="leave --nodes away to keep them; `fairlead nodes remove` takes nodes out of a running cluster",
            )
        stays = bool(known) and wanted is None
        if stays and (self.options.fleet.shapes or self.options.fleet.objects):
            log.warning(
                "--shape and --nodes-file add no nodes to the %d that %s has; --nodes N adds what is missing",
                len(known),
                self._origin(),
            )
        missing = [] if stays else self.options.fleet.documents(now=self._clock.now())
        missing = [node for node in missing if node["metadata"]["name"] not in known]
        for start in range(0, len(missing), _AT_ONCE):
            with self.store.batch():
                for node in missing[start : start + _AT_ONCE]:
                    self.store.perform(_creation(node))
            on_node(start + _AT_ONCE)
            await asyncio.sleep(0)
        self.nodes = len(known) + len(missing)
        self._add_devices()

    def _add_devices(self) -> None:
        """A class for each kind of device, and slices of them for the simulated nodes, unless they are there already. A
        node whose shape gives it devices of a driver has those."""
        of_fleet = list(self.options.fleet.devices())
        if not of_fleet and not self.options.devices:
            return  # nodes are not decoded for nothing
        simulated = [node["metadata"]["name"] for node in self.store.list(kinds.NODE) if is_simulated(node)]
        present = set(simulated)
        given = [(node, devices) for node, devices in of_fleet if node in present]
        given += [(node, devices) for devices in self.options.devices for node in simulated]
        kinds_of_device = [*self.options.devices, *(devices for _, devices in given)]
        wanted = [(kinds.DEVICE_CLASS, devices.device_class()) for devices in kinds_of_device]
        wanted += [(kinds.RESOURCE_SLICE, devices.slice_for(node)) for node, devices in given]
        with self.store.batch():
            for kind, doc in wanted:
                if self.store.get(kind, "", doc["metadata"]["name"]) is None:
                    self.store.perform(Write(Verb.CREATE, kind, "", doc["metadata"]["name"], body=doc))

    def _run_controllers(self) -> None:
        running = self._spawn(self._runtime.run_until_stopped(), "the runtime")
        ticking = self._spawn(self._tick(), "the clock")
        self._opened.push_async_callback(_ended, ticking)
        assembly = self.options.assembly.schedulers
        if assembly is not None and self._scheduler is not None:
            for board in assembly.usage_boards:
                collecting = self._spawn(self._usage_collector(board).run(), "the collector of usage")
                self._opened.push_async_callback(_ended, collecting)
            self._follow_files(assembly, self._scheduler)
        self._opened.push_async_callback(_stopped, self._runtime, running)

    def _follow_files(self, assembly: SchedulerAssembly, scheduler: Scheduler) -> None:
        """Follow the files of setups; that of the kube profiles is read once."""
        from fairlead.cli.reloading import follow_files, log_config_change

        if looks := assembly.looks_of_setups(log_config_change):
            ask = partial(self._runtime.ask, scheduler)
            following = self._spawn(follow_files(looks, ask), "the look at the files of setups")
            self._opened.push_async_callback(_ended, following)

    def _spawn(self, work: object, name: str) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work, name=name)  # type: ignore[arg-type]
        self._ended.append(task)
        return task

    def _usage_collector(self, board: UsageBoard) -> UsageCollector:
        from fairlead.runtime.usage import UsageCollector

        return UsageCollector(board, names=self._node_names, raw=_no_custom_metrics, now=self._clock.now)

    def _origin(self) -> str:
        return str(self.options.data) if self.options.snapshot is None else "the snapshot"

    def _node_names(self) -> list[str]:
        return self.store.names(kinds.NODE)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(TICK_SECONDS)
            self.store.tick()

    def _is_ready(self) -> bool:
        """Once ready, always ready: nodes may fail later, and looking at all of them for every probe is work."""
        if not self._was_ready and self._runtime.stepping:
            self._was_ready = all(map(is_as_configured, self.store.list(kinds.NODE)))
        return self._was_ready

    async def _until_ready(self, credentials: Credentials) -> None:
        """Check until everything is ready, and then once more as a client would, over TLS, which costs more."""
        trust = ssl.create_default_context(cadata=credentials.ca.decode())
        waiting = asyncio.create_task(self.failed())
        try:
            while not (self._is_ready() and await _says_ok(self._server, trust)):
                await asyncio.wait([waiting], timeout=0.02)
                if waiting.done():
                    waiting.result()
        finally:
            await _ended(waiting)

    def _write_kubeconfig(self, credentials: Credentials) -> None:
        self.options.kubeconfig.write(credentials.kubeconfig(self._server.url))
        if self.options.data is None:
            # Nobody will ever serve with these credentials again.
            self._opened.callback(self.options.kubeconfig.remove)


async def _no_custom_metrics(path: str) -> bytes:
    raise NotFound(f"{path}: this cluster has no custom metrics")


def _creation(node: Doc) -> Write:
    return Write(Verb.CREATE, kinds.NODE, "", node["metadata"]["name"], body=node)


def is_as_configured(node: Doc) -> bool:
    """Whether a node is ready, or need not be: one not simulated, or made to fail, must not delay a start."""
    if not is_simulated(node) or fails_from(node) is not None:
        return True
    conditions = node["status"].get("conditions") or ()
    return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)


async def _says_ok(server: Server, trust: ssl.SSLContext) -> bool:
    """One look at /readyz."""
    reader, writer = await asyncio.open_connection(server.host, server.port, ssl=trust)
    try:
        writer.write(f"GET /readyz HTTP/1.1\r\nHost: {server.host}\r\nConnection: close\r\n\r\n".encode())
        status = await reader.readline()
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()
    return status.split()[1:2] == [b"200"]


def _trouble_with_address(options: UpOptions, error: OSError) -> str:
    where = f"{options.bind}:{options.port}"
    if error.errno == errno.EADDRINUSE:
        taken = f"port {options.port} on {options.bind} is in use"
        return f"{taken}; choose another with --port, or leave it away for a free one"
    if error.errno == errno.EADDRNOTAVAIL:
        return f"cannot listen on {where}: {options.bind} is no address of this machine"
    return f"cannot listen on {where}: {os.strerror(error.errno) if error.errno else error}"


async def _stopped(runtime: LiveRuntime, running: asyncio.Task[None]) -> None:
    runtime.stop()
    await asyncio.wait([running])
    if not running.cancelled() and (error := running.exception()) is not None:
        log.error("the runtime ended with an error", exc_info=error)


async def _ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait([task])
