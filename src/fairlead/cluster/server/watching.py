"""A watch over HTTP: one JSON line per event, until the client goes, the time is up or the client falls behind.

The stream writes what its subscription holds and then sleeps. While a slow client's socket is full only its own
stream waits; its subscription fills up to its bound and is then cut off together with the connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import orjson
from aiohttp import web

from fairlead.cluster.server.parameters import flag, query_of
from fairlead.cluster.store.paging import list_options_invalid
from fairlead.cluster.store.storeapi import BOOKMARK_SECONDS, woken
from fairlead.errors import ApiError, Gone

if TYPE_CHECKING:
    from fairlead.cluster.server.answers import EventForm
    from fairlead.cluster.store.history import Subscription
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.kinds import Kind

EVENTS_PER_WRITE = 500
DEFAULT_SECONDS = 1800.0


def check_watch_params(params: Mapping[str, str]) -> None:
    match, field = params.get("resourceVersionMatch") or "", "resourceVersionMatch"
    if "sendInitialEvents" not in params:
        if match:
            raise list_options_invalid(
                field, "Forbidden: resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
            )
    elif match != "NotOlderThan":
        raise list_options_invalid(
            field, "Forbidden: sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
        )


class WatchStream:
    """One client's watch."""

    def __init__(self, request: web.BaseRequest, store: Store, kind: Kind, *, form: EventForm, seconds: float) -> None:
        self._request, self._store, self._kind, self._form = request, store, kind, form
        self._bookmarks = flag(request.query, "allowWatchBookmarks")
        self._ready = asyncio.Event()
        self._end = asyncio.get_running_loop().time() + seconds
        self._response = web.StreamResponse(headers={"Content-Type": "application/json", "Cache-Control": "no-cache"})
        self._subscription: Subscription | None = None
        self._sent = 0
        """The highest version that the client has seen; a bookmark never goes behind it."""

    async def run(self, namespace: str, *, name: str = "", buffer: int) -> web.StreamResponse:
        """Serve the watch to its end."""
        check_watch_params(self._request.query)
        params = self._request.query
        initial = flag(params, "sendInitialEvents")
        query = query_of(params, namespace)
        if name:
            fields = ",".join(part for part in (query.field_selector, f"metadata.name={name}") if part)
            query = replace(query, field_selector=fields)
        too_old: ApiError | None = None
        try:
            self._subscription = self._store.subscribe(
                self._kind, query, send_initial_events=initial, buffer=buffer, wake=self._wake
            )
        except Gone as error:
            too_old = error
        version = self._store.resource_version
        self._response.enable_chunked_encoding()
        await self._response.prepare(self._request)
        try:
            if too_old is not None:
                await self._write(b'{"type":"ERROR","object":' + orjson.dumps(too_old.status()) + b"}\n")
            elif self._subscription is not None:
                await self._stream(self._subscription, version if initial else None)
            await self._response.write_eof()
        except ConnectionError:
            pass
        finally:
            if self._subscription is not None:
                self._store.unsubscribe(self._subscription)
        return self._response

    async def _stream(self, subscription: Subscription, initial_version: int | None) -> None:
        loop = asyncio.get_running_loop()
        await self._drain(subscription)
        if initial_version is not None and self._bookmarks:
            await self._bookmark(initial_version, initial=True)
        while (left := self._end - loop.time()) > 0 and not (subscription.overflowed or subscription.ended):
            awake = await woken(self._ready, min(left, BOOKMARK_SECONDS))
            self._ready.clear()
            version = self._store.resource_version
            await self._drain(subscription)
            if not awake and self._bookmarks:
                await self._bookmark(version)

    async def _drain(self, subscription: Subscription) -> None:
        while events := subscription.drain(EVENTS_PER_WRITE):
            self._sent = max(self._sent, max(version for _, _, version in events))
            await self._write(
                b"".join(
                    b'{"type":"%b","object":%b}\n' % (type_.encode(), self._form.record(record))
                    for type_, record, _ in events
                )
            )

    async def _bookmark(self, version: int, *, initial: bool = False) -> None:
        self._sent = max(self._sent, version)
        await self._write(b'{"type":"BOOKMARK","object":' + self._form.bookmark(self._sent, initial=initial) + b"}\n")

    async def _write(self, data: bytes) -> None:
        await self._response.write(data)

    def _wake(self) -> None:
        self._ready.set()
        transport = self._request.transport
        if self._subscription is not None and self._subscription.overflowed and transport is not None:
            transport.abort()
