"""What happened to each kind lately, and who follows it.

Each kind has a Log of Events in the order of their resourceVersions. A watch replays the Log from its
resourceVersion and then follows; a list at an earlier version is the present with the Log undone. Logs are bounded
by count and by age, one per kind so that heartbeats never push pods out; a watcher that comes too late gets Gone.

Invariant: from the state at any version not below `compacted`, the Events after it lead to the present state.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Literal

from fairlead.cluster.store.objects import Key, Record
from fairlead.core.model.flow import Change, Happened
from fairlead.errors import Gone

if TYPE_CHECKING:
    from fairlead.cluster.store.selection import Selection
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

EventType = Literal["ADDED", "MODIFIED", "DELETED"]
Show = Callable[["Kind", Record], "Doc"]
"""Gives the document of a record in the version that a kind speaks."""
_HAPPENED = {happened.value: happened for happened in Happened}
_ADDED, _MODIFIED, _DELETED = Happened
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""
_KIND = attrgetter("kind")
TRIM_SLACK = 1.25
"""A log grows this far past its bound before the surplus is cut off in one go."""


class Event:
    """One object went from `before` to `after` (None: it was, or is, not there) at `version`. `last` is what watchers
    see of one that went, a document that nobody else has."""

    __slots__ = ("_gone", "_has_last_state", "after", "at", "before", "key", "kind", "shown", "version")

    def __init__(
        self, kind: Kind, version: int, before: Record | None, after: Record | None, at: float, last: Doc | None = None
    ) -> None:
        self.kind, self.version, self.before, self.after, self.at = kind, version, before, after, at
        self._gone: Record | None = None
        self._has_last_state = last is not None and before is not None
        if last is not None and before is not None:
            last["metadata"]["resourceVersion"] = str(version)
            self._gone = Record(before.namespace, before.name, version, None, last)
        self.shown: Change | None = None
        """What `change` gave, until all followers have it."""
        record = after or before
        assert record is not None
        self.key: Key = record.namespace, record.name

    @property
    def gone(self) -> Record:
        """The last state, carrying the version at which it went away: what a DELETED event shows."""
        if self._gone is None:
            assert self.before is not None
            self._gone = _with_version(self.before, self.version)
        return self._gone

    def change(self, show: Show) -> Change:
        """The Change for all who follow all objects of the kind; made once and shared."""
        if self.shown is None:
            if self.after is None:
                happened, record = _DELETED, self.gone
            else:
                happened, record = _ADDED if self.before is None else _MODIFIED, self.after
            self.shown = Change(happened, self.kind, record.decoded or show(self.kind, record))
        return self.shown

    def forget_documents(self) -> None:
        """Keep no more than the records, for those who come later."""
        self.shown = None
        if not self._has_last_state:
            self._gone = None  # made anew of `before` on request

    def seen_by(self, selection: Selection) -> tuple[EventType, Record] | None:
        """What a watcher with this selection gets: coming into view is ADDED, leaving it DELETED."""
        was, is_now = selection.sees(self.before, self.after)
        return self.seen(was=was, is_now=is_now)

    def seen(self, *, was: bool, is_now: bool) -> tuple[EventType, Record] | None:
        """The same, if the object was in view before, and is now."""
        if is_now and self.after is not None:
            return ("MODIFIED" if was else "ADDED"), self.after
        return ("DELETED", self.gone) if was else None


def _with_version(record: Record, version: int) -> Record:
    """The record's state under another resourceVersion."""
    doc = dict(record.doc)
    doc["metadata"] = doc["metadata"] | {"resourceVersion": str(version)}
    return Record(record.namespace, record.name, version, None, doc)


class Log:
    """The bounded history of one kind."""

    def __init__(self, compacted: int) -> None:
        self.compacted = compacted
        self._events: list[Event] = []

    def __len__(self) -> int:
        return len(self._events)

    def extend(self, events: Iterable[Event], limit: int) -> None:
        self._events += events
        if len(self._events) > limit * TRIM_SLACK:
            self._drop(len(self._events) - limit)

    def forget_before(self, moment: float) -> None:
        """Drop what is older than that."""
        self._drop(bisect_right(self._events, moment, key=lambda event: event.at))

    def since(self, version: int) -> list[Event]:
        """Everything after that version; Gone if some of it is no longer known."""
        if version < self.compacted:
            raise Gone(f"too old resource version: {version} ({self.compacted})")
        return self._events[bisect_right(self._events, version, key=lambda event: event.version) :]

    def _drop(self, count: int) -> None:
        if count > 0:
            self.compacted = self._events[count - 1].version
            del self._events[:count]


class Subscription:
    """One watcher's bounded queue. A watcher that does not keep up is cut off: `overflowed` turns True, nothing more
    is queued, and nobody else notices. One whose kind is gone has `ended`: it reads what is queued. `wake` is called
    when there is something to drain; it must not write."""

    def __init__(self, selection: Selection, *, limit: int, wake: Callable[[], None] | None = None) -> None:
        self.selection = selection
        self.wake = wake
        self.overflowed = False
        self.ended = False
        self._limit = limit
        self._queue: deque[tuple[EventType, Record, int]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def replay(self, events: Iterable[tuple[EventType, Record, int]]) -> None:
        """What the watcher starts with; the bound is for what comes later."""
        self._queue.extend(events)
        self._limit += len(self._queue)

    def offer(self, kind: Kind, events: Iterable[Event]) -> None:
        """Take in what happened to objects of a stored kind."""
        if self.overflowed or self.ended:
            return
        notified = False
        for event in events:
            if (seen := event.seen_by(self.selection)) is not None:
                notified = True
                if len(self._queue) >= self._limit:
                    self.overflowed = True
                    self._queue.clear()
                    break
                self._queue.append((*seen, event.version))
        if notified and self.wake is not None:
            self.wake()

    def finish(self) -> None:
        """Nothing more will come; a listener reads what is queued and then ends."""
        self.ended = True
        if self.wake is not None:
            self.wake()

    def cut_off(self) -> None:
        """Nothing more will come; a listener must list anew."""
        self.overflowed = True
        self._queue.clear()
        if self.wake is not None:
            self.wake()

    def drain(self, limit: int | None = None) -> list[tuple[EventType, Record, int]]:
        """Everything queued (or the first `limit`): type, the record to show, and the version it happened at."""
        queue = self._queue
        if limit is not None and limit < len(queue):
            return [queue.popleft() for _ in range(limit)]
        drained = list(queue)
        queue.clear()
        return drained


class Feed:
    """All changes of some kinds in one order, for a reader in the same process that always keeps up. Documents are
    decoded once and shared by everybody."""

    def __init__(self, selections: Iterable[Selection], show: Show) -> None:
        self.selections = tuple(selections)
        self._by_kind: dict[Kind, list[Selection]] = {}
        for selection in self.selections:
            self._by_kind.setdefault(selection.kind.storage, []).append(selection)
        self._whole = {kind for kind, chosen in self._by_kind.items() if len(chosen) == 1 and chosen[0].is_whole(kind)}
        """Kinds of which everything is published, as it is stored."""
        self.wake: Callable[[], None] | None = None
        self._show = show
        self._queue: deque[Change] = deque()
        self.waiting: Sized = self._queue
        """Changes that nobody has drained; to be counted, not read."""

    def put(self, type_: EventType, kind: Kind, record: Record) -> None:
        self._queue.append(Change(_HAPPENED[type_], kind, self._show(kind, record)))

    def offer(self, kind: Kind, events: Iterable[Event]) -> None:
        """Take in what happened to objects of a stored kind."""
        show, queue = self._show, self._queue
        known = len(queue)
        if kind in self._whole:
            for event in events:
                queue.append(event.shown or event.change(show))
        else:
            selections = self._by_kind.get(kind, ())
            for event in events:
                was_there, is_there = event.before is not None, event.after is not None
                for selection in selections:
                    was, is_now = selection.sees(event.before, event.after)
                    if selection.kind is kind and was == was_there and is_now == is_there:
                        queue.append(event.shown or event.change(show))
                    elif (seen := event.seen(was=was, is_now=is_now)) is not None:
                        # The object came into view or left it, or is shown in another version.
                        self.put(seen[0], selection.kind, seen[1])
        if self.wake is not None and len(queue) > known:
            self.wake()

    def drain(self) -> list[Change]:
        """Everything since the last call."""
        changes = list(self._queue)
        self._queue.clear()
        return changes


class History:
    """The logs of all kinds, and the readers that follow them."""

    def __init__(self, *, version: int, limit: int, age: float) -> None:
        self._start = version
        self._limit, self._age = limit, age
        self._logs: dict[Kind, Log] = {}
        self._followers: dict[Kind, list[Subscription | Feed]] = {}

    def begin(self, version: int) -> None:
        """Nothing before this version is known."""
        self._start = version

    def log(self, kind: Kind) -> Log:
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = Log(self._start)
        return log

    def publish(self, events: Sequence[Event]) -> None:
        """Notify all followers of what happened, in that order. Events of one kind that follow each other are published
        at once: what a batch writes is mostly of one kind."""
        if len(events) == 1:
            self._publish(events[0].kind, events)
            return
        for kind, several in groupby(events, _KIND):
            self._publish(kind, list(several))

    def _publish(self, kind: Kind, together: Sequence[Event]) -> None:
        self.log(kind).extend(together, self._limit)
        for follower in self._followers.get(kind, ()):
            follower.offer(kind, together)
        for event in together:
            event.forget_documents()

    def follow(self, kind: Kind, follower: Subscription | Feed) -> None:
        followers = self._followers.setdefault(kind, [])
        if follower not in followers:
            followers.append(follower)

    def leave(self, follower: Subscription | Feed) -> None:
        for followers in self._followers.values():
            if follower in followers:
                followers.remove(follower)

    def move(self, old: Kind | None, new: Kind | None, version: int) -> None:
        """A definition changed at `version`. Of a kind that was changed, the log goes on under the new one, and its
        watchers begin anew. Of one that went, the watchers end when they have read everything. The log of one that came
        begins here: what objects of an earlier definition of that name were, it cannot say."""
        if old is None:
            assert new is not None
            self._logs[new] = Log(version)
            return
        log, followers = self._logs.pop(old, None), self._followers.pop(old, ())
        if new is not None and log is not None:
            self._logs[new] = log
        for follower in followers:
            if isinstance(follower, Subscription):
                if new is None:
                    follower.finish()
                else:
                    follower.cut_off()

    def compact(self, now: float) -> None:
        """Forget what is too old."""
        for log in self._logs.values():
            log.forget_before(now - self._age)

    def state_at(self, kind: Kind, version: int, present: dict[Key, Record]) -> dict[Key, Record]:
        """The objects of a kind as they were at an earlier version."""
        for event in reversed(self.log(kind).since(version)):
            if event.before is None:
                present.pop(event.key, None)
            else:
                present[event.key] = event.before
        return present

    def __iter__(self) -> Iterator[tuple[Kind, Log]]:
        return iter(self._logs.items())
