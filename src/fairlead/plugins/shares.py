"""Shares of what nodes have: divisors that are ready, and how evenly nodes are used as they stand.

Both are the same whatever pod is looked at, so they are kept between pods: divisors until some node changes, evenness
row by row as pods come and go.

Whole percentages come from a float division. That is exact: a quotient of at most 100 that is no whole number keeps
further from the next one than rounding can carry it, as long as the divisor is below `EXACT_BELOW`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.state.table import NodeTable

EXACT_BELOW = 1 << 46


class Divisor:
    """What nodes have of one resource; at least 1, so that it divides. `everywhere` says that every node has some,
    `exact` that percentages of it may be had from floats."""

    __slots__ = ("column", "everywhere", "exact")

    def __init__(self, table: NodeTable, resource: str) -> None:
        capacity = table.allocatable_column(resource)[: table.high]
        of_nodes = capacity[table.alive[: table.high]]
        self.column: NDArray[np.float64] = np.maximum(capacity, 1).astype(np.float64)
        self.everywhere = bool(of_nodes.all())
        self.exact = bool((of_nodes < EXACT_BELOW).all())


class Divisors:
    """The divisors of one table."""

    def __init__(self) -> None:
        self._made_of: tuple[object, int, int] = (None, 0, 0)
        self._by_resource: dict[str, Divisor] = {}

    def of(self, table: NodeTable, resource: str) -> Divisor:
        made_of = (table, table.static.mark, table.high)
        if made_of != self._made_of:
            self._by_resource.clear()
            self._made_of = made_of
        divisor = self._by_resource.get(resource)
        if divisor is None:
            divisor = self._by_resource[resource] = Divisor(table, resource)
        return divisor


class Standing:
    """A value of every row that depends on the node and what lies there, and not on the pod that is looked at."""

    def __init__(self, judge: Callable[[Nodes], NDArray[np.int64]]) -> None:
        self._judge = judge
        self._table: NodeTable | None = None
        self._marks = (0, 0)
        self._column: NDArray[np.int64] = np.zeros(0, dtype=np.int64)

    def of(self, nodes: Nodes) -> NDArray[np.int64]:
        table = nodes.table
        marks = (table.static.mark, table.content.mark)
        if table is not self._table or table.capacity != len(self._column):
            self._column = np.zeros(table.capacity, dtype=np.int64)
            self._column[: table.high] = self._judge(Nodes(table))
        elif marks != self._marks:
            rows = table.content.rows_since(self._marks[1])
            if table.static.mark != self._marks[0]:
                rows = np.union1d(rows, table.static.rows_since(self._marks[0]))
            self._column[rows] = self._judge(Nodes(table, rows))
        self._table, self._marks = table, marks
        return nodes.take(self._column)
