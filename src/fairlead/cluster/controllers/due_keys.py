"""DueKeys: keys with the times at which they are due, the earliest first; of equal times, the one that was added first.

One heap of all entries would do. But the kubelets of an experiment have an entry for each running pod, due hours or
days from now, and every pop from a heap of a hundred thousand entries reads some fifty of them from all over the
memory. So entries of later spans of time are only collected, a list for each span, and a span is put in order when it
comes; the heap that is popped from stays small.

Invariant: the heap has the entries of one span, the open one, and no entry is of an earlier span.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
_SPAN = 64.0
"""Seconds. In a minute of an experiment some hundred pods end."""
_NEVER = float("inf")


class DueKeys(Generic[K]):
    def __init__(self) -> None:
        self._near: list[tuple[float, int, K]] = []
        """The entries of the open span, as a heap."""
        self._open = _NEVER
        """The number of the open span; _NEVER while none is open."""
        self._later: dict[float, list[tuple[float, int, K]]] = {}
        """The other entries, by the numbers of their spans."""
        self._spans: list[float] = []
        """Those numbers, as a heap."""
        self._sequence = 0

    def add(self, due: float, key: K) -> None:
        """Add an entry; one that is never due is not kept."""
        if due == _NEVER:
            return
        self._sequence += 1
        entry, span = (due, self._sequence, key), due // _SPAN
        if span == self._open:
            heappush(self._near, entry)
            return
        if span < self._open < _NEVER:
            self._close()
        collected = self._later.get(span)
        if collected is None:
            self._later[span] = [entry]
            heappush(self._spans, span)
        else:
            collected.append(entry)

    def _close(self) -> None:
        """Put the open span back among the others, because there is an entry of an earlier one."""
        if self._near:
            self._later[self._open] = self._near
            heappush(self._spans, self._open)
        self._near, self._open = [], _NEVER

    def first(self) -> tuple[float, K] | None:
        """The time and key of the earliest entry."""
        if not self._near:
            if not self._spans:
                return None
            self._open = heappop(self._spans)
            self._near = self._later.pop(self._open)
            self._near.sort()
        due, _, key = self._near[0]
        return due, key

    def drop_first(self) -> None:
        """Drop the entry that `first` answered."""
        heappop(self._near)
