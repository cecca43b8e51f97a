"""Streams of random 31-bit numbers for drawing machines: java.util.Random's, to repeat a run of the original, and ours.

Both come in blocks, because a draw in Python costs more than the arithmetic. The state of java.util.Random after n
steps is linear in its state now, so a block is one multiplication of columns.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

BLOCK = 4096
_MULTIPLIER = 0x5DEECE66D
_INCREMENT = 11
_MASK = (1 << 48) - 1


class Stream(Protocol):
    def block(self) -> list[int]:
        """The next numbers, each below 2^31."""
        ...


class JavaStream:
    """What `next(31)` of java.util.Random gives."""

    def __init__(self, seed: int) -> None:
        self._state = np.uint64((seed ^ _MULTIPLIER) & _MASK)

    def block(self) -> list[int]:
        states = (_POWERS * self._state + _SUMS) & np.uint64(_MASK)
        self._state = states[-1]
        numbers: list[int] = (states >> np.uint64(17)).tolist()
        return numbers


class OwnStream:
    """NumPy's default generator."""

    def __init__(self, *seed: int) -> None:
        self._generator = np.random.default_rng(seed)

    def block(self) -> list[int]:
        numbers: list[int] = self._generator.integers(0, 1 << 31, BLOCK).tolist()
        return numbers


def _steps() -> tuple[list[int], list[int]]:
    """For n = 1, 2 ...: the factor and the summand that n steps of the generator come to."""
    powers, sums = [_MULTIPLIER], [_INCREMENT]
    for _ in range(BLOCK - 1):
        powers.append(powers[-1] * _MULTIPLIER & _MASK)
        sums.append((sums[-1] * _MULTIPLIER + _INCREMENT) & _MASK)
    return powers, sums


_POWERS, _SUMS = (np.array(numbers, dtype=np.uint64) for numbers in _steps())
