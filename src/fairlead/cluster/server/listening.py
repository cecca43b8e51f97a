"""How our HTTP servers begin and end to listen.

Invariant: when `stop` returns, no connection of the server is open. A TLS connection is otherwise not closed before its
client has answered to that, and an event loop that ends earlier leaves the socket open.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    import ssl

_BACKLOG = 1024


class Listener:
    """Accepts connections for one aiohttp handler. `within` is how many seconds requests under way have at the end."""

    def __init__(self, server: web.Server, *, within: float) -> None:
        self._server = server
        self._runner = web.ServerRunner(server, handle_signals=False, shutdown_timeout=within)

    async def start(self, host: str, port: int, tls: ssl.SSLContext | None) -> int:
        """Begin to listen; returns the port."""
        await self._runner.setup()
        await web.TCPSite(self._runner, host, port, ssl_context=tls, backlog=_BACKLOG).start()
        return int(self._runner.addresses[0][1])

    async def stop(self) -> None:
        """Stop listening, end requests, and close all connections without waiting for the clients' goodbye."""
        transports = [one.transport for one in self._server.connections if one.transport is not None]
        await self._runner.cleanup()
        for transport in transports:
            transport.abort()
        await asyncio.sleep(0)
