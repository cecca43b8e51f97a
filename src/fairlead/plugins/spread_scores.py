"""Scores of soft spread constraints: the fewer of its like a domain has, the better.

A domain's count weighs by the logarithm of the number of domains among the feasible nodes. Sums are of floats, in the
order of the constraints and rounded half away from zero, because the result is compared for equality.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.plugins.golog import ln
from fairlead.plugins.normalise import rounded
from fairlead.plugins.spread_rows import Effective, counted_rows, tally_of
from fairlead.state.columns import ABSENT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.model.pod import Pod
    from fairlead.state.affinity import AffinityIndex
    from fairlead.state.counts import Tally
    from fairlead.state.nodes import Nodes

HOSTNAME = "kubernetes.io/hostname"


class PerNode:
    """A constraint on host names: every node is a domain of its own, policies do not matter."""

    __slots__ = ("_more", "_tally", "_weight")

    def __init__(self, tally: Tally | None, weight: float, more: int) -> None:
        self._tally = tally
        self._weight = weight
        self._more = float(more)

    def points(self, nodes: Nodes) -> NDArray[np.float64]:
        if self._tally is None:
            counts = np.zeros(len(nodes))
        else:
            counts = nodes.take(self._tally.column()).astype(np.float64)
        return np.where(nodes.label(HOSTNAME) == ABSENT, 0.0, counts * self._weight + self._more)


class PerDomain:
    """Any other constraint: points by the code of the label, none for nodes without it."""

    __slots__ = ("_by_code", "_key")

    def __init__(self, key: str, sums: NDArray[np.int64], weight: float, more: int) -> None:
        self._key = key
        self._by_code: NDArray[np.float64] = sums.astype(np.float64) * weight + float(more)
        self._by_code[-1] = 0.0

    def points(self, nodes: Nodes) -> NDArray[np.float64]:
        return self._by_code[nodes.label(self._key)]


class SpreadScores:
    """The note of a pod with soft constraints. With `every_key`, nodes that lack one of the keys are passed over."""

    def __init__(
        self, constraints: Sequence[Effective], pod: Pod, index: AffinityIndex, nodes: Nodes, *, every_key: bool
    ) -> None:
        self._keys = tuple(dict.fromkeys(of.key for of in constraints)) if every_key else ()
        self._pod = pod
        self._index = index
        passed_over = self._passed_over(nodes)
        self._parts = [self._part(of, nodes, passed_over) for of in constraints]

    def _passed_over(self, nodes: Nodes) -> NDArray[np.bool_] | None:
        lacking: NDArray[np.bool_] | None = None
        for key in self._keys:
            absent = nodes.label(key) == ABSENT
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
        seen = _domains_among(nodes, of.key, passed_over)
        unnamed = nodes.table.label(of.key).code("")
        if unnamed >= 0 and not self._keys:
            # An empty value and no label at all are one domain.
            seen[unnamed] |= seen[-1]
            seen[-1] = False
            sums[unnamed] += 0 if tally is None else tally.column()[counted.outside].sum()
        return PerDomain(of.key, sums, ln(float(np.count_nonzero(seen) + 2)), more)

    def raw(self, nodes: Nodes) -> NDArray[np.int64]:
        total = self._parts[0].points(nodes)
        for part in self._parts[1:]:
            total = total + part.points(nodes)
        raw = rounded(total)
        passed_over = self._passed_over(nodes)
        if passed_over is not None:
            raw[passed_over] = 0
        return raw

    def normalised(self, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
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


def _domains_among(nodes: Nodes, key: str, passed_over: NDArray[np.bool_] | None) -> NDArray[np.bool_]:
    """Which values of a key the nodes have, by code; the last entry says whether some have none."""
    codes = nodes.label(key)
    seen = np.zeros(len(nodes.table.label(key).values) + 1, dtype=np.bool_)
    seen[codes if passed_over is None else codes[~passed_over]] = True
    return seen
