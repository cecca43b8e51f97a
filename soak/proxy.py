"""A proxy between one scheduler and the API server, which can cut, delay, lose, repeat and fail, and keeps a log.

It listens on plain HTTP on loopback. Faults are attributes that a scenario sets while it runs. Everything that passes
is in `log`, with the moment at which the API server had it.
"""

from __future__ import annotations

import asyncio
import random
import re
import ssl
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import aiohttp
from aiohttp import web

_HOP = frozenset({"host", "connection", "transfer-encoding", "content-length", "keep-alive", "upgrade"})


@dataclass(slots=True)
class Passed:
    """One request that reached the API server (or was kept from it, then `status` is 0)."""

    at: float
    method: str
    path: str
    agent: str
    status: int
    lost: bool = False
    sender: str = ""
    """Who the scheduler said it was when it last took the lease."""
    arrived: float = 0.0
    """When the proxy had it; `at` is when the API server had answered."""


@dataclass
class Misbehaviour:
    """All off unless set. Shares are of requests, 0 to 1; times are seconds."""

    delay: float = 0.0
    error_share: float = 0.0
    lose_share: float = 0.0
    lose: Callable[[str, str], bool] = lambda method, path: False
    fail: Callable[[str, str], bool] = lambda method, path: False
    watch_delay: float = 0.0
    repeat_share: float = 0.0
    nonsense: bool = False
    silent_before: float = 0.0
    """Watches that were begun before this moment say nothing any more."""
    down: bool = False
    hang: Callable[[str, str], bool] = lambda method, path: False
    cut_every: tuple[float, float] | None = None


@dataclass
class Proxy:
    """Runs on a thread of its own."""

    upstream: str
    token: str
    faults: Misbehaviour = field(default_factory=Misbehaviour)
    log: list[Passed] = field(default_factory=list)
    port: int = 0
    seed: int = 1
    passes_tokens: bool = False
    """Whether requests keep the token that they came with; otherwise they get `token`."""

    def __post_init__(self) -> None:
        self._rng = random.Random(self.seed)
        self._open: set[asyncio.Transport] = set()
        self._started = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.connections = 0
        self.identity = ""
        """Who the scheduler says it is when it takes the lease."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        self._thread.start()
        if not self._started.wait(10):
            raise RuntimeError("the proxy did not start")

    def stop(self) -> None:
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)
            self._thread.join(10)

    def cut_all(self) -> None:
        """Every connection of the moment breaks off."""
        assert self._loop is not None
        self._loop.call_soon_threadsafe(self._cut)

    def counts(self, since: float = 0.0) -> Counter[str]:
        """Requests by method and what they were about."""
        return Counter(f"{one.method} {about(one.path)}" for one in self.log if one.at >= since)

    # ---- inside ----

    def _run(self) -> None:
        asyncio.run(self._serve())

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._ending = asyncio.Event()
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        connector = aiohttp.TCPConnector(limit=0, ssl=trusting)
        timeout = aiohttp.ClientTimeout(total=None)
        self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        runner = web.ServerRunner(web.Server(self._handle, access_log=None), shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", self.port)
        await site.start()
        self.port = runner.addresses[0][1]
        cutting = asyncio.create_task(self._cut_now_and_then())
        self._started.set()
        await self._ending.wait()
        cutting.cancel()
        self._cut()
        await runner.cleanup()
        await self._session.close()

    async def _cut_now_and_then(self) -> None:
        while True:
            low, high = self.faults.cut_every or (0.5, 0.5)
            await asyncio.sleep(self._rng.uniform(low, high))
            if self.faults.cut_every is not None:
                self._cut()

    def _cut(self) -> None:
        for transport in self._open:
            transport.abort()
        self._open.clear()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        faults, transport = self.faults, request.transport
        if transport is None:
            return web.Response(status=500)
        assert isinstance(transport, asyncio.Transport)
        if transport not in self._open:
            self._open.add(transport)
            self.connections += 1
        if faults.down:
            transport.abort()
            return web.Response(status=500)
        body = await request.read()
        method, path, arrived = request.method, request.path, time.time()
        if about(path) == "leases" and (named := re.search(rb"[\w.-]+_[0-9a-f-]{36}", body)):
            self.identity = named.group().decode()
        if faults.hang(method, path):
            await asyncio.sleep(3600)
        if faults.delay:
            await asyncio.sleep(faults.delay)
        unlucky = self._rng.random() < faults.error_share and "watch" not in request.query
        if unlucky or faults.fail(method, path):
            self._note(request, 0, arrived)
            return web.json_response(_status(500), status=500)
        return await self._forward(request, transport, body, arrived)

    async def _forward(
        self, request: web.BaseRequest, transport: asyncio.Transport, body: bytes, arrived: float
    ) -> web.StreamResponse:
        headers = {name: value for name, value in request.headers.items() if name.lower() not in _HOP}
        if not self.passes_tokens:
            headers["Authorization"] = f"Bearer {self.token}"
        url = self.upstream + request.raw_path
        try:
            async with self._session.request(request.method, url, headers=headers, data=body or None) as answer:
                passed = self._note(request, answer.status, arrived)
                if "watch" in request.query and answer.status == 200:
                    return await self._stream(request, answer)
                content = await answer.read()
        except aiohttp.ClientError:
            transport.abort()
            return web.Response(status=502)
        faults = self.faults
        writes = request.method != "GET"
        if writes and (self._rng.random() < faults.lose_share or faults.lose(request.method, request.path)):
            passed.lost = True
            transport.abort()
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        return web.Response(status=answer.status, body=content, headers=kept)

    async def _stream(self, request: web.BaseRequest, answer: aiohttp.ClientResponse) -> web.StreamResponse:
        kept = {name: value for name, value in answer.headers.items() if name.lower() not in _HOP}
        response = web.StreamResponse(status=200, headers=kept)
        await response.prepare(request)
        text = "json" in answer.headers.get("Content-Type", "")
        last, opened = b"", time.time()
        try:
            async for chunk in answer.content.iter_any():
                faults = self.faults
                if faults.watch_delay:
                    await asyncio.sleep(faults.watch_delay)
                while opened < self.faults.silent_before:  # noqa: ASYNC110 (a scenario sets it from its own thread)
                    await asyncio.sleep(0.1)
                if text and faults.nonsense:
                    faults.nonsense = False
                    await response.write(b"<html>this is no event</html>\n")
                if text and last and chunk.endswith(b"\n") and self._rng.random() < faults.repeat_share:
                    chunk += last
                last = chunk if chunk.endswith(b"\n") and chunk.count(b"\n") == 1 else b""
                await response.write(chunk)
        except (aiohttp.ClientError, ConnectionError):
            if request.transport is not None:
                request.transport.abort()
        return response

    def _note(self, request: web.BaseRequest, status: int, arrived: float) -> Passed:
        agent = request.headers.get("User-Agent", "")
        sender = self.identity
        passed = Passed(time.time(), request.method, request.path, agent, status, sender=sender, arrived=arrived)
        self.log.append(passed)
        return passed


def about(path: str) -> str:
    """`/api/v1/namespaces/n/pods/p/status` is `pods/status`."""
    parts = [part for part in path.split("/") if part]
    parts = parts[2:] if parts and parts[0] == "api" else parts[3:]
    if parts and parts[0] == "namespaces" and len(parts) > 2:
        parts = parts[2:]
    return parts[0] + (f"/{parts[2]}" if len(parts) > 2 else "") if parts else path


def _status(code: int) -> dict[str, Any]:
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "code": code,
        "reason": "InternalError",
        "message": "the proxy said no",
    }
