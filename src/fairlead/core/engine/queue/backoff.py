"""The backoff queue: entries that wait for a moment in time, not for an event.

There are two heaps. Entries that a plugin refused may be popped early, when no entry is active; entries that came back
with an error wait until their backoff ends. Expiry is cut to whole seconds, so that all entries of one second come due
together and priority decides among them; an entry is due when the second of its expiry is over. Where no entry is
popped early (the gate SchedulerPopFromBackoffQ is off) expiry is not cut, but whose backoff is over is still looked at
once in a second.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import floor, inf, ldexp
from typing import TYPE_CHECKING

from fairlead.core.engine.queue.heap import KeyedHeap, Order

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Entry


GANG_LIMIT = 300.0
"""The longest backoff of a gang in seconds, however many members it has."""


@dataclass(frozen=True, slots=True)
class PodBackoff:
    """How long a backoff lasts: `initial` seconds, doubled with every failure, at most `max`; none if `max` is 0. The
    limit of a gang that was refused is `max` times its members, because an attempt at it costs as much as one at each
    member; a gang that has started has the limit of a pod. `early`: entries may be popped before their backoff ends."""

    initial: float = 1.0
    max: float = 10.0
    early: bool = True

    def duration(self, failures: int, most: float | None = None) -> float:
        shift, most = failures - 1, self.max if most is None else most
        if self.initial > ldexp(most, -shift):
            return most
        return ldexp(self.initial, shift)

    def most(self, entry: Entry) -> float:
        gang = entry.gang
        if gang is None or entry.error_count or gang.is_half_bound:
            return self.max
        return max(self.max, min(self.max * len(gang), GANG_LIMIT))

    def until(self, entry: Entry) -> float:
        """When the backoff of an entry ends; -inf if it has not failed yet."""
        failures = entry.error_count or entry.unschedulable_count
        if self.max == 0 or failures == 0:
            return -inf
        if entry.backoff_until is None:
            until = entry.since + self.duration(failures, self.most(entry))
            entry.backoff_until = float(floor(until)) if self.early else until
        return entry.backoff_until

    def due(self, entry: Entry) -> float:
        """When an entry leaves the backoff queue: at the beginning of the second after its expiry."""
        until = self.until(entry)
        return until if until == -inf else floor(until) + 1.0

    def lasts(self, entry: Entry, now: float) -> bool:
        return not self.until(entry) < (floor(now) if self.early else now)


class BackoffQueue:
    def __init__(self, backoff: PodBackoff) -> None:
        self.backoff = backoff
        self._refused: KeyedHeap[Entry] = KeyedHeap()
        self._failed: KeyedHeap[Entry] = KeyedHeap()

    def reconfigure(self, initial: float | None, longest: float | None) -> None:
        """Let backoffs that begin from now on last otherwise; what is None stays as it is."""
        initial = self.backoff.initial if initial is None else initial
        longest = self.backoff.max if longest is None else longest
        self.backoff = replace(self.backoff, initial=initial, max=longest)

    def __len__(self) -> int:
        return len(self._refused) + len(self._failed)

    def __iter__(self) -> Iterator[Entry]:
        yield from self._refused
        yield from self._failed

    def put(self, entry: Entry, active_order: Order) -> None:
        """Entries with plugins to blame are ordered by expiry and then as in the active queue; errors by expiry."""
        until = self.backoff.until(entry)
        if entry.blamed:
            self._refused.put(entry.key, (until, *active_order), entry)
        else:
            self._failed.put(entry.key, (until, entry.serial), entry)

    def reorder(self, entry: Entry, active_order: Order) -> None:
        """Update an entry's order after its pod changed. It stays in its heap."""
        if entry.key in self._refused:
            self._refused.put(entry.key, (self.backoff.until(entry), *active_order), entry)

    def remove(self, key: str) -> None:
        if self._refused.remove(key) is None:
            self._failed.remove(key)

    def first(self) -> Entry | None:
        """The entry that may be popped before its backoff ends; None if there is none."""
        return self._refused.peek() if self.backoff.early else None

    def due(self, now: float) -> list[Entry]:
        """Take out all entries whose backoff was over when this second began."""
        if not self._refused and not self._failed:
            return []
        second = float(floor(now))
        return [*self._due(self._refused, second), *self._due(self._failed, second)]

    def _due(self, heap: KeyedHeap[Entry], now: float) -> Iterator[Entry]:
        while (entry := heap.peek()) is not None and not self.backoff.lasts(entry, now):
            heap.remove(entry.key)
            yield entry

    def next_due(self) -> float | None:
        """When the next entry comes due."""
        heads = (heap.peek() for heap in (self._refused, self._failed))
        return min((self.backoff.due(entry) for entry in heads if entry is not None), default=None)
