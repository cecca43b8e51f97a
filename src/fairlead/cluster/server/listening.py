"""How our HTTP servers listen: accept, bound what idle clients hold, and end.

Anybody who reaches the port may open connections, with or without a token. So a TLS handshake and the head of a first
request have ten seconds, an idle connection ninety, and their number stays below the limit of open files: at the cap
the connection that is idle for longest is closed for the new one, and if none is idle nobody is accepted.

Invariant: when `stop` returns, no connection of the server is open. A TLS connection is otherwise not closed before its
client has answered to that, and an event loop that ends earlier leaves the socket open.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from aiohttp import web

if TYPE_CHECKING:
    import ssl

    from aiohttp.web_protocol import RequestHandler

logger = logging.getLogger(__name__)

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
HEAD_SECONDS = 10.0
"""For a handshake, and then for the head of the first request."""
IDLE_SECONDS = 90.0
"""Between two requests, as in kube-apiserver."""
_BACKLOG = 128
_PAUSE = 0.1
_LOG_EVERY = 60.0


def most_connections() -> int:
    """How many connections may be open: the limit of open files, less a reserve for the journal, pipes and clients."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return max(16, files - max(64, files // 8)) if files > 0 else 1 << 20


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a server listens: port 0 is any that is free, and without `tls` it speaks plain HTTP."""

    host: str = "127.0.0.1"
    port: int = 0
    tls: ssl.SSLContext | None = None


LOOPBACK = Endpoint()


class _Request(web.BaseRequest):
    """A request whose answer does not name the versions of the interpreter and of the library."""

    async def _prepare_hook(self, response: web.StreamResponse) -> None:
        response.headers.pop("Server", None)


def _as_request(message: Any, payload: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
    return _Request(message, payload, protocol, writer, task, asyncio.get_running_loop())


class Listener:
    """Accepts connections for one HTTP handler. `within` is how many seconds requests under way have at the end;
    `most` connections are open at a time."""

    def __init__(
        self,
        handle: Handle,
        *,
        within: float,
        most: int | None = None,
        head_seconds: float = HEAD_SECONDS,
        line: int = 8190,
        field: int = 8190,
    ) -> None:
        """`line` and `field` are the longest request line and header that are read."""
        self._handle, self._within = handle, within
        self._most = most_connections() if most is None else most
        self._head_seconds = head_seconds
        quiet = logging.getLogger("fairlead.api.http")
        quiet.setLevel(logging.CRITICAL)  # what the library says of malformed requests is the sender's affair
        self._server = web.Server(
            self._request,
            request_factory=_as_request,
            access_log=None,
            logger=quiet,
            keepalive_timeout=IDLE_SECONDS,
            max_line_size=line,
            max_field_size=field,
        )
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._busy: set[RequestHandler] = set()
        self._idle_since: dict[RequestHandler, float] = {}
        """Of connections without a request under way."""
        self._served: set[RequestHandler] = set()
        """Connections that had a request."""
        self._logged_at = float("-inf")

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Begin to listen; returns the port."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        try:
            for family, _, _, _, address in dict.fromkeys(found):
                where = (address[0], port, *address[2:])
                listening = socket.create_server(where, family=family, backlog=_BACKLOG)
                listening.setblocking(False)
                self._sockets.append(listening)
                port = int(listening.getsockname()[1])
        except BaseException:
            self._close_sockets()
            raise
        self._tasks = {asyncio.create_task(self._accept(one, tls)) for one in self._sockets}
        self._tasks.add(asyncio.create_task(self._close_silent()))
        return port

    async def stop(self) -> None:
        """Stop listening, end requests, and close all connections without waiting for the clients' goodbye."""
        tasks = [*self._tasks, *self._handshakes]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._close_sockets()
        transports = [one.transport for one in self._server.connections if one.transport is not None]
        self._server.pre_shutdown()
        await self._server.shutdown(self._within)
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)

    def _close_sockets(self) -> None:
        for one in self._sockets:
            one.close()
        self._sockets.clear()

    # ---- connections ----

    async def _accept(self, listening: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while len(self._server.connections) + len(self._handshakes) >= self._most and not self._make_room():
                self._log("%d connections are open and none is idle: nobody is accepted", self._most)
                await asyncio.sleep(_PAUSE)
            try:
                connection, _ = await loop.sock_accept(listening)
            except OSError as error:
                self._log("no connection can be accepted: %s", error.strerror)
                await asyncio.sleep(_PAUSE)
                continue
            task = asyncio.create_task(self._shake_hands(connection, tls))
            self._handshakes.add(task)
            task.add_done_callback(self._handshakes.discard)

    async def _shake_hands(self, connection: socket.socket, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        try:
            with suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            timeout = None if tls is None else self._head_seconds
            await loop.connect_accepted_socket(self._server, connection, ssl=tls, ssl_handshake_timeout=timeout)
        except (OSError, ValueError, asyncio.CancelledError):  # the client went, or spoke no TLS
            connection.close()

    def _make_room(self) -> bool:
        """Close the connection that is idle for longest; whether there was one."""
        now = asyncio.get_running_loop().time()
        self._note_idle(now)
        if not self._idle_since:
            return False
        oldest = min(self._idle_since, key=lambda one: self._idle_since[one])
        self._abort(oldest)
        self._log("%d connections are open: the one that is idle for longest is closed for a new one", self._most)
        return True

    async def _close_silent(self) -> None:
        """Close connections whose first request does not come."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(1.0, self._head_seconds))
            now = loop.time()
            self._note_idle(now)
            for protocol, since in list(self._idle_since.items()):
                if protocol not in self._served and now - since >= self._head_seconds:
                    self._abort(protocol)

    def _note_idle(self, now: float) -> None:
        """Bring up to date which connections have no request under way."""
        there = set(self._server.connections)
        self._served &= there
        for protocol in self._idle_since.keys() - there:
            del self._idle_since[protocol]
        for protocol in there - self._busy:
            self._idle_since.setdefault(protocol, now)

    def _abort(self, protocol: RequestHandler) -> None:
        self._idle_since.pop(protocol, None)
        if protocol.transport is not None:
            protocol.transport.abort()

    async def _request(self, request: web.BaseRequest) -> web.StreamResponse:
        protocol = request.protocol
        self._idle_since.pop(protocol, None)
        self._served.add(protocol)
        self._busy.add(protocol)
        try:
            return await self._handle(request)
        finally:
            self._busy.discard(protocol)
            self._idle_since[protocol] = asyncio.get_running_loop().time()

    def _log(self, text: str, *values: object) -> None:
        """Log at most once a minute: what anybody can cause must not fill a disk."""
        now = asyncio.get_running_loop().time()
        if now - self._logged_at >= _LOG_EVERY:
            self._logged_at = now
            logger.warning(text, *values)
