"""RowView: some rows as one pod sees them, shown on the table only where somebody looks.

A plugin's `before_pre_filter` may show the table otherwise than it is: a reservation's room is free for the pods that
may use it. Where all that looks at the table is cached per row, a row that has not changed since a pod of the same kind
was tried need not be shown: its answers are kept under the view's key. A plugin that reads more calls `show` first.

Invariant: answers under a view's key are answers about rows that were shown when they were judged.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.framework.results.signature import SignatureResults
    from fairlead.core.state.table import NodeTable


class RowView:
    """`rows` are the rows that differ, `change` shows one of them on the table. Pods whose views have equal keys see
    the same, as long as a row is touched whenever what they see there changes."""

    __slots__ = ("_change", "_judged", "_rows", "_shown", "key")

    def __init__(self, key: Hashable, rows: Collection[int], change: Callable[[int], None]) -> None:
        self.key = key
        self._rows = rows
        self._change = change
        self._shown: set[int] = set()
        self._judged: list[SignatureResults] = []

    def show(self, rows: Iterable[int] | None) -> None:
        """Show some rows as the pod sees them; None for all."""
        for row in self._rows if rows is None else rows:
            if row not in self._shown and row in self._rows:
                self._shown.add(row)
                self._change(row)

    def judged_by(self, results: SignatureResults) -> None:
        """Some results are up to date with what is shown."""
        self._judged.append(results)

    def ended(self, table: NodeTable) -> None:
        """The table is as it was before: that is no news to the results that have judged what was shown."""
        for results in self._judged:
            results.settle(table)
