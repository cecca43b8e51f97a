"""FreeAmounts: what is left on every node of cpu and memory, as one matrix of floats that follows the table.

Every pod is held against the same few sums, so they are formed once per change of a row and not once per pod and row.
One line of the matrix is one sum over all rows: looking at the whole table costs nothing, looking at some rows is one
gather, and what is done to cpu and memory alike is one operation on two lines.

Whole percentages come from float divisions. That is exact: a quotient of at most 100 that is no whole number keeps
further from the next one than rounding can carry it, as long as all amounts are below `EXACT_BELOW`. Once one is not,
there is no matrix any more, and a caller has to compute the slow way.

Invariant: after `block`, every line holds for each row what the table says now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

EXACT_BELOW = 1 << 46
RESOURCES = ("cpu", "memory")
"""In the order of the lines that are about both."""

FREE = slice(0, 3)
"""Places for pods, then what is not requested of each resource."""
UNUSED = slice(3, 5)
"""What is not used if pods that request nothing are taken to use a little; times a hundred, for percentages."""
TAKEN = slice(5, 7)
"""What is requested."""
WHOLE = slice(7, 9)
"""What there is; at least 1, so that it divides."""
EVENNESS = 9
"""How evenly the two are requested, as balance - 150, where balance is in whole percent. The score of a pod is
50 + (50 + change) / 2 with change = balance after - balance before, and from what is stored here that is
(balance after - (balance before - 150)) / 2: one subtraction and one halving per row."""
_LINES = 10
_FEW = 4
NOTHING, HALF, _TWO, _FIFTY = np.array(0.0), np.array(0.5), np.array(2.0), np.array(50.0)
"""Of few rows, half the cost of an operation with a plain number is to make an array of it."""


class FreeAmounts:
    def __init__(self, cluster: Cluster) -> None:
        self._table = cluster.table
        self._lines: NDArray[np.float64] = np.zeros((_LINES, 0))
        self._marks = (-1, -1)
        self._exact = True
        self._lacks: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        self._anybody_lacks = False
        self._last: tuple[Nodes | None, tuple[int, int]] = (None, (-1, -1))
        self._last_block: NDArray[np.float64] = self._lines

    # An index is notified of every pod and node; the table's logs say as much, when they are read.

    def occupied(self, pod: Pod, row: int) -> None:
        """See `block`."""

    def vacated(self, pod: Pod, row: int) -> None:
        """See `block`."""

    def node_changed(self, row: int) -> None:
        """See `block`."""

    def block(self, nodes: Nodes) -> NDArray[np.float64] | None:
        """The lines, narrowed to a selection of rows; to be read, not written. None if floats would not do."""
        marks = self._catch_up()
        if not self._exact:
            return None
        if self._last[0] is not nodes or self._last[1] != marks:
            self._last = (nodes, marks)
            self._last_block = self._lines[:, : self._table.high] if nodes.rows is None else self._gathered(nodes)
        return self._last_block

    def lacking(self, nodes: Nodes) -> NDArray[np.intp] | None:
        """Positions of nodes that have no cpu or no memory at all, if there are any: `block` is wrong about those."""
        if not self._anybody_lacks:
            return None
        found = np.flatnonzero(nodes.take(self._lacks))
        return found if len(found) else None

    def _gathered(self, nodes: Nodes) -> NDArray[np.float64]:
        return self._lines.take(nodes.positions(), axis=1)

    # ---- keeping up with the table ----

    def _catch_up(self) -> tuple[int, int]:
        table, before = self._table, self._marks
        marks = (table.static.mark, table.counted.mark)
        if marks == before:
            return marks
        if self._lines.shape[1] != table.capacity:
            self._lines = np.zeros((_LINES, table.capacity))
            self._lacks = np.zeros(table.capacity, dtype=np.bool_)
            self._refresh(np.arange(table.high))
        elif marks[0] == before[0] and (few := table.counted.few_since(before[1], _FEW)) is not None:
            for row in few:
                self._refresh_row(row)
        else:
            touched = np.union1d(table.counted.rows_since(before[1]), table.static.rows_since(before[0]))
            self._refresh(touched)
        self._marks = marks
        return marks

    def _refresh(self, rows: NDArray[np.intp]) -> None:
        table, lines = self._table, self._lines
        nodes = Nodes(table, rows)
        lines[0, rows] = nodes.allocatable("pods") - nodes.take(table.pod_count)
        for at, (resource, used) in enumerate(zip(RESOURCES, (table.nonzero_cpu, table.nonzero_memory), strict=True)):
            whole, taken, occupied = nodes.allocatable(resource), nodes.requested(resource), nodes.take(used)
            lines[1 + at, rows] = whole - taken
            lines[3 + at, rows] = (whole - occupied).astype(np.float64) * 100.0
            lines[5 + at, rows] = taken
            lines[7 + at, rows] = np.maximum(whole, 1)
            self._exact &= all(bool((amounts < EXACT_BELOW).all()) for amounts in (whole, taken, occupied))
        lines[EVENNESS, rows] = evenness(lines[TAKEN, rows], lines[WHOLE, rows]) - 150.0
        self._lacks[rows] = nodes.take(table.alive) & (
            (nodes.allocatable("cpu") == 0) | (nodes.allocatable("memory") == 0)
        )
        self._anybody_lacks = bool(self._lacks.any())

    def _refresh_row(self, row: int) -> None:
        """What pods on a row change of it."""
        table = self._table
        places = table.allocatable_column("pods").item(row) - table.pod_count.item(row)
        cpu, memory = table.allocatable_column("cpu").item(row), table.allocatable_column("memory").item(row)
        cpu_taken, memory_taken = table.requested_column("cpu").item(row), table.requested_column("memory").item(row)
        cpu_used, memory_used = table.nonzero_cpu.item(row), table.nonzero_memory.item(row)
        all_cpu, all_memory = max(cpu, 1), max(memory, 1)
        apart = abs(min(cpu_taken, all_cpu) / all_cpu - min(memory_taken, all_memory) / all_memory)
        self._exact = self._exact and max(cpu_taken, cpu_used, memory_taken, memory_used) < EXACT_BELOW
        self._lines[:, row] = (
            places,
            cpu - cpu_taken,
            memory - memory_taken,
            (cpu - cpu_used) * 100,
            (memory - memory_used) * 100,
            cpu_taken,
            memory_taken,
            all_cpu,
            all_memory,
            int((2 - apart) * 50) - 150,
        )


def evenness(taken: NDArray[np.float64], whole: NDArray[np.float64]) -> NDArray[np.float64]:
    """How evenly two resources are taken, in whole percent: a hundred less half the difference of their shares. (Twice
    one less half of it, times fifty: powers of two do not round.)"""
    shares = np.minimum(taken, whole)
    shares /= whole
    apart: NDArray[np.float64] = np.subtract(shares[0], shares[1])
    np.abs(apart, out=apart)
    np.subtract(_TWO, apart, out=apart)
    apart *= _FIFTY
    return np.trunc(apart, out=apart)


def room_of(cluster: Cluster) -> FreeAmounts:
    return cluster.index(FreeAmounts, FreeAmounts)
