"""Client and server close their TLS connections also when the other side never answers to that."""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import ssl
import threading
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from fairlead.client.client import KubeApi
from fairlead.client.credentials import Connection
from fairlead.cluster.server.listening import Endpoint
from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.server.server import Server
from fairlead.cluster.store.store import Store
from fairlead.core.model.kinds import POD


@pytest.fixture(scope="module")
def credentials() -> Credentials:
    return Credentials.generate(now=time.time())


@contextmanager
def silent_server(tls: ssl.SSLContext) -> Iterator[int]:
    """The port of a server that reads one request and then does nothing any more."""
    taken: list[ssl.SSLSocket] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection = tls.wrap_socket(listening.accept()[0], server_side=True)
            connection.recv(65536)
            taken.append(connection)

        serving = threading.Thread(target=serve)
        serving.start()
        yield int(listening.getsockname()[1])
        serving.join()
    taken[0].close()


def test_a_client_whose_request_was_cancelled_leaves_no_socket_open(credentials: Credentials) -> None:
    trust = ssl.create_default_context(cadata=credentials.ca.decode())

    async def ask(port: int) -> None:
        api = KubeApi(Connection(f"https://127.0.0.1:{port}", tls=trust))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await api.get(POD, "default", "p")
        await api.close()

    with silent_server(credentials.tls()) as port, warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        asyncio.run(ask(port))
        gc.collect()
        assert [str(one.message) for one in told] == []


def test_a_server_that_stops_leaves_no_connection_of_a_silent_client_open(credentials: Credentials) -> None:
    trust = ssl.create_default_context(cadata=credentials.ca.decode())
    store = Store(clock=time.time, rng=random.Random(1))

    def get(port: int) -> ssl.SSLSocket:
        connection = trust.wrap_socket(socket.create_connection(("127.0.0.1", port)), server_hostname="127.0.0.1")
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
        return connection

    async def serve() -> ssl.SSLSocket:
        server = Server(store, token="t", at=Endpoint(tls=credentials.tls()))
        await server.start()
        client = await asyncio.to_thread(get, server.port)
        await server.stop()
        return client

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", ResourceWarning)
        with asyncio.run(serve()):
            gc.collect()
            assert [str(one.message) for one in told] == []
