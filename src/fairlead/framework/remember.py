"""Remembered: the answers of well-scoped plugins about pods of one signature, kept as columns.

When the next pod of the same signature comes, only the rows that changed since are judged again: after placing one of a
thousand equal pods that is a single row. `static` columns follow what Node objects say, `row` columns also what lies on
the nodes; each has a mark in the table's touch log. A remembered answer equals a recomputed one (a property test says
so), because a plugin's scope is a promise about what its answer depends on.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from fairlead.errors import FairleadError, PluginError
from fairlead.framework.plugin import Scope, takes_part
from fairlead.framework.verdicts import FEASIBLE
from fairlead.model.reasons import SKIP, Code, Status
from fairlead.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.plugin import Plugin
    from fairlead.framework.profile import Profile
    from fairlead.framework.verdicts import VerdictCodes
    from fairlead.state.cluster import Cluster
    from fairlead.state.table import NodeTable
    from fairlead.state.touchlog import TouchLog


Answer = TypeVar("Answer")
Rows: TypeAlias = "NDArray[np.int32] | list[int]"
"""Some rows: a list if they are few."""


@dataclass(slots=True, eq=False)
class Contribution:
    """One plugin's share in the totals: weighted scores of the feasible rows in their order, a remembered column over
    the whole table (not weighted yet), or one number for all."""

    plugin: str
    weight: int
    weighted: NDArray[np.int64] | None = None
    column: NDArray[np.int64] | None = None
    flat: int = 0

    def at(self, row: int, position: int) -> int:
        if self.column is not None:
            return int(self.column[row]) * self.weight
        return int(self.weighted[position]) if self.weighted is not None else self.flat


def given_to(row: int, contributions: Sequence[Contribution]) -> tuple[tuple[str, int], ...]:
    """What each plugin gives to a row, where it has a column of its own or gives the same to all."""
    return tuple([(c.plugin, c.flat if c.column is None else int(c.column[row]) * c.weight) for c in contributions])


class Scored:
    """A remembered score: raw values, to be normalised over the feasible rows, or final ones.

    `flat` is the weighted score that everybody gets when all rows have the same raw value (most often none at all), so
    that normalising can be left out; None while they differ."""

    __slots__ = ("_level", "column", "contribution", "flat", "needs_normalising", "plugin", "weight")

    def __init__(self, plugin: Plugin, weight: int, capacity: int) -> None:
        self.plugin = plugin
        self.weight = weight
        self.needs_normalising = takes_part(plugin, "normalise")
        self.flat: int | None = None
        self._level: int | None = None
        self.widen(capacity)

    def widen(self, capacity: int) -> None:
        """A column for a larger table, with nothing in it yet."""
        self.column: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self.contribution = Contribution(
            self.plugin.name, self.weight, column=None if self.needs_normalising else self.column
        )

    def notice(self, cycle: Cycle, rows: NDArray[np.int32] | list[int] | None) -> None:
        """See whether the column is (still) level; `rows` have changed, None for all."""
        table = cycle.cluster.table
        if rows is None:
            values = self.column[: table.high][table.alive[: table.high]]
            level = int(values[0]) if len(values) else 0
            self._level = level if bool((values == level).all()) else None
            self.flat = None
            if self._level is not None:
                raw = np.array([level], dtype=np.int64)
                first = Nodes(table, np.zeros(1, dtype=np.int32))
                self.flat = int(asked(self.plugin, "normalise", cycle, first, raw)[0]) * self.weight
                self.contribution.flat = self.flat
        elif self._level is not None and bool((self.column[rows] != self._level).any()):
            self._level = self.flat = None


class Layer:
    """The remembered plugins of one scope: who filters, who scores, their columns, and where the log was read."""

    def __init__(self, filters: Sequence[Plugin], scores: Sequence[Scored], capacity: int) -> None:
        self.filters = filters
        self.scores = scores
        self.codes: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self.mark = -1
        self.epochs: tuple[int, ...] = ()
        self._with_epochs = [p for p in (*filters, *(scored.plugin for scored in scores)) if takes_part(p, "epoch")]
        self.normalised = [scored for scored in scores if scored.needs_normalising]
        self.has_row_twins = all(takes_part(p, "filter_row") for p in filters) and all(
            takes_part(scored.plugin, "score_row") for scored in scores
        )

    def current_epochs(self, cluster: Cluster) -> tuple[int, ...]:
        return tuple([plugin.epoch(cluster) for plugin in self._with_epochs]) if self._with_epochs else ()


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

    def __init__(self, cycle: Cycle, profile: Profile, codes: VerdictCodes) -> None:
        table = cycle.cluster.table
        self.capacity = table.capacity
        self.codes = codes
        self.pod = cycle.pod
        self.notes: dict[str, Any] = {}
        self.prepared: dict[str, Status | frozenset[str] | None] = {}
        self.no_filter: set[str] = set()
        self.no_score: set[str] = set()
        self.score_error = ""
        """Why nothing can be scored. Nobody hears of it unless there are several rows to choose from."""
        self._prepare(cycle, profile)
        self.static = self._layer(profile, Scope.STATIC)
        self.row = self._layer(profile, Scope.ROW)
        self.scored = {scored.plugin.name: scored for layer in (self.static, self.row) for scored in layer.scores}
        self._local = [scored for scored in self.scored.values() if not scored.needs_normalising]
        self._normalised = [scored for scored in self.scored.values() if scored.needs_normalising]
        self.ok: NDArray[np.bool_] = np.zeros(table.capacity, dtype=np.bool_)
        self.local_total: NDArray[np.int64] = np.zeros(table.capacity, dtype=np.int64)
        """Weighted sum of the scores that need no normalising."""
        self.ranked: NDArray[np.int64] = np.full(table.capacity, _REFUSED, dtype=np.int64)
        """Totals of the feasible rows, -1 elsewhere, while all normalised scores are flat: choosing is an argmax."""
        self.feasible = 0
        """How many rows are feasible as far as the remembered plugins go."""
        self.rows_judged = 0
        self.beside = Beside()
        self.what_ifs: dict[tuple[str, int], tuple[Hashable, Any]] = {}
        """Answers to questions that began with "if" about a row: what they were asked of, and what came out."""
        self._flat_total: int | None = None

    def _prepare(self, cycle: Cycle, profile: Profile) -> None:
        """Ask, once, what depends on nothing but the pod: who steps aside, who refuses, who leaves which note."""
        concerned = {plugin.name for plugin in profile.plugins() if plugin.concerns(cycle.pod)}
        for plugin in profile.at("filter"):
            if plugin.name not in concerned:
                self.no_filter.add(plugin.name)
        for plugin in profile.at("prepare"):
            if plugin.name not in concerned:
                self.no_filter.add(plugin.name)
                self.prepared[plugin.name] = None
            elif plugin.scope is not Scope.CLUSTER:
                answer = asked(plugin, "prepare", cycle)
                self.prepared[plugin.name] = answer
                if isinstance(answer, Status) and answer.code is Code.SKIP:
                    self.no_filter.add(plugin.name)
                    self.prepared[plugin.name] = None
        nodes = Nodes(cycle.cluster.table)
        for plugin in profile.at("score"):
            if plugin.name not in concerned:
                self.no_score.add(plugin.name)
        for plugin in profile.at("prepare_scores"):
            if plugin.scope is not Scope.CLUSTER and plugin.name in concerned:
                answer = asked(plugin, "prepare_scores", cycle, nodes)
                if isinstance(answer, Status) and answer.code is Code.SKIP:
                    self.no_score.add(plugin.name)
                elif isinstance(answer, Status) and not answer.ok:
                    self.no_score.add(plugin.name)
                    self.score_error = self.score_error or f'running PreScore plugin "{plugin.name}": {answer.message}'
        self.notes = dict(cycle.notes)
        self.to_prepare = [p for p in profile.at("prepare") if self.prepared.get(p.name, _UNASKED) is not None]
        """Plugins whose `prepare` is still to be asked, or has something to say; the others have stepped aside."""

    def _layer(self, profile: Profile, scope: Scope) -> Layer:
        filters = [p for p in profile.at("filter") if p.scope is scope and p.name not in self.no_filter]
        scores = [
            Scored(p, profile.weight(p), self.capacity)
            for p in profile.at("score")
            if p.scope is scope and p.name not in self.no_score
        ]
        return Layer(filters, scores, self.capacity)

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

    # ---- keeping up with the table ----

    @property
    def is_ranked(self) -> bool:
        return self._flat_total is not None

    def catch_up(self, cycle: Cycle) -> None:
        """Judge again what changed since the last look."""
        table = cycle.cluster.table
        if table.capacity != self.capacity:
            self._widen(table.capacity)
        moved = self._catch_up_layer(cycle, self.static, table.static)
        moved_too = self._catch_up_layer(cycle, self.row, table.content)
        if moved is not _NOTHING or moved_too is not _NOTHING:
            self._combine(table, _union(moved, moved_too))

    def _catch_up_layer(self, cycle: Cycle, layer: Layer, log: TouchLog) -> Rows | None:
        """The rows judged: some, None for all of them, or nothing."""
        epochs = layer.current_epochs(cycle.cluster)
        same = epochs == layer.epochs
        if layer.mark == log.mark and same:
            return _NOTHING
        touched = log.since(layer.mark) if layer.mark >= 0 and same else None
        distinct = set(touched) if touched is not None else None
        rows: Rows | None
        if distinct is not None and len(distinct) <= _FEW and layer.has_row_twins:
            rows = few = list(distinct)
            self._judge_one_by_one(cycle, layer, few)
        else:
            rows = many = self._worth_picking(distinct, cycle.cluster.table.high)
            self._judge(cycle, layer, Nodes(cycle.cluster.table, many))
        for scored in layer.normalised:
            scored.notice(cycle, rows)
        # Only now: a plugin that raised has judged nothing, and will be asked again.
        layer.mark, layer.epochs = log.mark, epochs
        return rows

    @staticmethod
    def _worth_picking(rows: set[int] | None, high: int) -> NDArray[np.int32] | None:
        """None if the whole table is judged as quickly."""
        if rows is None or len(rows) * 4 > high:
            return None
        return np.fromiter(rows, dtype=np.int32, count=len(rows))

    def _judge(self, cycle: Cycle, layer: Layer, nodes: Nodes) -> None:
        size = len(nodes)
        self.rows_judged += size
        where: Any = slice(0, size) if nodes.rows is None else nodes.rows
        codes: NDArray[np.int32] | None = None
        for plugin in layer.filters:
            refused = judged(cycle, plugin, nodes, self.codes)
            if refused is not None:
                codes = refused if codes is None else np.where(codes == FEASIBLE, refused, codes)
        layer.codes[where] = FEASIBLE if codes is None else codes
        for scored in layer.scores:
            scored.column[where] = asked(scored.plugin, "score", cycle, nodes)

    def _judge_one_by_one(self, cycle: Cycle, layer: Layer, rows: list[int]) -> None:
        """The same for a row or two, where the overhead of arrays is all the cost."""
        self.rows_judged += len(rows)
        for row in rows:
            code = FEASIBLE
            for plugin in layer.filters:
                verdict = asked(plugin, "filter_row", cycle, row)
                if verdict is not None:
                    code = self.codes.code(verdict)
                    break
            layer.codes[row] = code
            for scored in layer.scores:
                scored.column[row] = asked(scored.plugin, "score_row", cycle, row)

    def _combine(self, table: NodeTable, rows: Rows | None) -> None:
        flat = self._flat()
        if isinstance(rows, list) and flat == self._flat_total:
            for row in rows:
                self._combine_row(table, row)
            return
        where: Any = slice(0, table.high) if rows is None else rows
        ok = (self.static.codes[where] == FEASIBLE) & (self.row.codes[where] == FEASIBLE) & table.alive[where]
        self.feasible += int(np.count_nonzero(ok)) - int(np.count_nonzero(self.ok[where]))
        self.ok[where] = ok
        total: Any = 0
        for scored in self._local:
            column = scored.column[where]
            total = total + (column if scored.weight == 1 else column * scored.weight)
        self.local_total[where] = total
        if flat == self._flat_total and flat is not None:
            self.ranked[where] = np.where(ok, total + flat, _REFUSED)
        elif flat is not None:
            high = table.high
            self.ranked[:high] = np.where(self.ok[:high], self.local_total[:high] + flat, _REFUSED)
        self._flat_total = flat

    def _combine_row(self, table: NodeTable, row: int) -> None:
        ok = bool(self.static.codes[row] == FEASIBLE and self.row.codes[row] == FEASIBLE and table.alive[row])
        self.feasible += ok - bool(self.ok[row])
        self.ok[row] = ok
        total = 0
        for scored in self._local:
            total += int(scored.column[row]) * scored.weight
        self.local_total[row] = total
        if self._flat_total is not None:
            self.ranked[row] = total + self._flat_total if ok else _REFUSED

    def _flat(self) -> int | None:
        """What all rows get from the normalised scores, if that is the same."""
        flat = 0
        for scored in self._normalised:
            if scored.flat is None:
                return None
            flat += scored.flat
        return flat

    def _widen(self, capacity: int) -> None:
        self.capacity = capacity
        for layer in (self.static, self.row):
            layer.codes = np.zeros(capacity, dtype=np.int32)
            layer.mark = -1
            for scored in layer.scores:
                scored.widen(capacity)
        self.ok = np.zeros(capacity, dtype=np.bool_)
        self.local_total = np.zeros(capacity, dtype=np.int64)
        self.ranked = np.full(capacity, _REFUSED, dtype=np.int64)
        self.feasible, self._flat_total = 0, None


_REFUSED = -1
_UNASKED = SKIP
_FEW = 8
_NOTHING: list[int] = []


def _union(a: Rows | None, b: Rows | None) -> Rows | None:
    if a is None or b is None:
        return None
    if a is _NOTHING or b is _NOTHING:
        return b if a is _NOTHING else a
    return np.union1d(a, b)


def judged(cycle: Cycle, plugin: Plugin, nodes: Nodes, codes: VerdictCodes) -> NDArray[np.int32] | None:
    """One plugin's refusals over a selection, as codes."""
    if (meter := cycle.meter) is not None:
        return meter.call(cycle, plugin.name, "filter", lambda: _judged(cycle, plugin, nodes, codes))  # type: ignore[no-any-return]
    return _judged(cycle, plugin, nodes, codes)


def _judged(cycle: Cycle, plugin: Plugin, nodes: Nodes, codes: VerdictCodes) -> NDArray[np.int32] | None:
    try:
        return codes.refusals(plugin.name, plugin.filter(cycle, nodes), len(nodes))
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
