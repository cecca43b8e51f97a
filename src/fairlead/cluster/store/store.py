"""The embedded API: every object in memory as encoded bytes, one counter of versions, one way to change anything.

Reading, listing at a version, watching and writing follow the Kubernetes API, for callers in this process and, through
server.py, for everybody else. A write is decided (verbs.py) and committed (commits.py): memory, journal, watchers.

The Store has no threads and no clock of its own: one thread writes, others may read (`get` and `list` never see half a
change), and `tick()` deletes what has expired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from fairlead.client.port import EVERYTHING, Page, Query
from fairlead.cluster.custom.catalog import Catalog
from fairlead.cluster.store.binding_room import BindingRoom
from fairlead.cluster.store.commits import Commits, Kept
from fairlead.cluster.store.conversion import convert
from fairlead.cluster.store.definition_cleanup import DefinitionCleanup
from fairlead.cluster.store.eviction import evict
from fairlead.cluster.store.history import EventType, Feed, History, Subscription
from fairlead.cluster.store.object_table import ObjectTable
from fairlead.cluster.store.objects import DecodedCache, Key, Record, not_found, private_copy
from fairlead.cluster.store.paging import Chunk, PageRequest, chunk, expired, parse_version, too_large
from fairlead.cluster.store.retention import Retention, RetentionLimits
from fairlead.cluster.store.selection import Selection
from fairlead.cluster.store.start import first_objects, load
from fairlead.cluster.store.storeapi import StoreApi
from fairlead.cluster.store.verbs import VerbOutcome, Verbs
from fairlead.core.model.flow import Doc, Verb, Watch, Write
from fairlead.core.model.kinds import EVENT, POD, Kind, Registry
from fairlead.errors import Gone, NotFound

if TYPE_CHECKING:
    from fairlead.cluster.admission.hooks import KindHooks
    from fairlead.cluster.store.journal import Journal

__all__ = ["Store", "StoreApi"]

HISTORY_EVENTS = 20_000
HISTORY_SECONDS = 300.0
DECODED_DOCUMENTS = 8_192
WATCH_BUFFER = 10_000
_PATH = attrgetter("path")
# Inside the class `list` is the method.
Docs: TypeAlias = list[Doc]
Records: TypeAlias = list[Record]
Warnings: TypeAlias = list[str]
Names: TypeAlias = list[str]


@dataclass(frozen=True, slots=True)
class StoreLimits:
    """How many events are kept for watches and for how long, how many ended pods and events are kept (`ended`), and how
    many decoded documents; None is all."""

    history: int = HISTORY_EVENTS
    history_seconds: float = HISTORY_SECONDS
    ended: RetentionLimits = field(default_factory=RetentionLimits)
    decoded: int | None = DECODED_DOCUMENTS


_LIMITS = StoreLimits()


class Store:
    """The objects, their history and the rules for changing them. Also the DocView that controllers read.

    `hooks` are what admission does for single kinds: `kind_hooks` of cluster/admission/hooks.py unless given."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        rng: Random,
        registry: Registry | None = None,
        journal: Journal | None = None,
        limits: StoreLimits = _LIMITS,
        hooks: Mapping[Kind, KindHooks] | None = None,
        check_bindings: bool = False,
    ) -> None:
        self.registry = registry or Registry()
        self.clock, self._journal = clock, journal
        self._table = ObjectTable()
        self._decoded = DecodedCache(limits.decoded)
        self._retention = Retention(limits.ended)
        self._history = History(version=0, limit=limits.history, age=limits.history_seconds)
        catalog = Catalog(self.registry)
        room = BindingRoom() if check_bindings else None
        self._commits = Commits(
            Kept(self._table, catalog, self._history, self._retention, self._decoded),
            clock=clock,
            journal=journal,
            room=room,
        )
        if journal is not None:
            self._started = self.clock()
            self._commits.version = load(journal, self.registry, catalog, self._loaded)
        self._history.begin(self._commits.version)
        self._verbs = Verbs(self, clock=clock, rng=rng, hooks=hooks, room=room)
        self._definitions = DefinitionCleanup(self._table, catalog, delete=self._delete, change=self._decided)
        with self.batch():
            for write in first_objects():
                if self.find(write.kind, write.namespace, write.name) is None:
                    self.perform(write)

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def resource_version(self) -> int:
        return self._commits.version

    @property
    def durable(self) -> bool:
        """Whether writes wait for a disk, so that it pays to batch them."""
        return self._journal is not None

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        record = self._table.find(kind, namespace, name)
        if record is None:
            return None
        doc = record.decoded
        return doc if doc is not None and kind.stored_as is None else self.shown(kind, record)

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        if not self._table.holds(kind.storage):
            return []
        records = self._table.records(kind, namespace)
        if kind.stored_as is None:
            return [record.decoded or record.doc for record in records]
        return [self.shown(kind, record, keep=False) for record in records]

    def names(self, kind: Kind, namespace: str = "") -> Names:
        """Those of all objects of a kind, in the order of a list; nothing is decoded for them."""
        return [record.name for record in self._table.records(kind, namespace)]

    def read(self, kind: Kind, namespace: str, name: str) -> Doc:
        return self.shown(kind, self.existing(kind, namespace, name))

    def find(self, kind: Kind, namespace: str, name: str) -> Record | None:
        return self._table.find(kind, namespace, name)

    def existing(self, kind: Kind, namespace: str, name: str) -> Record:
        record = self._table.find(kind, namespace, name)
        if record is None:
            raise not_found(kind, name)
        return record

    def shown(self, kind: Kind, record: Record, *, keep: bool = True) -> Doc:
        """The record's document in the version that this kind speaks."""
        doc = record.decoded
        if doc is None:
            doc = self._decoded.doc(record) if keep else record.doc
        return doc if kind.stored_as is None else convert(doc, kind.storage, kind)

    def page(self, kind: Kind, query: Query = EVERYTHING) -> Page:
        """A list as the API answers it."""
        part = self.chunk(kind, query)
        items = [self.shown(kind, record, keep=False) for record in part.records]
        return Page(items, str(part.version), part.continue_, part.remaining)

    def chunk(self, kind: Kind, query: Query) -> Chunk:
        """The records of a list, in order of namespace and name."""
        request, selection = PageRequest.of(query), Selection(kind, query)
        present = self._commits.version
        if request.version > present:
            raise too_large(request.version, present)
        if request.exact and request.version < present:
            version, records = request.version, self._records_at(kind, request)
        else:
            version, records = present, self._table.records(kind, selection.namespace)
        if request.after:
            records = [record for record in records if record.path >= request.after]
        records = selection.chosen(records)
        return chunk(records, request, version, counted=selection.everything)

    def _records_at(self, kind: Kind, request: PageRequest) -> Records:
        present = {record.key: record for record in self._table.records(kind)}
        try:
            then = self._history.state_at(kind.storage, request.version, present)
        except Gone as error:
            raise expired(request) from error
        return sorted(then.values(), key=_PATH)

    # -- watching -----------------------------------------------------------------------------------------------------

    def subscribe(
        self,
        kind: Kind,
        query: Query = EVERYTHING,
        *,
        send_initial_events: bool = False,
        buffer: int = WATCH_BUFFER,
        wake: Callable[[], None] | None = None,
    ) -> Subscription:
        """Follow a kind: from a version, or (without one) beginning with all there is as ADDED."""
        kind = self.registry.served(kind)
        selection = Selection(kind, query)
        version = parse_version(query.resource_version)
        if version > self._commits.version:
            raise too_large(version, self._commits.version)
        subscription = Subscription(selection, limit=buffer, wake=wake)
        if version and not send_initial_events:
            subscription.replay(self._since(selection, version))
        else:
            records = selection.chosen(self._table.records(kind, selection.namespace))
            subscription.replay([("ADDED", record, record.version) for record in records])
        self._history.follow(kind.storage, subscription)
        return subscription

    def unsubscribe(self, follower: Subscription | Feed) -> None:
        self._history.leave(follower)

    def feed(self, watches: Iterable[Watch | Kind]) -> Feed:
        """All changes of these kinds in one order, beginning with all there is."""
        selections = [
            Selection(watch)
            if isinstance(watch, Kind)
            else Selection(self.registry.served(watch.kind), Query.of(watch))
            for watch in watches
        ]
        feed = Feed(selections, self.shown)
        for selection in selections:
            for record in selection.chosen(self._table.records(selection.kind, selection.namespace)):
                feed.put("ADDED", selection.kind, record)
            self._history.follow(selection.kind.storage, feed)
        return feed

    def _since(self, selection: Selection, version: int) -> Iterator[tuple[EventType, Record, int]]:
        for event in self._history.log(selection.kind.storage).since(version):
            if (seen := event.seen_by(selection)) is not None:
                yield (*seen, event.version)

    # -- writing ------------------------------------------------------------------------------------------------------

    def perform(self, write: Write, *, warnings: Warnings | None = None) -> Doc:
        """Do it, or raise an ApiError and change nothing. The answer is what the API would answer. A DELETE without
        a name is one of the collection, narrowed by the selectors among its parameters."""
        if not write.name and write.verb is Verb.DELETE:
            return self._delete_all(write)
        if self._commits.staged is not None:
            return self._perform(write, warnings)
        with self.batch():
            return self._perform(write, warnings)

    def _perform(self, write: Write, warnings: Warnings | None) -> Doc:
        if write.subresource == "eviction":
            return evict(self, write)
        outcome = self._verbs.decide(write, warnings)
        answer = self._commits.commit(outcome, lazy=write.conforms)
        if not outcome.dry_run:
            for further in outcome.also:
                self._commits.commit(further)
            if outcome.kind is not POD:
                self._definitions.follow(outcome)
        return answer

    def restore(self, kind: Kind, doc: Doc) -> None:
        """Put an object in place as it is, its uid, status and times included, whatever was there before: for states
        that were saved. It gets a version of its own."""
        metadata = doc["metadata"]
        before = self.find(kind, metadata.get("namespace") or "", metadata["name"])
        with self.batch():
            stored = private_copy(convert(doc, kind, kind.storage))
            self._commits.commit(VerbOutcome(kind.storage, before, stored, lambda stored: stored))

    def delete_collection(self, kind: Kind, query: Query, options: Doc | None) -> Records:
        """Delete everything that the selectors choose; what they chose."""
        selection = Selection(kind, query)
        chosen = selection.chosen(self._table.records(kind, selection.namespace))
        with self.batch():
            for record in chosen:
                self._delete(kind, record.key, options)
        return chosen

    def batch(self) -> AbstractContextManager[None]:
        """Writes inside are one transaction of the journal. If it cannot be written, none of them happened and the
        error is raised at the end; nobody may be notified of their success before that."""
        return self._commits.batch()

    def tick(self) -> None:
        """Delete events that have expired and ended pods that are too many, and forget old history."""
        now = self.clock()
        self._history.compact(now)
        with self.batch():
            for kind, key in self._retention.due(now):
                self._delete(kind, key, {"gracePeriodSeconds": 0})

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _delete_all(self, write: Write) -> Doc:
        kind, params = write.kind, write.params
        query = Query(
            namespace=write.namespace,
            label_selector=params.get("labelSelector") or "",
            field_selector=params.get("fieldSelector") or "",
        )
        chosen = self.delete_collection(kind, query, {**params, **(write.body or {})})
        items = [self.shown(kind, record, keep=False) for record in chosen]
        metadata = {"resourceVersion": str(self.resource_version)}
        return {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": metadata, "items": items}

    def _delete(self, kind: Kind, key: Key, options: Doc | None) -> None:
        with suppress(NotFound):
            outcome = self._decided(Write(Verb.DELETE, kind, *key, body=options))
            if not outcome.dry_run:
                self._definitions.follow(outcome)

    def _decided(self, write: Write) -> VerbOutcome:
        outcome = self._verbs.decide(write)
        self._commits.commit(outcome)
        return outcome

    def _loaded(self, kind: Kind, key: Key, record: Record) -> None:
        self._commits.put(kind, key, record)
        if kind is POD or kind is EVENT:  # nothing else has a time to live
            self._retention.notice(kind, key, record, self._started)
