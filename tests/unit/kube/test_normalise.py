"""Arithmetic of scores: normalisation, piecewise linear shapes, and the order of equals in a heap."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairlead.core.engine.cycle.choice import heap_preorder
from fairlead.kube.scoring import BrokenLine, rounded, to_hundred, truncated_division

AT = [0, 5, 10, 11, 33, 40, 41, 55, 77, 78, 100]
LINES = [
    ([(0, 0), (100, 10)], [0, 5, 10, 11, 33, 40, 41, 55, 77, 78, 100]),
    ([(0, 10), (100, 0)], [100, 95, 90, 89, 67, 60, 59, 45, 23, 22, 0]),
    ([(10, 3), (40, 10), (77, 1)], [30, 30, 30, 32, 83, 100, 98, 64, 10, 10, 10]),
]


def column(values: list[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize(("points", "expected"), LINES)
def test_a_shape_is_straight_between_its_points_and_flat_outside(
    points: list[tuple[int, int]], expected: list[int]
) -> None:
    assert BrokenLine(points)(column(AT)).tolist() == expected


def test_a_shape_of_one_point_is_flat() -> None:
    assert BrokenLine([(50, 7)])(column([0, 50, 100])).tolist() == [70, 70, 70]


def plain_line(points: list[tuple[int, int]], percent: int) -> int:
    """The rule for shapes, written as a plain loop."""
    for i, (at, score) in enumerate(points):
        if percent <= at:
            if i == 0:
                return score * 10
            left_at, left_score = points[i - 1]
            product = (score - left_score) * 10 * (percent - left_at)
            quotient = abs(product) // (at - left_at)
            return left_score * 10 + (quotient if product >= 0 else -quotient)
    return points[-1][1] * 10


@given(st.dictionaries(st.integers(0, 100), st.integers(0, 10), min_size=1, max_size=5))
def test_any_shape_is_what_the_rule_says(shape: dict[int, int]) -> None:
    points = sorted(shape.items())
    assert BrokenLine(points)(np.arange(101)).tolist() == [plain_line(points, p) for p in range(101)]


def test_scores_become_a_share_of_the_largest() -> None:
    assert to_hundred(column([0, 1, 3])).tolist() == [0, 33, 100]
    assert to_hundred(column([0, 1, 3]), reverse=True).tolist() == [100, 67, 0]


def test_all_zero_stays_zero_and_reversed_becomes_a_hundred() -> None:
    assert to_hundred(column([0, 0])).tolist() == [0, 0]
    assert to_hundred(column([0, 0]), reverse=True).tolist() == [100, 100]


def test_division_goes_towards_zero() -> None:
    assert truncated_division(column([-7, 7]), column([2, 2])).tolist() == [-3, 3]


def test_halves_are_rounded_away_from_zero() -> None:
    assert rounded(np.array([0.4, 0.5, 1.5, 2.5, 0.49999999999999994])).tolist() == [0, 1, 2, 3, 0]


@pytest.mark.parametrize(("totals", "order", "winner"), [
    ([1, 3, 3, 2, 3], [0, 1, 3, 4, 2], 1),
    ([0, 1, 2, 2], [0, 1, 3, 2], 3),
])  # fmt: skip
def test_among_equals_the_first_in_pre_order_of_the_heap_wins(totals: list[int], order: list[int], winner: int) -> None:
    found = heap_preorder(len(totals))
    assert found.tolist() == order
    assert int(found[column(totals)[found].argmax()]) == winner
