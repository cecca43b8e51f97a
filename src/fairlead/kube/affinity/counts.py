"""Counts of pods by row and by topology domain, kept as pods come and go.

A `Tally` counts pods of one description. Per row it is an array; per topology key that somebody asks about it also
keeps one sum for each value of the key, so that "how many are in this zone" is a look-up whatever the number of pods
and nodes. A code of -1 (the node has no such label) finds the last entry of a column of sums, which is kept at zero.

Invariant: while a key's sums are kept, `sums[code]` is the sum over the rows that carry that code. The code that
changes a row's labels has the sums forgotten; they are made anew when they are next requested.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.columns import LabelColumn
    from fairlead.core.state.table import NodeTable


class DomainSums:
    """Sums by the values of one label. There are always more entries than values."""

    __slots__ = ("_label", "_sums")

    def __init__(self, label: LabelColumn, counts: NDArray[np.int32], rows: NDArray[np.intp] | None = None) -> None:
        """`counts` are those of `rows`, or of all rows from the first on."""
        codes = label.codes[: len(counts)] if rows is None else label.codes[rows]
        size = _room_for(len(label.values))
        sums = np.bincount(codes + 1, weights=counts, minlength=size + 1).astype(np.int32)
        self._label = label
        self._sums = sums[1:]

    def add(self, row: int, amount: int) -> None:
        code = self._label.codes[row]
        if code >= 0:
            self.current()[code] += amount

    def current(self) -> NDArray[np.int32]:
        """The sums themselves, not a copy."""
        values = len(self._label.values)
        if values >= len(self._sums):
            wider = np.zeros(_room_for(values), dtype=np.int32)
            wider[: len(self._sums)] = self._sums
            self._sums = wider
        return self._sums


def _room_for(values: int) -> int:
    return values + values // 4 + 8


class DomainTally:
    """How many pods of one description lie on each row, and in each domain of the keys asked about."""

    __slots__ = ("_column", "_domains", "_table")

    def __init__(self, table: NodeTable, on_rows: Mapping[int, int]) -> None:
        self._table = table
        self._column = np.zeros(table.capacity, dtype=np.int32)
        self._domains: dict[str, DomainSums] = {}
        if on_rows:
            self._column[list(on_rows)] = list(on_rows.values())

    def add(self, row: int, amount: int) -> None:
        self._wide()[row] += amount
        for sums in self._domains.values():
            sums.add(row, amount)

    def column(self) -> NDArray[np.int32]:
        """Counts by row; a view that changes as pods come and go."""
        return self._wide()[: self._table.high]

    def domains(self, key: str) -> NDArray[np.int32]:
        """Counts by the codes of a label; a view likewise. It has more entries than the label has values, the last of
        them zero."""
        sums = self._domains.get(key)
        if sums is None:
            sums = self._domains[key] = DomainSums(self._table.label(key), self.column())
        return sums.current()

    def labels_changed(self, row: int) -> None:
        if row < len(self._column) and self._column[row]:
            self._domains.clear()

    def _wide(self) -> NDArray[np.int32]:
        if len(self._column) < self._table.capacity:
            wider = np.zeros(self._table.capacity, dtype=np.int32)
            wider[: len(self._column)] = self._column
            self._column = wider
        return self._column


def add_into(counts: dict[int, int], row: int, amount: int) -> None:
    """Count on a row, keeping only rows that have any."""
    left = counts.get(row, 0) + amount
    if left:
        counts[row] = left
    else:
        del counts[row]
