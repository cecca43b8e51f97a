"""Network: the tree of HyperNodes over the nodes that there are, made anew only when one of the two changed.

Nodes report themselves every few seconds; only a node that comes, goes or changes its labels can change the tree.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.kinds import VC_HYPER_NODE
from fairlead.volcano.records.topology import HyperNodeTree

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


class Network:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._labels: dict[int, tuple[str, Mapping[str, str]]] = {}
        for row, node in cluster.table.alive_rows():
            self._labels[row] = node.name, node.labels
        self._version = -1
        self._tree: HyperNodeTree | None = None
        self._rows: dict[str, NDArray[np.int32]] = {}

    def tree(self) -> HyperNodeTree:
        kind_index = self._cluster.object_index.of(VC_HYPER_NODE)
        if self._tree is None or self._version != kind_index.version:
            self._tree = HyperNodeTree(kind_index.values(), dict(self._labels.values()))
            self._version = kind_index.version
            self._rows.clear()
        return self._tree

    def rows_of(self, name: str) -> NDArray[np.int32]:
        """The rows of a HyperNode's nodes, in order."""
        tree = self.tree()
        found = self._rows.get(name)
        if found is None:
            row_of = self._cluster.table.row_of
            rows = sorted(row_of[node] for node in tree.nodes_of(name) if node in row_of)
            found = self._rows[name] = np.array(rows, dtype=np.int32)
        return found

    # ---- what changes ----

    def occupied(self, pod: Pod, row: int) -> None:
        """Pods do not change the network."""

    def vacated(self, pod: Pod, row: int) -> None:
        """Nor do they when they leave."""

    def node_changed(self, row: int) -> None:
        node = self._cluster.table.nodes[row]
        seen = (node.name, node.labels) if node is not None else None
        if seen != self._labels.get(row):
            self._tree = None
        if seen is None:
            self._labels.pop(row, None)
        else:
            self._labels[row] = seen


def network_index(cluster: Cluster) -> Network:
    return cluster.index(Network, Network)


def network_of(cluster: Cluster) -> HyperNodeTree:
    return network_index(cluster).tree()
