"""Sorting as Go's `sort.Slice` does it, for the places where decisions depend on how it treats equals.

Up to twelve elements it is a plain insertion sort, which keeps the order of equals; that is all that a node's victims
usually come to. Beyond that the order of equals is a detail of its quicksort that no user can rely on; here they then
keep their order.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cmp_to_key
from typing import TypeVar

Item = TypeVar("Item")
_INSERTION_SORT_UP_TO = 12


def go_sort(items: list[Item], less: Callable[[Item, Item], bool]) -> list[Item]:
    """`items` sorted in place, and returned."""
    if len(items) > _INSERTION_SORT_UP_TO:

        def compare(a: Item, b: Item) -> int:
            return -1 if less(a, b) else 1 if less(b, a) else 0

        items.sort(key=cmp_to_key(compare))
        return items
    for end in range(1, len(items)):
        at = end
        while at > 0 and less(items[at], items[at - 1]):
            items[at - 1], items[at] = items[at], items[at - 1]
            at -= 1
    return items
