"""Nodes: a selection of rows of the table, which is what every plugin judges; and NodeRow, one of them for scalar code.

The whole cluster, a rack, a sample and a single node are the same type. Selecting everything costs nothing: its
columns are views. Such a selection includes rows of no node, which the caller masks out when it combines the answers; a
plugin need not care.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairlead.core.state.columns import ABSENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.taints import Taint
    from fairlead.core.state.table import NodeTable

AnyNumber = TypeVar("AnyNumber", bound=np.generic)
_FEW_VALUES = 4
"""So many are compared one after the other sooner than looked up."""


class Nodes:
    """Rows of the table: columns as arrays (`nodes.free("cpu")`), or iterated as NodeRows."""

    __slots__ = ("_at", "rows", "table")

    def __init__(self, table: NodeTable, rows: NDArray[np.int32] | NDArray[np.intp] | None = None) -> None:
        self.table = table
        self.rows = rows
        self._at: NDArray[np.intp] | None = None
        """The rows in the width that look-ups are made with."""

    def __len__(self) -> int:
        return self.table.high if self.rows is None else len(self.rows)

    def __iter__(self) -> Iterator[NodeRow]:
        return (NodeRow(self.table, int(row)) for row in self.row_numbers())

    def row_numbers(self) -> NDArray[np.int32]:
        """The rows of the table that are selected."""
        rows = self.rows
        return np.arange(self.table.high, dtype=np.int32) if rows is None else rows.astype(np.int32, copy=False)

    def take(self, column: NDArray[AnyNumber]) -> NDArray[AnyNumber]:
        """A table-wide column, narrowed to this selection."""
        return column[: self.table.high] if self.rows is None else column.take(self.positions())

    def positions(self) -> NDArray[np.intp]:
        """The same as `row_numbers`, in the width that look-ups are made with."""
        if self._at is None:
            self._at = (
                self.row_numbers().astype(np.intp) if self.rows is None else self.rows.astype(np.intp, copy=False)
            )
        return self._at

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """How much of a resource each node has for pods, in base units."""
        return self.take(self.table.allocatable_column(resource))

    def requested(self, resource: str) -> NDArray[np.int64]:
        """How much of a resource the pods on each node request."""
        return self.take(self.table.requested_column(resource))

    def free(self, resource: str) -> NDArray[np.int64]:
        """What is left of a resource on each node."""
        return self.allocatable(resource) - self.requested(resource)

    def label(self, key: str) -> NDArray[np.int32]:
        """Codes of a label: equal codes are equal values, -1 is none."""
        return self.take(self.table.label(key).codes)

    def label_values(self, key: str) -> Sequence[str]:
        """The value that each code of a label stands for."""
        return self.table.label(key).values

    def with_label(self, key: str, wanted: NDArray[np.bool_]) -> NDArray[np.bool_] | None:
        """The mask of rows whose label has one of the values that are wanted, by code; None if there are none such.
        (The last entry, for rows without the label, is False.)"""
        found: NDArray[np.bool_] | None = None
        codes = wanted.nonzero()[0]
        if len(codes) > _FEW_VALUES:
            return wanted.take(self.label(key))
        for code in codes.tolist():
            found = either(found, self.label(key) == code)
        return found

    def without_label(self, key: str) -> NDArray[np.bool_] | None:
        """The mask of rows that do not have a label; None if every node has it."""
        return None if self.table.everywhere(key) else self.label(key) == ABSENT

    def none(self) -> NDArray[np.bool_]:
        """A mask of this selection's length that is False everywhere."""
        return np.zeros(len(self), dtype=np.bool_)

    def all(self) -> NDArray[np.bool_]:
        """A mask of this selection that is true everywhere."""
        return np.ones(len(self), dtype=np.bool_)

    def mask_of(self, rows: Iterable[int]) -> NDArray[np.bool_]:
        """The mask of those of this selection's rows that are in `rows`."""
        wanted = np.fromiter(rows, dtype=np.int64)
        if self.rows is None:
            mask = self.none()
            mask[wanted] = True
            return mask
        return np.isin(self.rows, wanted)


def either(one: NDArray[np.bool_] | None, other: NDArray[np.bool_] | None) -> NDArray[np.bool_] | None:
    """The rows of two masks, where None is no rows."""
    if one is None or other is None:
        return one if other is None else other
    return one | other


class Feasible(Nodes):
    """The rows of a mask, found when somebody looks: most plugins that are offered the feasible nodes step aside."""

    __slots__ = ("_found", "_ok")

    def __init__(self, table: NodeTable, ok: NDArray[np.bool_]) -> None:
        self.table = table
        self._at = None
        self._ok = ok
        self._found: NDArray[np.int32] | None = None

    @property
    def rows(self) -> NDArray[np.int32]:  # type: ignore[override]
        if self._found is None:
            self._found = np.flatnonzero(self._ok).astype(np.int32)
        return self._found


class NodeRow:
    """One node, for code that looks at nodes one at a time."""

    __slots__ = ("row", "table")

    def __init__(self, table: NodeTable, row: int) -> None:
        self.table = table
        self.row = row

    @property
    def node(self) -> Node:
        """The compiled Node object."""
        node = self.table.nodes[self.row]
        if node is None:
            raise LookupError(f"row {self.row} belongs to no node")
        return node

    @property
    def name(self) -> str:
        """The node's name."""
        return self.node.name

    @property
    def labels(self) -> Mapping[str, str]:
        """The node's labels."""
        return self.node.labels

    @property
    def annotations(self) -> Mapping[str, str]:
        """The node's annotations."""
        return self.node.annotations

    @property
    def taints(self) -> tuple[Taint, ...]:
        """The node's taints."""
        return self.node.taints

    @property
    def unschedulable(self) -> bool:
        """Whether the node is cordoned."""
        return self.node.unschedulable

    @property
    def pods(self) -> tuple[Pod, ...]:
        """The pods on the node, also those whose bind is not confirmed yet."""
        return tuple(self.table.pods[self.row])

    def allocatable(self, resource: str) -> int:
        """How much of a resource pods may use, in base units: thousandths of a core, bytes, pieces."""
        return int(self.table.allocatable_column(resource)[self.row])

    def requested(self, resource: str) -> int:
        """How much of a resource the pods on the node request."""
        return int(self.table.requested_column(resource)[self.row])

    def free(self, resource: str) -> int:
        """What is left of a resource."""
        return self.allocatable(resource) - self.requested(resource)
