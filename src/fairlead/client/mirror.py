"""Mirror: one Reflector per selection of objects, shared by all who ask, and together a DocView.

It is made before the controllers, because they take a DocView when they are made; which kinds it holds is known when
their watches are read. Reading a kind that nobody watches is a mistake in a controller and said so.

Invariant: a controller that follows a watch reads an object at least as new as the newest change that it received. Two
reflectors of one kind are never equally far, so the newest document that any of them has is the one that is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from fairlead.client.reflector import OnContact, OnError, Reflector, newest_of
from fairlead.client.silence import SilenceProbe

if TYPE_CHECKING:
    from fairlead.client.port import ClusterApi
    from fairlead.core.model.flow import Change, Doc, Watch
    from fairlead.core.model.kinds import Kind


class Mirror:
    """A DocView over reflectors; `run` keeps it true."""

    def __init__(
        self, api: ClusterApi, *, on_error: OnError | None = None, on_contact: OnContact | None = None
    ) -> None:
        self._api = api
        self._on_error, self._on_contact = on_error, on_contact
        self._reflectors: dict[Watch, Reflector] = {}  # by what they select, whether it is optional or not
        self._by_kind: dict[Kind, list[Reflector]] = {}
        self._group: asyncio.TaskGroup | None = None

    def reflector(self, watch: Watch) -> Reflector:
        """The one reflector of a watch; made when first requested, and at work from then on if others are."""
        selection = replace(watch, optional=False, part="")
        found = self._reflectors.get(selection)
        if found is not None:
            found.serve(watch)
        else:
            found = self._reflectors[selection] = Reflector(
                self._api, watch, on_error=self._on_error, on_contact=self._on_contact
            )
            siblings = self._by_kind.setdefault(watch.kind, [])
            # The widest is asked first: it most likely knows the object.
            siblings.append(found)
            siblings.sort(key=lambda r: (r.watch.namespace, r.watch.label_selector, r.watch.field_selector))
            if self._group is not None:
                self._start(found)
        return found

    def follow(self, watches: Sequence[Watch], wake: Callable[[], None]) -> Follower:
        """Everything that some watches bring, from the first list on, for one reader."""
        return Follower(self.reflector, watches, wake)

    async def run(self) -> None:
        """Until cancelled. Run again, it goes on where it was: what was listed once is only watched."""
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                for reflector in self._reflectors.values():
                    self._start(reflector)
                group.create_task(SilenceProbe(lambda: tuple(self._reflectors.values())).run(), name="look for silence")
        finally:
            self._group = None

    def _start(self, reflector: Reflector) -> None:
        assert self._group is not None
        self._group.create_task(reflector.run(), name=f"reflect {reflector.watch.kind.resource}")

    def silences(self, now: float) -> dict[str, float]:
        """Seconds since each kind's watch last answered, by resource and API group."""
        received = {watch.kind.resource: reflector.contact_at for watch, reflector in self._reflectors.items()}
        return {resource: now - at for resource, at in received.items() if at is not None}

    @property
    def listed(self) -> bool:
        return all(reflector.listed for reflector in self._reflectors.values())

    def get(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        key = (namespace if kind.namespaced else "", name)
        reflectors = self._of(kind)
        if len(reflectors) == 1:
            return reflectors[0].get(*key)
        return newest_of([raw for reflector in reflectors if (raw := reflector.raw(*key)) is not None])

    def known(self, kind: Kind, namespace: str, name: str) -> Doc | None:
        """The same for a kind that perhaps nobody watches."""
        return self.get(kind, namespace, name) if kind in self._by_kind else None

    def list(self, kind: Kind, namespace: str = "") -> Iterator[Doc]:
        widest, *others = self._of(kind)
        if not others or not _narrowed(widest.watch):
            return widest.list(namespace)
        return _distinct(chain(widest.list(namespace), *(other.list(namespace) for other in others)))

    def _of(self, kind: Kind) -> Sequence[Reflector]:
        reflectors = self._by_kind.get(kind)
        if not reflectors:
            raise LookupError(f"nobody watches {kind.resource}: add it to the controller's watches")
        return reflectors


class Follower:
    """What some reflectors had to say since the last `drain`."""

    def __init__(self, find: Callable[[Watch], Reflector], watches: Sequence[Watch], wake: Callable[[], None]) -> None:
        self._find = find
        self._reflectors: list[tuple[Reflector, Watch]] = []
        self._wake = wake
        self._waiting: list[Sequence[Change]] = []
        self.also(watches)

    def also(self, watches: Sequence[Watch]) -> None:
        """Everything that these bring too."""
        for watch in watches:
            reflector = self._find(watch)
            self._reflectors.append((reflector, watch))
            reflector.listen(self._receive)

    @property
    def ready(self) -> bool:
        """Whether all first lists are in, so that a first step sees the whole. What only a part needs and nobody may
        read holds up that part."""
        return all(r.is_ready_for(watch) or (watch.part and r.denied) for r, watch in self._reflectors)

    @property
    def held(self) -> frozenset[str]:
        """The parts of the reader that need a watch which is not ready for them."""
        return frozenset(watch.part for r, watch in self._reflectors if watch.part and not r.is_ready_for(watch))

    def drain(self) -> Sequence[Change]:
        received, self._waiting = self._waiting, []
        return received[0] if len(received) == 1 else Joined(received)

    def close(self) -> None:
        """Nothing to let go of: the reflectors end with the Mirror's `run`."""

    def _receive(self, changes: Sequence[Change]) -> None:
        # An empty first list counts too: it may be the last one that a reader waits for.
        if changes:
            self._waiting.append(changes)
        self._wake()


class Joined(Sequence["Change"]):
    """Several sequences as one, without copying them."""

    def __init__(self, parts: Sequence[Sequence[Change]]) -> None:
        self._parts = parts

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def __iter__(self) -> Iterator[Change]:
        return chain.from_iterable(self._parts)

    def __getitem__(self, index: int | slice) -> Change | list[Change]:  # type: ignore[override]
        return list(self)[index]


def _narrowed(watch: Watch) -> bool:
    return bool(watch.namespace or watch.label_selector or watch.field_selector)


def _distinct(docs: Iterator[Doc]) -> Iterator[Doc]:
    seen: set[str] = set()
    for doc in docs:
        uid = doc["metadata"]["uid"]
        if uid not in seen:
            seen.add(uid)
            yield doc
