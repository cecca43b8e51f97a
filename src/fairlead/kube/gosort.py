"""Sorting as Go's `sort.Slice`, `sort.Sort` and `slices.SortFunc` do, for where decisions show how they treat equals.

kube-scheduler sorts with them the potential victims on a node and those that remain, and the claims that a
pod wants bound, by size. Up to twelve elements they are a plain insertion sort. Beyond that they are a
quicksort that looks for patterns first. For a proper order without equals the result is the same, but among equals, and
where the comparison is not a proper order (of two pods that have not started, kube-scheduler takes the one it looks at
first for the older), the outcome depends on every step. So the steps here are Go's, one for one, as of Go 1.26. Where
the original sorts the items of a Go map (a gang's victims), equals have no fixed order, and a stable
sort is used instead of this.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

Item = TypeVar("Item")
INSERTION_SORT_UP_TO = 12
_LONG = 50
"""From so many elements on, a pivot is the median of medians, and almost sorted ranges are repaired."""
_REPAIRS = 5
_ALL_SWAPPED = 12
_64_BITS = (1 << 64) - 1


def go_sort(items: list[Item], less: Callable[[Item, Item], bool]) -> list[Item]:
    """`items` sorted in place, and returned."""
    _Sort(items, less).sort(0, len(items), bad_pivots=len(items).bit_length())
    return items


class _Sort(Generic[Item]):
    """One sort: positions are compared and swapped, ranges are half-open."""

    def __init__(self, items: list[Item], less: Callable[[Item, Item], bool]) -> None:
        self.items = items
        self._less = less
        self._swaps = 0

    def less(self, i: int, j: int) -> bool:
        return self._less(self.items[i], self.items[j])

    def swap(self, i: int, j: int) -> None:
        self.items[i], self.items[j] = self.items[j], self.items[i]

    def sort(self, start: int, end: int, bad_pivots: int) -> None:
        balanced = partitioned = True
        while end - start > INSERTION_SORT_UP_TO:
            if bad_pivots == 0:
                self._heap_sort(start, end)
                return
            if not balanced:
                self._break_patterns(start, end)
                bad_pivots -= 1
            pivot, looks_sorted = self._choose_pivot(start, end)
            if balanced and partitioned and looks_sorted and self._repair(start, end):
                return
            if start > 0 and not self.less(start - 1, pivot):
                start = self._skip_equals(start, end, pivot)
                continue
            size = end - start
            middle, partitioned = self._partition(start, end, pivot)
            left, right = middle - start, end - middle
            balanced = min(left, right) >= size // 8
            if left < right:
                self.sort(start, middle, bad_pivots)
                start = middle + 1
            else:
                self.sort(middle + 1, end, bad_pivots)
                end = middle
        self._insertion_sort(start, end)

    def _insertion_sort(self, start: int, end: int) -> None:
        for at in range(start + 1, end):
            self._sink(at, start)

    def _sink(self, at: int, lowest: int) -> None:
        """Move an element down while it is less than the one before it."""
        while at > lowest and self.less(at, at - 1):
            self.swap(at, at - 1)
            at -= 1

    # ---- the pivot ----

    def _choose_pivot(self, start: int, end: int) -> tuple[int, bool]:
        """A median of three, or of three such medians; and whether the range looks sorted. One that looks sorted the
        other way round is turned around."""
        size, self._swaps = end - start, 0
        low, middle, high = (start + size // 4 * quarter for quarter in (1, 2, 3))
        if size >= _LONG:
            low, middle, high = (self._median(at - 1, at, at + 1) for at in (low, middle, high))
        pivot = self._median(low, middle, high)
        if self._swaps == _ALL_SWAPPED:
            self.items[start:end] = self.items[start:end][::-1]
            return end - 1 - (pivot - start), True
        return pivot, self._swaps == 0

    def _median(self, a: int, b: int, c: int) -> int:
        a, b = self._in_order(a, b)
        b, c = self._in_order(b, c)
        a, b = self._in_order(a, b)
        return b

    def _in_order(self, a: int, b: int) -> tuple[int, int]:
        if self.less(b, a):
            self._swaps += 1
            return b, a
        return a, b

    def _break_patterns(self, start: int, end: int) -> None:
        """Scatter three elements from the middle, by numbers that depend on nothing but the size."""
        size = state = end - start
        mask = (1 << size.bit_length()) - 1
        middle = start + size // 4 * 2
        for at in (middle - 1, middle, middle + 1):
            state ^= state << 13 & _64_BITS
            state ^= state >> 7
            state ^= state << 17 & _64_BITS
            other = state & mask
            self.swap(at, start + (other - size if other >= size else other))

    # ---- partitions ----

    def _partition(self, start: int, end: int, pivot: int) -> tuple[int, bool]:
        """What is less than the pivot before it, the rest behind; where it came to lie, and whether that was so."""
        self.swap(start, pivot)
        i, j = self._next_pair(start, start + 1, end - 1)
        already = i > j
        while i <= j:
            self.swap(i, j)
            i, j = self._next_pair(start, i + 1, j - 1)
        self.swap(j, start)
        return j, already

    def _next_pair(self, pivot: int, i: int, j: int) -> tuple[int, int]:
        while i <= j and self.less(i, pivot):
            i += 1
        while i <= j and not self.less(j, pivot):
            j -= 1
        return i, j

    def _skip_equals(self, start: int, end: int, pivot: int) -> int:
        """Gather what equals the pivot, of which nothing is less here, at the beginning; where the rest begins."""
        self.swap(start, pivot)
        i, j = start + 1, end - 1
        while True:
            while i <= j and not self.less(start, i):
                i += 1
            while i <= j and self.less(start, j):
                j -= 1
            if i > j:
                return i
            self.swap(i, j)
            i, j = i + 1, j - 1

    # ---- ranges that are easy, and ranges that are hopeless ----

    def _repair(self, start: int, end: int) -> bool:
        """Sort an almost sorted range with a few moves, if that suffices."""
        at = start + 1
        for _ in range(_REPAIRS):
            while at < end and not self.less(at, at - 1):
                at += 1
            if at == end:
                return True
            if end - start < _LONG:
                return False
            self.swap(at, at - 1)
            if at - start >= 2:
                self._sink(at - 1, 0)
            if end - at >= 2:
                self._rise(at + 1, end)
        return False

    def _rise(self, at: int, end: int) -> None:
        while at < end and self.less(at, at - 1):
            self.swap(at, at - 1)
            at += 1

    def _heap_sort(self, start: int, end: int) -> None:
        size = end - start
        for root in range((size - 1) // 2, -1, -1):
            self._sift_down(root, size, start)
        for last in range(size - 1, -1, -1):
            self.swap(start, start + last)
            self._sift_down(0, last, start)

    def _sift_down(self, root: int, size: int, first: int) -> None:
        while (child := 2 * root + 1) < size:
            if child + 1 < size and self.less(first + child, first + child + 1):
                child += 1
            if not self.less(first + root, first + child):
                return
            self.swap(first + root, first + child)
            root = child
