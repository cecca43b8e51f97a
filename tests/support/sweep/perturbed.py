"""Perturbed: a controller as a process of its own, to which one thing happens at one event of its watches.

It reads a view that is as far as its watches have told, as on a real cluster. At the chosen event it dies in the middle
of its writes and starts anew, or its watches are silent until they are listed again, or all that they tell is late.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import Enum

from fairlead.cluster.store.history import Feed
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Change, Controller, Doc, DocView, Happened, Reply, Watch, Write
from fairlead.core.model.kinds import LEASE, Kind

Place = tuple[str, str]
Make = Callable[[DocView], Controller]
DOWN = 1.0
"""Seconds until a process that died runs again."""


class Trouble(Enum):
    RESTART = "restarts"
    DROP = "misses all until it lists again"
    STALE = "is told all later"


@dataclass(frozen=True, slots=True)
class Perturbation:
    """At the event of that number (the first is 0) this happens; silence and lateness end after so many seconds."""

    trouble: Trouble
    event: int
    seconds: float = 5.0

    def __str__(self) -> str:
        return f"at event {self.event} it {self.trouble.value} ({self.seconds:g} s)"


class WatchedView:
    """A DocView of what changes have told, and nothing newer. What nobody watches is read from the API."""

    def __init__(self, behind: DocView) -> None:
        self._behind = behind
        self._docs: dict[Kind, dict[Place, Doc]] = {}

    def watch(self, kinds: Iterable[Kind]) -> None:
        for kind in kinds:
            self._docs.setdefault(kind, {})

    def take(self, changes: Iterable[Change]) -> None:
        for change in changes:
            docs = self._docs.setdefault(change.kind, {})
            if change.happened is Happened.DELETED:
                docs.pop(_place(change.doc), None)
            else:
                docs[_place(change.doc)] = change.doc

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        known = self._docs.get(kind)
        if known is None:
            return self._behind.get(kind, namespace, name)
        return known.get((namespace if kind.namespaced else "", name))

    def list(self, kind: Kind, namespace: str = "") -> Iterable[Doc]:
        if kind not in self._docs:
            return self._behind.list(kind, namespace)
        return [doc for place, doc in self._docs[kind].items() if namespace in ("", place[0])]

    def difference(self, listed: Sequence[Change]) -> Sequence[Change]:
        """From the view to what is listed, as a reflector tells it: what vanished comes first, in its last state."""
        there = {(change.kind, _place(change.doc)): change for change in listed}
        gone, came = [], []
        for kind, docs in self._docs.items():
            for place, doc in docs.items():
                now = there.get((kind, place))
                if now is None or _uid(now.doc) != _uid(doc):
                    gone.append(Change(Happened.DELETED, kind, doc))
        left = {(change.kind, _uid(change.doc)) for change in gone}
        for (kind, place), change in there.items():
            known = self._docs.get(kind, {}).get(place)
            if known is None or (kind, _uid(known)) in left:
                came.append(change)
            elif known["metadata"]["resourceVersion"] != change.doc["metadata"]["resourceVersion"]:
                came.append(Change(Happened.MODIFIED, kind, change.doc))
        return gone + came


class Perturbed:
    def __init__(self, store: Store, make: Make, perturbation: Perturbation | None = None) -> None:
        self._store, self._make = store, make
        self._perturbation = perturbation
        self._counting = False
        self.events: list[Change] = []
        """What its watches told since `begin`, in their order, without heartbeats."""
        self._away_until: float | None = None
        self._late: list[Change] = []
        self._begin_life()

    def _begin_life(self) -> None:
        self.view = WatchedView(self._store)
        self.inner = self._make(self.view)
        self.name = self.inner.name
        self._followed: set[Watch] = set()
        self._feeds: list[Feed] = []
        self._mine: dict[int, Write] = {}
        self._follow()

    @property
    def watches(self) -> Sequence[Watch]:
        return self.inner.watches

    def begin(self) -> None:
        """Events count from here on."""
        self._counting = True

    # ---- a step ----

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        """The changes of the runtime only say that there is something to look for."""
        if self._away_until is not None and now >= self._away_until:
            self._come_back()
        replies = [reply for reply in replies if self._mine.pop(id(reply.write), None) is not None]
        if self._is_down:
            self._drain()
            return []
        told, rest = self._told()
        self.view.take(told)
        writes = self.inner.step(now, told, replies)
        self._follow()
        if rest is not None:
            writes = self._strike(now, writes, rest)
        self._mine |= {id(write): write for write in writes}
        return writes

    def wake_at(self) -> float | None:
        if self._is_down:
            return self._away_until
        waits = [at for at in (self.inner.wake_at(), self._away_until) if at is not None]
        if any(feed.waiting for feed in self._feeds) and self._away_until is None:
            return float("-inf")
        return min(waits, default=None)

    @property
    def _is_down(self) -> bool:
        return (
            self._away_until is not None
            and self._perturbation is not None
            and self._perturbation.trouble is Trouble.RESTART
        )

    def _told(self) -> tuple[list[Change], list[Change] | None]:
        """What the controller is told now, and, if the trouble begins here, what comes after the event."""
        news = self._drain()
        if self._away_until is not None:
            self._late += news
            return [], None
        counted = [at for at, change in enumerate(news) if self._counting and change.kind is not LEASE]
        before = len(self.events)
        self.events += [news[at] for at in counted]
        hit = self._perturbation
        if hit is None or not before <= hit.event < len(self.events):
            return self._late_and(news), None
        at = counted[hit.event - before] + (hit.trouble is Trouble.RESTART)  # who dies has read the event
        return news[:at], news[at:]

    def _late_and(self, news: list[Change]) -> list[Change]:
        late, self._late = self._late, []
        return late + news

    def _strike(self, now: float, writes: list[Write], rest: list[Change]) -> list[Write]:
        hit = self._perturbation
        assert hit is not None
        if hit.trouble is not Trouble.RESTART:
            self._away_until, self._late = now + hit.seconds, rest
            return writes
        self._away_until = now + DOWN
        return writes[: (len(writes) + hit.event % 2) // 2]

    def _come_back(self) -> None:
        hit = self._perturbation
        assert hit is not None
        self._perturbation, self._away_until = None, None
        if hit.trouble is Trouble.RESTART:
            self._begin_life()
        elif hit.trouble is Trouble.DROP:
            self._late = self._relist()

    def _relist(self) -> list[Change]:
        self._feeds, self._followed = [], set()
        self._follow()
        return [*self.view.difference(self._drain())]

    # ---- watches ----

    def _follow(self) -> None:
        more = [watch for watch in self.inner.watches if watch not in self._followed]
        if more:
            self._followed.update(more)
            self.view.watch(watch.kind for watch in more)
            self._feeds.append(self._store.feed(more))

    def _drain(self) -> list[Change]:
        return [change for feed in self._feeds for change in feed.drain()]


def _place(doc: Doc) -> Place:
    metadata = doc["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def _uid(doc: Doc) -> str:
    uid: str = doc["metadata"]["uid"]
    return uid
