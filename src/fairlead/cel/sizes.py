"""Sizes and costs as ranges, in whole numbers that end at 2⁶⁴ - 1; and what is known of the sizes inside a device."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

MOST = 2**64 - 1
PER_CHARACTER = 0.1
PER_CHARACTER_OF_REGEX = 0.25
NEW_LIST, NEW_MAP = 10, 30


class CostRange(NamedTuple):
    """From the least to the most that a size or a cost may be."""

    least: int
    most: int

    def plus(self, other: CostRange) -> CostRange:
        return CostRange(min(MOST, self.least + other.least), min(MOST, self.most + other.most))

    def times(self, other: CostRange) -> CostRange:
        return CostRange(min(MOST, self.least * other.least), min(MOST, self.most * other.most))

    def scaled(self, factor: float) -> CostRange:
        return CostRange(_scaled(self.least, factor), _scaled(self.most, factor))

    def or_else(self, other: CostRange) -> CostRange:
        return CostRange(min(self.least, other.least), max(self.most, other.most))


def _scaled(number: int, factor: float) -> int:
    scaled = math.ceil(float(number) * factor)
    return MOST if scaled >= 2.0**64 else scaled


def exactly(number: int) -> CostRange:
    return CostRange(number, number)


NOTHING, ONE, UNKNOWN = exactly(0), exactly(1), CostRange(0, MOST)

_ATTRIBUTE = 64
_MAP = 32
_DEVICE: Mapping[str, Any] = {
    "driver": 63,
    "attributes": {"@": _MAP, "@keys": 63, "@values": {"@": _MAP, "@keys": 32, "@values": _ATTRIBUTE, "*": _ATTRIBUTE}},
    "capacity": {"@": _MAP, "@keys": 63, "@values": {"@": _MAP, "@keys": 32, "@values": 0}},
    "allowMultipleAllocations": 1,
    "@": 0,
}
"""The most characters, entries or elements of what a path leads to; `@` of the thing itself, `*` of every field."""


def size_in_device(path: Sequence[str]) -> CostRange | None:
    """What the API allows for the part of a device that a path names; None if it says nothing of it."""
    if not path or path[0] != "device":
        return None
    part: Any = _DEVICE
    for step in path[1:]:
        name = "@values" if step == "@items" else step
        if not isinstance(part, Mapping):
            return None
        part = part.get(name, part.get("*"))
        if part is None:
            return None
    return CostRange(0, part["@"] if isinstance(part, Mapping) else part)
