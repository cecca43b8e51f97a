"""Answers of plugins as columns over the rows of the table, brought up to date by the table's log of touched rows.

`ResultColumns` keeps what some plugins of one scope said of every row, and how far the log was read. When it is looked
at again, only the rows that were touched since are judged again: a few of them one by one, many of them in arrays.

Invariant: once caught up, a column holds for every row what the plugin would say now.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.core.framework.calls import (
    HIGHEST,
    call_plugin,
    check_range,
    passing,
    refusals_by,
    score_of_row,
    scores_by,
)
from fairlead.core.framework.plugin import takes_part
from fairlead.core.framework.results.constant import Contribution
from fairlead.core.framework.results.plan import answer_by_row, with_epochs
from fairlead.core.framework.verdicts import FEASIBLE, UNEXPLAINED
from fairlead.core.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.state.touchlog import TouchLog

FEW = 3
"""Up to so many touched rows are judged one by one: for those the overhead of array operations is all the cost."""


class ScoreColumn:
    """A plugin's scores of all rows: raw values that are normalised over the feasible rows, or final ones."""

    __slots__ = ("beyond_ranking", "column", "contribution", "needs_normalising", "plugin", "weight")

    def __init__(self, plugin: Plugin, weight: int, capacity: int) -> None:
        self.plugin = plugin
        self.weight = weight
        self.needs_normalising = takes_part(plugin, "normalize_score")
        self.beyond_ranking: int | None = 0
        """What every row gets from this plugin on top of the ranking; None if that is not the same for all rows. A
        score that needs no normalising is part of the ranking, so there it is 0. It is read for every attempt."""
        self.widen(capacity)

    def checked(self, values: Any, ok: NDArray[np.bool_]) -> Any:
        """A plugin's scores of some rows; raises if a feasible one is out of range. Nobody sees a refused row's."""
        if self.needs_normalising or not len(ok) or _in_range(values):
            return values
        seen = np.where(ok, values, 0)
        check_range(self.plugin.name, int(seen.min()), int(seen.max()))
        return seen

    def checked_value(self, value: int, ok: bool) -> int:
        """The same for one row."""
        if 0 <= value <= HIGHEST or self.needs_normalising:
            return value
        if ok:
            check_range(self.plugin.name, value, value)
        return 0

    def widen(self, capacity: int) -> None:
        """Replace the column by an empty one for a larger table. Final scores are within 0..100, so bytes hold them."""
        width = np.int64 if self.needs_normalising else np.int8
        self.column: NDArray[np.signedinteger[Any]] = np.zeros(capacity, dtype=width)
        self.contribution = Contribution(
            self.plugin.name, self.weight, column=None if self.needs_normalising else self.column
        )


class UniformScoreColumn(ScoreColumn):
    """A score column that tracks whether all values are equal. `uniform` is then the weighted score that every row gets
    (most often 0), so that normalising and even adding can be left out; it is None while values differ."""

    __slots__ = ("_value", "uniform")

    def __init__(self, plugin: Plugin, weight: int, capacity: int) -> None:
        super().__init__(plugin, weight, capacity)
        self._set_uniform(None, None)

    def _set_uniform(self, value: int | None, uniform: int | None) -> None:
        """`value` is the raw value of all rows, and `uniform` what it comes to; both None if values differ."""
        self._value, self.uniform = value, uniform
        if self.needs_normalising:
            self.beyond_ranking = uniform

    def written(self, cycle: Cycle, rows: NDArray[np.intp] | None) -> None:
        """Look whether values are equal, after some rows were written, or all (None)."""
        if rows is None:
            self._compare_all(cycle)
        elif self._value is not None and bool((self.column[rows] != self._value).any()):
            self._set_uniform(None, None)

    def written_value(self, value: int) -> None:
        """The same, after one row was written."""
        if value != self._value:
            self._set_uniform(None, None)

    def _compare_all(self, cycle: Cycle) -> None:
        table = cycle.cluster.table
        values = self.column[: table.high][table.alive[: table.high]]
        value = int(values[0]) if len(values) else 0
        if bool((values == value).all()):
            self._set_uniform(value, self._normalised(cycle, value) * self.weight)
        else:
            self._set_uniform(None, None)
        self.contribution.level(self.uniform or 0)

    def _normalised(self, cycle: Cycle, value: int) -> int:
        if not self.needs_normalising:
            return value
        first = Nodes(cycle.cluster.table, np.zeros(1, dtype=np.int32))
        return int(call_plugin(self.plugin, "normalize_score", cycle, first, np.array([value], dtype=np.int64))[0])


class ResultColumns:
    """The filters and scores of some plugins of one scope, as columns, and how far the log was read."""

    __slots__ = (
        "_by_row", "_reasons_wanted", "_verdicts", "_with_epochs", "codes", "epochs", "filters", "mark", "ok",
        "renewed", "scores",
    )  # fmt: skip

    def __init__(
        self, filters: Sequence[Plugin], scores: Sequence[UniformScoreColumn], capacity: int, verdicts: VerdictCodes
    ) -> None:
        self.filters = filters
        self.scores = scores
        self._verdicts = verdicts
        self.codes: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        """Of each row, the code of the first of these plugins that refuses it, or UNEXPLAINED."""
        self.ok: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        """Rows that have a node and that none of these plugins refuses."""
        self._reasons_wanted = False
        """Whether reasons were requested since rows were judged: then those of the next rows are computed at once."""
        self.mark = -1
        self.epochs: tuple[int | None, ...] = ()
        self.renewed = 0
        """How often all rows were judged at once."""
        plugins = [scored.plugin for scored in scores]
        self._with_epochs = with_epochs((*filters, *plugins))
        self._by_row = answer_by_row(filters, plugins)

    def pass_over(self, mark: int) -> None:
        """The touches up to this mark change nothing."""
        if self.mark >= 0:
            self.mark = mark

    def catch_up(self, cycle: Cycle, log: TouchLog) -> int:
        """Judge again the rows that changed since the last time; returns how many."""
        epochs = tuple([plugin.epoch(cycle) for plugin in self._with_epochs]) if self._with_epochs else ()
        mark, table = self.mark, cycle.cluster.table
        if mark == log.mark and epochs == self.epochs:
            return 0
        widened = len(self.codes) != table.capacity
        if mark < 0 or widened or epochs != self.epochs:
            if widened:
                self._widen(table.capacity)
            judged = self._judge(cycle, None)
            self.renewed += 1
        elif self._by_row and (few := log.few_since(mark, FEW)) is not None:
            judged = len(few)
            for row in few:
                self._judge_row(cycle, row)
        else:
            judged = self._judge(cycle, log.rows_since(mark))
        # Marks move last: if a plugin raised, the rows are judged again next time.
        self.mark, self.epochs = log.mark, epochs
        return judged

    def _judge(self, cycle: Cycle, rows: NDArray[np.intp] | None) -> int:
        nodes = Nodes(cycle.cluster.table, rows)
        where: Any = slice(0, len(nodes)) if rows is None else rows
        alive = nodes.take(nodes.table.alive)
        ok = None if self._reasons_wanted else passing_all(cycle, self.filters, nodes, alive)
        self._reasons_wanted = False
        if ok is not None:
            self.codes[where] = unexplained(ok)
            self.ok[where] = ok
        else:
            refused = first_refusals(cycle, self.filters, nodes, self._verdicts)
            self.codes[where] = FEASIBLE if refused is None else refused
            self.ok[where] = alive if refused is None else (refused == FEASIBLE) & alive
        for scored in self.scores:
            values = scored.checked(scores_by(scored.plugin, cycle, nodes), self.ok[where])
            scored.column[where] = narrowed(values, scored.column.dtype)
            scored.written(cycle, rows)
        return len(nodes)

    def explained(self, cycle: Cycle) -> NDArray[np.int32]:
        """The codes, after asking why rows are refused of which that is not known."""
        self._reasons_wanted = True
        explain(cycle, self.filters, self.codes, self._verdicts)
        return self.codes

    def _judge_row(self, cycle: Cycle, row: int) -> None:
        self.codes[row] = code = first_refusal(cycle, self.filters, row, self._verdicts)
        self.ok[row] = ok = code == FEASIBLE and cycle.cluster.table.alive.item(row)
        for scored in self.scores:
            scored.column[row] = value = scored.checked_value(score_of_row(scored.plugin, cycle, row), ok)
            scored.written_value(value)

    def _widen(self, capacity: int) -> None:
        self.codes = np.zeros(capacity, dtype=np.int32)
        self.ok = np.zeros(capacity, dtype=np.bool_)
        for scored in self.scores:
            scored.widen(capacity)


def narrowed(values: Any, width: np.dtype[Any]) -> Any:
    """Scores in the width of their column. (Rows are written several times sooner if they need no conversion.)"""
    return values.astype(width) if isinstance(values, np.ndarray) and values.dtype != width else values


def _in_range(values: Any) -> bool:
    """Whether all values are within 0..100. (`np.min` and `np.max` do the same with more overhead, which is most of the
    cost where values are few.) Read without their signs, negative values are large ones."""
    if isinstance(values, np.ndarray) and values.dtype == np.int64:
        return bool(np.maximum.reduce(values.view(np.uint64), axis=None) <= HIGHEST)
    return bool(np.minimum.reduce(values, axis=None) >= 0 and np.maximum.reduce(values, axis=None) <= HIGHEST)


def passing_all(
    cycle: Cycle, filters: Sequence[Plugin], nodes: Nodes, ok: NDArray[np.bool_]
) -> NDArray[np.bool_] | None:
    """Of the rows of a mask, those that no filter refuses. Why the others are refused is left for those who ask, which
    `explain` answers: pods that find a node do not. None if the reasons have to be known at once: the whole table is
    judged, calls are measured, rows are shown as the pod alone sees them, or a filter failed to judge a row."""
    if nodes.rows is None or cycle.meter is not None or cycle.view is not None:
        return None
    for plugin in filters:
        left = passing(plugin, cycle, nodes, ok)
        if left is None:
            return None
        ok = left
    return ok


def unexplained(ok: NDArray[np.bool_]) -> NDArray[np.int8]:
    """The codes of rows that pass, or are refused for reasons that nobody requested."""
    codes: NDArray[np.int8] = ok.view(np.int8) + np.int8(UNEXPLAINED)
    return codes


def explain(cycle: Cycle, filters: Sequence[Plugin], codes: NDArray[np.int32], verdicts: VerdictCodes) -> None:
    """Ask the filters why rows are refused of which that is not known, and write their codes. Each of these rows is as
    it was when it was judged, or it would have been judged again."""
    rows = (codes == UNEXPLAINED).nonzero()[0]
    if len(rows):
        refused = first_refusals(cycle, filters, Nodes(cycle.cluster.table, rows), verdicts)
        codes[rows] = FEASIBLE if refused is None else refused


def first_refusals(
    cycle: Cycle, filters: Sequence[Plugin], nodes: Nodes, verdicts: VerdictCodes
) -> NDArray[np.int32] | None:
    """Of each row, the code of the first plugin that refuses it; None if no row is refused."""
    codes: NDArray[np.int32] | None = None
    for plugin in filters:
        refused = refusals_by(plugin, cycle, nodes, verdicts)
        if refused is not None:
            codes = refused if codes is None else np.where(codes == FEASIBLE, refused, codes)
    return codes


def first_refusal(cycle: Cycle, filters: Sequence[Plugin], row: int, verdicts: VerdictCodes) -> int:
    """The same for one row."""
    for plugin in filters:
        verdict = call_plugin(plugin, "filter_row", cycle, row)
        if verdict is not None:
            return verdicts.code(verdict)
    return FEASIBLE
