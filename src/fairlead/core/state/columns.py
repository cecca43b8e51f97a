"""Dictionary-encoded columns over the rows of the node table: labels as codes, lists of taints and features interned.

A label column is made the first time somebody requests its key, because clusters carry thousands of label keys and
policies read a handful. From then on it is kept: a node that changes rewrites its own row. A code is an index into the
column's values, and -1 says that the node has no such label; so "In (a, b)" is a look-up of two codes, and "same
topology domain" is equality of codes.

Invariant: for every alive row, `values[codes[row]]` is the node's label, or `codes[row] == -1` and it has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from fairlead.core.model.syntax import parse_int64

if TYPE_CHECKING:
    from numpy.typing import NDArray

ABSENT = -1
Item = TypeVar("Item")


class LabelColumn:
    """One label key over all rows."""

    __slots__ = ("_codes_of", "_numbers", "carriers", "codes", "values")

    def __init__(self, capacity: int) -> None:
        self.codes: NDArray[np.int32] = np.full(capacity, ABSENT, dtype=np.int32)
        self.values: list[str] = []
        self.carriers = 0
        """How many rows have the label."""
        self._codes_of: dict[str, int] = {}
        self._numbers: tuple[NDArray[np.int64], NDArray[np.bool_]] | None = None

    def code(self, value: str) -> int:
        """The code of a value that some node has or had, else -2, which no row carries."""
        return self._codes_of.get(value, -2)

    def put(self, row: int, value: str | None) -> None:
        self.carriers += (value is not None) - int(self.codes[row] != ABSENT)
        if value is None:
            self.codes[row] = ABSENT
            return
        code = self._codes_of.get(value)
        if code is None:
            code = self._codes_of[value] = len(self.values)
            self.values.append(value)
            self._numbers = None
        self.codes[row] = code

    def numbers(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Values read as integers, by code, and which of them are integers at all (for Gt and Lt). The last entry
        stands for an absent label, so that the code -1 finds it."""
        if self._numbers is None:
            parsed = [parse_int64(value) for value in self.values]
            numbers = np.array([number or 0 for number in parsed] + [0], dtype=np.int64)
            valid = np.array([number is not None for number in parsed] + [False], dtype=np.bool_)
            self._numbers = numbers, valid
        return self._numbers

    def grow(self, capacity: int) -> None:
        codes = np.full(capacity, ABSENT, dtype=np.int32)
        codes[: len(self.codes)] = self.codes
        self.codes = codes


class LabelColumns:
    """All label columns that anybody has requested."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._columns: dict[str, LabelColumn] = {}

    def column(self, key: str) -> LabelColumn | None:
        """The column of a key, if somebody requested it before."""
        return self._columns.get(key)

    def make(self, key: str, rows: Iterable[tuple[int, Mapping[str, str]]]) -> LabelColumn:
        """The column of a new key, from the row and the labels of every alive node."""
        column = self._columns[key] = LabelColumn(self._capacity)
        for row, labels in rows:
            value = labels.get(key)
            if value is not None:
                column.put(row, value)
        return column

    def put(self, row: int, labels: Mapping[str, str]) -> None:
        for key, column in self._columns.items():
            column.put(row, labels.get(key))

    def grow(self, capacity: int) -> None:
        self._capacity = capacity
        for column in self._columns.values():
            column.grow(capacity)


class Interned(Generic[Item]):
    """Distinct lists that nodes carry, so that a check runs once per list and is gathered by code. Code 0 is the
    empty list."""

    def __init__(self) -> None:
        self.sets: list[tuple[Item, ...]] = [()]
        self._codes: dict[tuple[Item, ...], int] = {(): 0}

    def code(self, items: tuple[Item, ...]) -> int:
        code = self._codes.get(items)
        if code is None:
            code = self._codes[items] = len(self.sets)
            self.sets.append(items)
        return code
