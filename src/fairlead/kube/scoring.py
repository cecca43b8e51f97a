"""Arithmetic that scores share: normalising to 0..100, and the broken line of a shape. Integer division truncates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


_HUNDREDFOLD = (2**63 - 1) // 100
"""A hundred times this still fits into 64 bits."""


def to_hundred(raw: NDArray[np.int64], *, reverse: bool = False) -> NDArray[np.int64]:
    """Scores as a share of the largest, in percent; `reverse` turns them round. All zero stays zero, or, reversed,
    becomes a hundred for everyone."""
    largest = int(raw.max(initial=0))
    if largest == 0:
        return np.full(len(raw), 100, dtype=np.int64) if reverse else raw
    share = percent(raw, np.full(len(raw), largest, dtype=np.int64))
    return 100 - share if reverse else share


def percent(part: NDArray[np.int64], whole: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many hundredths of `whole` each `part` is, rounded down; 0 of nothing. Parts beyond a hundredth of what 64
    bits hold, which Go multiplies all the same, are computed exactly."""
    divisor = np.maximum(whole, 1)
    large = part > _HUNDREDFOLD
    if not large.any():
        return part * 100 // divisor
    shares = np.where(large, 0, part) * 100 // divisor
    pairs = zip(part[large].tolist(), divisor[large].tolist(), strict=True)
    shares[large] = [amount * 100 // of for amount, of in pairs]
    return shares


def total_of(amounts: NDArray[np.int64]) -> int:
    """The sum, however large."""
    if float(amounts.sum(dtype=np.float64)) < 2.0**62:
        return int(amounts.sum())
    return sum(amounts.tolist())


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
