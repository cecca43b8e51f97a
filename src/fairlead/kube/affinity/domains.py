"""Domains: which rows count towards a topology spread constraint, and which domains that makes.

It depends on nodes and on the pod's shape, not on what lies where. So it is remembered until some node changes, and a
thousand equal pods find it ready.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.state.columns import ABSENT
from fairlead.core.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.table import NodeTable
    from fairlead.kube.affinity.counts import DomainTally

_REMEMBERED = 256


class CountedRows:
    """The rows that count for one topology key. `mask` is by row, `seen` the codes that occur among them; `outside`
    is by row too: those that count but have no such label."""

    __slots__ = ("_codes", "_every_labelled_row", "_rows", "key", "mask", "outside", "seen", "values")

    def __init__(self, table: NodeTable, key: str, mask: NDArray[np.bool_]) -> None:
        label = table.label(key)
        codes = label.codes[: table.high]
        labelled = codes != ABSENT
        self.key = key
        self.mask = mask
        self.values = len(label.values)
        self._rows = np.flatnonzero(mask & labelled)
        self._codes = codes[self._rows]
        self.outside = np.flatnonzero(mask & ~labelled)
        self._every_labelled_row = len(self._rows) == label.carriers
        self.seen = np.flatnonzero(np.bincount(self._codes, minlength=self.values))

    def sums(self, tally: DomainTally | None) -> NDArray[np.int64]:
        """Counts by code over these rows, with one more entry, a zero, for rows without the label."""
        sums = np.zeros(self.values + 1, dtype=np.int64)
        if tally is None:
            return sums
        if self._every_labelled_row:
            sums[:-1] = tally.domains(self.key)[: self.values]
        else:
            sums[:-1] = np.bincount(self._codes, weights=tally.column()[self._rows], minlength=self.values)
        return sums


class Domains:
    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._mark = (-1, -1)
        self._counted: OrderedDict[Hashable, CountedRows] = OrderedDict()

    def counted(self, key: str, who: Hashable, mask: Callable[[Nodes], NDArray[np.bool_]]) -> CountedRows:
        """The counted rows of a key; `who` stands for all that `mask` depends on besides the nodes."""
        mark = (self._table.static.mark, self._table.high)
        if mark != self._mark:
            self._counted.clear()
            self._mark = mark
        found = self._counted.get((key, who))
        if found is None:
            nodes = Nodes(self._table)
            found = self._counted[key, who] = CountedRows(self._table, key, mask(nodes))
            if len(self._counted) > _REMEMBERED:
                self._counted.popitem(last=False)
        else:
            self._counted.move_to_end((key, who))
        return found
