"""ImageLocality: prefers nodes that have the pod's images, by the size of the images and the share of nodes with
them."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.images import Image
    from fairlead.core.state.nodes import Nodes

_SMALLEST = 23 << 20
_LARGEST_PER_CONTAINER = 1000 << 20


class ImageLocality(CachedPlugin):
    name = "ImageLocality"
    scope = Scope.STATIC
    reads = frozenset({"spec"})

    def cache_key(self, pod: Pod) -> Hashable:
        shape = pod.shape
        return shape.images, shape.image_volumes, shape.container_count

    def epoch(self, cycle: Cycle) -> int:
        """The score of an image depends on the share of nodes that have it, so a new or lost node voids every score."""
        return len(cycle.cluster.table)

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        shape, table = cycle.pod.shape, nodes.table
        total = np.zeros(len(nodes), dtype=np.int64)
        for name in (*shape.images, *shape.image_volumes):
            image = table.images.by_name.get(name)
            if image is not None:
                total += _spread(image, nodes, len(table))
        largest = _LARGEST_PER_CONTAINER * shape.container_count
        return 100 * (np.clip(total, _SMALLEST, largest) - _SMALLEST) // (largest - _SMALLEST)

    def score_row(self, cycle: Cycle, row: int) -> int:
        shape, table = cycle.pod.shape, cycle.cluster.table
        total = 0
        for name in (*shape.images, *shape.image_volumes):
            image = table.images.by_name.get(name)
            if image is not None:
                total += int(float(image.size) * (float(image.nodes_seen.get(row, 0)) / float(len(table))))
        largest = _LARGEST_PER_CONTAINER * shape.container_count
        return 100 * (min(max(total, _SMALLEST), largest) - _SMALLEST) // (largest - _SMALLEST)


def _spread(image: Image, nodes: Nodes, total_nodes: int) -> NDArray[np.int64]:
    """The image's size on the rows that have it, scaled down by how few nodes do."""
    seen = image.nodes_seen
    if nodes.rows is not None and len(nodes.rows) < len(seen):
        counts = np.array([seen.get(int(row), 0) for row in nodes.rows], dtype=np.float64)
    else:
        wide = np.zeros(nodes.table.high, dtype=np.float64)
        wide[list(seen)] = list(seen.values())
        counts = nodes.take(wide) if nodes.rows is not None else wide
    return (float(image.size) * (counts / float(total_nodes))).astype(np.int64)
