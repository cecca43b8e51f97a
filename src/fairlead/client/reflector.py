"""Reflector: list, then watch, then resume; 410 means list again. It keeps the mirror that controllers read.

Three worries, three functions: `run` never gives up (backoff), whatever a server sends; `_list` turns a state into
changes against what is known, `_watch` follows from there. A listener gets each object ADDED once, then MODIFIED,
then DELETED, in the order of the server, whatever the connection does in between: what vanished while we were away is
DELETED with its last known state.

Invariant: applying all changes handed out so far to an empty table gives exactly the mirror. Documents are kept as
bytes and decoded on demand. Only the event loop writes; readers in other threads take snapshots that a single
operation of the interpreter makes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import orjson

from fairlead.client.port import Query
from fairlead.client.retries import Retries
from fairlead.client.retry import RetryDelays
from fairlead.core.model.documents import is_older
from fairlead.core.model.flow import Change, Doc, Happened, Watch
from fairlead.errors import ApiError, Forbidden, Gone, InternalError, Interrupted, NotFound, Unreachable

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from fairlead.client.port import ClusterApi, WatchEvent
    from fairlead.core.model.kinds import Kind

Listener = Callable[[Sequence[Change]], None]
OnError = Callable[[Watch, ApiError, float], None]
OnContact = Callable[[Watch], None]

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped kinds) and name."""
PAGE = 500
_SHORT = 1.0
"""A watch that ends sooner than this, without a word, counts as a failure: no server means that."""
_ABSENT = RetryDelays(first=5.0, factor=3.0, most=60.0, jitter=0.2)
"""How often to look whether a kind that the server does not know has come into being."""
_GIVE_UP_RESUMING = 3
"""After so many watches in a row that say nothing sensible, the kind is listed anew."""


class Reflector:
    """Mirrors what one Watch selects. `listed` says whether the first list is complete."""

    def __init__(
        self,
        api: ClusterApi,
        watch: Watch,
        *,
        page: int = PAGE,
        retries: Retries | None = None,
        on_error: OnError | None = None,
        on_contact: OnContact | None = None,
    ) -> None:
        """`on_error` is called with a failure and the pause after it, `on_contact` with anything that the server
        says."""
        self.watch = watch
        """As it is wanted by those who insist on it most: optional only if it is for all."""
        self._denied = False
        self._query = Query.of(watch)
        self.listed = False
        self._api = api
        self._page = page
        self._retries = retries or Retries()
        self._on_error, self._on_contact = on_error, on_contact
        self._listeners: list[Listener] = []
        self._objects: dict[str, dict[str, bytes]] = {}
        self._resource_version = ""
        self.contact_at: float | None = None
        """When the server last said anything about this watch, by the event loop's clock."""
        self._connection: asyncio.Timeout | None = None
        self._is_renewed = False

    def serve(self, watch: Watch) -> None:
        """One more wants what this reflector mirrors, perhaps more urgently than the others."""
        if not watch.optional:
            self.watch = watch

    @property
    def denied(self) -> bool:
        """Whether the server does not let this account read it."""
        return self._denied

    @property
    def is_following(self) -> bool:
        """Whether a watch is under way, as far as anybody knows."""
        return self._connection is not None

    def renew(self) -> None:
        """Begin the watch again from its last version, on another connection."""
        if self._connection is not None and not self._is_renewed:
            self._is_renewed = True
            self._connection.reschedule(_now())

    def is_ready_for(self, watch: Watch) -> bool:
        """Whether all that there is has been delivered; to who can do without: also if we may not read it."""
        return watch.optional if self._denied else self.listed

    # readers

    def get(self, namespace: str, name: str) -> Doc | None:
        raw = self.raw(namespace, name)
        return None if raw is None else _decode(raw)

    def raw(self, namespace: str, name: str) -> bytes | None:
        """An object as it is kept."""
        return self._objects.get(namespace, {}).get(name)

    def list(self, namespace: str = "") -> Iterator[Doc]:
        return map(_decode, self._raw(namespace))

    def __len__(self) -> int:
        return sum(len(names) for names in self._objects.values())

    def _raw(self, namespace: str) -> Iterable[bytes]:
        if namespace:
            return list(self._objects.get(namespace, {}).values())
        return [raw for names in list(self._objects.values()) for raw in list(names.values())]

    def listen(self, listener: Listener) -> None:
        """Call with every change from now on; what is already known comes at once, as ADDED."""
        if self.listed:
            listener(self._as_added())
        self._listeners.append(listener)

    def _as_added(self) -> Sequence[Change]:
        return Recorded(self.watch.kind, self._raw(""))

    # the loop

    async def run(self) -> None:
        """Until cancelled. Nothing that a server sends ends it."""
        while True:
            try:
                await self._list_and_watch()
            except Gone:
                # The first time at once; a server that keeps saying so is left in peace for a while.
                self._resource_version = ""
                await self._retries.after_first()
            except ApiError as error:
                self._denied = isinstance(error, Forbidden)
                if isinstance(error, NotFound) or (self.watch.optional and self._denied):
                    self._find_none()
                    await self._pause(error, _ABSENT)
                else:
                    if self._denied:
                        self._publish(())
                    if not isinstance(error, Unreachable) and self._retries.failures >= _GIVE_UP_RESUMING:
                        self._resource_version = ""
                    await self._pause(error)
            except Exception as error:
                # A document that nobody foresaw. What it left behind is not to be trusted: list again.
                self._resource_version = ""
                await self._pause(InternalError(f"{type(error).__name__}: {error}"))

    async def _list_and_watch(self) -> None:
        if not self._resource_version:
            await self._list()
            self._note_contact()
        started = _now()
        try:
            got_event = await self._watch()
        except Interrupted:
            # It had worked: the next one need not wait as if this had been one more failure in a row.
            if _now() - started > _SHORT:
                self._retries.worked()
                self.contact_at = max(started, self.contact_at or started)
            raise
        if self._is_renewed:
            self._is_renewed = False
        elif got_event or _now() - started > _SHORT:
            self._retries.worked()
            self._note_contact()
        else:
            await self._retries.pause(self._retries.failed())

    def _note_contact(self) -> None:
        self.contact_at = _now()
        if self._on_contact is not None:
            self._on_contact(self.watch)

    async def _pause(self, error: ApiError, delays: RetryDelays | None = None) -> None:
        delay = max(self._retries.failed(delays), min(error.retry_after or 0.0, 60.0))
        if self._on_error is not None:
            self._on_error(self.watch, error, delay)
        await self._retries.pause(delay)

    async def _list(self) -> None:
        """The whole state, as changes against what is known."""
        incoming, self._resource_version = await self._pages()
        self._denied = False
        if self.listed:
            self._publish(self._difference(incoming))
            return
        for key, raw in incoming.items():
            self._keep(key, raw)
        self.listed = True
        self._publish(self._as_added())

    def _find_none(self) -> None:
        """The server does not know this kind, or does not show it to us: there are none. That may change at any
        time."""
        self._resource_version = ""
        self.contact_at = _now()
        if self.listed:
            self._publish(self._difference({}))
        else:
            self.listed = True
            self._publish(())

    async def _pages(self) -> tuple[dict[Key, bytes], str]:
        """All pages of a list, encoded as they come so that never more than one is held as documents."""
        incoming: dict[Key, bytes] = {}
        limit, token = self._page, ""
        while True:
            try:
                page = await self._api.list(self.watch.kind, replace(self._query, limit=limit, continue_=token))
            except Gone:
                if not token:
                    raise
                # The list took so long that its snapshot is gone: once more, in one piece.
                limit, token = 0, ""
                incoming.clear()
                continue
            incoming |= {_key(doc): orjson.dumps(doc) for doc in page.items}
            token = page.continue_
            if not token:
                return incoming, page.resource_version

    def _difference(self, incoming: dict[Key, bytes]) -> Sequence[Change]:
        """From the mirror to `incoming`: who vanished goes first, so that a name used again is a new object."""
        gone, came = [], []
        for known in [*self.list()]:
            raw = incoming.get(_key(known))
            if raw is None or _decode(raw)["metadata"].get("uid") != known["metadata"].get("uid"):
                self._drop(_key(known))
                gone.append(Change(Happened.DELETED, self.watch.kind, known))
        for key, raw in incoming.items():
            old, doc = self.get(*key), _decode(raw)
            if old is None or old["metadata"]["resourceVersion"] != doc["metadata"]["resourceVersion"]:
                came.append(Change(Happened.MODIFIED if old else Happened.ADDED, self.watch.kind, doc))
                self._keep(key, raw)
        return gone + came

    async def _watch(self) -> bool:
        """Follow until the server ends it, or it is renewed; returns whether it sent anything."""
        got_event = False
        stream = self._api.watch(self.watch.kind, replace(self._query, resource_version=self._resource_version))
        try:
            async with (
                asyncio.timeout(None) as self._connection,
                aclosing(cast("AsyncGenerator[WatchEvent, None]", _closable(stream))) as events,
            ):
                async for event in events:
                    got_event = True
                    self._retries.worked()
                    self._note_contact()
                    self._take(event)
        except TimeoutError:
            if not self._is_renewed:
                raise
        finally:
            self._connection = None
        return got_event

    def _take(self, event: WatchEvent) -> None:
        version: str = event.doc["metadata"]["resourceVersion"]
        if is_older(version, self._resource_version):
            return  # something on the way repeats what it has sent before
        self._resource_version = version
        if event.type == "BOOKMARK":
            return
        key = _key(event.doc)
        known = self._has(key)
        if event.type != "DELETED":
            self._keep(key, orjson.dumps(event.doc))
            happened = Happened.MODIFIED if known else Happened.ADDED
        elif known:
            self._drop(key)
            happened = Happened.DELETED
        else:
            return
        self._publish([Change(happened, self.watch.kind, event.doc)])

    def _publish(self, changes: Sequence[Change]) -> None:
        for listener in self._listeners:
            listener(changes)

    # the mirror

    def _has(self, key: Key) -> bool:
        return key[1] in self._objects.get(key[0], ())

    def _keep(self, key: Key, raw: bytes) -> None:
        self._objects.setdefault(key[0], {})[key[1]] = raw

    def _drop(self, key: Key) -> None:
        names = self._objects.get(key[0], {})
        names.pop(key[1], None)
        if not names:
            self._objects.pop(key[0], None)


class Recorded(Sequence[Change]):
    """ADDED changes that are decoded one at a time as somebody iterates: the first list of a large cluster is handed to
    every controller, and none of them needs all the documents at once."""

    def __init__(self, kind: Kind, raw: Iterable[bytes]) -> None:
        self._kind = kind
        self._raw = list(raw)

    def __len__(self) -> int:
        return len(self._raw)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return Recorded(self._kind, self._raw[index])
        return Change(Happened.ADDED, self._kind, _decode(self._raw[index]))

    def __iter__(self) -> Iterator[Change]:
        for raw in self._raw:
            yield Change(Happened.ADDED, self._kind, _decode(raw))


def _now() -> float:
    return asyncio.get_running_loop().time()


def newest_of(kept: Sequence[bytes]) -> Doc | None:
    """The newest of several states of one object, as reflectors keep them."""
    if not kept:
        return None
    if all(raw == kept[0] for raw in kept):
        return _decode(kept[0])
    newest, *others = map(_decode, kept)
    for doc in others:
        if is_older(newest["metadata"]["resourceVersion"], doc["metadata"]["resourceVersion"]):
            newest = doc
    return newest


def _decode(raw: bytes) -> Doc:
    doc: Doc = orjson.loads(raw)
    return doc


def _key(doc: Doc) -> Key:
    metadata = doc["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


async def _closable(stream: AsyncIterator[WatchEvent]) -> AsyncIterator[WatchEvent]:
    """The same stream, closed with us if it can be closed: an adapter may return any iterator."""
    try:
        async for event in stream:
            yield event
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()
