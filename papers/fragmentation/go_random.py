"""GoRandom: the numbers of Go's math/rand for a seed, with which recorded runs of Go programs can be repeated.

The generator adds two of its last 607 values: y(n) = y(n - 607) + y(n - 273), modulo 2^64. A seed is mixed with the 607
values that this recurrence reaches after 7.8e12 steps from seed 1. They are computed here by raising x to that power
modulo x^607 - x^334 - 1, so that nothing has to be stored and nobody waits for so many steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LENGTH, _NEAR = 607, 273
_LARGEST_SEED = (1 << 31) - 1
_STEPS_BEFORE_MIXING = 7_800_000_000_000
_MASK = (1 << 64) - 1

T = TypeVar("T")


def _from_seed(seed: int, shift: int) -> list[int]:
    """A register of values from a seed: a linear congruential generator, three numbers a value."""
    number, values = seed % _LARGEST_SEED or 89482311, []
    for step in range(-20, _LENGTH):
        number = number * 48271 % _LARGEST_SEED
        if step >= 0:
            value = number << 2 * shift
            number = number * 48271 % _LARGEST_SEED
            value ^= number << shift
            number = number * 48271 % _LARGEST_SEED
            values.append((value ^ number) & _MASK)
    return values


def _in_order(register: Sequence[int]) -> list[int]:
    """The values of a register from the oldest to the latest; the original keeps them backwards in a ring."""
    return [register[(_LENGTH - _NEAR - 1 - step) % _LENGTH] for step in range(_LENGTH)]


def _times(one: NDArray[np.uint64], other: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """The product of two polynomials modulo x^607 - x^334 - 1, with coefficients modulo 2^64."""
    product = np.zeros(2 * _LENGTH, dtype=np.uint64)
    for power in np.flatnonzero(one).tolist():
        product[power : power + _LENGTH] += one[power] * other
    end = 2 * _LENGTH
    while end > _LENGTH:
        start = max(_LENGTH, end - _NEAR)
        product[start - _NEAR : end - _NEAR] += product[start:end]
        product[start - _LENGTH : end - _LENGTH] += product[start:end]
        end = start
    return product[:_LENGTH]


@cache
def _mixed_in() -> tuple[int, ...]:
    """The register after many steps from seed 1, which every seed is mixed with."""
    power = np.zeros(_LENGTH, dtype=np.uint64)
    power[0] = 1
    step = np.zeros(_LENGTH, dtype=np.uint64)
    step[1] = 1
    left = _STEPS_BEFORE_MIXING
    while left:
        if left & 1:
            power = _times(power, step)
        step = _times(step, step)
        left >>= 1
    values = _in_order(_from_seed(1, 10))
    for index in range(_LENGTH):
        values.append((values[index] + values[index + _LENGTH - _NEAR]) & _MASK)
    known = np.array(values, dtype=np.uint64)
    reached = [int((power * known[index : index + _LENGTH]).sum()) for index in range(_LENGTH)]
    register = [0] * _LENGTH
    for index, value in enumerate(reached):
        register[(_LENGTH - _NEAR - 1 - (_STEPS_BEFORE_MIXING - _LENGTH + index)) % _LENGTH] = value
    return tuple(register)


class GoRandom:
    """A generator with the methods of Go's rand.Rand that experiments use."""

    def __init__(self, seed: int) -> None:
        register = [value ^ mixed for value, mixed in zip(_from_seed(seed, 20), _mixed_in(), strict=True)]
        self._ring = _in_order(register)
        self._at = 0

    def copy(self) -> GoRandom:
        """A generator that goes on with the same numbers."""
        twin = copy(self)
        twin._ring = self._ring.copy()
        return twin

    def int63(self) -> int:
        ring, at = self._ring, self._at
        value = (ring[at] + ring[(at + _LENGTH - _NEAR) % _LENGTH]) & _MASK
        ring[at] = value
        self._at = (at + 1) % _LENGTH
        return value & (_MASK >> 1)

    def intn(self, limit: int) -> int:
        """A number below a limit of at most 31 bits."""
        number = self.int63() >> 32
        if limit & (limit - 1) == 0:
            return number & (limit - 1)
        largest = (1 << 31) - 1 - (1 << 31) % limit
        while number > largest:
            number = self.int63() >> 32
        return number % limit

    def shuffle(self, values: list[T]) -> None:
        for last in range(len(values) - 1, 0, -1):
            other = self._below(last + 1)
            values[last], values[other] = values[other], values[last]

    def _below(self, limit: int) -> int:
        """A number below a limit, as Shuffle draws it."""
        product = (self.int63() >> 31) * limit
        if product & 0xFFFFFFFF < limit:
            smallest = (1 << 32) % limit
            while product & 0xFFFFFFFF < smallest:
                product = (self.int63() >> 31) * limit
        return product >> 32

    def permutation(self, length: int) -> list[int]:
        numbers: list[int] = []
        for index in range(length):
            other = self.intn(index + 1)
            numbers.append(numbers[other] if other < index else index)
            numbers[other] = index
        return numbers
