"""DecisionLog: the latest decisions of a Scheduler, for any number of readers.

Each reader has a cursor of its own, so one that reads takes nothing from another. Reading is done between two steps,
on the scheduler's own thread.

Invariant: a reader gets every decision exactly once, in order, unless more than 100,000 were made since it last read.
"""

from __future__ import annotations

from collections import deque
from itertools import islice
from typing import TYPE_CHECKING
from weakref import WeakSet

if TYPE_CHECKING:
    from fairlead.core.model.figures import Decision

_UNREAD = 100_000
"""How many decisions are kept for readers that have not read them yet, or while there is no reader."""
_READ = 1_000
"""How many are kept that all readers have read, so that a new reader begins with some."""


class DecisionLog:
    def __init__(self) -> None:
        self._kept: deque[Decision] = deque(maxlen=_UNREAD)
        self._made = 0
        self._readers: WeakSet[DecisionReader] = WeakSet()

    def append(self, decision: Decision) -> None:
        self._kept.append(decision)
        self._made += 1

    def reader(self) -> DecisionReader:
        """A new reader, which begins with the oldest decision that is kept."""
        reader = DecisionReader(self, self._made - len(self._kept))
        self._readers.add(reader)
        return reader

    def since(self, position: int) -> tuple[tuple[Decision, ...], int]:
        """The kept decisions from this position on, and the position after the last one."""
        count = min(self._made - position, len(self._kept))
        newest_first = list(islice(reversed(self._kept), count))
        return tuple(reversed(newest_first)), self._made

    def forget_read(self) -> None:
        """Drop what every reader has read, but for the newest."""
        unread = self._made - min(reader.position for reader in self._readers)
        while len(self._kept) > max(unread, _READ):
            self._kept.popleft()


class DecisionReader:
    """One reader's place in a DecisionLog."""

    def __init__(self, log: DecisionLog, position: int) -> None:
        self._log = log
        self.position = position
        """How many decisions had been made when this reader last read, counted from the scheduler's start."""

    def read(self) -> tuple[Decision, ...]:
        """All decisions since the last call."""
        decisions, self.position = self._log.since(self.position)
        self._log.forget_read()
        return decisions
