"""VolumeLimits: how many volumes of each driver a node takes, and which in-tree plugins have moved to a driver there.

Both come from CSINodes. Limits are columns by driver, so that judging a pod is a comparison of columns.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model import kinds

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.storage import CsiNode
    from fairlead.core.state.object_index import KindIndex, ObjectIndex
    from fairlead.core.state.table import NodeTable

UNLIMITED = -1


class VolumeLimits:
    def __init__(self, table: NodeTable, object_index: ObjectIndex) -> None:
        self._table = table
        self._csi_nodes: KindIndex = object_index.of(kinds.CSI_NODE)
        self._seen = -1
        self._limits: dict[str, NDArray[np.int64]] = {}
        self._migrated: dict[str, set[int]] = {}

    def catch_up(self) -> None:
        """Take in what changed of CSINodes."""
        kind_index = self._csi_nodes
        if self._seen == kind_index.version:
            return
        touched = kind_index.since(self._seen) if self._seen >= 0 else None
        self._seen = kind_index.version
        for name in self._table.row_of if touched is None else set(touched):
            row = self._table.row_of.get(name)
            if row is not None:
                self.node_changed(row)

    def of(self, driver: str) -> NDArray[np.int64]:
        """How many volumes of a driver each node can take; -1 where there is no limit."""
        return driver_column(self._limits, driver, UNLIMITED, self._table.capacity)

    def are_set(self, row: int) -> bool:
        """Whether a node has a limit for any driver."""
        return any(self.of(driver)[row] != UNLIMITED for driver in self._limits)

    def rows_migrated(self, plugin: str) -> set[int]:
        """Rows whose node says that an in-tree plugin has moved to its driver."""
        self.catch_up()
        return self._migrated.get(plugin, set())

    def node_changed(self, row: int) -> None:
        """Write the limits of a row anew."""
        csi_node: CsiNode | None = self._csi_nodes.get(self._table.name(row))
        for driver in self._limits:
            self.of(driver)[row] = UNLIMITED
        for rows in self._migrated.values():
            rows.discard(row)
        if csi_node is None:
            return
        for driver, most in csi_node.drivers.items():
            if most is not None:
                self.of(driver)[row] = most
        for plugin in csi_node.migrated:
            self._migrated.setdefault(plugin, set()).add(row)


def driver_column(columns: dict[str, NDArray[np.int64]], driver: str, empty: int, capacity: int) -> NDArray[np.int64]:
    """A driver's column, as wide as the table."""
    column = columns.get(driver)
    if column is None or len(column) < capacity:
        wider = np.full(capacity, empty, dtype=np.int64)
        if column is not None:
            wider[: len(column)] = column
        column = columns[driver] = wider
    return column
