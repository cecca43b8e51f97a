"""Layers: remembered answers of plugins as columns over the rows of the table.

A `Layer` keeps what some plugins of one scope said of every row, and where the table's log was read. When it is looked
at again, only the rows that were touched since are judged again: a few of them one by one, many of them in arrays.

Invariant: once caught up, a column holds for every row what the plugin would say now.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.errors import FairleadError, PluginError
from fairlead.framework.plugin import takes_part
from fairlead.framework.verdicts import FEASIBLE
from fairlead.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.plugin import Plugin
    from fairlead.framework.verdicts import VerdictCodes
    from fairlead.state.touchlog import TouchLog

HIGHEST = 100
_GIVEN_KEPT = 1024
FEW = 3
"""So many touches are followed up row by row: there the overhead of arrays is all the cost."""


class Contribution:
    """One plugin's share in the totals: weighted scores of the feasible rows in their order, a remembered column over
    the whole table (not weighted yet), or one number for all."""

    __slots__ = ("column", "flat", "plugin", "weight", "weighted")

    def __init__(
        self,
        plugin: str,
        weight: int,
        *,
        weighted: NDArray[np.int64] | None = None,
        column: NDArray[np.signedinteger[Any]] | None = None,
        flat: int = 0,
    ) -> None:
        self.plugin = plugin
        self.weight = weight
        self.weighted = weighted
        self.column = column
        self.flat = flat

    def at(self, row: int, position: int) -> int:
        if self.column is not None:
            return int(self.column[row]) * self.weight
        return int(self.weighted[position]) if self.weighted is not None else self.flat


class Even:
    """What is added to every row of a ranking alike, and who contributed it. As long as that stays the same, so does
    the list of what each plugin gives to rows with the same scores; thousands of pods share a few hundred of them."""

    __slots__ = ("_columns", "_given", "contributions", "offset")

    def __init__(self, offset: int, contributions: Sequence[Contribution]) -> None:
        self.offset = offset
        self.contributions = contributions
        self._columns = [c.column for c in contributions if c.column is not None]
        self._given: dict[tuple[int, ...], tuple[tuple[str, int], ...]] = {}

    def given_to(self, row: int) -> tuple[tuple[str, int], ...]:
        """What each plugin gives to a row, where it has a column of its own or gives the same to all."""
        scores = tuple([column.item(row) for column in self._columns])
        found = self._given.get(scores)
        if found is None:
            if len(self._given) >= _GIVEN_KEPT:
                self._given.clear()
            found = self._given[scores] = tuple([given(c.plugin, c.at(row, 0)) for c in self.contributions])
        return found


@cache
def given(plugin: str, score: int) -> tuple[str, int]:
    """What a plugin gives. A dozen such pairs are kept of every pod that is placed, and only a few hundred differ."""
    return plugin, score


class CachedScore:
    """A remembered score: raw values, to be normalised over the feasible rows, or final ones."""

    __slots__ = ("column", "contribution", "needs_normalising", "plugin", "weight")

    def __init__(self, plugin: Plugin, weight: int, capacity: int) -> None:
        self.plugin = plugin
        self.weight = weight
        self.needs_normalising = takes_part(plugin, "normalise")
        self.widen(capacity)

    @property
    def same_for_all(self) -> int | None:
        """What every row gets on top of its place in the ranking, which has the scores that need no normalising; None
        if that is not the same for all."""
        return 0

    def checked(self, values: Any, ok: NDArray[np.bool_]) -> Any:
        """What was said of some rows, if it is a score wherever it counts: of refused rows nobody sees it."""
        if self.needs_normalising or not len(ok) or _in_range(values):
            return values
        seen = np.where(ok, values, 0)
        check_range(self.plugin.name, int(seen.min()), int(seen.max()))
        return seen

    def checked_value(self, value: int, ok: bool) -> int:
        """The same of one row."""
        if 0 <= value <= HIGHEST or self.needs_normalising:
            return value
        if ok:
            check_range(self.plugin.name, value, value)
        return 0

    def widen(self, capacity: int) -> None:
        """A column for a larger table, with nothing in it yet."""
        narrow = self.plugin.scores_in_range and not self.needs_normalising
        self.column: NDArray[np.signedinteger[Any]] = np.zeros(capacity, dtype=np.int8 if narrow else np.int64)
        self.contribution = Contribution(
            self.plugin.name, self.weight, column=None if self.needs_normalising else self.column
        )


class LevelScored(CachedScore):
    """One that knows whether its column is level. `flat` is the weighted score that everybody gets while all rows have
    the same value (most often none at all), so that normalising, and even adding, can be left out; else None."""

    __slots__ = ("_level", "flat")

    def __init__(self, plugin: Plugin, weight: int, capacity: int) -> None:
        super().__init__(plugin, weight, capacity)
        self.flat: int | None = None
        self._level: int | None = None

    @property
    def same_for_all(self) -> int | None:
        return self.flat if self.needs_normalising else 0

    def look(self, cycle: Cycle, rows: NDArray[np.intp] | None) -> None:
        """Some rows were judged again, or all."""
        if rows is None:
            self.survey(cycle)
        else:
            self.notice(rows)

    def survey(self, cycle: Cycle) -> None:
        """See whether the column is level."""
        table = cycle.cluster.table
        values = self.column[: table.high][table.alive[: table.high]]
        level = int(values[0]) if len(values) else 0
        self._level = level if bool((values == level).all()) else None
        self.flat = None if self._level is None else self._normalised(cycle, level) * self.weight
        self.contribution.flat = self.flat or 0

    def notice(self, rows: NDArray[np.intp]) -> None:
        """See whether it still is, after some rows were judged again."""
        if self._level is not None and bool((self.column[rows] != self._level).any()):
            self._level = self.flat = None

    def notice_value(self, value: int) -> None:
        """The same, after one row was judged again."""
        if value != self._level:
            self._level = self.flat = None

    def _normalised(self, cycle: Cycle, level: int) -> int:
        if not self.needs_normalising:
            return level
        first = Nodes(cycle.cluster.table, np.zeros(1, dtype=np.int32))
        return int(asked(self.plugin, "normalise", cycle, first, np.array([level], dtype=np.int64))[0])


class Layer:
    """Plugins of one scope: who filters, who scores, their columns, and where the log was read."""

    __slots__ = (
        "_verdicts", "_with_epochs", "codes", "epochs", "filters", "mark", "ok", "renewed", "row_by_row", "rows_judged",
        "scores",
    )  # fmt: skip

    def __init__(
        self, filters: Sequence[Plugin], scores: Sequence[LevelScored], capacity: int, verdicts: VerdictCodes
    ) -> None:
        self.filters = filters
        self.scores = scores
        self._verdicts = verdicts
        self.codes: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.ok: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        """Rows of nodes that nobody here refuses."""
        self.mark = -1
        self.epochs: tuple[int, ...] = ()
        self.renewed = 0
        """How often all rows were judged at once."""
        self.rows_judged = 0
        self._with_epochs = with_epochs(filters, scores)
        self.row_by_row = have_row_twins(filters, scores)

    def catch_up(self, cycle: Cycle, log: TouchLog) -> None:
        """Judge again what changed since the last look."""
        epochs = tuple([plugin.epoch(cycle.cluster) for plugin in self._with_epochs]) if self._with_epochs else ()
        mark, table = self.mark, cycle.cluster.table
        if mark == log.mark and epochs == self.epochs:
            return
        widened = len(self.codes) != table.capacity
        if mark < 0 or widened or epochs != self.epochs:
            if widened:
                self._widen(table.capacity)
            self._judge(cycle, None)
            self.renewed += 1
        elif self.row_by_row and (few := log.few_since(mark, FEW)) is not None:
            for row in few:
                self._judge_row(cycle, row)
        else:
            self._judge(cycle, log.rows_since(mark))
        # Only now: a plugin that raised has judged nothing, and will be asked again.
        self.mark, self.epochs = log.mark, epochs

    def _judge(self, cycle: Cycle, rows: NDArray[np.intp] | None) -> None:
        nodes = Nodes(cycle.cluster.table, rows)
        self.rows_judged += len(nodes)
        where: Any = slice(0, len(nodes)) if rows is None else rows
        refused = first_refusals(cycle, self.filters, nodes, self._verdicts)
        alive = nodes.take(nodes.table.alive)
        self.codes[where] = FEASIBLE if refused is None else refused
        self.ok[where] = alive if refused is None else (refused == FEASIBLE) & alive
        for scored in self.scores:
            scored.column[where] = scored.checked(asked(scored.plugin, "score", cycle, nodes), self.ok[where])
            scored.look(cycle, rows)

    def _judge_row(self, cycle: Cycle, row: int) -> None:
        self.rows_judged += 1
        self.codes[row] = code = first_refusal(cycle, self.filters, row, self._verdicts)
        self.ok[row] = ok = code == FEASIBLE and bool(cycle.cluster.table.alive[row])
        for scored in self.scores:
            scored.column[row] = value = scored.checked_value(asked(scored.plugin, "score_row", cycle, row), ok)
            scored.notice_value(value)

    def _widen(self, capacity: int) -> None:
        self.codes = np.zeros(capacity, dtype=np.int32)
        self.ok = np.zeros(capacity, dtype=np.bool_)
        for scored in self.scores:
            scored.widen(capacity)


def _in_range(values: Any) -> bool:
    """Whether all of these are scores. (`np.min` and `np.max` come to the same by a longer way, which is most of the
    cost where the values are few.)"""
    return bool(np.minimum.reduce(values, axis=None) >= 0 and np.maximum.reduce(values, axis=None) <= HIGHEST)


def check_range(plugin: str, lowest: int, highest: int) -> None:
    """Raise if these are no scores."""
    if lowest < 0 or highest > HIGHEST:
        bad = lowest if lowest < 0 else highest
        raise FairleadError(
            f'plugin "{plugin}" returns an invalid score {bad}, it should in the range of [0, 100] after normalizing'
        )


def with_epochs(filters: Sequence[Plugin], scores: Sequence[CachedScore]) -> list[Plugin]:
    """Those of the plugins whose answers may all be void at once."""
    return [plugin for plugin in (*filters, *[scored.plugin for scored in scores]) if takes_part(plugin, "epoch")]


def have_row_twins(filters: Sequence[Plugin], scores: Sequence[CachedScore]) -> bool:
    """Whether all of these can be asked about a single row."""
    return all(takes_part(plugin, "filter_row") for plugin in filters) and all(
        takes_part(scored.plugin, "score_row") for scored in scores
    )


def first_refusals(
    cycle: Cycle, filters: Sequence[Plugin], nodes: Nodes, verdicts: VerdictCodes
) -> NDArray[np.int32] | None:
    """Row by row, the code of the first plugin that refuses it; None if nobody refuses any."""
    codes: NDArray[np.int32] | None = None
    for plugin in filters:
        refused = judged(cycle, plugin, nodes, verdicts)
        if refused is not None:
            codes = refused if codes is None else np.where(codes == FEASIBLE, refused, codes)
    return codes


def first_refusal(cycle: Cycle, filters: Sequence[Plugin], row: int, verdicts: VerdictCodes) -> int:
    """The same for one row."""
    for plugin in filters:
        verdict = asked(plugin, "filter_row", cycle, row)
        if verdict is not None:
            return verdicts.code(verdict)
    return FEASIBLE


def judged(cycle: Cycle, plugin: Plugin, nodes: Nodes, codes: VerdictCodes) -> NDArray[np.int32] | None:
    """One plugin's refusals over a selection, as codes."""
    try:
        if (meter := cycle.meter) is not None:
            rejects = meter.call(cycle, plugin.name, "filter", lambda: tuple(plugin.filter(cycle, nodes)))
        else:
            rejects = plugin.filter(cycle, nodes)
        return codes.refusals(plugin.name, rejects, len(nodes))
    except FairleadError:
        raise
    except Exception as error:
        raise PluginError(plugin.name, "filter", error) from error


def asked(plugin: Plugin, point: str, cycle: Cycle, *args: Any) -> Any:
    """Call a plugin; whatever it raises names it."""
    try:
        if (meter := cycle.meter) is not None:
            return meter.call(cycle, plugin.name, point, lambda: getattr(plugin, point)(cycle, *args))
        return getattr(plugin, point)(cycle, *args)
    except FairleadError:
        raise
    except Exception as error:
        raise PluginError(plugin.name, point, error) from error
