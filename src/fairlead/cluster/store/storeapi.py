"""StoreApi: the Store behind the port that everything above speaks, so that embedded and remote look the same.

Writes that arrive in one turn of the event loop are performed as one batch; with a journal that is one transaction,
and each reply is given only after it is on disk.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

from fairlead.client.port import EVERYTHING, Page, Query, WatchEvent
from fairlead.cluster.store.subresources import scale_of
from fairlead.errors import ApiError, Gone, StorageFull

if TYPE_CHECKING:
    from fairlead.cluster.store.history import Subscription
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import Doc, Write
    from fairlead.core.model.kinds import Kind

BOOKMARK_SECONDS = 30.0
INITIAL_EVENTS_END = {"k8s.io/initial-events-end": "true"}
# Inside the class `list` is the method.
Warnings = list[str]
Waiting = list[tuple["Write", "Warnings | None", "asyncio.Future[Doc]"]]
Answers = list[tuple["asyncio.Future[Doc]", "Doc"]]
Events = list[WatchEvent]


class StoreApi:
    """The async face of a Store, to be used on one event loop."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._waiting: Waiting = []

    async def get(self, kind: Kind, namespace: str, name: str, *, subresource: str = "") -> Doc:
        doc = self.store.read(kind, namespace, name)
        return scale_of(kind, doc) if subresource == "scale" else doc

    async def list(self, kind: Kind, query: Query = EVERYTHING) -> Page:
        return self.store.page(kind, query)

    async def watch(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        bookmarks: bool = True,
        send_initial_events: bool = False,
        timeout: float | None = None,  # noqa: ASYNC109 (the name of the port)
    ) -> AsyncIterator[WatchEvent]:
        ready = asyncio.Event()
        subscription = self.store.subscribe(kind, query, send_initial_events=send_initial_events, wake=ready.set)
        try:
            for event in self._drained(kind, subscription):
                yield event
            if send_initial_events and bookmarks:
                yield self._bookmark(kind, initial=True)
            async for event in self._follow(kind, subscription, ready, bookmarks=bookmarks, seconds=timeout):
                yield event
        finally:
            self.store.unsubscribe(subscription)

    async def _follow(
        self, kind: Kind, subscription: Subscription, ready: asyncio.Event, *, bookmarks: bool, seconds: float | None
    ) -> AsyncIterator[WatchEvent]:
        loop = asyncio.get_running_loop()
        end = None if seconds is None else loop.time() + seconds
        while end is None or loop.time() < end:
            for event in self._drained(kind, subscription):
                yield event
            if subscription.ended:
                return
            pause = BOOKMARK_SECONDS if end is None else min(BOOKMARK_SECONDS, end - loop.time())
            if not await woken(ready, pause) and bookmarks:
                yield self._bookmark(kind)
            ready.clear()

    def _drained(self, kind: Kind, subscription: Subscription) -> Events:
        if subscription.overflowed:
            raise Gone("the watch fell too far behind; list anew")
        shown = self.store.shown
        return [WatchEvent(type_, shown(kind, record)) for type_, record, _ in subscription.drain()]

    def _bookmark(self, kind: Kind, *, initial: bool = False) -> WatchEvent:
        return WatchEvent("BOOKMARK", bookmark(kind, self.store.resource_version, initial=initial))

    async def perform(self, write: Write, *, warnings: Warnings | None = None) -> Doc:
        if not self.store.durable:
            return self.store.perform(write, warnings=warnings)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Doc] = loop.create_future()
        self._waiting.append((write, warnings, future))
        if len(self._waiting) == 1:
            loop.call_soon(self._flush)
        return await future

    async def close(self) -> None:
        """Nothing is held open; who made the Store closes it."""

    def _flush(self) -> None:
        """Perform what has gathered, in order, and answer when it is on disk."""
        waiting, self._waiting = self._waiting, []
        self._perform_together(waiting)

    def _perform_together(self, waiting: Waiting) -> None:
        answers: Answers = []
        try:
            with self.store.batch():
                for write, warnings, future in waiting:
                    self._attempt(write, warnings, future, answers)
        except ApiError as error:
            if isinstance(error, StorageFull) and len(waiting) > 1:  # a deletion by itself may be possible
                for one in waiting:
                    if not one[2].done():
                        self._perform_together([one])
                return
            for future, _ in answers:
                _fail(future, error)
            return
        for future, doc in answers:
            if not future.done():
                future.set_result(doc)

    def _attempt(self, write: Write, warnings: Warnings | None, future: asyncio.Future[Doc], answers: Answers) -> None:
        if future.cancelled():
            return
        try:
            answers.append((future, self.store.perform(write, warnings=warnings)))
        except Exception as error:  # one writer's error, whatever it is, is that writer's alone
            _fail(future, error)


def _fail(future: asyncio.Future[Doc], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


async def woken(ready: asyncio.Event, seconds: float) -> bool:
    """Wait for the event, but no longer than that."""
    try:
        async with asyncio.timeout(max(seconds, 0.0)):
            await ready.wait()
    except TimeoutError:
        return False
    return True


def bookmark(kind: Kind, version: int, *, initial: bool = False) -> Doc:
    """The object of a BOOKMARK event."""
    metadata: Doc = {"resourceVersion": str(version), "creationTimestamp": None}
    if initial:
        metadata["annotations"] = INITIAL_EVENTS_END
    return {"kind": kind.kind, "apiVersion": kind.api_version, "metadata": metadata}
