"""The wire to an extender: one POST at a time and thread, JSON both ways, connections kept open between requests.

Synchronous on purpose: the attempt that asks is waiting for the answer. Whatever goes wrong is an ExtenderError in the
original's words where it has some. The time limit covers a whole exchange. Redirects are not followed and proxies of
the environment are not used: an extender is a neighbour.
"""

from __future__ import annotations

import socket
import time
from collections import deque
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from fairlead.errors import ExtenderError

if TYPE_CHECKING:
    import ssl

_HEADERS = {"Content-Type": "application/json", "User-Agent": "fairlead"}
_CHUNK = 1 << 16


class ExtenderConnection:
    """`post` may be called from several threads; each exchange has a connection to itself. An answer of more than
    `most` bytes is none."""

    def __init__(
        self,
        url: str,
        *,
        timeout: float,
        tls: ssl.SSLContext | None = None,
        server_name: str = "",
        most: int | None = None,
    ) -> None:
        self._prefix = url.rstrip("/")
        self._address = urlsplit(self._prefix)
        self._timeout = timeout
        self._tls, self._server_name = tls, server_name
        self._most = most
        self._idle: deque[HTTPConnection] = deque()

    def post(self, verb: str, body: object) -> Any:
        """The decoded answer to a verb."""
        url = f"{self._prefix}/{verb}"
        ends = time.monotonic() + self._timeout
        try:
            status, raw = self._exchange(f"{self._address.path}/{verb}", orjson.dumps(body), ends)
        except TimeoutError as error:
            raise ExtenderError(f'Post "{url}": no answer within {self._timeout:g}s') from error
        except (OSError, HTTPException) as error:
            raise ExtenderError(f'Post "{url}": {error or type(error).__name__}') from error
        if status != 200:
            raise ExtenderError(f"failed {verb} with extender at URL {url}, code {status}")
        try:
            return orjson.loads(raw)
        except orjson.JSONDecodeError as error:
            raise ExtenderError(f"extender at URL {url} did not answer with JSON: {error}") from error

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()

    def _exchange(self, path: str, body: bytes, ends: float) -> tuple[int, bytes]:
        try:
            kept = self._idle.pop()
        except IndexError:
            return self._over(self._connection(), path, body, ends)
        try:
            return self._over(kept, path, body, ends)
        except TimeoutError:
            raise
        except (OSError, HTTPException):
            # The extender closed the idle connection, which nobody can know before writing to it.
            return self._over(self._connection(), path, body, ends)

    def _over(self, connection: HTTPConnection, path: str, body: bytes, ends: float) -> tuple[int, bytes]:
        try:
            connection.timeout = _left(ends)
            if connection.sock is not None:
                connection.sock.settimeout(connection.timeout)
            connection.request("POST", path, body, _HEADERS)
            sock = connection.sock
            response = connection.getresponse()
            with response:
                raw = _read(response, sock, ends, self._most)
        except BaseException:
            connection.close()
            raise
        self._idle.append(connection)
        return response.status, raw

    def _connection(self) -> HTTPConnection:
        host, port = self._address.hostname or "", self._address.port
        if self._address.scheme != "https":
            return HTTPConnection(host, port)
        return _Secured(host, port, context=self._tls, server_name=self._server_name or host)


class _Secured(HTTPSConnection):
    """TLS under the name that the certificate shall have, which need not be the one that was dialled."""

    def __init__(self, host: str, port: int | None, *, context: ssl.SSLContext | None, server_name: str) -> None:
        super().__init__(host, port, context=context)
        self._name = server_name
        self._secured_by = self._context  # type: ignore[attr-defined]

    def connect(self) -> None:
        HTTPConnection.connect(self)
        self.sock = self._secured_by.wrap_socket(self.sock, server_hostname=self._name)


def _left(ends: float) -> float:
    left = ends - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left


def _read(response: HTTPResponse, sock: socket.socket | None, ends: float, most: int | None) -> bytes:
    """The whole body, with the limits applied to all of it and not to each piece."""
    parts: list[bytes] = []
    size = 0
    while True:
        left = _left(ends)
        if sock is not None and sock.fileno() >= 0:
            sock.settimeout(left)
        part = response.read1(_CHUNK)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if most is not None and size > most:
            raise HTTPException(f"the answer has more than {most} bytes")


def field_of(record: Any, name: str) -> Any:
    """A field by its name, in whatever case the extender spells it."""
    if not isinstance(record, dict):
        raise ExtenderError(f"the extender's answer has {str(record)[:100]} where an object belongs")
    if name in record:
        return record[name]
    wanted = name.casefold()
    return next((value for key, value in record.items() if key.casefold() == wanted), None)
