"""Scores of soft spread constraints: the fewer matching pods a domain has, the better.

A domain's count weighs by the logarithm of the number of domains among the feasible nodes. Sums are of floats, in the
order of the constraints and rounded half away from zero, because the result is compared for equality.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.state.columns import ABSENT
from fairlead.kube.scoring import rounded
from fairlead.kube.spread.golog import ln
from fairlead.kube.spread.rows import Effective, counted_rows, tally_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.nodes import Nodes
    from fairlead.kube.affinity.counts import DomainTally
    from fairlead.kube.affinity.index import AffinityIndex

HOSTNAME = "kubernetes.io/hostname"


class Codes:
    """The label codes of the feasible rows, kept because several steps read them."""

    __slots__ = ("_by_key", "_nodes")

    def __init__(self, nodes: Nodes) -> None:
        self._nodes = nodes
        self._by_key: dict[str, NDArray[np.int32]] = {}

    def of(self, key: str, nodes: Nodes) -> NDArray[np.int32]:
        if nodes is not self._nodes:
            return nodes.label(key)
        codes = self._by_key.get(key)
        if codes is None:
            codes = self._by_key[key] = nodes.label(key)
        return codes


class PerNode:
    """A constraint on host names: every node is a domain of its own, policies do not matter."""

    __slots__ = ("_more", "_tally", "_weight", "key")

    def __init__(self, tally: DomainTally | None, weight: float, more: int) -> None:
        self.key = HOSTNAME
        self._tally = tally
        self._weight = weight
        self._more = float(more)

    def points(self, nodes: Nodes, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        counts = 0 if self._tally is None else nodes.take(self._tally.column())
        points = counts * self._weight + self._more
        return np.where(codes == ABSENT, 0.0, points)


class PerDomain:
    """Any other constraint: points by the code of the label, none for nodes without it."""

    __slots__ = ("_by_code", "key")

    def __init__(self, key: str, sums: NDArray[np.int64], weight: float, more: int) -> None:
        self.key = key
        self._by_code: NDArray[np.float64] = sums.astype(np.float64) * weight + float(more)
        self._by_code[-1] = 0.0

    def points(self, nodes: Nodes, codes: NDArray[np.int32]) -> NDArray[np.float64]:
        return self._by_code.take(codes)


class SpreadScores:
    """The note of a pod with soft constraints. With `every_key`, nodes that lack one of the keys are ignored."""

    def __init__(
        self, constraints: Sequence[Effective], pod: Pod, index: AffinityIndex, nodes: Nodes, *, every_key: bool
    ) -> None:
        self._keys = tuple(dict.fromkeys(of.key for of in constraints)) if every_key else ()
        self._pod = pod
        self._index = index
        self._codes = Codes(nodes)
        passed_over = self._passed_over(nodes)
        self._parts = [self._part(of, nodes, passed_over) for of in constraints]

    def _passed_over(self, nodes: Nodes) -> NDArray[np.bool_] | None:
        lacking: NDArray[np.bool_] | None = None
        for key in self._keys:
            absent = self._codes.of(key, nodes) == ABSENT
            lacking = absent if lacking is None else lacking | absent
        return lacking if lacking is not None and lacking.any() else None

    def _part(self, of: Effective, nodes: Nodes, passed_over: NDArray[np.bool_] | None) -> PerNode | PerDomain:
        tally = tally_of(of, self._pod, self._index)
        more = of.constraint.max_skew - 1
        if of.key == HOSTNAME:
            size = len(nodes) if passed_over is None else len(nodes) - int(np.count_nonzero(passed_over))
            return PerNode(tally, ln(float(size + 2)), more)
        counted = counted_rows(of, self._pod, self._index, self._keys)
        sums = counted.sums(tally)
        seen = self._domains_among(nodes, of.key, passed_over)
        unnamed = nodes.table.label(of.key).code("")
        if unnamed >= 0 and not self._keys:
            # An empty value and no label at all are one domain.
            seen[unnamed] |= seen[-1]
            seen[-1] = False
            sums[unnamed] += 0 if tally is None else tally.column()[counted.outside].sum()
        return PerDomain(of.key, sums, ln(float(np.count_nonzero(seen) + 2)), more)

    def _domains_among(self, nodes: Nodes, key: str, passed_over: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
        """Which values of a key the nodes have, by code; the last entry says whether some have none."""
        codes = self._codes.of(key, nodes)
        values = len(nodes.table.label(key).values)
        counts = np.bincount((codes if passed_over is None else codes[~passed_over]) + 1, minlength=values + 1)
        return np.roll(counts > 0, -1)

    def raw(self, nodes: Nodes) -> NDArray[np.int64]:
        points = [part.points(nodes, self._codes.of(part.key, nodes)) for part in self._parts]
        return rounded(sum(points[1:], start=points[0]))

    def normalised(self, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        """Scores of 0..100. Ignored nodes score 0, and their points do not count in the scale."""
        passed_over = self._passed_over(nodes)
        counted = raw if passed_over is None else raw[~passed_over]
        highest = int(counted.max(initial=0))
        if highest == 0:
            scores = np.full(len(raw), 100, dtype=np.int64)
        else:
            scores = 100 * (highest + int(counted.min()) - raw) // highest
        if passed_over is not None:
            scores[passed_over] = 0
        return scores
