"""RowSignatures: a number for each row; rows with equal numbers see devices that are equal in kind and use.

One search for devices answers for all rows with the same number. Only rows whose devices changed (`dirty`) get a new
one. Numbers are never used twice, so that nobody mistakes an old one.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from itertools import count
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.state.touchlog import TouchLog

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.table import NodeTable
    from fairlead.kube.claims.device_views import NodeView, PoolView
    from fairlead.kube.claims.uses import Uses

_MOST_SIGNATURES = 1 << 16
_NO_NAMES: frozenset[str] = frozenset()


class RowSignatures:
    def __init__(self) -> None:
        self.dirty: set[int] = set()
        self.changed = TouchLog()
        """Rows whose signature changed: what was found out about them before does not hold any more."""
        self._column: NDArray[np.int32] = np.full(64, -1, dtype=np.int32)
        self._ids: dict[Hashable, int] = {}
        self._layouts: dict[Hashable, int] = {}
        self._layout_of: dict[int, int] = {}
        """By row, if it is known."""
        self._next = count()

    def forget(self, row: int) -> None:
        """Other devices are seen from a row."""
        self._layout_of.pop(row, None)
        self.dirty.add(row)

    def of_row(self, row: int) -> int:
        """The signature of one row, as the last call of `of_rows` found it."""
        return self._column.item(row)

    def of_rows(self, table: NodeTable, view: Callable[[int], NodeView], uses: Uses) -> NDArray[np.int32]:
        high = table.high
        if len(self._column) < high:
            wider = np.full(max(table.capacity, high), -1, dtype=np.int32)
            wider[: len(self._column)] = self._column
            self._column = wider
            self.dirty |= set(range(high))
        if len(self._ids) > _MOST_SIGNATURES:
            self._ids.clear()
            self._layouts.clear()
            self._layout_of.clear()
            self.dirty = set(range(high))
        if self.dirty:
            for row in self.dirty:
                if row < high and self._column[row] != (signature := self._signature(row, view(row), uses)):
                    self._column[row] = signature
                    self.changed.touch(row)
            self.dirty.clear()
        return self._column[:high]

    def _signature(self, row: int, view: NodeView, uses: Uses) -> int:
        key = (self._layout(row, view), *[_state(pool, uses) for pool in view.pools])
        found = self._ids.get(key)
        if found is None:
            found = self._ids[key] = next(self._next)
        return found

    def _layout(self, row: int, view: NodeView) -> int:
        """A number for the layouts of the pools that a row sees: they are long, and do not change with what is in
        use."""
        found = self._layout_of.get(row)
        if found is None:
            layouts = tuple([pool.layout for pool in view.pools])
            found = self._layouts.get(layouts)
            if found is None:
                found = self._layouts[layouts] = next(self._next)
            self._layout_of[row] = found
        return found


def _state(pool: PoolView, uses: Uses) -> Hashable:
    bits = pool.bits
    taken = sum(map(bits.__getitem__, bits.keys() & uses.by_pool.get(pool.id, _NO_NAMES)))
    shares: Hashable = None
    if uses.shares or uses.consumed:
        shares = tuple(
            [
                (at, device.id in uses.shares, tuple(sorted((uses.consumed.get(device.id) or {}).items())))
                for at, device in enumerate(device for one in pool.slices for device in one.devices)
                if device.id in uses.shares or device.id in uses.consumed
            ]
        )
    counters = repr(uses.counters_left(pool)) if pool.counter_sets else None
    return taken, shares, counters
