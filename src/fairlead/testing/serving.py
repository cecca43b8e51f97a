"""Served: a virtual cluster with its API on loopback, whose time passes as fast as real time.

A thread runs the server and lets virtual time keep up with the clock. From then on the Store belongs to that thread;
other threads use it through `call`. Time goes on from the cluster's own time; start the cluster at the real time if
clients should see true ages.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, TypeVar

from fairlead.api.server.pki import Credentials, write_private
from fairlead.api.server.server import Server

if TYPE_CHECKING:
    from fairlead.api.server.explaining import AskExplainer
    from fairlead.api.store.store import Store
    from fairlead.runtime.virtual import VirtualRuntime

T = TypeVar("T")

_PAUSE = 0.01
_PATIENCE = 30.0


class Served:
    """A server over a Store, in a thread, until closed. `kubeconfig` is a file for kubectl, `url` where it listens."""

    def __init__(self, store: Store, runtime: VirtualRuntime, *, explainers: Sequence[AskExplainer] = ()) -> None:
        self._store, self._runtime, self._explainers = store, runtime, explainers
        self._directory = TemporaryDirectory(prefix="fairlead-")
        self.kubeconfig = Path(self._directory.name, "kubeconfig")
        self.url = ""
        self._runner = asyncio.Runner()
        self._loop = self._runner.get_loop()
        self._stopped = asyncio.Event()
        self._begun: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name="fairlead-cluster", daemon=True)
        self._thread.start()
        self._begun.result(timeout=_PATIENCE)

    def call(self, deed: Callable[[], T]) -> T:
        """Do something in the cluster's thread and wait for it."""

        async def done() -> T:
            return deed()

        return asyncio.run_coroutine_threadsafe(done(), self._loop).result(timeout=_PATIENCE)

    def close(self) -> None:
        """Stop listening; raises what went wrong meanwhile, if anything did."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)
        self._thread.join(timeout=_PATIENCE)
        self._directory.cleanup()

    def _run(self) -> None:
        try:
            with self._runner:
                self._runner.run(self._serve())
        except BaseException as error:
            if not self._begun.done():
                self._begun.set_exception(error)
            raise

    async def _serve(self) -> None:
        credentials = Credentials.generate(now=time.time())
        server = Server(self._store, token=credentials.token, tls=credentials.tls(), explainers=self._explainers)
        await server.start()
        try:
            self.url = server.url
            write_private(self.kubeconfig, credentials.kubeconfig(server.url))
            self._begun.set_result(None)
            await self._keep_pace()
        finally:
            await server.stop()

    async def _keep_pace(self) -> None:
        origin, begun = self._runtime.now, self._loop.time()
        while not self._stopped.is_set():
            self._runtime.run(until=origin + self._loop.time() - begun)
            await asyncio.sleep(_PAUSE)
