"""The constant part of a score: what every feasible row gets alike, and the share of each plugin in a total.

Totals are a cached ranking (scores that need no normalising) plus a part that is normalised or not cached. If each of
the latter gives every row the same, that part is constant: it cannot change which row is best, so no array is added up.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ROW_SCORES_KEPT = 1024
"""Distinct lists of scores that a ConstantPart keeps; beyond that all are dropped, so that they cannot pile up."""


class Contribution:
    """One plugin's share in the totals: weighted scores of the feasible rows in their order, a cached column over the
    whole table (not weighted yet), or one number for all rows."""

    __slots__ = ("column", "plugin", "uniform", "weight", "weighted")

    def __init__(
        self,
        plugin: str,
        weight: int,
        *,
        weighted: NDArray[np.int64] | None = None,
        column: NDArray[np.signedinteger[Any]] | None = None,
        uniform: int = 0,
    ) -> None:
        self.plugin = plugin
        self.weight = weight
        self.weighted = weighted
        self.column = column
        self.uniform = uniform

    def level(self, uniform: int) -> None:
        """One number for all rows from now on, or 0 if they differ."""
        self.uniform = uniform

    def at(self, row: int, position: int) -> int:
        """The weighted score of a row, which is the feasible row number `position`."""
        if self.column is not None:
            return int(self.column[row]) * self.weight
        return int(self.weighted[position]) if self.weighted is not None else self.uniform


class ConstantPart:
    """What is added to every row of a ranking alike (`offset`), and who contributed it. While it stays the same, rows
    with the same cached scores have the same list of scores; thousands of pods share a few hundred such lists."""

    __slots__ = ("_columns", "_scores", "contributions", "offset")

    def __init__(self, offset: int, contributions: Sequence[Contribution]) -> None:
        self.offset = offset
        self.contributions = contributions
        self._columns = [c.column for c in contributions if c.column is not None]
        self._scores: dict[tuple[int, ...], tuple[tuple[str, int], ...]] = {}

    def scores_of(self, row: int) -> tuple[tuple[str, int], ...]:
        """Each plugin's weighted score of a row."""
        cached = tuple([column.item(row) for column in self._columns])
        found = self._scores.get(cached)
        if found is None:
            if len(self._scores) >= _ROW_SCORES_KEPT:
                self._scores.clear()
            found = self._scores[cached] = tuple([plugin_score(c.plugin, c.at(row, 0)) for c in self.contributions])
        return found


@lru_cache(maxsize=1 << 16)
def plugin_score(plugin: str, score: int) -> tuple[str, int]:
    """A plugin's name and the score it gives, as one shared pair: a dozen of them are kept for every placed pod, and
    only a few hundred differ."""
    return plugin, score
