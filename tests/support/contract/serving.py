"""Our own server over a Store on loopback TLS, and a client for it."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache

from fairlead.client.client import KubeApi
from fairlead.client.credentials import Connection
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import Server
from fairlead.cluster.store.store import Store


@cache
def _credentials() -> Credentials:
    """Making keys takes a while; one set does for all tests."""
    return Credentials.generate(now=time.time())


@asynccontextmanager
async def serve(store: Store) -> AsyncIterator[KubeApi]:
    """A client of a server that runs as long as the context is open."""
    credentials = _credentials()
    server = Server(store, token=credentials.token, at=Endpoint(tls=credentials.tls()))
    await server.start()
    api = KubeApi(Connection.to(server.url, token=credentials.token, ca=credentials.ca))
    try:
        yield api
    finally:
        await api.close()
        await server.stop()
