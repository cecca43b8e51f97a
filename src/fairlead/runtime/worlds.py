"""The two worlds a live runtime can run in: a cluster behind a ClusterApi, and a Store in this process.

A World is where changes come from, where writes go and what controllers read. `Remote` keeps a mirror of the cluster by
list and watch; `Embedded` takes changes from the Store's subscriptions, so that nothing is encoded or copied. The
runtime does not know which of the two it has.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Protocol

from fairlead.client.port import Query
from fairlead.core.model.flow import Change, Happened
from fairlead.runtime.writers import ConcurrentWriter, Deliver, SendingRules, StoreWriter, Writer

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi
    from fairlead.client.reflector import OnContact, OnError
    from fairlead.cluster.store.history import EventType, Subscription
    from fairlead.cluster.store.objects import Record
    from fairlead.cluster.store.store import Store
    from fairlead.core.model.flow import DocView, Watch
    from fairlead.core.model.kinds import Kind

_HAPPENED = {happened.value: happened for happened in Happened}
_StoreEvent = tuple[int, "EventType", "Kind", "Record"]


class Following(Protocol):
    """One reader's changes: nothing until `ready`, then all objects as ADDED, then what happens."""

    @property
    def ready(self) -> bool: ...

    @property
    def held(self) -> frozenset[str]:
        """Parts of the reader that wait for what it may not read."""
        ...

    def also(self, watches: Sequence[Watch]) -> None:
        """Follow these too; not `ready` again until all of their objects are there."""
        ...

    def drain(self) -> Sequence[Change]: ...

    def close(self) -> None: ...


class World(Protocol):
    @property
    def view(self) -> DocView: ...

    def anticipate(self, watches: Sequence[Watch]) -> None:
        """Announce watches that will be followed, so that `run` starts them."""
        ...

    def follow(self, watches: Sequence[Watch], wake: Callable[[], None]) -> Following: ...

    def writer(self, deliver: Deliver, *, in_flight: int) -> Writer: ...

    async def run(self) -> None:
        """Keep the view up to date, until cancelled."""
        ...


class Remote:
    """A cluster at the other end of a ClusterApi."""

    def __init__(
        self,
        api: ClusterApi,
        *,
        on_error: OnError | None = None,
        on_contact: OnContact | None = None,
        rules: SendingRules | None = None,
    ) -> None:
        from fairlead.client.mirror import Mirror

        self._api = api
        self._rules = rules or SendingRules()
        self.view = Mirror(api, on_error=on_error, on_contact=on_contact)

    def anticipate(self, watches: Sequence[Watch]) -> None:
        for watch in watches:
            self.view.reflector(watch)

    def follow(self, watches: Sequence[Watch], wake: Callable[[], None]) -> Following:
        return self.view.follow(watches, wake)

    def writer(self, deliver: Deliver, *, in_flight: int) -> Writer:
        return ConcurrentWriter(self._api, deliver, in_flight=in_flight, rules=self._rules, mirrored=self.view.known)

    async def run(self) -> None:
        await self.view.run()


class Embedded:
    """A Store in this process, on this event loop."""

    def __init__(self, store: Store) -> None:
        self.view = store

    def anticipate(self, watches: Sequence[Watch]) -> None:
        """Nothing to do: a Store has all objects."""

    def follow(self, watches: Sequence[Watch], wake: Callable[[], None]) -> Following:
        return _Fed(self.view, watches, wake)

    def writer(self, deliver: Deliver, *, in_flight: int) -> Writer:
        return StoreWriter(self.view, deliver)

    async def run(self) -> None:
        await asyncio.Event().wait()


class _Fed:
    """The changes of several subscriptions of a Store, merged in the order in which they happened."""

    ready = True
    held: frozenset[str] = frozenset()

    def __init__(self, store: Store, watches: Sequence[Watch], wake: Callable[[], None]) -> None:
        self._store = store
        self._wake = wake
        self._generation = store.registry.generation
        self._subscriptions: dict[Watch, Subscription] = {}
        self.also(watches)

    def also(self, watches: Sequence[Watch]) -> None:
        for watch in watches:
            self._subscriptions[watch] = self._store.subscribe(
                watch.kind, Query.of(watch), buffer=sys.maxsize, wake=self._wake
            )

    def _follow_definitions(self) -> None:
        """Subscribe again to kinds whose CustomResourceDefinition was added or changed."""
        self._generation = self._store.registry.generation
        for watch, old in [*self._subscriptions.items()]:
            if self._store.registry.served(watch.kind) is not old.selection.kind:
                self._store.unsubscribe(old)
                self.also([watch])

    def drain(self) -> Sequence[Change]:
        if self._generation != self._store.registry.generation:
            self._follow_definitions()
        events = [
            (version, type_, subscription.selection.kind, record)
            for subscription in self._subscriptions.values()
            for type_, record, version in subscription.drain()
        ]
        events.sort(key=itemgetter(0))
        return _StoreChanges(self._store, events)

    def close(self) -> None:
        for subscription in self._subscriptions.values():
            self._store.unsubscribe(subscription)


class _StoreChanges(Sequence["Change"]):
    """Changes whose documents are taken from the Store's records one at a time, when a step comes to them: on a large
    cluster the first step of each controller brings all there is, and nobody can hold all of it decoded."""

    def __init__(self, store: Store, events: list[_StoreEvent]) -> None:
        self._store = store
        self._events = events

    def __len__(self) -> int:
        return len(self._events)

    def __iter__(self) -> Iterator[Change]:
        return map(self._change, self._events)

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return _StoreChanges(self._store, self._events[index])
        return self._change(self._events[index])

    def _change(self, event: _StoreEvent) -> Change:
        _, type_, kind, record = event
        doc = record.doc if kind.stored_as is None else self._store.shown(kind, record, keep=False)
        return Change(_HAPPENED[type_], kind, doc)
