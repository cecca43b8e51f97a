"""DueKeys: keys with the times at which they are due, the earliest first; of equal times, the one that was added first.

One heap of all entries would do. But the kubelets of an experiment have an entry for each running pod, due hours or
days from now, and every pop from a heap of a hundred thousand entries reads some fifty of them from all over the
memory. So entries of later spans of time are only collected, a list for each span, and a span is put in order when it
comes; the heap that is popped from stays small.

Invariant: every entry of the heap is due before every entry of a later span.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_SPAN = 64.0
"""Seconds. A minute of an experiment ends some hundred pods."""
_NEVER = float("inf")


class DueKeys(Generic[K]):
    def __init__(self) -> None:
        self._near: list[tuple[float, int, K]] = []
        self._near_until = float("-inf")
        """Entries that are due before this are in the heap."""
        self._later: dict[float, list[tuple[float, int, K]]] = {}
        """The others, by the number of their span."""
        self._spans: list[float] = []
        """The numbers of later spans, as a heap."""
        self._sequence = 0

    def add(self, due: float, key: K) -> None:
        """Add an entry; one that is never due is not kept."""
        self._sequence += 1
        entry = (due, self._sequence, key)
        if due < self._near_until:
            heappush(self._near, entry)
        elif due < _NEVER:
            span = due // _SPAN
            collected = self._later.get(span)
            if collected is None:
                self._later[span] = [entry]
                heappush(self._spans, span)
            else:
                collected.append(entry)

    def first(self) -> tuple[float, K] | None:
        """The time and key of the earliest entry."""
        near = self._near
        if not near:
            if not self._spans:
                return None
            span = heappop(self._spans)
            near = self._near = self._later.pop(span)
            near.sort()
            self._near_until = (span + 1.0) * _SPAN
        due, _, key = near[0]
        return due, key

    def drop_first(self) -> None:
        """Drop the entry that `first` answered."""
        heappop(self._near)
