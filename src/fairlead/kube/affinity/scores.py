"""Scores of inter-pod affinity: preferences of the pod, and preferences of pods on nodes about it.

Every preferred term adds its weight to the domains where it matches. A required affinity term of a pod on a node counts
as a preferred one, with a weight from the configuration (hardPodAffinityWeight).
"""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.nodes import Nodes
    from fairlead.core.state.table import NodeTable
    from fairlead.kube.affinity.index import AffinityIndex


def _all_alike(values: NDArray[np.int64]) -> bool:
    return not np.count_nonzero(values != values[:1])


class AffinityScores:
    """Points by topology key and code of its value. A key is there only if something was counted in some domain of it,
    even if that came to zero; the last entry, for nodes without the label, stays zero."""

    def __init__(
        self,
        pod: Pod,
        index: AffinityIndex,
        table: NodeTable,
        hard_weight: int,
        *,
        among: Container[int] | None = None,
    ) -> None:
        self._index = index
        self._table = table
        self._among = among
        """The rows whose pods' preferences count; None for all."""
        self.by_key: dict[str, NDArray[np.int64]] = {}
        self._add_own(pod)
        self._add_existing(pod, hard_weight)
        self._confined = {term.topology_key for term in pod.shape.pod_affinity}
        """Topology keys of the pod's required affinity, which often confines it to a single domain of each."""

    def level(self, nodes: Nodes) -> bool:
        """Whether all of these nodes have the same points, where that is known without computing them."""
        return all(self._is_level(key, points, nodes) for key, points in self.by_key.items())

    def _is_level(self, key: str, points: NDArray[np.int64], nodes: Nodes) -> bool:
        if _all_alike(points[:-1]) and (points[0] == 0 or self._table.everywhere(key)):
            return True
        if key not in self._confined:
            return False
        seen = np.bincount(nodes.label(key) + 1, minlength=len(points)).nonzero()[0]
        return _all_alike(points.take(seen - 1))

    def _add_own(self, pod: Pod) -> None:
        shape = pod.shape
        preferences = [(weight, term) for weight, term in shape.preferred_pod_affinity]
        preferences += [(-weight, term) for weight, term in shape.preferred_pod_anti_affinity]
        for weight, term in preferences:
            key = term.topology_key
            sums = self._index.selected.count(self._index.reach(term), live=False).domains(key)
            if sums.any():
                points = self._points(key)
                points += weight * sums[: len(points)].astype(np.int64)
                self.by_key[key] = points

    def _add_existing(self, pod: Pod, hard_weight: int) -> None:
        pulls = self._index.terms.pulls
        if not pulls:
            return
        namespace_labels = self._index.namespace_labels(pod.namespace)
        for term in pulls.matching(pod.namespace, pod.labels, namespace_labels):
            if term.weight is None and hard_weight <= 0:
                continue
            points = self._points(term.key)
            if term.add_to(points, hard_weight if term.weight is None else term.weight, self._among):
                self.by_key[term.key] = points

    def _points(self, key: str) -> NDArray[np.int64]:
        points = self.by_key.get(key)
        return np.zeros(len(self._table.label(key).values) + 1, dtype=np.int64) if points is None else points

    def raw(self, nodes: Nodes) -> NDArray[np.int64]:
        total: NDArray[np.int64] | None = None
        for key, points in self.by_key.items():
            here = points.take(nodes.label(key))
            total = here if total is None else total + here
        return np.zeros(len(nodes), dtype=np.int64) if total is None else total
