"""Writes over kept connections, against servers that answer with bytes."""

from __future__ import annotations

import asyncio
import gc
import ssl
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from fairlead.client import exchanges
from fairlead.client.client import KubeApi, Timeouts
from fairlead.client.credentials import Connection
from fairlead.client.retry import RetryDelays
from fairlead.cluster.server.pki import Credentials
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import POD
from fairlead.errors import ApiError, InternalError, TooManyRequests, Unreachable

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Serve = Callable[["Peer", bytes], Awaitable[None]]
CREATE = Write(Verb.CREATE, POD, "n", "a", {})
UPDATE = Write(Verb.UPDATE, POD, "n", "a", {})
DELETE = Write(Verb.DELETE, POD, "n", "a")


class Peer:
    """The server's end of one connection; `number` counts them, `asked` the requests on it."""

    def __init__(self, number: int, writer: asyncio.StreamWriter) -> None:
        self.number, self.asked, self._writer = number, 0, writer

    def say(self, text: bytes) -> None:
        self._writer.write(text)

    def hang_up(self) -> None:
        self._writer.close()


class ByteServer:
    """Reads requests and hands each to `serve`; remembers all, by connection."""

    def __init__(self, serve: Serve) -> None:
        self._serve = serve
        self.requests: list[list[bytes]] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        peer, mine = Peer(len(self.requests), writer), []  # type: tuple[Peer, list[bytes]]
        self.requests.append(mine)
        try:
            while not writer.is_closing():
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0] or 0)
                mine.append(head + await reader.readexactly(length))
                peer.asked += 1
                await self._serve(peer, mine[-1])
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def served(
    serve: Serve, *, tls: ssl.SSLContext | None = None, proxied: str = "", timeouts: Timeouts | None = None
) -> AsyncIterator[tuple[KubeApi, ByteServer]]:
    handler = ByteServer(serve)
    server = await asyncio.start_server(handler.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    address = proxied or f"http://127.0.0.1:{port}"
    connection = Connection(address, tls=tls, proxy=f"http://me:secret@127.0.0.1:{port}" if proxied else "")
    api = KubeApi(connection, backoff=RetryDelays(first=0.0, most=0.0), timeouts=timeouts or Timeouts(), attempts=2)
    try:
        yield api, handler
    finally:
        await api.close()
        server.close()
        await server.wait_closed()


async def fine(peer: Peer, request: bytes) -> None:
    peer.say(OK)


async def test_writes_one_after_another_share_a_connection() -> None:
    async with served(fine) as (api, server):
        for _ in range(5):
            assert await api.perform(CREATE) == {}
    assert [len(requests) for requests in server.requests] == [5]


async def test_the_connection_that_was_used_last_is_used_next() -> None:
    async with served(fine) as (api, server):
        await asyncio.gather(*(api.perform(CREATE) for _ in range(3)))
        for _ in range(4):
            await api.perform(CREATE)
    assert sorted(len(requests) for requests in server.requests) == [1, 1, 5]


async def test_a_connection_that_was_idle_for_long_is_not_used_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exchanges, "KEEP", 0.0)
    async with served(fine) as (api, server):
        await api.perform(CREATE)
        await api.perform(CREATE)
    assert [len(requests) for requests in server.requests] == [1, 1]


async def test_a_server_that_closes_after_its_answer_gets_a_new_connection() -> None:
    async def closing(peer: Peer, request: bytes) -> None:
        peer.say(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}")

    async with served(closing) as (api, server):
        for _ in range(3):
            await api.perform(CREATE)
    assert [len(requests) for requests in server.requests] == [1, 1, 1]


async def test_a_request_says_what_http_wants() -> None:
    async with served(fine) as (api, server):
        await api.perform(Write(Verb.CREATE, POD, "n", "a b", {"x": 1}, "binding", params={"dryRun": "All"}))
    head, _, body = server.requests[0][0].partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    assert first == b"POST /api/v1/namespaces/n/pods/a%20b/binding?dryRun=All HTTP/1.1"
    assert body == b'{"x":1}'
    said = dict(field.split(b": ") for field in fields)
    assert said[b"Host"].startswith(b"127.0.0.1:")
    assert said[b"User-Agent"].startswith(b"fairlead/")
    assert said[b"Accept"] == said[b"Content-Type"] == b"application/json"
    assert said[b"Accept-Encoding"] == b"identity"
    assert said[b"Content-Length"] == b"7"


async def hang_up_on_second(peer: Peer, request: bytes) -> None:
    if peer.number == 0 and peer.asked == 2:
        peer.hang_up()
    else:
        peer.say(OK)


async def test_a_create_whose_answer_is_lost_is_not_sent_again() -> None:
    async with served(hang_up_on_second) as (api, server):
        await api.perform(CREATE)
        with pytest.raises(Unreachable, match="disconnected"):
            await api.perform(CREATE)
        await api.perform(CREATE)
    assert [len(requests) for requests in server.requests] == [2, 1]


@pytest.mark.parametrize("write", [UPDATE, DELETE])
async def test_what_may_be_done_twice_is_sent_again_when_a_kept_connection_was_closed(write: Write) -> None:
    async with served(hang_up_on_second) as (api, server):
        await api.perform(write)
        assert await api.perform(write) == {}
    assert [len(requests) for requests in server.requests] == [2, 1]


@pytest.mark.parametrize(
    ("said", "error"),
    [
        (b"<html>\r\n\r\n", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\n{}", Unreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[}", InternalError),
        (b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n", InternalError),
        (b"HTTP/1.1 429 Busy\r\nContent-Length: 0\r\n\r\n", TooManyRequests),
        (b"", Unreachable),
    ],
)
async def test_an_answer_that_is_none_is_reported_and_the_next_write_goes(said: bytes, error: type[ApiError]) -> None:
    async def odd(peer: Peer, request: bytes) -> None:
        first = peer.number == 0 and peer.asked == 1
        peer.say(said if first else OK)
        if first and error is Unreachable:
            peer.hang_up()

    async with served(odd) as (api, _):
        with pytest.raises(error):
            await api.perform(CREATE)
        assert await api.perform(CREATE) == {}


async def test_what_a_server_says_unasked_is_no_answer_to_the_next_write() -> None:
    answered = asyncio.Event()

    async def chatty(peer: Peer, request: bytes) -> None:
        peer.say(OK)
        if peer.number == 0:
            await answered.wait()
            peer.say(b"HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n")

    async with served(chatty) as (api, server):
        await api.perform(CREATE)
        answered.set()
        await asyncio.sleep(0.1)
        assert await api.perform(CREATE) == {}
    assert [len(requests) for requests in server.requests] == [1, 1]


async def test_a_late_answer_is_not_taken_for_that_of_the_next_write() -> None:
    given_up, said = asyncio.Event(), asyncio.Event()

    async def slow(peer: Peer, request: bytes) -> None:
        if peer.number == 0:
            await given_up.wait()
            peer.say(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{'a':1}")
            said.set()
        else:
            peer.say(OK)

    async with served(slow, timeouts=Timeouts(read=0.05)) as (api, _):
        with pytest.raises(Unreachable, match="no answer within"):
            await api.perform(CREATE)
        assert await api.perform(CREATE) == {}
        given_up.set()
        await said.wait()
        assert await api.perform(CREATE) == {}


async def test_a_proxy_is_shown_the_whole_address_of_a_server_without_tls() -> None:
    async with served(fine, proxied="http://cluster.example:8080") as (api, server):
        await api.perform(CREATE)
    head = server.requests[0][0]
    assert head.startswith(b"POST http://cluster.example:8080/api/v1/namespaces/n/pods HTTP/1.1\r\n")
    assert b"\r\nHost: cluster.example:8080\r\n" in head
    assert b"\r\nProxy-Authorization: Basic bWU6c2VjcmV0\r\n" in head


async def test_a_proxy_makes_a_tunnel_to_a_server_with_tls() -> None:
    async def refuse(peer: Peer, request: bytes) -> None:
        peer.say(b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n")

    async with served(refuse, proxied="https://cluster.example:8443") as (api, server):
        with pytest.raises(Unreachable):
            await api.perform(CREATE)
    assert server.requests[0][0].startswith(b"CONNECT cluster.example:8443 HTTP/1.1\r\n")


async def test_a_token_of_several_lines_is_not_sent() -> None:
    async with served(fine) as (api, server):
        other = KubeApi(Connection(api.connection.server, authorization=lambda: "Bearer a\r\nX-Other: b"))
        with pytest.raises(ValueError, match="more than one line"):
            await other.perform(CREATE)
        await other.close()
    assert server.requests == []


def test_a_write_that_was_cancelled_leaves_no_connection_open() -> None:
    credentials = Credentials.generate(now=time.time())
    trust = ssl.create_default_context(cadata=credentials.ca.decode())

    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    async def play() -> None:
        server = await asyncio.start_server(silent, "127.0.0.1", 0, ssl=credentials.tls())
        api = KubeApi(Connection(f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}", tls=trust))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await api.perform(CREATE)
        await api.close()
        server.close()

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(play())
        gc.collect()
        assert [str(one.message) for one in told] == []
