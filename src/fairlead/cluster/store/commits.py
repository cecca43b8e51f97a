"""Commits: how a decided write takes effect. Memory first, then the journal, then retention and watchers.

Every write belongs to a batch, and a batch is one transaction of the journal. If the journal cannot be written, memory
becomes what it was before the batch and the error is raised at its end; nobody was notified of the writes meanwhile.
A definition that goes takes its objects along: they are deleted in its batch, no matter who removed its finalizer.

Invariant: outside a batch, memory, journal and the end of the history are the same state.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fairlead.cluster.store.history import Event, History
from fairlead.cluster.store.objects import DecodedCache, Key, Record, encode
from fairlead.cluster.store.start import conformed_record
from fairlead.cluster.store.verbs import VerbOutcome
from fairlead.core.model import kinds
from fairlead.errors import StorageFull, TooLarge

if TYPE_CHECKING:
    from fairlead.cluster.custom.catalog import Catalog, Redefinition
    from fairlead.cluster.store.binding_room import BindingRoom
    from fairlead.cluster.store.journal import Journal
    from fairlead.cluster.store.object_table import ObjectTable, Records
    from fairlead.cluster.store.retention import Retention
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

MOST_ENCODED = 1536 * 1024
"""Bytes of the largest object that is taken: etcd's limit for a request."""
_PART_OF_A_BATCH = nullcontext()


@dataclass(frozen=True, slots=True)
class _Move:
    """A definition that changed, and its objects as they were kept before."""

    change: Redefinition
    kept: Records


class _WholeBatch:
    """A batch that is part of no other. There is one at a time, so all are the same object: in a simulation most
    instants have a batch or two of their own."""

    __slots__ = ("_commits",)

    def __init__(self, commits: Commits) -> None:
        self._commits = commits

    def __enter__(self) -> None:
        self._commits.begin()

    def __exit__(self, *raised: object) -> None:
        self._commits.end()


class Kept(NamedTuple):
    """What a Store keeps, all of which a commit changes."""

    table: ObjectTable
    catalog: Catalog
    history: History
    retention: Retention
    decoded: DecodedCache


class Commits:
    """`version` is the resourceVersion of the last write."""

    def __init__(
        self,
        kept: Kept,
        *,
        clock: Callable[[], float],
        journal: Journal | None,
        room: BindingRoom | None = None,
    ) -> None:
        self.version = 0
        self._table, self._catalog, self._history, self._retention, self._decoded = kept
        self._clock, self._journal = clock, journal
        self._room = room
        self.staged: list[Event] | None = None
        """What the batch under way has changed; None outside of one."""
        self._moved: dict[int, _Move] = {}
        """What definitions changed in this batch, by the number of events before the definition's own."""
        self._whole_batch = _WholeBatch(self)

    def batch(self) -> AbstractContextManager[None]:
        """Writes inside are one transaction; a batch inside another one is part of it."""
        return _PART_OF_A_BATCH if self.staged is not None else self._whole_batch

    def begin(self) -> None:
        self.staged = []

    def end(self) -> None:
        """Let what was staged since `begin` take effect."""
        assert self.staged is not None
        staged, self.staged = self.staged, None
        self._settle(staged)

    def commit(self, outcome: VerbOutcome, *, lazy: bool = False) -> Doc:
        """Put an outcome into memory under the next version; returns the answer. A write that changes nothing takes no
        version. A `lazy` one has no bytes before somebody requests them, unless there is a journal."""
        before, after, decoded = outcome.before, outcome.after, self._decoded
        if before is not None and after is not None and after == (before.decoded or decoded.doc(before)):
            return outcome.reply(after)
        if outcome.dry_run:
            return outcome.reply(after if after is not None else decoded.doc(before))  # type: ignore[arg-type]
        if after is None and outcome.kind is kinds.CUSTOM_RESOURCE_DEFINITION:
            self._delete_objects_of(before)  # type: ignore[arg-type]
        version = self.version + 1
        record = None if after is None else self._record(after, version, lazy=lazy)
        event = Event(outcome.kind, version, before, record, self._clock(), outcome.last)
        self.version = version
        if outcome.last is not None and record is None:
            decoded.keep(event.gone)  # as any document: no bytes unless somebody asks
        self.put(outcome.kind, event.key, record)
        assert self.staged is not None
        self.staged.append(event)
        return outcome.reply(after if after is not None else event.gone.doc)

    def put(self, kind: Kind, key: Key, record: Record | None) -> None:
        """Change memory alone. A definition also changes which kinds are served."""
        self._table.put(kind, key, record)
        if kind is kinds.CUSTOM_RESOURCE_DEFINITION:
            self._redefine(key[1], None if record is None else record.doc)
        elif self._room is not None and kind is kinds.POD:
            self._room.put(key, None if record is None else self._decoded.doc(record))

    def _record(self, doc: Doc, version: int, *, lazy: bool) -> Record:
        metadata = doc["metadata"] = {**doc["metadata"], "resourceVersion": str(version)}
        raw = None if lazy and self._journal is None else encode(doc)
        if raw is not None and len(raw) > MOST_ENCODED:
            raise TooLarge("etcdserver: request is too large")
        record = Record(metadata.get("namespace") or "", metadata["name"], version, raw, doc)
        self._decoded.keep(record)
        return record

    def _delete_objects_of(self, definition: Record) -> None:
        """Stage the deletion of every object of a definition that is about to go."""
        kind = self._catalog.stored_kind(definition.name)
        if kind is not None:
            for record in list(self._table.records(kind)):
                self.commit(VerbOutcome(kind, record, None, lambda gone: gone))

    def _redefine(self, name: str, doc: Doc | None) -> None:
        change = self._catalog.follow(name, doc)
        if change is None:
            return
        old, new = change.old, change.new
        kept = {} if old is None or new is None else self._table.move(old, new, conformed_record)
        if self.staged is not None:
            self._moved[len(self.staged)] = _Move(change, kept)

    def _settle(self, staged: list[Event]) -> None:
        """Write a batch to the journal and notify all followers, or undo it."""
        moved, self._moved = self._moved, {}
        if staged and self._journal is not None:
            try:
                self._journal.append(staged, self.version)
            except StorageFull:
                self._undo(staged, moved)
                raise
        for event in staged:
            self._retention.notice(event.kind, event.key, event.after, event.at)
        if not moved:
            self._history.publish(staged)
            return
        begin = 0
        for index, move in moved.items():
            self._history.publish(staged[begin : index + 1])
            begin = index + 1
            self._history.move(move.change.old, move.change.new, staged[index].version)
        self._history.publish(staged[begin:])

    def _undo(self, staged: list[Event], moved: dict[int, _Move]) -> None:
        """Give memory the state before a batch, the last change first: a definition that went is served again before
        its objects come back."""
        for index in reversed(range(len(staged))):
            event = staged[index]
            if event.kind is not kinds.CUSTOM_RESOURCE_DEFINITION:
                self.put(event.kind, event.key, event.before)
                continue
            self._table.put(event.kind, event.key, event.before)
            if (move := moved.get(index)) is not None:
                self._catalog.undo(move.change)
                if move.change.old is not None and move.change.new is not None:
                    self._table.put_back(move.change.old, move.change.new, move.kept)
