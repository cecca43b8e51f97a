"""KeyedHeap: a priority queue whose items can be removed or reordered by key.

heapq does not know where an item is. So a removed item leaves its record in the heap, marked as dead, and dead records
are skipped when they come to the top. They are swept when they outnumber the live ones, so every operation costs
O(log n) amortised and memory stays proportional to the number of items.

Invariant: `_records` has exactly one live record per key, and all of them are in `_heap`.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import Generic, TypeVar

Item = TypeVar("Item")
Order = tuple[float, ...]

_SLACK = 64
"""Dead records that are tolerated in a small heap."""


class KeyedHeap(Generic[Item]):
    __slots__ = ("_count", "_heap", "_records")

    def __init__(self) -> None:
        self._heap: list[tuple[Order, int, list[Item]]] = []
        self._records: dict[str, tuple[Order, int, list[Item]]] = {}
        self._count = 0

    def __len__(self) -> int:
        return len(self._records)

    def __contains__(self, key: str) -> bool:
        return key in self._records

    def __iter__(self) -> Iterator[Item]:
        """The items, in no order."""
        return (holder[0] for _, _, holder in self._records.values())

    def put(self, key: str, order: Order, item: Item) -> None:
        """Put an item in its place, smallest order first; an earlier one with the same key is replaced."""
        if key in self._records:
            self.remove(key)
        self._count += 1
        record = (order, self._count, [item])
        self._records[key] = record
        heappush(self._heap, record)

    def remove(self, key: str) -> Item | None:
        record = self._records.pop(key, None)
        if record is None:
            return None
        item = record[2].pop()
        if len(self._heap) > 2 * len(self._records) + _SLACK:
            self._heap = list(self._records.values())
            heapify(self._heap)
        return item

    def peek(self) -> Item | None:
        heap = self._heap
        while heap:
            holder = heap[0][2]
            if holder:
                return holder[0]
            heappop(heap)
        return None
