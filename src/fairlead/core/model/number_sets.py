"""Sets of small numbers as text, such as the CPUs of a node or the indexes of a Job: `0-3,8`."""

from __future__ import annotations


def parse_number_set(text: str) -> frozenset[int]:
    """`0-3,8` as numbers; raises ValueError if that is not what it is."""
    numbers: set[int] = set()
    for part in text.split(",") if text else ():
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)
