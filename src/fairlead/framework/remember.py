"""Remembered: the answers of well-scoped plugins about pods of one signature, kept as columns.

When the next pod of the same signature comes, only the rows that changed since are judged again: after placing one of a
thousand equal pods that is a single row. What follows from a facet that other signatures have too is kept in common
with them (framework/common.py); here is what must be asked for each signature, and the ranking that all add up to. A
remembered answer equals a recomputed one (a property test says so), because a plugin's scope is a promise about what
its answer depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from fairlead.framework.common import Preparations
from fairlead.framework.layers import (
    FEW,
    CachedScore,
    LevelScored,
    asked,
    first_refusal,
    first_refusals,
    have_row_twins,
    with_epochs,
)
from fairlead.framework.plugin import takes_part
from fairlead.framework.verdicts import FEASIBLE
from fairlead.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.common import Common, Roster
    from fairlead.framework.cycle import Cycle
    from fairlead.framework.layers import Even
    from fairlead.framework.verdicts import VerdictCodes
    from fairlead.state.touchlog import TouchLog


Answer = TypeVar("Answer")
_REFUSED = -1
_NEVER = (-1, -1)


class Beside:
    """Refusals of rows on which there is no room beside the pods that are promised to them, and where the logs were
    read when that was found out."""

    __slots__ = ("codes", "marks")

    def __init__(self) -> None:
        self.codes: dict[int, int] = {}
        self.marks: tuple[int, ...] = ()

    def stale(self, logs: Sequence[TouchLog], promised: Iterable[int]) -> Iterable[int]:
        """Rows to look at again: those that were touched, in any log, since the last time."""
        marks, self.marks = self.marks, tuple([log.mark for log in logs])
        touched = [log.since(mark) for log, mark in zip(logs, marks, strict=True)] if marks else [None]
        if None in touched:
            self.codes.clear()
            return promised
        return set().union(*[rows for rows in touched if rows])


class Remembered:
    """Everything kept for one signature."""

    def __init__(self, cycle: Cycle, roster: Roster, common: Common, codes: VerdictCodes) -> None:
        table = cycle.cluster.table
        self.capacity = table.capacity
        self.codes = codes
        self.pod = cycle.pod
        self.common = common
        self.static, self.row = common.static, common.row
        self._prepare(cycle, roster)
        self._filters = [p for p in roster.own_filters if p.name not in self.no_filter]
        self._scores = [
            (LevelScored if takes_part(plugin, "normalise") else CachedScore)(plugin, weight, self.capacity)
            for plugin, weight in roster.own_scores
            if plugin.name not in self.no_score
        ]
        self._with_epochs = with_epochs(self._filters, self._scores) if roster.own_have_epochs else ()
        self._row_by_row = roster.own_have_row_twins or have_row_twins(self._filters, self._scores)
        self.scored: dict[str, CachedScore] = {
            **common.scored,
            **{scored.plugin.name: scored for scored in self._scores},
        }
        self._levelled = [scored for scored in self.scored.values() if scored.needs_normalising]
        self.even: dict[Hashable, Even] = {}
        """What all rows get on top of the ranking, by the levels and by what those say who are asked every time."""
        self.ok: NDArray[np.bool_] = np.zeros(table.capacity, dtype=np.bool_)
        self._width = _narrowest((*self._scores, *common.added))
        self.ranked: NDArray[np.signedinteger[Any]] = np.full(table.capacity, _REFUSED, dtype=self._width)
        """Weighted sums of the scores that need no normalising, of the feasible rows; -1 elsewhere. While all
        normalised scores are flat, choosing is an argmax."""
        self.unmoved = False
        """Whether those who are not remembered say the same of the next pod (`Plugin.unmoved_by`)."""
        self.row_codes: NDArray[np.int32] | None = None
        """Refusals of the plugins that are asked for this signature; None while there are none."""
        self._feasible: int | None = None
        self.rows_judged = 0
        self.beside = Beside()
        self.what_ifs: dict[tuple[str, int], tuple[Hashable, Any]] = {}
        """Answers to questions that began with "if" about a row: what they were asked of, and what came out."""
        self._marks = _NEVER
        self._renewed: tuple[int, ...] = ()

    def _prepare(self, cycle: Cycle, roster: Roster) -> None:
        """Ask, once, what depends on nothing but the pod: who steps aside, who refuses, who leaves which note."""
        shared = self.common.preparations
        cycle.notes.update(shared.notes)
        own = Preparations(shared)
        own.leave_out(roster.own_choosy, cycle, roster)
        own.ask(cycle, roster.own_prepare, roster.own_prepare_scores)
        self.prepared, self.no_filter, self.no_score, self.notes = own.said, own.no_filter, own.no_score, own.notes
        self.score_error = own.score_error
        self.to_prepare = [
            plugin for plugin in roster.profile.at("prepare") if own.said.get(plugin.name, plugin) is not None
        ]
        """Plugins whose `prepare` is still to be asked, or has something to say; the others have stepped aside."""

    def what_if(self, question: str, row: int, premises: Hashable, answer: Callable[[], Answer]) -> Answer:
        """The answer to a what-if about a row, from memory while the premises are the same. They must name all that it
        depends on besides the pod; the row's own version is one of them."""
        kept = self.what_ifs.get((question, row))
        if kept is not None and kept[0] == premises:
            found: Answer = kept[1]
            return found
        found = answer()
        self.what_ifs[question, row] = (premises, found)
        return found

    # ---- what it comes to ----

    @property
    def feasible(self) -> int:
        """How many rows are feasible as far as the remembered plugins go."""
        if self._feasible is None:
            self._feasible = int(np.count_nonzero(self.ok))
        return self._feasible

    def levels(self) -> tuple[int | None, ...]:
        """What each score that is normalised gives to every row; None if it does not give the same to all."""
        return tuple([scored.same_for_all for scored in self._levelled])

    def refusals(self, high: int) -> list[NDArray[np.int32]]:
        """Columns of verdicts; a row is refused by the first plugin in any of them."""
        columns = [self.static.codes[:high]]
        if self.row.filters:
            columns.append(self.row.codes[:high])
        if self.row_codes is not None:
            columns.append(self.row_codes[:high])
        return columns

    # ---- keeping up with the table ----

    def catch_up(self, cycle: Cycle) -> None:
        """Judge again what changed since the last look."""
        table = cycle.cluster.table
        self.common.catch_up(cycle)
        marks = (table.static.mark, table.content.mark)
        renewed: tuple[int, ...] = (self.static.renewed, self.row.renewed)
        if self._with_epochs:
            renewed += tuple([plugin.epoch(cycle.cluster) for plugin in self._with_epochs])
        if table.capacity != self.capacity:
            self._widen(table.capacity)
        if renewed != self._renewed:
            self.beside = Beside()
            self._judge(cycle, None)
        elif marks == self._marks:
            return
        elif (few := self._few(table.static, table.content)) is not None:
            for row in few:
                self._judge_row(cycle, row)
        else:
            self._judge(cycle, self._touched(table.static, table.content))
        # Only now: a plugin that raised has judged nothing, and will be asked again.
        self._marks, self._renewed = marks, renewed

    def _few(self, static: TouchLog, content: TouchLog) -> Iterable[int] | None:
        """The rows touched since the last look, if they are so few that arrays are all overhead."""
        if not self._row_by_row:
            return None
        filled = content.few_since(self._marks[1], FEW)
        if filled is None or static.mark == self._marks[0]:
            return filled
        changed = static.few_since(self._marks[0], FEW)
        return None if changed is None else {*changed, *filled}

    def _touched(self, static: TouchLog, content: TouchLog) -> NDArray[np.intp]:
        filled = content.rows_since(self._marks[1])
        return filled if static.mark == self._marks[0] else np.union1d(filled, static.rows_since(self._marks[0]))

    def _judge(self, cycle: Cycle, rows: NDArray[np.intp] | None) -> None:
        """Judge some rows, or all, and rank them."""
        nodes = Nodes(cycle.cluster.table, rows)
        self.rows_judged += len(nodes)
        where: Any = slice(0, len(nodes)) if rows is None else rows
        refused = first_refusals(cycle, self._filters, nodes, self.codes)
        ok = self._feasible_in_common(where)
        if refused is not None:
            ok = ok & (refused == FEASIBLE)
        total: Any = None
        for scored in self._scores:
            values = scored.checked(asked(scored.plugin, "score", cycle, nodes), ok)
            scored.column[where] = values
            if isinstance(scored, LevelScored):
                scored.look(cycle, rows)
                continue
            weighted = values if scored.weight == 1 else values * scored.weight
            total = weighted if total is None else total + weighted
        total = 0 if total is None else total
        for shared in self.common.added:
            if shared.flat is None:  # the column may be too narrow for what its values come to with their weight
                total = total + nodes.take(shared.column).astype(np.int64) * shared.weight
            elif shared.flat:
                total = total + shared.flat
        self._keep_refusals(where, refused)
        self._feasible = None
        self.ok[where] = ok
        self.ranked[where] = total if np.count_nonzero(ok) == len(ok) else np.where(ok, total, _REFUSED)

    def _judge_row(self, cycle: Cycle, row: int) -> None:
        """The same for one row."""
        self.rows_judged += 1
        code = first_refusal(cycle, self._filters, row, self.codes)
        ok = code == FEASIBLE and bool(self._feasible_in_common(row))
        total = 0
        for scored in self._scores:
            scored.column[row] = value = scored.checked_value(asked(scored.plugin, "score_row", cycle, row), ok)
            if isinstance(scored, LevelScored):
                scored.notice_value(value)
            else:
                total += value * scored.weight
        for shared in self.common.added:
            total += int(shared.column[row]) * shared.weight if shared.flat is None else shared.flat
        if code != FEASIBLE or self.row_codes is not None:
            self._keep_refusals(row, code)
        if self._feasible is not None:
            self._feasible += ok - self.ok.item(row)
        self.ok[row] = ok
        self.ranked[row] = total if ok else _REFUSED

    def _feasible_in_common(self, where: Any) -> Any:
        """What the plugins that are shared with other signatures say."""
        return self.static.ok[where] & self.row.ok[where] if self.row.filters else self.static.ok[where]

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
        self.even.clear()
        self._feasible = None
        self._marks, self._renewed = _NEVER, ()


def _narrowest(added: Sequence[CachedScore]) -> type[np.signedinteger[Any]]:
    """The narrowest numbers that hold the sums of these scores: a ranking is read as a whole for every pod."""
    if not all(scored.plugin.scores_in_range or scored.needs_normalising for scored in added):
        return np.int64
    most = sum(100 * abs(scored.weight) for scored in added if not scored.needs_normalising)
    return np.int16 if most < 1 << 15 else np.int32 if most < 1 << 31 else np.int64
