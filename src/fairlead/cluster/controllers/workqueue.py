"""The frame of all controllers: keys to visit, with backoff, and no visit before earlier writes are known.

A Reconciler turns changes into keys (`observe`) and visits each key once, however often it was named. A visit looks
at the world as it is, not at what changed, and returns the writes that bring it closer to what is wanted.

Two rules keep it from acting twice on the same request. A key is not visited while its writes are under way. And a
Reply is an observation: the document it brings is observed at once, so that what was created or deleted counts before
the watch shows it; whatever the watch then shows late and stale is dropped.

    named ──▶ ready ──visit──▶ writes under way ──replies──▶ done, or ready again if named meanwhile
                ▲                                   └──error──▶ backing off (5 ms · 2ⁿ, at most 1000 s) ──┐
                └────────────────────────────────────────────────────────────────────────────────────────┘

Invariant: a visit or a write that fails is recorded in `errors` and tried again; it never stops the other keys.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Generic, Self, TypeVar

from fairlead.cluster.controllers.due_keys import DueKeys
from fairlead.cluster.controllers.fresh_view import FreshView
from fairlead.cluster.controllers.reply_news import ReplyNews
from fairlead.cluster.controllers.writes import event_about
from fairlead.core.family import Settings, settings_of
from fairlead.core.model.flow import Change, Doc, DocView, Happened, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import EVENT, Kind, Registry
from fairlead.errors import AlreadyExists, ApiError, Conflict, Forbidden, NotFound

K = TypeVar("K", bound=Hashable)
_MODIFIED, _DELETED, _DELETE = Happened.MODIFIED, Happened.DELETED, Verb.DELETE
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


@dataclass(frozen=True, slots=True)
class ControllerContext:
    """What the controllers of one cluster are made from; each takes what it needs in `from_context`.

    `view` reads objects, `registry` lists the kinds that the cluster serves, and `announce` says whether Events are
    written about what a controller did. `read_yaml` reads the text of a ConfigMap (or raises ConfigError), and
    `settings` are those of families, from which a controller takes its own with `of`."""

    view: DocView
    registry: Registry | None = None
    announce: bool = True
    read_yaml: Callable[[str], Any] = json.loads
    settings: Sequence[object] = ()

    def of(self, which: type[Settings]) -> Settings:
        return settings_of(self.settings, which)


@dataclass(frozen=True, slots=True)
class Trouble:
    """A visit or a write that failed; for telemetry to report."""

    at: float
    controller: str
    key: Hashable
    message: str


class Workqueue(Generic[K]):
    """Keys to visit now, keys to visit later, and how often each has failed in a row."""

    def __init__(self, *, first_delay: float = 0.005, longest_delay: float = 1000.0) -> None:
        self._ready: dict[K, None] = {}
        self._agenda: DueKeys[K] = DueKeys()
        self._due: dict[K, float] = {}
        self._failures: dict[K, int] = {}
        self._first_delay, self._longest_delay = first_delay, longest_delay

    def add(self, key: K) -> None:
        self._ready[key] = None

    def add_at(self, key: K, due: float) -> None:
        """Visit at `due`, unless an earlier time is already set."""
        known = self._due.get(key)
        if known is not None and known <= due:
            return
        self._due[key] = due
        self._agenda.add(due, key)

    def backoff(self, key: K) -> float:
        """One more failure in a row: how long to wait, twice as long each time."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return min(self._first_delay * 2.0 ** min(failures, 60), self._longest_delay)

    def forget(self, key: K) -> None:
        """A visit went well: the next failure is again the first."""
        self._failures.pop(key, None)

    def failures(self, key: K) -> int:
        return self._failures.get(key, 0)

    def take(self, now: float) -> list[K]:
        """Everything to visit by now, each key once, in the order of naming."""
        agenda = self._agenda
        while (first := agenda.first()) is not None and first[0] <= now:
            agenda.drop_first()
            due, key = first
            if self._due.get(key) == due:
                del self._due[key]
                self._ready[key] = None
        if not self._ready:
            return []
        keys = list(self._ready)
        self._ready.clear()
        return keys

    def next_due(self) -> float | None:
        """When `take` will next have something; minus infinity if it has."""
        if self._ready:
            return float("-inf")
        while (first := self._agenda.first()) is not None:
            due, key = first
            if self._due.get(key) == due:
                return due
            self._agenda.drop_first()
        return None


class Reconciler(Generic[K]):
    """A Controller made of `observe` and `visit`; see the head of this module for its promises.

    `name` is the component of its Events, unless `component` names another."""

    name: str = ""
    component: str = ""
    watches: Sequence[Watch] = ()
    only_owned_pods: bool = False
    """Whether a pod that has no owner, and had none, concerns this controller no more than no pod at all."""

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        self.view = FreshView(view)
        self._announce = announce
        self.now = 0.0  # of the step under way, for `observe`
        self.queue: Workqueue[K] = Workqueue()
        self.errors: deque[Trouble] = deque(maxlen=100)
        self._under_way: dict[Write, K] = {}
        self._waiting_for: dict[K, int] = {}
        self._again: set[K] = set()
        self._failing: dict[K, float] = {}  # a write of the running batch failed; not to be tried before
        self._news = ReplyNews()

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        """This controller for a cluster. A controller overrides it if it needs more than a view."""
        return cls(context.view, announce=context.announce)

    # What a controller fills in

    @property
    def sees_plain_pods(self) -> bool:
        """Whether this controller does anything just now about pods without owner, labels, finalizers, volumes and
        claims that the default scheduler places. Nothing but a change of another object may turn it on."""
        return True

    def observe(self, change: Change) -> None:
        """Remember what matters of a change and name the keys it concerns. Must not fail on odd documents."""
        raise NotImplementedError

    def visit(self, key: K, now: float) -> Iterable[Write]:
        """Bring one key closer to what is wanted."""
        raise NotImplementedError

    def refused(self, key: K, reply: Reply, now: float) -> None:
        """A write of this key failed; the key is tried again anyway."""

    def forgives(self, key: K, reply: Reply) -> bool:
        """Whether a write that failed is as good as done; then nothing is tried again."""
        return False

    def welcomed(self, key: K, reply: Reply, now: float) -> Iterable[Write]:
        """A write of this key went well; what to announce about it (nobody waits for these)."""
        return ()

    def event(
        self, kind: Kind, doc: Doc, reason: str, message: str, *, warning: bool = False, component: str = ""
    ) -> Iterable[Write]:
        """An Event about an object, dated by the step under way; none if this controller shall not announce."""
        if self._announce:
            source = component or self.component or self.name
            yield event_about(
                kind, doc, reason=reason, message=message, now=self.now, component=source, warning=warning
            )

    # What the runtime calls

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        writes = self.take_replies(now, replies, {id(change.doc) for change in changes} if replies else ())
        for change in changes:
            self.see(change)
        writes += self.act(now)
        return writes

    def wake_at(self) -> float | None:
        return self.queue.next_due()

    # A step in three parts, for a ControllerGroup whose members see the same changes

    def take_replies(self, now: float, replies: Sequence[Reply], seen: Container[int] = ()) -> list[Write]:
        """Begin a step; returns Events only. `seen` are the ids of the documents that the changes of this step bring.
        A Store in the same process gives one document to reply and watch: then the change is enough."""
        self.now = now
        announced: list[Write] = []
        for reply in replies:
            if reply.write in self._under_way:
                announced += self._settle(reply, now, observed=id(reply.doc) in seen)
        return announced

    def see(self, change: Change) -> None:
        """Take a change in. One that cannot be read is recorded, and costs nothing but itself."""
        try:
            if self._under_way or self._news.ahead or self._news.deleted:  # the view keeps nothing without one of them
                if self.view.is_ahead:
                    self.view.seen(change.kind, change.doc, gone=change.gone)
                if self._is_stale(change):
                    return
            self.observe(change)
        except Exception as error:
            self._record(_where(change), self.now, f"{type(error).__name__}: {error}")

    def act(self, now: float) -> list[Write]:
        writes: list[Write] = []
        for key in self.queue.take(now):
            if key in self._waiting_for:
                self._again.add(key)
            else:
                writes += self._visit(key, now)
        return writes

    @cached_property
    def _watched(self) -> frozenset[Kind]:
        return frozenset(watch.kind for watch in self.watches)

    # Visits

    def _visit(self, key: K, now: float) -> list[Write]:
        try:
            writes = list(self.visit(key, now))
        except Exception as error:  # one bad object must not stop the others
            self._record(key, now, f"{type(error).__name__}: {error}")
            self.queue.add_at(key, now + self.queue.backoff(key))
            return []
        waits = 0
        for write in writes:
            if write.kind is not EVENT:
                self._under_way[write] = key
                waits += 1
        if waits:
            self._waiting_for[key] = waits
        else:
            self.queue.forget(key)
        return writes

    # Replies

    def _settle(self, reply: Reply, now: float, *, observed: bool) -> Iterable[Write]:
        """Take a reply in; its document is observed unless a change brings it. Whatever a controller's own hooks raise
        over it, the key is free to be visited again."""
        key = self._under_way.pop(reply.write)
        announced: Iterable[Write] = ()
        try:
            if reply.error is not None:
                self._failed(key, reply, reply.error, now)
            if not observed:
                self._observe_reply(reply, now)
            if reply.error is None:
                announced = tuple(self.welcomed(key, reply, now))
        except Exception as error:
            self._record(key, now, f"{type(error).__name__}: {error}")
            self._failing.setdefault(key, now)
        left = self._waiting_for.pop(key) - 1
        if left:
            self._waiting_for[key] = left
        else:
            self._finish_batch(key, now)
        if not self._under_way:
            self._news.settled()
        return announced

    def _finish_batch(self, key: K, now: float) -> None:
        """All writes of a visit are known: back off if one failed, else go on with what was named meanwhile."""
        named = key in self._again
        if named:
            self._again.remove(key)
        if key in self._failing:
            not_before = self._failing.pop(key)
            self.queue.add_at(key, max(not_before, now + self.queue.backoff(key)))
            return
        self.queue.forget(key)
        if named:
            self.queue.add(key)

    def _failed(self, key: K, reply: Reply, error: ApiError, now: float) -> None:
        if isinstance(error, NotFound) and self._sees_the_end_of(reply.write):
            self._again.add(key)
            return
        if _is_namespace_terminating(error) or self.forgives(key, reply):
            return
        if not isinstance(error, Conflict | AlreadyExists | NotFound):
            self._record(key, now, f"{reply.write.verb.value} {reply.write.kind.resource}: {error.message}")
        self._failing[key] = max(self._failing.get(key, now), now + (error.retry_after or 0.0))
        self.refused(key, reply, now)

    def _sees_the_end_of(self, write: Write) -> bool:
        """Whether the view shows at once that the object of a deletion is gone. Where it does not, because this
        controller does not watch the kind, a visit before the watch shows it would send the same deletion again."""
        return write.verb is _DELETE and write.kind in self._watched and bool(_wanted_uid(write))

    def _observe_reply(self, reply: Reply, now: float) -> None:
        write, doc, error = reply.write, reply.doc, reply.error
        if write.kind not in self._watched:
            return
        gone = write.verb is _DELETE and (isinstance(error, NotFound) or (error is None and not _lives_on(doc)))
        if gone:
            last = self._last_state(write.kind, write, doc)
            if last is not None:
                self._news.deleted.add(_uid(last))
                self.view.deleted(write.kind, last)
                self._observe(Change(_DELETED, write.kind, last), now)
            return
        if error is not None or doc is None or not _is_of(doc, write.kind):
            return
        if self._news.takes(_uid(doc), _version(doc)):
            self.view.written(write.kind, doc)
            self._observe(Change(_MODIFIED, write.kind, doc), now)

    def _last_state(self, kind: Kind, write: Write, doc: Doc | None) -> Doc | None:
        """A deleted object as last seen; needs its uid, which a bare Status carries in its details."""
        if doc is not None and _is_of(doc, kind):
            return None if self._news.is_gone(_uid(doc)) else doc
        uid = _wanted_uid(write)
        if not uid or self._news.is_gone(uid):
            return None
        return {"metadata": {"namespace": write.namespace, "name": write.name, "uid": uid}}

    # Changes

    def _is_stale(self, change: Change) -> bool:
        """Whether the watch shows what a Reply has shown already."""
        if change.happened is _DELETED:
            return self._news.knows_deletion(change.doc["metadata"].get("uid", ""), under_way=bool(self._under_way))
        return self._news.knows(change.doc)

    def _observe(self, change: Change, now: float) -> None:
        try:
            self.observe(change)
        except Exception as error:
            self._record(_where(change), now, f"{type(error).__name__}: {error}")

    def _record(self, key: Hashable, now: float, message: str) -> None:
        self.errors.append(Trouble(at=now, controller=self.name, key=key, message=message))


def _where(change: Change) -> str:
    metadata = change.doc.get("metadata") or {}
    return f"{change.kind.resource} {metadata.get('namespace', '')}/{metadata.get('name', '')}"


def _uid(doc: Doc) -> str:
    uid: str = doc["metadata"].get("uid", "")
    return uid


def _wanted_uid(write: Write) -> str:
    """The uid that an object must have for the write to be performed; empty if any will do."""
    return str(((write.body or {}).get("preconditions") or {}).get("uid") or "")


def _version(doc: Doc) -> int:
    return int(doc["metadata"].get("resourceVersion") or 0)


def _is_of(doc: Doc, kind: Kind) -> bool:
    metadata = doc.get("metadata")
    return bool(metadata and metadata.get("uid")) and doc.get("kind", kind.kind) == kind.kind


def _lives_on(doc: Doc | None) -> bool:
    """Whether an object is still there after its deletion was requested."""
    metadata = (doc or {}).get("metadata") or {}
    return bool(metadata.get("deletionTimestamp")) and bool(
        metadata.get("deletionGracePeriodSeconds") or metadata.get("finalizers")
    )


def _is_namespace_terminating(error: ApiError) -> bool:
    causes = error.details.get("causes") or ()
    return isinstance(error, Forbidden) and any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
