"""An embedded API server over HTTPS and a plain client of it, for tests that send requests of their own."""

from __future__ import annotations

import asyncio
import io
import random
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import orjson

from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import Server
from fairlead.cluster.store.store import Store


class Client:
    def __init__(self, session: aiohttp.ClientSession, server: Server) -> None:
        self.session, self.server, self.store = session, server, server.store

    async def ask(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        data = None if body is None else io.BytesIO(body if isinstance(body, bytes) else orjson.dumps(body))
        sent = {"Content-Type": "application/json"} | {key.replace("_", "-"): value for key, value in headers.items()}
        async with self.session.request(method, self.server.url + path, data=data, headers=sent) as response:
            raw = await response.read()
            return response.status, orjson.loads(raw) if response.content_type == "application/json" else raw


Story = Callable[[Client], Awaitable[None]]


@asynccontextmanager
async def served(credentials: Credentials, **options: Any) -> AsyncIterator[Client]:
    store = Store(clock=time.time, rng=random.Random(5))
    server = Server(store, token=credentials.token, at=Endpoint(tls=credentials.tls()), **options)
    await server.start()
    tls = ssl.create_default_context(cadata=credentials.ca.decode())
    headers = {"Authorization": f"Bearer {credentials.token}"}
    connector = aiohttp.TCPConnector(ssl=tls)
    try:
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            yield Client(session, server)
    finally:
        await server.stop()


def run(credentials: Credentials, story: Story, **options: Any) -> None:
    """Run a story against a server that is there for it alone, within 30 s."""

    async def told() -> None:
        async with asyncio.timeout(30), served(credentials, **options) as client:
            await story(client)

    asyncio.run(told())
