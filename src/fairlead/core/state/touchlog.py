"""TouchLog: which rows changed since a mark.

Every cache of answers per row keeps a mark and requests the rows touched after it. There are two ways to ask. `since`
reads the sequence of touches, which is quick for the few rows of the last moment; the older half of the sequence is
dropped when it grows, and for an older mark the answer is None: look at everything again. `rows_since` always answers:
for fewer touches than rows it reads the sequence too, and keeps of each row the last touch; for more it compares the
column of each row's last touch, which costs the same however old the mark is.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LIMIT = 1 << 16
_REPEATED = 4
"""A row is touched so often by one placement at most, roughly."""
_FEW, _ROWS_PER_TOUCH = 32, 6
"""So many touches are sooner read one by one than as an array; and one touch for so many rows of the column, or fewer
touches, are sooner read off the sequence than the column is compared."""


class TouchLog:
    __slots__ = ("_base", "_last", "_rows", "mark")

    def __init__(self) -> None:
        self._base = 0
        self._rows = array("q")
        self._last: NDArray[np.int64] = np.zeros(64, dtype=np.int64)
        self.mark = 0
        """Where the log stands now."""

    def touch(self, row: int) -> None:
        rows = self._rows
        rows.append(row)
        self.mark += 1
        try:
            self._last[row] = self.mark
        except IndexError:
            self._widen(row)
        if len(rows) > _LIMIT:
            del rows[: _LIMIT // 2]
            self._base += _LIMIT // 2

    def _widen(self, row: int) -> None:
        wider = np.zeros(max(row + 1, 2 * len(self._last)), dtype=np.int64)
        wider[: len(self._last)] = self._last
        wider[row] = self.mark
        self._last = wider

    @property
    def newest(self) -> int:
        """The row that was touched last; -1 if none was."""
        return self._rows[-1] if self._rows else -1

    def last(self, row: int) -> int:
        """The number of a row's last touch: if two calls give the same, the row has not changed in between."""
        return int(self._last[row]) if row < len(self._last) else 0

    def since(self, mark: int) -> list[int] | None:
        """Rows touched after a mark, possibly with repetitions; None if that is too long ago."""
        start = mark - self._base
        return self._rows[start:].tolist() if start >= 0 else None

    def few_since(self, mark: int, limit: int) -> list[int] | None:
        """The distinct rows touched after a mark, if they are no more than so many; else None. (None too if there were
        many touches of few rows: to look is what takes time.)"""
        touches = self.mark - mark
        if touches == 1:
            return [self._rows[-1]]
        if touches > _REPEATED * limit:
            return None
        rows = list(set(self._rows[-touches:])) if touches else []
        return rows if len(rows) <= limit else None

    def rows_since(self, mark: int) -> NDArray[np.intp]:
        """The distinct rows touched after a mark, in any order."""
        touches = self.mark - mark
        if touches <= _FEW:
            return np.array(list(set(self._rows[-touches:])) if touches else [], dtype=np.intp)
        if touches > min(len(self._rows), len(self._last) // _ROWS_PER_TOUCH):
            return (self._last > mark).nonzero()[0]
        # A view, which must not leave this function: while it is there, the sequence cannot grow.
        touched: NDArray[np.intp] = np.frombuffer(self._rows, dtype=np.int64)[-touches:]
        rows: NDArray[np.intp] = touched[self._last.take(touched) == np.arange(mark + 1, self.mark + 1)]
        return rows
