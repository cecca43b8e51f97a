"""Heap: a binary heap that compares when it sifts, exactly as Go's container/heap does.

Volcano's comparators read current shares, and items in a heap are not reordered when shares change, so which item comes
out depends on how the heap sifts. A sort, or heapq with keys, would give another order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

Item = TypeVar("Item")


class Heap(Generic[Item]):
    __slots__ = ("_items", "_less")

    def __init__(self, less: Callable[[Item, Item], bool], items: Iterable[Item] = ()) -> None:
        self._less = less
        self._items: list[Item] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def __bool__(self) -> bool:
        return bool(self._items)

    def items(self) -> tuple[Item, ...]:
        """The items in the heap's own order."""
        return tuple(self._items)

    def copy(self) -> Heap[Item]:
        """The same heap, to be emptied separately."""
        twin: Heap[Item] = Heap(self._less)
        twin._items = self._items.copy()
        return twin

    def push(self, item: Item) -> None:
        self._items.append(item)
        self._up(len(self._items) - 1)

    def pop(self) -> Item:
        items = self._items
        last = len(items) - 1
        items[0], items[last] = items[last], items[0]
        self._down(0, last)
        return items.pop()

    def _up(self, at: int) -> None:
        items, less = self._items, self._less
        while at > 0:
            parent = (at - 1) // 2
            if not less(items[at], items[parent]):
                break
            items[parent], items[at] = items[at], items[parent]
            at = parent

    def _down(self, at: int, size: int) -> None:
        items, less = self._items, self._less
        while (child := 2 * at + 1) < size:
            right = child + 1
            if right < size and less(items[right], items[child]):
                child = right
            if not less(items[child], items[at]):
                break
            items[at], items[child] = items[child], items[at]
            at = child
