"""The embedded API: every object in memory as encoded bytes, one counter of versions, one way to change anything.

Reading, listing at a version, watching and writing follow the Kubernetes API, for callers in this process and, through
server.py, for everybody else. A write is decided (verbs.py), written to the journal, put into memory and only then
told to watchers. Writes of one batch share one journal transaction; if that fails, memory is as it was before.

No threads and no clock of its own: one thread writes, others may read (`get` and `list` never see half a change),
and `tick()` lets time do its work. Invariant: memory, journal and the end of the history are the same state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from operator import attrgetter
from random import Random
from typing import TYPE_CHECKING, TypeAlias

from fairlead.api.custom.catalog import Catalog
from fairlead.api.custom.definitions import CLEANUP
from fairlead.api.custom.structural import conformed
from fairlead.api.port import Page
from fairlead.api.store.conversion import convert
from fairlead.api.store.eviction import evict
from fairlead.api.store.history import Event, EventType, Feed, History, Subscription
from fairlead.api.store.journal import RESTART_GAP
from fairlead.api.store.objects import DecodedCache, Key, Record, encode, not_found
from fairlead.api.store.paging import Chunk, Query, chunk, expired, parse_version, too_large
from fairlead.api.store.retention import Retention, RetentionLimits
from fairlead.api.store.selection import Selection
from fairlead.api.store.storeapi import StoreApi
from fairlead.api.store.verbs import VerbOutcome, Verbs
from fairlead.errors import Gone, JournalError, NotFound, StorageFull
from fairlead.model import kinds
from fairlead.model.flow import Doc, Verb, Watch, Write
from fairlead.model.kinds import Kind, Registry
from fairlead.model.priorities import CLUSTER_CRITICAL, SYSTEM_PRIORITIES

if TYPE_CHECKING:
    from fairlead.api.store.journal import Journal

__all__ = ["Store", "StoreApi"]

HISTORY_EVENTS = 20_000
HISTORY_SECONDS = 300.0
DECODED_DOCUMENTS = 8_192
WATCH_BUFFER = 10_000
FIRST_NAMESPACES = ("default", "kube-system", "kube-public", "kube-node-lease")
_PART_OF_A_BATCH = nullcontext()
_NAME, _PATH = attrgetter("name"), attrgetter("path")
# Inside the class `list` is the method.
Docs: TypeAlias = list[Doc]
Records: TypeAlias = list[Record]
Events: TypeAlias = list[Event]
Warnings: TypeAlias = list[str]
Names: TypeAlias = list[str]


class Store:
    """The objects, their history and the rules for changing them. Also the DocView that controllers read."""

    def __init__(
        self,
        *,
        clock: Callable[[], float],
        rng: Random,
        registry: Registry | None = None,
        journal: Journal | None = None,
        history: int = HISTORY_EVENTS,
        history_seconds: float = HISTORY_SECONDS,
        limits: RetentionLimits | None = None,
        decoded: int = DECODED_DOCUMENTS,
    ) -> None:
        self.registry = registry or Registry()
        self._clock = clock
        self._journal = journal
        self._objects: dict[Kind, dict[str, dict[str, Record]]] = {}
        self._decoded = DecodedCache(decoded)
        self._retention = Retention(limits or RetentionLimits())
        self._staged: Events | None = None
        self._catalog = Catalog(self.registry, self._moved)
        self._history = History(version=0, limit=history, age=history_seconds)
        self._version = self._load() if journal is not None else 0
        self._history.begin(self._version)
        self._verbs = Verbs(self, clock=clock, rng=rng)
        with self.batch():
            self._create_first_objects()

    # -- reading ------------------------------------------------------------------------------------------------------

    @property
    def resource_version(self) -> int:
        return self._version

    @property
    def now(self) -> float:
        return self._clock()

    @property
    def durable(self) -> bool:
        """Whether writes wait for a disk, so that it pays to batch them."""
        return self._journal is not None

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        record = self.find(kind, namespace, name)
        return None if record is None else self.shown(kind, record)

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        records = self._records(kind, namespace)
        if kind.stored_as is None:
            return [record.doc for record in records]
        return [self.shown(kind, record, keep=False) for record in records]

    def names(self, kind: Kind, namespace: str = "") -> Names:
        """Those of all objects of a kind, in the order of a list; nothing is decoded for them."""
        return [record.name for record in self._records(kind, namespace)]

    def read(self, kind: Kind, namespace: str, name: str) -> Doc:
        return self.shown(kind, self.existing(kind, namespace, name))

    def find(self, kind: Kind, namespace: str, name: str) -> Record | None:
        try:
            return self._objects[kind.storage][namespace if kind.namespaced else ""].get(name)
        except KeyError:
            return None

    def existing(self, kind: Kind, namespace: str, name: str) -> Record:
        record = self.find(kind, namespace, name)
        if record is None:
            raise not_found(kind, name)
        return record

    def shown(self, kind: Kind, record: Record, *, keep: bool = True) -> Doc:
        """The record's document in the version that this kind speaks."""
        doc = self._decoded.doc(record) if keep else record.doc
        return doc if kind.stored_as is None else convert(doc, kind.storage, kind)

    def page(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        limit: int = 0,
        continue_: str = "",
        resource_version: str = "",
        resource_version_match: str = "",
    ) -> Page:
        """A list as the API answers it."""
        selection = Selection(kind, namespace=namespace, labels=label_selector, fields=field_selector)
        query = Query.read(
            limit=limit, continue_=continue_, resource_version=resource_version, match=resource_version_match
        )
        part = self.chunk(selection, query)
        items = [self.shown(kind, record, keep=False) for record in part.records]
        return Page(items, str(part.version), part.continue_, part.remaining)

    def chunk(self, selection: Selection, query: Query) -> Chunk:
        """The records of a list, in order of namespace and name."""
        if query.version > self._version:
            raise too_large(query.version, self._version)
        kind = selection.kind
        if query.exact and query.version < self._version:
            version, records = query.version, self._records_at(kind, query)
        else:
            version, records = self._version, self._records(kind, selection.namespace)
        if query.after:
            records = [record for record in records if record.path >= query.after]
        records = [record for record in records if selection.matches(record)]
        return chunk(records, query, version, counted=selection.everything)

    def _records(self, kind: Kind, namespace: str) -> Records:
        """In a namespace or in all; copied in one step each, so that a reading thread sees no half-made change."""
        result: Records = []
        by_namespace = self._objects.get(kind.storage)
        if not by_namespace:
            return result
        if namespace and kind.namespaced:
            wanted = [namespace]
        else:
            wanted = sorted(by_namespace, key=_with_slash) if len(by_namespace) > 1 else list(by_namespace)
        for each in wanted:
            result += sorted(by_namespace.get(each, {}).values(), key=_NAME)
        return result

    def _records_at(self, kind: Kind, query: Query) -> Records:
        present = {record.key: record for record in self._records(kind, "")}
        try:
            then = self._history.state_at(kind.storage, query.version, present)
        except Gone as error:
            raise expired(query) from error
        return sorted(then.values(), key=_PATH)

    # -- watching -----------------------------------------------------------------------------------------------------

    def subscribe(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        resource_version: str = "",
        send_initial_events: bool = False,
        buffer: int = WATCH_BUFFER,
        wake: Callable[[], None] | None = None,
    ) -> Subscription:
        """Follow a kind: from a version, or (without one) beginning with all there is as ADDED."""
        kind = self.served(kind)
        selection = Selection(kind, namespace=namespace, labels=label_selector, fields=field_selector)
        version = parse_version(resource_version)
        if version > self._version:
            raise too_large(version, self._version)
        subscription = Subscription(selection, limit=buffer, wake=wake)
        if version and not send_initial_events:
            subscription.replay(self._since(selection, version))
        else:
            records = self._records(kind, selection.namespace)
            subscription.replay(("ADDED", each, each.version) for each in records if selection.matches(each))
        self._history.follow(kind.storage, subscription)
        return subscription

    def unsubscribe(self, follower: Subscription | Feed) -> None:
        self._history.leave(follower)

    def served(self, kind: Kind) -> Kind:
        """The kind under which objects of this group, version and plural are served just now: for kinds that users
        define, another one after every change of the definition."""
        return self.registry.by_resource(kind.group, kind.version, kind.plural) or kind

    def feed(self, watches: Iterable[Watch | Kind]) -> Feed:
        """All changes of these kinds in one order, beginning with all there is."""
        selections = [
            Selection(watch) if isinstance(watch, Kind) else Selection(
                self.served(watch.kind), namespace=watch.namespace, labels=watch.label_selector,
                fields=watch.field_selector,
            )
            for watch in watches
        ]  # fmt: skip
        feed = Feed(selections, self.shown)
        for selection in selections:
            for record in self._records(selection.kind, selection.namespace):
                if selection.matches(record):
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
        if write.verb is Verb.DELETE and not write.name:
            return self._delete_all(write)
        with self.batch():
            if write.subresource == "eviction":
                return evict(self, write)
            outcome = self._verbs.decide(write, warnings)
            answer = self._commit(outcome)
            if not outcome.dry_run:
                for further in outcome.also:
                    self._commit(further)
                self._tidy_definitions(outcome)
            return answer

    def restore(self, kind: Kind, doc: Doc) -> None:
        """Put an object in place as it is, its uid, status and times included, whatever was there before: for states
        that were saved. It gets a version of its own."""
        metadata = doc["metadata"]
        before = self.find(kind, metadata.get("namespace") or "", metadata["name"])
        with self.batch():
            stored = {**convert(doc, kind, kind.storage)}
            self._commit(VerbOutcome(kind.storage, before, stored, lambda stored: stored))

    def delete_collection(
        self,
        kind: Kind,
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        options: Doc | None = None,
    ) -> Docs:
        """Delete everything that the selectors choose; what they chose."""
        selection = Selection(kind, namespace=namespace, labels=label_selector, fields=field_selector)
        return [self.shown(kind, record, keep=False) for record in self.delete_selected(selection, options)]

    def _delete_all(self, write: Write) -> Doc:
        kind, params = write.kind, write.params
        items = self.delete_collection(
            kind, namespace=write.namespace, label_selector=params.get("labelSelector") or "",
            field_selector=params.get("fieldSelector") or "", options={**params, **(write.body or {})},
        )  # fmt: skip
        metadata = {"resourceVersion": str(self._version)}
        return {"kind": kind.list_kind, "apiVersion": kind.api_version, "metadata": metadata, "items": items}

    def delete_selected(self, selection: Selection, options: Doc | None) -> Records:
        kind = selection.kind
        chosen = [record for record in self._records(kind, selection.namespace) if selection.matches(record)]
        with self.batch():
            for record in chosen:
                self._delete(kind, record.key, options)
        return chosen

    def batch(self) -> AbstractContextManager[None]:
        """Writes inside are one transaction of the journal. If it cannot be written, none of them happened and the
        error is raised at the end; nobody may be told of their success before that."""
        return _PART_OF_A_BATCH if self._staged is not None else self._whole_batch()

    @contextmanager
    def _whole_batch(self) -> Iterator[None]:
        self._staged = []
        try:
            yield
        finally:
            staged, self._staged = self._staged, None
            self._settle(staged)

    def tick(self) -> None:
        """Let time pass: expired events and surplus ended pods go, old history is forgotten."""
        now = self._clock()
        self._history.compact(now)
        with self.batch():
            for kind, key in self._retention.due(now):
                self._delete(kind, key, {"gracePeriodSeconds": 0})

    def close(self) -> None:
        if self._journal is not None:
            self._journal.close()

    def _delete(self, kind: Kind, key: Key, options: Doc | None) -> None:
        with suppress(NotFound):
            outcome = self._verbs.decide(Write(Verb.DELETE, kind, *key, body=options))
            self._commit(outcome)
            if not outcome.dry_run:
                self._tidy_definitions(outcome)

    # -- kinds that users define --------------------------------------------------------------------------------------

    def _tidy_definitions(self, outcome: VerbOutcome) -> None:
        """A definition on its way out takes its objects along; with the last of them it is gone itself."""
        kind, after = outcome.kind, outcome.after
        if kind is kinds.CUSTOM_RESOURCE_DEFINITION and after is not None:
            if "deletionTimestamp" in after["metadata"]:
                self._clear(after["metadata"]["name"])
        elif kind.definition is not None and after is None:
            self._release(kind.definition.name)

    def _clear(self, name: str) -> None:
        kind = self._catalog.stored_kind(name)
        if kind is not None:
            for record in self._records(kind, ""):
                if "deletionTimestamp" not in record.doc["metadata"]:
                    self._delete(kind, record.key, None)
        self._release(name)

    def _release(self, name: str) -> None:
        """Let a terminating definition go if nothing is left of its objects."""
        kind, doc = self._catalog.stored_kind(name), self.get(kinds.CUSTOM_RESOURCE_DEFINITION, "", name)
        if doc is None or "deletionTimestamp" not in doc["metadata"] or (kind is not None and self._objects.get(kind)):
            return
        finalizers = [one for one in doc["metadata"].get("finalizers") or () if one != CLEANUP]
        if CLEANUP in (doc["metadata"].get("finalizers") or ()):
            patch = {"metadata": {"finalizers": finalizers or None}}
            write = Write(Verb.PATCH, kinds.CUSTOM_RESOURCE_DEFINITION, "", name, body=patch)
            self._commit(self._verbs.decide(write))

    def _moved(self, old: Kind, new: Kind | None) -> None:
        """Objects of a kind that was defined anew go on as objects of the new one."""
        kept = self._objects.pop(old, {})
        if new is not None and kept:
            self._objects[new] = {
                namespace: {name: _conformed(new, record) for name, record in records.items()}
                for namespace, records in kept.items()
            }
        self._history.move(old, new)

    def _commit(self, outcome: VerbOutcome) -> Doc:
        """Put an outcome into memory; the batch it belongs to does the rest."""
        before, after = outcome.before, outcome.after
        if before is not None and after is not None and after == self.shown(outcome.kind, before):
            return outcome.reply(after)
        if outcome.dry_run:
            return outcome.reply(after if after is not None else self.shown(outcome.kind, before))  # type: ignore[arg-type]
        version = self._version + 1
        record = None if after is None else self._record(after, version)
        event = Event(outcome.kind, version, before=before, after=record, at=self._clock(), last=outcome.last)
        self._version = version
        self._put(outcome.kind, event.key, record)
        assert self._staged is not None
        self._staged.append(event)
        return outcome.reply(after if after is not None else event.gone.doc)

    def _record(self, doc: Doc, version: int) -> Record:
        metadata = doc["metadata"] = {**doc["metadata"], "resourceVersion": str(version)}
        record = Record(metadata.get("namespace") or "", metadata["name"], version, encode(doc))
        self._decoded.keep(record, doc)
        return record

    def _put(self, kind: Kind, key: Key, record: Record | None) -> None:
        namespace, name = key
        records = self._objects.setdefault(kind, {}).setdefault(namespace, {})
        if record is not None:
            records[name] = record
        else:
            del records[name]
            if not records:
                del self._objects[kind][namespace]
        if kind is kinds.CUSTOM_RESOURCE_DEFINITION:
            self._catalog.follow(name, None if record is None else record.doc)

    def _settle(self, staged: Events) -> None:
        """Journal a batch and tell everybody; or take it back."""
        if staged and self._journal is not None:
            try:
                self._journal.append(staged, self._version)
            except StorageFull:
                for event in reversed(staged):
                    self._put(event.kind, event.key, event.before)
                raise
        for event in staged:
            self._retention.notice(event.kind, event.key, event.after, event.at)
            self._history.publish(event)

    # -- beginning ----------------------------------------------------------------------------------------------------

    def _load(self) -> int:
        """Everything that the journal holds; answers the version to go on from."""
        assert self._journal is not None
        now, by_resource = self._clock(), {}
        defined: list[tuple[str, Record]] = []  # a definition may come after its objects
        for kind in self.registry:
            by_resource[f"{kind.group}/{kind.version}/{kind.plural}"] = kind
        for row in self._journal.load():
            kind_of_row = by_resource.get(row.resource)
            record = Record(row.namespace, row.name, row.version, row.raw)
            if kind_of_row is None:
                defined.append((row.resource, record))
                continue
            if kind_of_row.stored_as is not None:  # it was kept in another version once
                record = _converted(kind_of_row, record)
                kind_of_row = kind_of_row.storage
            self._put(kind_of_row, record.key, record)
            self._retention.notice(kind_of_row, record.key, record, now)
        for resource, record in defined:
            group, _, plural = resource.split("/")
            stored = self._catalog.stored_kind(f"{plural}.{group}")
            if stored is None:
                raise JournalError(f'the journal holds objects of a resource that is not served: "{resource}"')
            self._put(stored, record.key, _conformed(stored, record))
        version = self._journal.resource_version
        return version + RESTART_GAP if version else 0

    def _create_first_objects(self) -> None:
        """What every cluster has from the start."""
        for name in FIRST_NAMESPACES:
            self._create_unless_there(kinds.NAMESPACE, "", name, {})
            self._create_unless_there(kinds.SERVICE_ACCOUNT, name, "default", {})
        for name, value in SYSTEM_PRIORITIES.items():
            description = "Used for system critical pods that must "
            description += (
                "run in the cluster, but can be moved to another node if necessary."
                if name == CLUSTER_CRITICAL
                else "not be moved from their current node."
            )
            self._create_unless_there(kinds.PRIORITY_CLASS, "", name, {"value": value, "description": description})

    def _create_unless_there(self, kind: Kind, namespace: str, name: str, body: Doc) -> None:
        if self.find(kind, namespace, name) is None:
            self.perform(Write(Verb.CREATE, kind, namespace, name, body=body))


def _conformed(kind: Kind, record: Record) -> Record:
    """The record as the kind's present schema has it."""
    doc = conformed(kind, record.doc)
    return record if doc == record.doc else _saying(record, doc)


def _converted(kind: Kind, record: Record) -> Record:
    """The record as the version has it that is stored now."""
    return _saying(record, convert(record.doc, kind, kind.storage))


def _saying(record: Record, doc: Doc) -> Record:
    return Record(record.namespace, record.name, record.version, encode(doc))


def _with_slash(namespace: str) -> str:
    """Namespaces sort as the beginnings of paths: `a-b/` before `a/`."""
    return namespace + "/"
