"""NodeTable: the cluster as a table. One int64 array per resource, one code column per label, one row per node.

Column-major, because judging a pod reads two or three resources of every node and nothing else. A row belongs to a node
from its arrival until it is gone and its pods with it; then the row is used again. A plugin that remembers something
about rows asks the touch logs what changed since: `static` for what the Node object says (labels, taints, allocatable),
`content` for what lies on the node (requests, ports, volumes), and `seen` for pods on it that the API showed again
while nothing changed that plugins could count.

`version[row]` is raised with everything that takes room on a row, and by nothing else: it is what optimistic schedulers
compare (lab/omega/transactions.py). Room that comes free leaves it as it is. Pods raise it from the first reading on,
because only differences between two readings matter, and most schedulers never read it.

Invariant: `requested[r][row]` is the sum of the requests of `pods[row]`, for every resource and row, and of what is
claimed there without a pod (`claimed`); `Cluster.check` recounts it. Rows at or above `high`, and rows whose `alive` is
False, are never chosen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import numpy as np

from fairlead.core.state.columns import Interned, LabelColumn, LabelColumns
from fairlead.core.state.images import Images
from fairlead.core.state.touchlog import TouchLog
from fairlead.core.state.tree import NodeTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.taints import Taint

ClaimAmounts: TypeAlias = "Mapping[str, int] | Mapping[str, NDArray[np.int64]]"
AnyNumber = TypeVar("AnyNumber", bound=np.generic)


class NodeTable:
    def __init__(self, capacity: int = 64) -> None:
        self.capacity = capacity
        self.high = 0
        self.row_of: dict[str, int] = {}
        self.nodes: list[Node | None] = []
        self.pods: list[list[Pod]] = []
        self.alive: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self.unschedulable: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self.taint_code: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.feature_code: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.pod_count: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self.nonzero_cpu: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self.nonzero_memory: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self._version: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self.versions_are_read = False
        self.allocatable: dict[str, NDArray[np.int64]] = {}
        self.requested: dict[str, NDArray[np.int64]] = {}
        self.claimed: dict[str, NDArray[np.int64]] = {}
        """The part of `requested` that no pod accounts for: claims of schedulers in an experiment."""
        self.labels = LabelColumns(capacity)
        self.taints: Interned[Taint] = Interned()
        self.features: Interned[str] = Interned()
        self.images = Images()
        self.tree = NodeTree()
        self.static = TouchLog()
        self.counted = TouchLog()
        """Rows where pods came, went, or changed in what is counted of them or in their labels; all that `content`
        reports, if somebody reads that."""
        self.content_is_read = False
        self.seen = TouchLog()
        """Rows where pods changed in anything else; preemption and image counts follow it too."""
        self._ghosts: dict[str, int] = {}
        self._ghost_names: dict[int, str] = {}
        self._free: list[int] = []

    @property
    def version(self) -> NDArray[np.int64]:
        self.versions_are_read = True
        return self._version

    def raise_versions(self, rows: NDArray[np.int64]) -> None:
        """Make rows look changed, once for every time that a row is named."""
        times = np.bincount(rows)
        self.version[: len(times)] += times

    @property
    def content(self) -> TouchLog:
        """Rows where pods came, went, or changed in anything that a plugin reads of the pods on a node. A plugin that
        asks will want what comes after, so such changes are noted from now on: most profiles read no more than
        `counted` reports, and every pod that starts would make them judge its row again."""
        self.content_is_read = True
        return self.counted

    # ---- rows ----

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self.row_of)

    def name(self, row: int) -> str:
        node = self.nodes[row]
        return node.name if node is not None else ""

    def put(self, node: Node) -> int:
        """Add a node or take in its new state; the row stays the same while the node lives."""
        row = self.row_of.get(node.name)
        if row is None:
            row = self._ghosts.pop(node.name, None)
            if row is None:
                row = self._take_row()
            else:
                del self._ghost_names[row]
            self.row_of[node.name] = row
            self.alive[row] = True
        self.nodes[row] = node
        self._write_allocatable(row, node.allocatable)
        self.unschedulable[row] = node.unschedulable
        self.taint_code[row] = self.taints.code(node.taints)
        self.feature_code[row] = self.features.code(node.features)
        self.labels.put(row, node.labels)
        self.tree.put(node.name, node.zone_key)
        self.images.put(row, node.images)
        self.static.touch(row)
        self.counted.touch(row)
        return row

    def drop(self, name: str) -> None:
        """Forget a node. Its row stays, as a ghost, until the pods on it are gone too."""
        row = self.row_of.pop(name)
        self.nodes[row] = None
        self.alive[row] = False
        self._write_allocatable(row, {})
        self.labels.put(row, {})
        self.images.put(row, ())
        self.tree.drop(name)
        self.static.touch(row)
        if self.pods[row]:
            self._keep_ghost(name, row)
        else:
            self._free.append(row)

    def row_for(self, name: str) -> int:
        """The row of a node, alive or not: a pod may be seen before its node is, or after the node is gone."""
        row = self.row_of.get(name)
        if row is None:
            row = self._ghosts.get(name)
        if row is None:
            row = self._take_row()
            self._keep_ghost(name, row)
        return row

    def release_if_ghost(self, row: int) -> None:
        """Give a row back once neither its node nor any pod on it is left."""
        name = self._ghost_names.get(row)
        if name is not None and not self.pods[row]:
            del self._ghosts[name], self._ghost_names[row]
            self._free.append(row)

    def _keep_ghost(self, name: str, row: int) -> None:
        self._ghosts[name] = row
        self._ghost_names[row] = name

    def alive_rows(self) -> Iterator[tuple[int, Node]]:
        for row in self.row_of.values():
            node = self.nodes[row]
            if node is not None:
                yield row, node

    def order(self) -> NDArray[np.int32]:
        """Rows in kube-scheduler's node-tree order: zone by zone, round robin."""
        return self.tree.rows(self.row_of)

    def _take_row(self) -> int:
        if self._free:
            return self._free.pop()
        if self.high == self.capacity:
            self._grow(self.capacity * 2)
        row = self.high
        self.high += 1
        self.nodes.append(None)
        self.pods.append([])
        return row

    # ---- columns ----

    def label(self, key: str) -> LabelColumn:
        column = self.labels.column(key)
        if column is None:
            column = self.labels.make(key, ((row, node.labels) for row, node in self.alive_rows()))
        return column

    def everywhere(self, key: str) -> bool:
        """Whether every node has a label."""
        return self.label(key).carriers == len(self.row_of)

    def allocatable_column(self, resource: str) -> NDArray[np.int64]:
        column = self.allocatable.get(resource)
        return self._resource(self.allocatable, resource) if column is None else column

    def requested_column(self, resource: str) -> NDArray[np.int64]:
        column = self.requested.get(resource)
        return self._resource(self.requested, resource) if column is None else column

    def claim(self, rows: NDArray[np.int64], amounts: ClaimAmounts) -> None:
        """Take amounts on rows without a pod, once for every time that a row is named. An amount is one number, or a
        column with a number for each row up to the last that is named."""
        times = self._count_claims(rows, amounts, 1)
        self._version[: len(times)] += times

    def release(self, rows: NDArray[np.int64], amounts: ClaimAmounts) -> None:
        """Give claimed amounts back. Versions stay, because room that comes free harms no plan."""
        self._count_claims(rows, amounts, -1)

    def undo_claim(self, rows: NDArray[np.int64], amounts: ClaimAmounts) -> None:
        """As if the claim had not been made."""
        times = self._count_claims(rows, amounts, -1)
        self._version[: len(times)] -= times

    def _count_claims(self, rows: NDArray[np.int64], amounts: ClaimAmounts, sign: int) -> NDArray[np.int64]:
        times = np.bincount(rows)
        for resource, amount in amounts.items():
            taken = times * (sign * amount)
            self.requested_column(resource)[: len(times)] += taken
            self._resource(self.claimed, resource)[: len(times)] += taken
        for row in rows.tolist():
            self.counted.touch(row)
        return times

    def _resource(self, columns: dict[str, NDArray[np.int64]], resource: str) -> NDArray[np.int64]:
        column = columns.get(resource)
        if column is None:
            column = columns[resource] = np.zeros(self.capacity, dtype=np.int64)
        return column

    def _write_allocatable(self, row: int, amounts: Mapping[str, int]) -> None:
        for resource, column in self.allocatable.items():
            if resource not in amounts:
                column[row] = 0
        for resource, amount in amounts.items():
            self._resource(self.allocatable, resource)[row] = amount

    def _grow(self, capacity: int) -> None:
        for name in (
            "alive",
            "unschedulable",
            "taint_code",
            "feature_code",
            "pod_count",
            "nonzero_cpu",
            "nonzero_memory",
            "_version",
        ):
            setattr(self, name, _grown(getattr(self, name), capacity))
        for columns in (self.allocatable, self.requested, self.claimed):
            columns.update({resource: _grown(column, capacity) for resource, column in columns.items()})
        self.labels.grow(capacity)
        self.capacity = capacity


def _grown(column: NDArray[AnyNumber], capacity: int) -> NDArray[AnyNumber]:
    wider = np.zeros(capacity, dtype=column.dtype)
    wider[: len(column)] = column
    return wider
