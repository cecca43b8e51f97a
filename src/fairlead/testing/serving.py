"""Served: a virtual cluster with its API on loopback, whose time passes as fast as real time.

A thread runs the server and lets virtual time keep up with the clock. From then on the Store belongs to that thread;
other threads use it through `call`. Time goes on from the cluster's own time; start the cluster at the real time if
clients should see true ages.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from fairlead.cluster.server.asking import Asked
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials, write_private
from fairlead.cluster.server.server import Server
from fairlead.runtime.loop_thread import LoopThread

if TYPE_CHECKING:
    from fairlead.assembly.cluster import AssembledCluster
    from fairlead.cluster.server.asking import Answerer
    from fairlead.cluster.server.explaining import AskExplainer
    from fairlead.runtime.virtual import VirtualRuntime

T = TypeVar("T")

_PAUSE = 0.01


class Served:
    """A server over a cluster's Store, in a thread, until closed. `kubeconfig` is a file for kubectl, `url` where it
    listens."""

    def __init__(
        self,
        cluster: AssembledCluster,
        runtime: VirtualRuntime,
        *,
        explainers: Sequence[AskExplainer] = (),
        answerers: Sequence[Answerer] = (),
    ) -> None:
        self._cluster, self._runtime = cluster, runtime
        self._explainers, self._answerers = explainers, answerers
        self._directory = TemporaryDirectory(prefix="fairlead-")
        self.kubeconfig = Path(self._directory.name, "kubeconfig")
        self.url = ""
        self._thread = LoopThread(self._serve, name="fairlead-cluster")

    def call(self, deed: Callable[[], T]) -> T:
        """Do something in the cluster's thread and wait for it."""
        return self._thread.call(deed)

    def close(self) -> None:
        """Stop listening; raises what went wrong meanwhile, if anything did."""
        try:
            self._thread.close()
        finally:
            self._directory.cleanup()

    async def _serve(self, begun: Callable[[], None], stopped: asyncio.Event) -> None:
        credentials = Credentials.generate(now=time.time())
        server = Server(
            self._cluster.store,
            token=credentials.token,
            at=Endpoint(tls=credentials.tls()),
            asked=Asked(self._explainers, self._answerers),
            attendance=self._cluster.attendance,
        )
        await server.start()
        try:
            self.url = server.url
            write_private(self.kubeconfig, credentials.kubeconfig(server.url))
            begun()
            await self._keep_pace(stopped)
        finally:
            await server.stop()

    async def _keep_pace(self, stopped: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        origin, started = self._runtime.now, loop.time()
        while not stopped.is_set():
            self._runtime.keep_pace(until=origin + loop.time() - started)
            await asyncio.sleep(_PAUSE)
