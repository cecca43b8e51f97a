"""Go's sort.Slice: what it makes of equals, and of a comparison that calls the first of two equals less.

The expected orders are what Go 1.26 made of the same numbers.
"""

from __future__ import annotations

import hashlib

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.kube.gosort import go_sort


def sorted_places(numbers: list[int], *, eager_up_to: int = -1) -> list[int]:
    """Where sorting puts each place. Two equal numbers up to a limit are each less than the other."""

    def less(a: int, b: int) -> bool:
        return numbers[a] < numbers[b] if numbers[a] != numbers[b] else numbers[a] <= eager_up_to

    return go_sort(list(range(len(numbers))), less)


def test_up_to_twelve_eager_equals_end_up_in_reverse() -> None:
    assert sorted_places([0] * 12, eager_up_to=0) == list(range(11, -1, -1))


def test_beyond_twelve_eager_equals_end_up_where_the_quicksort_leaves_them() -> None:
    assert sorted_places([0] * 13, eager_up_to=0) == [11, 10, 9, 8, 7, 0, 5, 4, 3, 2, 1, 12, 6]
    numbers = [i * 7 % 5 for i in range(20)]
    expected = [0, 15, 5, 10, 13, 8, 18, 3, 1, 6, 11, 16, 14, 9, 4, 19, 12, 2, 17, 7]
    assert sorted_places(numbers, eager_up_to=2) == expected


@pytest.mark.parametrize(
    ("size", "step", "modulus", "eager", "digest"),
    [
        (64, 37, 64, -1, "4710173f092610f3"),
        (70, 11, 6, 3, "1950d60e67c93894"),
        (120, 1, 3, 1, "024f26d4f871d01f"),
    ],
)
def test_long_lists_are_sorted_as_go_sorts_them(size: int, step: int, modulus: int, eager: int, digest: str) -> None:
    places = sorted_places([i * step % modulus for i in range(size)], eager_up_to=eager)
    assert hashlib.sha256(orjson.dumps(places)).hexdigest().startswith(digest)


@given(st.lists(st.integers(0, 40), max_size=200))
def test_numbers_come_out_in_order(numbers: list[int]) -> None:
    places = sorted_places(numbers)
    assert [numbers[place] for place in places] == sorted(numbers)
    assert sorted(places) == list(range(len(numbers)))
