"""InFlight: pods that are being scheduled or bound, and the events in the cluster meanwhile.

A refusal may be out of date by the time it is known. So events are kept while any pod is in flight, and when a pod
comes back, the events since it left are judged for it. An event that is older than every pod in flight is dropped,
which bounds the memory.

Invariant: `_events` holds every event since the oldest pod in flight left, and nothing older.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.model.events import ClusterEvent

POD_POPPED = "PodPopped"


class Noted(NamedTuple):
    event: ClusterEvent
    old: object
    new: object


class Departure(NamedTuple):
    """An entry that left the queues, and how many events there had been by then."""

    entry: Entry
    position: int


class InFlight:
    def __init__(self) -> None:
        self._pods: OrderedDict[str, Departure] = OrderedDict()
        self._events: deque[Noted] = deque()
        self._dropped = 0
        self._kept: Counter[str] = Counter()
        """Events kept, by label."""

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, uid: str) -> bool:
        return uid in self._pods

    def __iter__(self) -> Iterator[Entry]:
        return (departure.entry for departure in self._pods.values())

    @property
    def events(self) -> int:
        return len(self._events)

    @property
    def counts(self) -> dict[str, int]:
        """Events kept, by label, and pods in flight under `PodPopped`: the gauge `inflight_events`."""
        return dict(self._kept) | ({POD_POPPED: len(self._pods)} if self._pods else {})

    def get(self, uid: str) -> Entry | None:
        departure = self._pods.get(uid)
        return departure.entry if departure else None

    def begin(self, entry: Entry) -> None:
        self._pods[entry.uid] = Departure(entry, self._dropped + len(self._events))

    def note(self, event: ClusterEvent, old: object, new: object) -> None:
        """Keep an event if any pod is in flight."""
        if self._pods:
            self._events.append(Noted(event, old, new))
            self._kept[event.label] += 1

    def since(self, uid: str) -> list[Noted] | None:
        """The events since a pod left; None if it is not in flight."""
        departure = self._pods.get(uid)
        if departure is None:
            return None
        return list(islice(self._events, departure.position - self._dropped, None))

    def end(self, uid: str) -> None:
        if self._pods.pop(uid, None) is None:
            return
        if not self._events:
            return
        oldest = next(iter(self._pods.values())).position if self._pods else self._dropped + len(self._events)
        while self._dropped < oldest:
            label = self._events.popleft().event.label
            self._dropped += 1
            self._kept[label] -= 1
            if not self._kept[label]:
                del self._kept[label]
