"""Which nodes a task can have, and which of them it should: what every action of a round asks.

    search = NodeSearch(round, keep_errors=...)      # one per action, per job or per task, as the original has it
    rows, errors = search.find(task, rows, fit=True)
    scores = prioritize(round, task, rows)

`find` judges the rows in the order given, beginning where the last search ended, until enough are found. For preemption
it refuses only rows that no eviction could help. With `keep_errors`, errors are kept by job and role: tasks of one role
then skip the nodes that refused the first of them, whatever they request themselves.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.sampling import enough_nodes
from fairlead.core.state.nodes import Nodes
from fairlead.volcano.records.round_figures import PREDICATE, SCORING, Span
from fairlead.volcano.rounds.fit import FitErrors, insufficient
from fairlead.volcano.rounds.round import Scores

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from fairlead.core.model.reasons import Reject
    from fairlead.volcano.rounds.round import Round, Task
    from fairlead.volcano.rounds.settings import Rounds


_NOT_IN_SHARD = "node isn't in scheduler node shard"
_LEAST_LOOK = 128
"""Rows that are judged together at least: fewer would not be cheaper."""


def enough(nodes: int, settings: Rounds) -> int:
    """How many feasible nodes a search stops at."""
    least, least_percentage = settings.min_feasible, settings.min_percentage
    return enough_nodes(nodes, settings.percentage, least=least, least_percentage=least_percentage)


def _turned(rows: NDArray[np.int32], start: int, count: int) -> NDArray[np.int32]:
    """`count` rows beginning at `start`, going on with the first row after the last."""
    start %= len(rows)
    if start + count <= len(rows):
        return rows[start : start + count]
    return np.concatenate([rows[start:], rows[: start + count - len(rows)]])


class _Kept:
    """The errors of tasks of one role so far, and the rows that refused them."""

    __slots__ = ("errors", "refused")

    def __init__(self, rows: int) -> None:
        self.errors = FitErrors()
        self.refused = np.zeros(rows, dtype=np.bool_)

    def take(self, errors: FitErrors) -> None:
        self.errors.parts += errors.parts
        for _, _, rows in errors.parts:
            self.refused[rows] = True


class NodeSearch:
    def __init__(self, round: Round, *, keep_errors: bool = True) -> None:
        self._round = round
        self._keep_errors = keep_errors
        self._kept: dict[tuple[str, str], _Kept] = {}

    def find(
        self, task: Task, rows: NDArray[np.int32], *, fit: bool, for_preemption: bool = False
    ) -> tuple[NDArray[np.int32], FitErrors]:
        """The feasible rows in the order in which they were looked at, and why the others are not. `fit` also wants
        room for the request in what will be idle."""
        round, meter = self._round, self._round.meter
        round.attempting = task
        size = len(rows)
        if size == 0:
            return rows, FitErrors()
        began = meter.clock() if meter is not None else 0.0
        start = round.search.first_row % size
        want = enough(size, round.settings)
        errors, kept = FitErrors(), self._kept_for(task)
        feasible: list[NDArray[np.int32]] = []
        found = looked_at = 0
        while found < want and looked_at < size:
            part = _turned(rows, start + looked_at, min(size - looked_at, max(_LEAST_LOOK, 2 * (want - found))))
            passing = self._look(task, part, errors, kept, fit=fit, for_preemption=for_preemption)
            if found + len(passing) > want:
                all_pass, passing = len(passing) == len(part), passing[: want - found]
                part = part[: len(passing) if all_pass else int(np.flatnonzero(part == passing[-1])[0]) + 1]
            feasible.append(passing)
            found += len(passing)
            looked_at += len(part)
        round.search.first_row = (start + looked_at) % size
        if meter is not None:
            meter.lapsed(Span.STAGE, PREDICATE, since=began)
        return feasible[0] if len(feasible) == 1 else np.concatenate(feasible), errors

    def _look(
        self,
        task: Task,
        rows: NDArray[np.int32],
        errors: FitErrors,
        kept: _Kept | None,
        *,
        fit: bool,
        for_preemption: bool,
    ) -> NDArray[np.int32]:
        """Judge some rows; those that refused a task of this role before are not asked again."""
        if kept is None:
            rows = self._within_bounds(rows, errors)
            return self._judge(task, rows, errors, fit=fit, for_preemption=for_preemption)
        if kept.errors.parts:
            known = kept.refused[rows]
            errors.take(kept.errors, rows[known])
            rows = rows[~known]
        new = FitErrors()
        rows = self._within_bounds(rows, new)
        feasible = self._judge(task, rows, new, fit=fit, for_preemption=for_preemption)
        kept.take(new)
        errors.parts += new.parts
        return feasible

    def _within_bounds(self, rows: NDArray[np.int32], errors: FitErrors) -> NDArray[np.int32]:
        """The rows without those of other schedulers' shards, where the scheduler keeps to its own."""
        shard = self._round.search.shard
        if shard is None or not shard.hard:
            return rows
        own = shard.own[rows]
        errors.add(_NOT_IN_SHARD, rows[~own], final=False)
        return rows[own]

    def refusals(self, task: Task, rows: NDArray[np.int32]) -> FitErrors:
        """All reasons that predicates have against a task on some rows, by what `pre_predicate` noted last."""
        errors = FitErrors()
        self._judge(task, rows, errors, fit=False, for_preemption=False)
        return errors

    def _kept_for(self, task: Task) -> _Kept | None:
        """The errors of earlier tasks of this role; None if they are not kept."""
        if not self._keep_errors or not task.role or task.job is None:
            return None
        key = (task.job.uid, task.role)
        found = self._kept.get(key)
        if found is None:
            found = self._kept[key] = _Kept(self._round.cluster.table.high)
        return found

    def _judge(
        self, task: Task, rows: NDArray[np.int32], errors: FitErrors, *, fit: bool, for_preemption: bool
    ) -> NDArray[np.int32]:
        round = self._round
        left = rows
        if fit:
            fitting = round.resources.fits_future(task.request, rows)
            if np.count_nonzero(fitting) < len(rows):
                short_rows, left = rows[~fitting], rows[fitting]
                for resources, short in round.resources.short_of(task.request, short_rows).items():
                    errors.add(insufficient(resources), short_rows[short], final=False)
        hopeful: list[NDArray[np.int32]] = []
        for predicate in round.tiers.predicates(task):
            if not len(left):
                break
            said = predicate(Nodes(round.cluster.table, left))
            rejects = [reject for reject in said if np.count_nonzero(reject.rows)]
            if not rejects:
                continue
            refused, final = _read(rejects, left, errors, only_final=for_preemption)
            if for_preemption:
                hopeful.append(left[refused & ~final])
            left = left[~refused]
        if hopeful:
            passing = np.isin(rows, np.concatenate([left, *hopeful]))
            return rows[passing]
        return left


def _read(
    rejects: Sequence[Reject], rows: NDArray[np.int32], errors: FitErrors, *, only_final: bool
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """What one plugin refused, and what of that for good; the reasons go to `errors`. With `only_final`, rows that
    are not refused for good are not errors."""
    refused = np.zeros(len(rows), dtype=np.bool_)
    final = np.zeros(len(rows), dtype=np.bool_)
    finals = [np.broadcast_to(reject.is_final(), len(rows)) for reject in rejects]
    for reject, for_good in zip(rejects, finals, strict=True):
        refused |= reject.rows
        final |= reject.rows & for_good
    for reject, for_good in zip(rejects, finals, strict=True):
        counted = reject.rows & final if only_final else reject.rows
        errors.add(reject.reason.text, rows[counted & for_good], final=True)
        errors.add(reject.reason.text, rows[counted & ~for_good], final=False)
    return refused, final


def without_final(task: Task, rows: NDArray[np.int32]) -> NDArray[np.int32]:
    """The rows without those that this round refused the task for good."""
    errors = task.job.fit_errors.get(task.uid) if task.job is not None else None
    return rows if errors is None else rows[~np.isin(rows, errors.final_rows())]


def by_preference(round: Round, rows: NDArray[np.int32]) -> list[NDArray[np.int32]]:
    """Rows in groups, the more preferred first: where a scheduler prefers its own shard, that is one, and the others
    are another. No group is empty, unless there are no rows at all."""
    if round.search.shard is None or round.search.shard.hard:
        return [rows]
    own = round.search.shard.own[rows]
    return [group for group in (rows[own], rows[~own]) if len(group)] or [rows]


def prioritize(round: Round, task: Task, rows: NDArray[np.int32]) -> NDArray[np.float64]:
    """The sum of all scores by row; kept in `round.search.scores`."""
    meter = round.meter
    round.attempting = task
    began = meter.clock() if meter is not None else 0.0
    totals = round.tiers.node_scores(task, Nodes(round.cluster.table, rows))
    if meter is not None:
        meter.lapsed(Span.STAGE, SCORING, since=began)
    round.search.scores = Scores(task, rows, totals)
    return totals


def best(round: Round, task: Task, rows: NDArray[np.int32]) -> int:
    """The row to take: the only one, or one of those that score highest."""
    round.search.fitting[task.uid] = len(rows)
    if len(rows) == 1:
        round.search.scores = None
        return int(rows[0])
    scores = prioritize(round, task, rows)
    chosen = round.tiers.best_node(task, rows, scores)
    if chosen is not None:
        return chosen
    return round.choices.node(task, rows[scores == scores[scores.argmax()]].tolist())
