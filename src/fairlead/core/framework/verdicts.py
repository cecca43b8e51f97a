"""Verdicts as codes: the refusal of each row as a number, in one int32 column.

A plugin refuses with masks over rows. Kept is the code of the first refusal of each row in filter order, and one
Verdict per code. Distinct refusals are few, so that explaining 5,000 refused nodes is one `bincount`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.reasons import Verdict
from fairlead.core.state.nodes import either
from fairlead.errors import WrongAnswer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.reasons import Reject

FEASIBLE = 0
UNEXPLAINED = -1
"""In a column of cached codes: nobody has requested yet the reason why the row is refused, if it is."""
_FEW_REASONS = 8
"""Combinations of so many reasons are few enough to be counted, each by itself."""


def wrong_length(given: int, nodes: int) -> WrongAnswer:
    """What is wrong with a column that has not one entry for each node."""
    return WrongAnswer(f"it returned a column of {given}, and there are {nodes} nodes to judge")


class VerdictCodes:
    """Codes for verdicts. 0 is "feasible"; `ranks[code]` is the place of the refusing plugin in filter order."""

    def __init__(self, order: Iterable[str]) -> None:
        self._rank_of = {name: rank for rank, name in enumerate(order)}
        self._last = len(self._rank_of)
        self.verdicts: list[Verdict | None] = [None]
        self._ranks: list[int] = [self._last + 1]
        self._codes: dict[Verdict, int] = {}
        self._rank_column: NDArray[np.int32] | None = None
        self._hopeful: NDArray[np.bool_] | None = None
        self.errors: set[int] = set()
        """Codes that are no refusals but failures to judge a row; empty in most clusters."""

    def code(self, verdict: Verdict) -> int:
        code = self._codes.get(verdict)
        if code is None:
            code = self._codes[verdict] = len(self.verdicts)
            self.verdicts.append(verdict)
            self._ranks.append(self._rank_of.get(verdict.plugin, self._last))
            self._rank_column = self._hopeful = None
            if verdict.error:
                self.errors.add(code)
        return code

    def first_error(self, column: NDArray[np.int32]) -> Verdict | None:
        """The first failure in a column of codes; None if there is none."""
        if not self.errors:
            return None
        failed = np.flatnonzero(np.isin(column, list(self.errors)))
        return self.verdict(int(column[failed[0]])) if len(failed) else None

    @property
    def ranks(self) -> NDArray[np.int32]:
        if self._rank_column is None:
            self._rank_column = np.array(self._ranks, dtype=np.int32)
        return self._rank_column

    @property
    def hopeful(self) -> NDArray[np.bool_]:
        """By code, whether the refusal is not final: an eviction could make the row feasible."""
        if self._hopeful is None:
            self._hopeful = np.array([verdict is not None and not verdict.final for verdict in self.verdicts])
        return self._hopeful

    def verdict(self, code: int) -> Verdict:
        verdict = self.verdicts[code]
        assert verdict is not None
        return verdict

    def first_of(self, *columns: NDArray[np.int32]) -> NDArray[np.int32]:
        """Of each row, the code whose plugin comes first in filter order."""
        best = columns[0]
        for column in columns[1:]:
            best = np.where(self.ranks[column] < self.ranks[best], column, best)
        return best

    def refusals(self, plugin: str, rejects: Iterable[Reject], size: int) -> NDArray[np.int32] | None:
        """One plugin's rejects as a column of codes; None if it refused nothing."""
        listed = [reject for reject in rejects if np.count_nonzero(reject.rows)]
        if not listed:
            return None
        for reject in listed:
            if len(reject.rows) != size:
                raise wrong_length(len(reject.rows), size)
        errors = [reject for reject in listed if reject.reason.error]
        if errors:
            return self._with_errors(plugin, [reject for reject in listed if not reject.reason.error], errors, size)
        if len(listed) == 1 and listed[0].final is None:
            reason = listed[0].reason
            code = self.code(Verdict(plugin, (reason.text,), reason.final))
            return np.where(listed[0].rows, np.int32(code), np.int32(FEASIBLE))
        return self._combined(plugin, listed, size)

    def _with_errors(self, plugin: str, rejects: list[Reject], errors: list[Reject], size: int) -> NDArray[np.int32]:
        """A failure to judge a row counts before all reasons to refuse it, and the first failure before the others."""
        column = self.refusals(plugin, rejects, size)
        column = np.zeros(size, dtype=np.int32) if column is None else column
        for reject in reversed(errors):
            text = f'running "{plugin}" filter plugin: {reject.reason.text}'
            column[reject.rows] = self.code(Verdict(plugin, (text,), final=True, error=True))
        return column

    def _combined(self, plugin: str, rejects: list[Reject], size: int) -> NDArray[np.int32]:
        """Several reasons may hold for one row: each distinct combination is a verdict of its own."""
        keys: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        final: NDArray[np.bool_] | None = None
        for place, reject in enumerate(rejects):
            keys += reject.rows * (2 << place)
            if reject.final is not None:
                final = either(final, reject.rows & reject.is_final())
            elif reject.reason.final:
                final = either(final, reject.rows)
        if final is not None:
            keys += final
        if len(rejects) > _FEW_REASONS:
            distinct, inverse = np.unique(keys, return_inverse=True)
            codes = [self._code_of_bits(plugin, rejects, int(key)) for key in distinct]
            return np.array(codes, dtype=np.int32)[inverse]
        counts = np.bincount(keys)  # of small numbers, this is much less work than sorting them
        by_key = np.zeros(len(counts), dtype=np.int32)
        for key in counts.nonzero()[0].tolist():
            by_key[key] = self._code_of_bits(plugin, rejects, key)
        return by_key.take(keys)

    def _code_of_bits(self, plugin: str, rejects: list[Reject], key: int) -> int:
        if key < 2:
            return FEASIBLE
        texts = tuple(reject.reason.text for place, reject in enumerate(rejects) if key >> (place + 1) & 1)
        return self.code(Verdict(plugin, texts, bool(key & 1)))
