"""Exchanges: requests and their answers over kept connections, one at a time on each.

aiohttp makes the connections, because addresses, TLS and proxies are its work; what goes over them is written and read
here. A pod costs two writes, and a request through aiohttp's session takes six times the CPU time of the same bytes
sent and read directly.

The connection that was used last is used next, so that few of them are busy and the others can be let go. A request is
sent at most once: whether it may be repeated is the caller's to say.

Invariant: a connection is idle here, carries exactly one request, or is closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING

import aiohttp

from fairlead.client.answers import Answer, AnswerReader, BadAnswer

if TYPE_CHECKING:
    from aiohttp.connector import BaseConnector, Connection

KEEP = 75.0
"""Seconds for which an idle connection is kept. Servers of Kubernetes close theirs after 90."""


class Exchanges:
    """Sends to the server that `address` names, over connections that `connector` makes."""

    def __init__(
        self, connector: BaseConnector, address: aiohttp.ClientRequest, timeout: aiohttp.ClientTimeout
    ) -> None:
        self._connector, self._address, self._timeout = connector, address, timeout
        self._idle: deque[tuple[_KeptConnection, float]] = deque()
        self._fields = _header_lines(address.headers)
        self._origin = ""
        if address.proxy is not None and not address.is_ssl():
            # A proxy that is no tunnel gets with each request where it goes, and who asks.
            self._origin = str(address.url.origin())
            named = aiohttp.ClientRequest("GET", address.proxy, loop=address.loop).headers.get("Authorization")
            self._fields += _header_lines({"Proxy-Authorization": named} if named else {})

    def request(self, method: str, target: str, fields: Mapping[str, str], body: bytes) -> bytes:
        """The bytes of a request. `target` is the path and query, quoted; `fields` are headers beside those of all."""
        own = _header_lines(fields)
        if own.count("\n") != len(fields) or own.count("\r") != len(fields):
            raise ValueError("the value of a header has more than one line")
        head = f"{method} {self._origin}{target} HTTP/1.1\r\n{self._fields}{own}Content-Length: {len(body)}\r\n\r\n"
        return head.encode("latin-1") + body

    async def send(self, request: bytes, allow: Callable[[], None], *, again: bool = False) -> Answer:
        """The answer. `allow` is called in the moment in which the request is written, and may raise. `again` allows to
        send it a second time if the server has closed a kept connection without an answer."""
        while True:
            connection = self._kept() or await self._made()
            kept = connection.used
            try:
                allow()
                return await connection.ask(request)
            except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError):
                if not (again and kept):
                    raise
                again = False
            finally:
                self._put_back(connection)

    def close(self) -> None:
        while self._idle:
            self._idle.pop()[0].close()

    def _kept(self) -> _KeptConnection | None:
        oldest = monotonic() - KEEP
        while self._idle:
            connection, since = self._idle.pop()
            if connection.usable and since > oldest:
                return connection
            connection.close()
        return None

    async def _made(self) -> _KeptConnection:
        try:
            return _KeptConnection(await self._connector.connect(self._address, traces=[], timeout=self._timeout))
        except TimeoutError as error:
            raise aiohttp.ConnectionTimeoutError(f"Connection timeout to host {self._address.url}") from error

    def _put_back(self, connection: _KeptConnection) -> None:
        if not connection.usable:
            connection.close()
            return
        now = monotonic()
        self._idle.append((connection, now))
        if self._idle[0][1] < now - KEEP:
            self._idle.popleft()[0].close()


class _KeptConnection(asyncio.Protocol):
    """One connection. aiohttp's own protocol for it is called at its end too, or aiohttp would wait for that in
    vain."""

    def __init__(self, connection: Connection) -> None:
        if connection.transport is None or connection.protocol is None:
            connection.close()
            raise aiohttp.ServerDisconnectedError
        self._connection, self._transport, self._aiohttp = connection, connection.transport, connection.protocol
        self._loop = asyncio.get_running_loop()
        self._reader = AnswerReader(self._loop)
        self._waiting: asyncio.Future[Answer] | None = None
        self.used = False
        """Whether a request was sent."""
        self._transport.set_protocol(self)

    @property
    def usable(self) -> bool:
        """Whether a request may be sent: the last one was answered, and the server keeps the connection open."""
        return self._waiting is None and self._reader.keeps and not self._transport.is_closing()

    def ask(self, request: bytes) -> asyncio.Future[Answer]:
        if self._transport.is_closing():
            raise aiohttp.ServerDisconnectedError
        waiting: asyncio.Future[Answer] = self._loop.create_future()
        self._waiting, self.used = waiting, True
        self._transport.write(request)
        return waiting

    def close(self) -> None:
        self._connection.close()

    # what the transport calls

    def data_received(self, data: bytes) -> None:
        try:
            answer = self._reader.feed(data)
        except BadAnswer as error:
            self._fail(aiohttp.ClientPayloadError(str(error)))
            self._transport.close()
            return
        if self._waiting is None:
            self._transport.close()  # nobody has asked
        elif answer is not None:
            self._answered(answer)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._waiting is not None:
            self._end(exc)
        self._aiohttp.connection_lost(exc)

    def _end(self, exc: Exception | None) -> None:
        answer = self._reader.end() if exc is None else None
        if answer is not None:
            self._answered(answer)
        elif isinstance(exc, OSError):
            self._fail(aiohttp.ClientOSError(*exc.args))
        else:
            self._fail(exc or aiohttp.ServerDisconnectedError())

    def _answered(self, answer: Answer) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    def _fail(self, error: Exception) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_exception(error)


def _header_lines(fields: Mapping[str, str]) -> str:
    return "".join([f"{name}: {value}\r\n" for name, value in fields.items()])
