"""PoolSockets: the sockets of one HTTP connection pool, so that all of them can be closed at its end.

A pool closes the connection of a cancelled request at once and forgets it, but a TLS connection is not closed before
the server has answered to that. An event loop that ends earlier leaves the socket open, which Python reports as an
unclosed transport. Shutting such a socket down makes its transport see the end and close, whatever the server does.

A peer that is gone without a word, as after a power cut, is noticed by the kernel: it asks idle connections every few
seconds whether anybody is there, and ends those on which what was sent is not acknowledged.

Invariant: after `close`, no socket that was made here is open, unless the loop cannot get to it within a second.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import suppress
from typing import Any
from weakref import WeakSet

NOTICED_AFTER = 45.0
"""Seconds after which a dead peer is noticed at the latest, whether the connection was idle or not."""
_IDLE, _BETWEEN, _PROBES = 15, 10, 3
_KEEPALIVE = [
    (getattr(socket, name), value)
    for name, value in (
        ("TCP_KEEPIDLE", _IDLE),
        ("TCP_KEEPINTVL", _BETWEEN),
        ("TCP_KEEPCNT", _PROBES),
        ("TCP_USER_TIMEOUT", round(1000 * (NOTICED_AFTER - _BETWEEN))),  # looked at when a probe is due
    )
    if hasattr(socket, name)  # macOS names the first otherwise, and has no last
]
_PAUSE = 0.005
_PAUSES = 200


class PoolSockets:
    def __init__(self) -> None:
        self._made: WeakSet[socket.socket] = WeakSet()

    def make(self, address: Any) -> socket.socket:
        """A `socket_factory` of aiohttp; `address` is as getaddrinfo gives it."""
        family, kind, protocol, _, _ = address
        made = socket.socket(family=family, type=kind, proto=protocol)
        made.setblocking(False)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        for option, value in _KEEPALIVE:
            made.setsockopt(socket.IPPROTO_TCP, option, value)
        self._made.add(made)
        return made

    async def close(self) -> None:
        """End what the pool has left open, and wait until the event loop has noticed."""
        for left in self._open():
            with suppress(OSError):
                left.shutdown(socket.SHUT_RDWR)
        for _ in range(_PAUSES):
            if not self._open():
                break
            await asyncio.sleep(_PAUSE)

    def _open(self) -> list[socket.socket]:
        return [made for made in self._made if made.fileno() != -1]
