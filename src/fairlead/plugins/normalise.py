"""Arithmetic that scores share: normalising to 0..100, and the broken line of a shape. Integer division truncates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


def to_hundred(raw: NDArray[np.int64], *, reverse: bool = False) -> NDArray[np.int64]:
    """Scores as a share of the largest, in percent; `reverse` turns them round. All zero stays zero, or, reversed,
    becomes a hundred for everyone."""
    largest = int(raw.max(initial=0))
    if largest == 0:
        return np.full(len(raw), 100, dtype=np.int64) if reverse else raw
    share = raw * 100 // largest
    return 100 - share if reverse else share


def truncated_division(dividend: NDArray[np.int64], divisor: NDArray[np.int64]) -> NDArray[np.int64]:
    """Integer division towards zero, as Go divides; NumPy's own goes towards minus infinity."""
    return np.sign(dividend) * (np.abs(dividend) // divisor)


def rounded(values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Half away from zero, for values that are not negative."""
    whole = np.floor(values)
    return (whole + (values - whole >= 0.5)).astype(np.int64)


class BrokenLine:
    """A function given by points (utilisation in percent, score of 0..10), straight in between, flat outside."""

    def __init__(self, points: Sequence[tuple[int, int]]) -> None:
        self._at = np.array([point[0] for point in points], dtype=np.int64)
        self._score = np.array([point[1] * 10 for point in points], dtype=np.int64)

    def __call__(self, percent: NDArray[np.int64]) -> NDArray[np.int64]:
        at, score = self._at, self._score
        right = np.searchsorted(at, percent, side="left")
        inner = np.clip(right, 1, len(at) - 1) if len(at) > 1 else np.zeros(len(percent), dtype=np.int64)
        left = np.maximum(inner - 1, 0)
        width = np.maximum(at[inner] - at[left], 1)
        between = score[left] + truncated_division((score[inner] - score[left]) * (percent - at[left]), width)
        return np.where(right == 0, score[0], np.where(right == len(at), score[-1], between))
