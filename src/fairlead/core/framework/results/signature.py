"""SignatureResults: the cached answers of plugins about pods of one signature, and the ranking they add up to.

When the next pod of the same signature comes, only the rows that changed since are judged again: after placing one of a
thousand equal pods that is a single row. Results that other signatures share too are in results/shared.py; here are the
plugins that must be called for each signature.

Invariant: a cached answer equals a recomputed one, because a plugin's scope is a promise about what its answer depends
on. A property test compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairlead.core.framework.calls import score_of_row, scores_by
from fairlead.core.framework.plugin import takes_part
from fairlead.core.framework.results.cached_plugin import CachedPlugin, overrides
from fairlead.core.framework.results.columns import (
    FEW,
    ScoreColumn,
    UniformScoreColumn,
    explain,
    first_refusal,
    first_refusals,
    narrowed,
    passing_all,
)
from fairlead.core.framework.results.plan import answer_by_row
from fairlead.core.framework.results.shared import Preparations
from fairlead.core.framework.verdicts import FEASIBLE, UNEXPLAINED
from fairlead.core.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.results.constant import ConstantPart
    from fairlead.core.framework.results.plan import PluginPlan
    from fairlead.core.framework.results.shared import SharedResults
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.state.table import NodeTable
    from fairlead.core.state.touchlog import TouchLog


Answer = TypeVar("Answer")
_REFUSED = -1
"""The value of a refused row in a ranking: below every sum of scores."""
_NEVER = (-1, -1)


class NominatedRefusals:
    """Rows that are refused because of the pods nominated to them, by code, and how far the logs were read then."""

    __slots__ = ("codes", "marks")

    def __init__(self) -> None:
        self.codes: dict[int, int] = {}
        self.marks: tuple[int, ...] = ()

    def stale(self, logs: Sequence[TouchLog], promised: Iterable[int]) -> Iterable[int]:
        """Rows to judge again: those touched in any of the logs since the last time, or all that have nominated pods
        (`promised`) if that is too long ago."""
        marks, self.marks = self.marks, tuple([log.mark for log in logs])
        touched = [log.since(mark) for log, mark in zip(logs, marks, strict=True)] if marks else [None]
        if None in touched:
            self.codes.clear()
            return promised
        return set().union(*[rows for rows in touched if rows])


class WhileAside:
    """What a search finds at PreFilter, PreScore and Score while all plugins that are not cached stand aside."""

    __slots__ = ("no_filter", "no_score", "plugins", "scores")

    def __init__(self, results: SignatureResults, plan: PluginPlan) -> None:
        uncached = [plugin for plugin in plan.uncached.at_all if plugin.name not in results.prepared]
        able = all(overrides(plugin, "stands_aside") for plugin in uncached) and all(
            plugin in uncached for plugin in results.to_pre_filter
        )
        self.plugins = [plugin for plugin in uncached if isinstance(plugin, CachedPlugin)] if able else None
        """Those whose `stands_aside` is called; None if a plugin has none, or if a cached answer counts."""
        profile = plan.profile
        self.no_filter = results.no_filter | {one.name for one in uncached if one in profile.at("pre_filter")}
        self.no_score = results.no_score | {one.name for one in uncached if one in profile.at("pre_score")}
        self.scores = {plugin.name: 0 for plugin in plan.uncached.scorers if plugin.name not in self.no_score}


class SignatureResults:
    """Everything kept for one signature."""

    def __init__(self, cycle: Cycle, plan: PluginPlan, shared: SharedResults, codes: VerdictCodes) -> None:
        table = cycle.cluster.table
        self.capacity = table.capacity
        self.codes = codes
        self.plan = plan
        self._of_view = cycle.view is not None
        """Whether the answers are about rows as pods of one kind see them (core/framework/row_view.py)."""
        self.pod = cycle.pod
        self.shared = shared
        self.static, self.row = shared.static, shared.row
        self._pod_log = plan.pod_log(table)
        """The table's log of the rows whose pods have changed."""
        self._prepare(cycle, plan)
        self._filters = [p for p in plan.own.filters if p.name not in self.no_filter]
        self._scores = [
            (UniformScoreColumn if takes_part(plugin, "normalize_score") else ScoreColumn)(
                plugin, weight, self.capacity
            )
            for plugin, weight in plan.own.scores
            if plugin.name not in self.no_score
        ]
        self._with_epochs = [plugin for plugin in plan.own.with_epochs if plugin.epoch(cycle) is not None]
        self._by_row = plan.own.answer_by_row or answer_by_row(self._filters, [one.plugin for one in self._scores])
        self.scored: dict[str, ScoreColumn] = {
            **shared.scored,
            **{scored.plugin.name: scored for scored in self._scores},
        }
        self._normalised = [scored for scored in self.scored.values() if scored.needs_normalising]
        self.constants: dict[Hashable, ConstantPart] = {}
        """What all rows get on top of the ranking, by the scores of the plugins that it consists of."""
        self.ok: NDArray[np.bool_] = np.zeros(table.capacity, dtype=np.bool_)
        self._width = _narrowest((*self._scores, *shared.in_ranking))
        self.ranked: NDArray[np.signedinteger[Any]] = np.full(table.capacity, _REFUSED, dtype=self._width)
        """The ranking: of feasible rows the weighted sum of the scores that need no normalising, -1 elsewhere. While
        the rest of the score is constant, choosing a node is an argmax."""
        self.called_in_runs: list[CachedPlugin] | None = None
        """The plugins that are called for each of several identical pods while the answers of others stay valid; None
        if that cannot be said of the others."""
        self.row_codes: NDArray[np.int32] | None = None
        """Refusals of the plugins that are called for each signature, or UNEXPLAINED; None while there are none."""
        self._reasons_wanted = False
        """Whether reasons were requested since rows were judged: then those of the next rows are computed at once."""
        self._feasible: int | None = None
        self.nominated = NominatedRefusals()
        self._what_ifs: dict[tuple[str, int], tuple[Hashable, Any]] = {}
        """By question and row: the premises of a what-if, and its answer."""
        self._marks = _NEVER
        self._renewed: tuple[int | None, ...] = ()

    def _prepare(self, cycle: Cycle, plan: PluginPlan) -> None:
        """PreFilter and PreScore of the cached plugins: called once, because they depend on nothing but the pod."""
        shared = self.shared.preparations
        cycle.notes.update(shared.notes)
        own = Preparations(shared)
        own.leave_out(plan.own.asked.selective, cycle, plan)
        own.ask(cycle, plan.own.asked.pre_filter, plan.own.asked.pre_score)
        self.prepared, self.no_filter, self.no_score, self.notes = own.answers, own.no_filter, own.no_score, own.notes
        self.score_error = own.score_error
        self.to_pre_filter = [
            plugin for plugin in plan.profile.at("pre_filter") if own.answers.get(plugin.name, plugin) is not None
        ]
        """Plugins whose `pre_filter` is not cached, or has a cached answer; the others have stepped aside."""
        self.aside = WhileAside(self, plan)

    def call_in_runs(self, plugins: list[CachedPlugin] | None) -> None:
        """Keep which plugins are called for each of several identical pods."""
        self.called_in_runs = plugins

    def what_if(self, question: str, row: int, premises: Hashable, answer: Callable[[], Answer]) -> Answer:
        """The answer to a what-if about a row, from the cache while its premises are the same. The premises must name
        all that it depends on besides the pod, the row's own version among them."""
        kept = self._what_ifs.get((question, row))
        if kept is not None and kept[0] == premises:
            found: Answer = kept[1]
            return found
        found = answer()
        self._what_ifs[question, row] = (premises, found)
        return found

    # ---- reading ----

    @property
    def feasible(self) -> int:
        """How many rows the cached plugins find feasible."""
        if self._feasible is None:
            self._feasible = int(np.count_nonzero(self.ok))
        return self._feasible

    def uniform_scores(self) -> tuple[int | None, ...]:
        """Of each score that is normalised, what it gives to every row; None if it does not give all the same."""
        return tuple([scored.beyond_ranking for scored in self._normalised])

    def refusals(self, cycle: Cycle, high: int) -> list[NDArray[np.int32]]:
        """Columns of refusal codes. A row is refused by the plugin that comes first in filter order in any of them."""
        self._reasons_wanted = True
        columns = [self.static.explained(cycle)[:high]]
        if self.row.filters:
            columns.append(self.row.explained(cycle)[:high])
        if self.row_codes is not None:
            explain(cycle, self._filters, self.row_codes, self.codes)
            columns.append(self.row_codes[:high])
        return columns

    # ---- keeping up with the table ----

    def catch_up(self, cycle: Cycle) -> int:
        """Judge again the rows that changed since the last time, as the pod sees them; returns how many, those that
        were judged in shared results too twice. When its search is over they are not shown any more, and the answers
        stay as they are."""
        table, view = cycle.cluster.table, cycle.view
        if self._of_view and view is None:
            return 0
        if view is not None and (self.row.filters or self.row.scores):
            view.show(None)
        judged = self.shared.catch_up(cycle)
        marks = (table.static.mark, self._pod_log.mark)
        renewed: tuple[int | None, ...] = (self.static.renewed, self.row.renewed)
        if self._with_epochs:
            renewed += tuple([plugin.epoch(cycle) for plugin in self._with_epochs])
        if table.capacity != self.capacity:
            self._widen(table.capacity)
        if renewed != self._renewed:
            self.nominated = NominatedRefusals()
            if view is not None:
                view.show(None)
            judged += self._judge(cycle, None)
        elif marks != self._marks:
            judged += self._judge_touched(cycle)
        # Marks move last: if a plugin raised, the rows are judged again next time.
        self._marks, self._renewed = marks, renewed
        if view is not None:
            view.judged_by(self)
        return judged

    def _judge_touched(self, cycle: Cycle) -> int:
        table, view = cycle.cluster.table, cycle.view
        few = self._few(table.static, self._pod_log)
        if few is not None:
            if view is not None:
                view.show(few)
            for row in few:
                self._judge_row(cycle, row)
            return len(few)
        rows = self._touched(table.static, self._pod_log)
        if view is not None:
            view.show(rows.tolist())
        return self._judge(cycle, rows)

    def settle(self, table: NodeTable) -> None:
        """All touches up to now are known: they did and undid what a view shows."""
        self._marks = (table.static.mark, self._pod_log.mark)
        self.row.pass_over(self._pod_log.mark)

    def _few(self, static: TouchLog, content: TouchLog) -> Collection[int] | None:
        """The rows touched since the last time, if they are few and all plugins answer for single rows."""
        if not self._by_row:
            return None
        filled = content.few_since(self._marks[1], FEW)
        if filled is None or static.mark == self._marks[0]:
            return filled
        changed = static.few_since(self._marks[0], FEW)
        return None if changed is None else {*changed, *filled}

    def _touched(self, static: TouchLog, content: TouchLog) -> NDArray[np.intp]:
        filled = content.rows_since(self._marks[1])
        return filled if static.mark == self._marks[0] else np.union1d(filled, static.rows_since(self._marks[0]))

    def _judge(self, cycle: Cycle, rows: NDArray[np.intp] | None) -> int:
        """Judge some rows, or all, and rank them; returns how many."""
        nodes = Nodes(cycle.cluster.table, rows)
        where: Any = slice(0, len(nodes)) if rows is None else rows
        ok = self.static.ok[where] & self.row.ok[where] if self.row.filters else self.static.ok[where]
        passing = None if self._reasons_wanted else passing_all(cycle, self._filters, nodes, ok)
        if passing is not None:
            if self.row_codes is not None or passing is not ok:
                self._keep_refusals(where, UNEXPLAINED)
            ok = passing
        else:
            refused = first_refusals(cycle, self._filters, nodes, self.codes)
            self._keep_refusals(where, refused)
            if refused is not None:
                ok = ok & (refused == FEASIBLE)
        total: Any = None
        for scored in self._scores:
            values = scored.checked(scores_by(scored.plugin, cycle, nodes), ok)
            scored.column[where] = narrowed(values, scored.column.dtype)
            if isinstance(scored, UniformScoreColumn):
                scored.written(cycle, rows)
                continue
            weighted = values if scored.weight == 1 else values * scored.weight
            total = weighted if total is None else total + weighted
        total = 0 if total is None else total
        for shared in self.shared.in_ranking:
            if shared.uniform is None:  # weighted values may not fit into the column's bytes
                total = total + nodes.take(shared.column).astype(np.int64) * shared.weight
            elif shared.uniform:
                total = total + shared.uniform
        self._feasible, self._reasons_wanted = None, False
        self.ok[where] = ok
        ranking = total.astype(self._width) if isinstance(total, np.ndarray) else np.full(len(ok), total, self._width)
        np.putmask(ranking, ~ok, _REFUSED)
        self.ranked[where] = ranking
        return len(ok)

    def _judge_row(self, cycle: Cycle, row: int) -> None:
        """The same for one row."""
        code = first_refusal(cycle, self._filters, row, self.codes)
        ok = code == FEASIBLE and self.static.ok.item(row) and (not self.row.filters or self.row.ok.item(row))
        total = 0
        for scored in self._scores:
            scored.column[row] = value = scored.checked_value(score_of_row(scored.plugin, cycle, row), ok)
            if isinstance(scored, UniformScoreColumn):
                scored.written_value(value)
            else:
                total += value * scored.weight
        for shared in self.shared.in_ranking:
            total += shared.column.item(row) * shared.weight if shared.uniform is None else shared.uniform
        if code != FEASIBLE or self.row_codes is not None:
            self._keep_refusals(row, code)
        if self._feasible is not None:
            self._feasible += ok - self.ok.item(row)
        self.ok[row] = ok
        self.ranked[row] = total if ok else _REFUSED

    def _keep_refusals(self, where: Any, codes: NDArray[np.int32] | int | None) -> None:
        if self.row_codes is None:
            if codes is None:
                return
            self.row_codes = np.zeros(self.capacity, dtype=np.int32)
        self.row_codes[where] = FEASIBLE if codes is None else codes

    def _widen(self, capacity: int) -> None:
        self.capacity = capacity
        for scored in self._scores:
            scored.widen(capacity)
        self.ok = np.zeros(capacity, dtype=np.bool_)
        self.ranked = np.full(capacity, _REFUSED, dtype=self._width)
        self.row_codes = None
        self.constants.clear()
        self._feasible = None
        self._marks, self._renewed = _NEVER, ()


def _narrowest(summed: Sequence[ScoreColumn]) -> type[np.signedinteger[Any]]:
    """The narrowest integers that hold the sums of these scores. A ranking is read as a whole for every pod, so its
    width is what an attempt costs on many nodes."""
    most = sum(100 * abs(scored.weight) for scored in summed if not scored.needs_normalising)
    return np.int16 if most < 1 << 15 else np.int32 if most < 1 << 31 else np.int64
