"""TouchLog: which rows changed since I last looked.

Everything that remembers answers per row keeps a mark and asks for the rows touched after it. The log is a plain list
that forgets its older half when it grows; who asks from before that is told to look at everything again.
"""

from __future__ import annotations

_LIMIT = 1 << 16


class TouchLog:
    __slots__ = ("_base", "_last", "_rows")

    def __init__(self) -> None:
        self._base = 0
        self._rows: list[int] = []
        self._last: dict[int, int] = {}

    @property
    def mark(self) -> int:
        """Where the log stands now."""
        return self._base + len(self._rows)

    def touch(self, row: int) -> None:
        rows = self._rows
        rows.append(row)
        self._last[row] = self._base + len(rows)
        if len(rows) > _LIMIT:
            del rows[: _LIMIT // 2]
            self._base += _LIMIT // 2

    def last(self, row: int) -> int:
        """When a row was last touched: two equal answers, and it has not changed in between."""
        return self._last.get(row, 0)

    def since(self, mark: int) -> list[int] | None:
        """Rows touched after a mark, possibly with repetitions; None if that is too long ago to tell."""
        start = mark - self._base
        return self._rows[start:] if start >= 0 else None
