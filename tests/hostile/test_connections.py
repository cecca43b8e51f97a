"""Clients that connect and send nothing, half of something, or far too much of it: the others are served."""

from __future__ import annotations

import asyncio
import logging
import socket

import pytest
from aiohttp import ClientSession, web

from fairlead.cluster.server.listening import Listener, most_connections


async def ok(request: web.BaseRequest) -> web.StreamResponse:
    if request.path == "/slow":
        await asyncio.sleep(60)
    return web.Response(text="ok")


async def get(port: int, path: str = "/") -> str:
    async with ClientSession() as session, session.get(f"http://127.0.0.1:{port}{path}") as answer:
        return await answer.text()


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(100), 5) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("sent", [b"", b"GET / HTTP/1.1\r\nHost: a"], ids=["nothing", "half a head"])
async def test_a_head_that_does_not_come_ends_the_connection(sent: bytes) -> None:
    listener = Listener(ok, within=1.0, head_seconds=0.2)
    port = await listener.start("127.0.0.1", 0, None)
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
        assert await is_closed(reader)
        writer.close()
        assert await get(port) == "ok"
    finally:
        await listener.stop()


async def test_idle_connections_make_room_for_new_ones(caplog: pytest.LogCaptureFixture) -> None:
    listener = Listener(ok, within=1.0, most=20)
    port = await listener.start("127.0.0.1", 0, None)
    idle = []
    try:
        with caplog.at_level(logging.WARNING):
            for _ in range(60):
                connection = socket.create_connection(("127.0.0.1", port))
                idle.append(connection)
                await asyncio.sleep(0)
            assert await asyncio.wait_for(get(port), 20) == "ok"
        assert len([record for record in caplog.records if "connections are open" in record.message]) == 1
    finally:
        for connection in idle:
            connection.close()
        await listener.stop()


async def test_requests_under_way_are_not_closed_for_new_connections() -> None:
    listener = Listener(ok, within=0.1, most=4)
    port = await listener.start("127.0.0.1", 0, None)
    slow = [asyncio.create_task(get(port, "/slow")) for _ in range(3)]
    try:
        for _ in range(30):
            await asyncio.sleep(0.01)
            assert await asyncio.wait_for(get(port), 20) == "ok"
        assert not any(task.done() for task in slow)
    finally:
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        await listener.stop()


def test_the_cap_leaves_files_to_others() -> None:
    assert 16 <= most_connections() < 1 << 21
