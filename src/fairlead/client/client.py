"""KubeApi: the port over HTTP, to a real API server or to our own.

One connection pool per KubeApi, JSON by orjson, no generated models: documents go through as they are. What the network
and a busy server do to a request is settled here (retry with jittered backoff, Retry-After, timeouts, an
expired token), so that callers only ever see an answer or an ApiError.

A request is repeated only when that is safe: the server requested it (Retry-After), no connection was made,
or the verb is a read. A write whose answer was lost is reported as Unreachable and never sent twice. The two ways of
the network that matter here, requests and watches, share everything but their timeouts.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar

import aiohttp
import orjson
from yarl import URL

from fairlead import __version__
from fairlead.client.addresses import Addresses
from fairlead.client.answers import Answer
from fairlead.client.authorization import Authorization
from fairlead.client.deadlines import Deadlines
from fairlead.client.exchanges import Exchanges
from fairlead.client.lines import Lines, LineTooLong
from fairlead.client.port import EVERYTHING, Page, Query, WatchEvent
from fairlead.client.retry import RetryDelays, Throttle
from fairlead.client.sockets import PoolSockets
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.errors import ApiError, InternalError, Interrupted, NotSent, Unreachable, api_error

if TYPE_CHECKING:
    from fairlead.client.credentials import Connection
    from fairlead.core.model.kinds import Kind

_METHODS = {Verb.CREATE: "POST", Verb.UPDATE: "PUT", Verb.PATCH: "PATCH", Verb.DELETE: "DELETE"}
_IDEMPOTENT = frozenset({"PUT", "DELETE"})
_HEADERS = {"User-Agent": f"fairlead/{__version__}", "Accept": "application/json"}
_Response = TypeVar("_Response", aiohttp.ClientResponse, Answer)
_ASK_AGAIN = frozenset({429, 500, 502, 503, 504})
_EVENTS = frozenset({"ADDED", "MODIFIED", "DELETED", "BOOKMARK"})


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds. `read` is the longest silence within an answer, and for a write all that it may take; `idle` is the
    longest silence within a watch: bookmarks come each minute, so a watch that says nothing for longer hangs on a
    connection that is dead, however alive it looks."""

    connect: float = 10.0
    read: float = 60.0
    idle: float = 75.0


@dataclass(frozen=True, slots=True)
class _RequestTimeouts:
    """The same as aiohttp wants them, for each of the three ways of using a connection."""

    reading: aiohttp.ClientTimeout
    writing: aiohttp.ClientTimeout
    watching: aiohttp.ClientTimeout

    @classmethod
    def of(cls, timeouts: Timeouts) -> Self:
        connect = timeouts.connect
        return cls(
            reading=aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=timeouts.read),
            writing=aiohttp.ClientTimeout(total=None, sock_connect=connect),
            watching=aiohttp.ClientTimeout(total=None, sock_connect=connect, sock_read=timeouts.idle),
        )


_TIMEOUTS = Timeouts()
_BACKOFF = RetryDelays()


class KubeApi:
    """ClusterApi over one Connection. `requests` counts what was asked, by (verb, resource)."""

    def __init__(
        self,
        connection: Connection,
        *,
        timeouts: Timeouts = _TIMEOUTS,
        backoff: RetryDelays = _BACKOFF,
        attempts: int = 6,
        throttle: Throttle | None = None,
        may_write: Callable[[], bool] = lambda: True,
        rng: random.Random | None = None,
    ) -> None:
        """`throttle` is for reads; a writer takes from it before it sends. `may_write` is asked before each write."""
        self.connection = connection
        self.requests: Counter[tuple[str, str]] = Counter()
        self.responses: Counter[tuple[str, str]] = Counter()
        """By (code, method), retries included; the code of no answer is `<error>`, as client-go counts it."""
        self._timeouts = _RequestTimeouts.of(timeouts)
        self._deadlines = Deadlines(timeouts.read)
        self._backoff = backoff
        self._attempts = attempts
        self._throttle = throttle
        self._may_write = may_write
        self._rng = rng or random.Random()
        self._session: aiohttp.ClientSession | None = None
        self._kept: Exchanges | None = None
        self._sockets = PoolSockets()
        self._addresses = Addresses(connection.server)
        self._authorization = Authorization(connection.authorization)

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> Doc:
        self._count("get", kind, subresource)
        return await self._document_at(kind.path(namespace, name, subresource))

    async def list(self, kind: Kind, query: Query = EVERYTHING) -> Page:
        self._count("list", kind)
        return page_of(kind, await self._document_at(kind.path(query.namespace), _params(query)))

    async def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 (the server ends the watch)
    ) -> AsyncIterator[WatchEvent]:
        self._count("watch", kind)
        params = _params(query) | _given(
            {
                "watch": "true",
                "allowWatchBookmarks": "true" if bookmarks else "",
                "sendInitialEvents": "true" if send_initial_events else "",
                "resourceVersionMatch": "NotOlderThan" if send_initial_events else "",
                # The server counts whole seconds, and 0 would mean its own default.
                "timeoutSeconds": str(max(1, round(timeout))) if timeout is not None else "",
            }
        )
        # Compression would hold back small events until a block is full.
        headers = {"Accept-Encoding": "identity"}
        response = await self._read(kind.path(query.namespace), params=params, headers=headers, watch=True)
        lines = Lines()
        try:
            async for chunk in response.content.iter_any():
                for line in lines.feed(chunk):
                    yield _event(line)
        except (aiohttp.ClientError, TimeoutError, LineTooLong) as error:
            raise Interrupted(self._unreachable(error).message) from error
        finally:
            _hang_up(response)

    async def perform(self, write: Write) -> Doc:
        """Do it. A DELETE without a name deletes the collection, narrowed by `labelSelector` and the like in params."""
        verb = write.verb.value if write.name or write.verb is not Verb.DELETE else "deletecollection"
        self._count(verb, write.kind, write.subresource)
        # An object is created by posting to its collection; a subresource (a binding) by posting to itself.
        name = "" if write.verb is Verb.CREATE and not write.subresource else write.name
        return await self._write(
            _METHODS[write.verb],
            write.kind.path(write.namespace, name, write.subresource),
            None if write.body is None else orjson.dumps(write.body),
            params=write.params,
            media_type=write.patch_type.value if write.verb is Verb.PATCH else "application/json",
        )

    async def raw(self, path: str, *, accept: str = "application/json") -> bytes:
        """The bytes behind any path of the server: /version, /readyz, discovery, a Table."""
        self.requests["get", path] += 1
        async with await self._read(path, headers={"Accept": accept}) as response:
            return await self._body(response)

    async def post(self, path: str, body: Doc) -> Doc:
        """What the server answers to a document posted to a path that belongs to no kind."""
        self.requests["post", path] += 1
        return await self._write("POST", path, orjson.dumps(body))

    async def close(self) -> None:
        session, self._session = self._session, None
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()
        if session is not None:
            await session.close()
            await self._sockets.close()

    # one request

    async def _document_at(self, path: str, params: Mapping[str, str] | None = None) -> Doc:
        async with await self._read(path, params=params) as response:
            return _document(await self._body(response))

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        try:
            return await response.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._unreachable(error) from error

    async def _read(
        self,
        path: str,
        *,
        params: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        watch: bool = False,
    ) -> aiohttp.ClientResponse:
        """A successful answer, its body still to be read."""

        async def send() -> aiohttp.ClientResponse:
            if self._throttle and (delay := self._throttle.take(time.monotonic())):
                await asyncio.sleep(delay)
            return await self._pool().get(
                self._addresses.url(path),
                params=params or None,
                headers={**await self._authorization.fields(), **(headers or {})},
                timeout=self._timeouts.watching if watch else self._timeouts.reading,
                proxy=self.connection.proxy or None,
                server_hostname=self.connection.server_name or None,
                allow_redirects=False,
            )

        return await self._answer("GET", send)

    async def _write(
        self,
        method: str,
        path: str,
        body: bytes | None,
        *,
        params: Mapping[str, str] | None = None,
        media_type: str = "application/json",
    ) -> Doc:
        """The document in a successful answer."""

        async def send() -> Answer:
            fields = await self._authorization.fields() if self._authorization else {}
            if body is not None:
                fields["Content-Type"] = media_type
            self._must_lead()
            target, exchanges = self._addresses.target(path, params), self._exchanges()
            request = exchanges.request(method, target, fields, body or b"")
            sending = exchanges.send(request, self._must_lead, again=method in _IDEMPOTENT)
            return await self._deadlines.within(sending)

        return _document((await self._answer(method, send)).body)

    async def _answer(self, method: str, send: Callable[[], Awaitable[_Response]]) -> _Response:
        """A successful answer, or the error after as many attempts as make sense."""
        failures, renewed = 0, False
        while True:
            try:
                response = await send()
            except (aiohttp.ClientError, TimeoutError) as error:
                self.responses["<error>", method] += 1
                failure: ApiError = self._unreachable(error)
                again = _never_sent(error) or (method == "GET" and not isinstance(error, aiohttp.ClientSSLError))
            else:
                self.responses[str(response.status), method] += 1
                if response.status < 400:
                    return response
                failure, asked = await self._refusal(response)
                if response.status == 401 and not renewed and self._authorization:
                    renewed = True
                    self._authorization.expire()
                    continue
                again = response.status in _ASK_AGAIN and (asked or (method == "GET" and response.status != 500))
            failures += 1
            if not again or failures >= self._attempts:
                raise failure
            await asyncio.sleep(self._pause(failures, failure))

    def _must_lead(self) -> None:
        """Asked before a write is made and once more when its bytes are written: its connection may have taken a while,
        and a process that was stopped in between would send all writes that were under way when it wakes up."""
        if not self._may_write():
            raise NotSent("this process does not lead (any more)")

    def _exchanges(self) -> Exchanges:
        if self._kept is None:
            connector, url = self._pool().connector, self._addresses.url("/")
            assert connector is not None
            if url.scheme not in ("http", "https"):
                raise aiohttp.NonHttpUrlClientError(url)
            self._kept = Exchanges(
                connector,
                aiohttp.ClientRequest(
                    "GET",
                    url,
                    headers={**_HEADERS, "Accept-Encoding": "identity"},
                    proxy=URL(self.connection.proxy) if self.connection.proxy else None,
                    server_hostname=self.connection.server_name or None,
                    loop=asyncio.get_running_loop(),
                ),
                self._timeouts.writing,
            )
        return self._kept

    def _pool(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            tls = self.connection.tls
            # Watches hold their connections for long, so the pool has no limit: writers bound themselves.
            connector = aiohttp.TCPConnector(
                limit=0, keepalive_timeout=75, ssl=tls if tls is not None else True, socket_factory=self._sockets.make
            )
            self._session = aiohttp.ClientSession(
                connector=connector, headers=_HEADERS, read_bufsize=2**18, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    # what went wrong

    async def _refusal(self, response: aiohttp.ClientResponse | Answer) -> tuple[ApiError, bool]:
        """The error in an answer, and whether the server asked to come back."""
        if isinstance(response, Answer):
            body, after = response.body, response.retry_after
        else:
            after = response.headers.get("Retry-After", "")
            try:
                body = await response.read()
            except (aiohttp.ClientError, TimeoutError):
                body = b""
        error = api_error(response.status, _status(body))
        if after.isdigit():
            error.retry_after = float(after)
        return error, after.isdigit()

    def _pause(self, failures: int, failure: ApiError) -> float:
        """Our own backoff, or what the server requested if that is longer (within reason)."""
        own = self._backoff.delay(failures, self._rng)
        return max(own, min(failure.retry_after or 0.0, 60.0) * (1.0 + 0.1 * self._rng.random()))

    def _unreachable(self, error: BaseException) -> Unreachable:
        return Unreachable(f"{self.connection}: {str(error) or type(error).__name__}")

    def _count(self, verb: str, kind: Kind, subresource: str = "") -> None:
        self.requests[verb, f"{kind.resource}/{subresource}" if subresource else kind.resource] += 1


def page_of(kind: Kind, doc: Doc) -> Page:
    """A list document as a Page. The server leaves apiVersion and kind out of the items; they are put back."""
    metadata = doc.get("metadata") or {}
    identity = {"kind": kind.kind, "apiVersion": kind.api_version}
    return Page(
        items=[item if "kind" in item else identity | item for item in doc.get("items") or ()],
        resource_version=metadata.get("resourceVersion", ""),
        continue_=metadata.get("continue", ""),
        remaining=metadata.get("remainingItemCount"),
    )


def _hang_up(response: aiohttp.ClientResponse) -> None:
    """End a watch, mostly in mid-stream. Nobody waits for the other side's goodbye, which a loop that ends right after
    would never receive."""
    connection = response.connection
    if connection is not None and connection.transport is not None:
        connection.transport.abort()
    response.close()


def _event(line: bytes) -> WatchEvent:
    try:
        raw = orjson.loads(line)
        kind, doc = raw["type"], raw["object"]
        if kind == "ERROR":
            raise api_error(doc.get("code") or 500, doc)
        if kind not in _EVENTS or not isinstance(doc["metadata"], dict):
            raise ValueError(kind)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise InternalError(f"a line of the watch is no event: {line[:200]!r}") from error
    return WatchEvent(kind, doc)


def _document(body: bytes) -> Doc:
    try:
        doc: Doc = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise InternalError(f"the server's answer is not JSON: {body[:200]!r}") from error
    return doc


def _status(body: bytes) -> dict[str, Any]:
    try:
        status = orjson.loads(body)
    except orjson.JSONDecodeError:
        return {"message": body[:1024].decode(errors="replace").strip()}
    return status if isinstance(status, dict) else {}


def _params(query: Query) -> dict[str, str]:
    return _given(
        {
            "labelSelector": query.label_selector,
            "fieldSelector": query.field_selector,
            "limit": str(query.limit or ""),
            "continue": query.continue_,
            "resourceVersion": query.resource_version,
            "resourceVersionMatch": query.resource_version_match,
        }
    )


def _given(params: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in params.items() if value}


def _never_sent(error: BaseException) -> bool:
    """Whether no byte of the request can have reached the server."""
    return isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError) and not isinstance(
        error, aiohttp.ClientSSLError
    )
