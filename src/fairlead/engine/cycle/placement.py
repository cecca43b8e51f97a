"""place(pod): prepare, filter, sample, score, choose. The heart of a cycle, and the only place where a node is chosen.

The answer is a value: `Placed` with the row and how it compared, `Blocked` with the diagnosis, or `Broken` when
something failed and the attempt says nothing about the cluster. The steps and their order are kube-scheduler's; a
nominated node that still fits ends the search at once, and a single feasible node is not scored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from fairlead.engine.cycle.run import EqualPodRun
from fairlead.errors import ExtenderError, FairleadError
from fairlead.framework.extender import PSEUDO_PLUGIN
from fairlead.framework.refusals import UNJUDGED, Refusals, expected_on, judge_with
from fairlead.framework.results.constant import plugin_score
from fairlead.framework.sums import shortage_with, sums_alone
from fairlead.framework.verdicts import FEASIBLE
from fairlead.model.reasons import Diagnosis, Status, Verdict, failed, unresolvable
from fairlead.model.records import record
from fairlead.state.nodes import Feasible, Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.evaluate import Evaluator, Judgement
    from fairlead.framework.points import Preparation
    from fairlead.framework.results.constant import ConstantPart, Contribution
    from fairlead.framework.sums import Sums
    from fairlead.model.pod import Pod
    from fairlead.state.touchlog import TouchLog

NO_NODES = "no nodes available to schedule pods"


@record(frozen=True, slots=True)
class ScoredRow:
    """A feasible row, its total, and what each plugin gave it (weighted)."""

    row: int
    total: int
    scores: tuple[tuple[str, int], ...] = ()


@record(frozen=True, slots=True)
class Placed:
    row: int
    feasible: int
    judged: int
    chosen: ScoredRow
    runner_up: ScoredRow | None = None
    sheet: ScoreSheet | None = None


@dataclass(frozen=True, slots=True)
class Blocked:
    """No node, and why."""

    refusals: Refusals


@dataclass(frozen=True, slots=True)
class Broken:
    """The attempt failed: a plugin raised or answered with an error."""

    status: Status


@dataclass(frozen=True, slots=True, eq=False)
class ScoreSheet:
    """Every feasible row with every plugin's weighted score, for as long as the table stands still."""

    rows: NDArray[np.int32]
    totals: NDArray[np.int64]
    contributions: Sequence[Contribution]

    def candidate(self, position: int) -> ScoredRow:
        row = int(self.rows[position])
        scores = tuple([plugin_score(c.plugin, c.at(row, position)) for c in self.contributions])
        return ScoredRow(row, int(self.totals[position]), scores)


@dataclass(slots=True)
class Search:
    """What is carried from one attempt to the next: where the last sample ended; and who is nominated where. A gang
    narrows the search to the rows `within` a part of the cluster; `wish` is the row a pod had before and should get
    again if it still fits."""

    start: int = 0
    nominated: Mapping[int, Sequence[Pod]] = field(default_factory=dict)
    promises: TouchLog | None = None
    """Which rows' nominations changed, if somebody keeps count."""
    within: NDArray[np.int32] | None = None
    wish: int = -1
    run: EqualPodRun | None = None
    """Equal pods that were placed last, one after the other."""


def place(cycle: Cycle, evaluator: Evaluator, search: Search) -> Placed | Blocked | Broken:
    """Choose a node for the cycle's pod."""
    if not cycle.cluster.table.row_of:
        return Broken(failed(NO_NODES))
    cycle.cluster.begin_cycle()
    try:
        next_of_run = _go_on(cycle, evaluator, search)
        if next_of_run is not None:
            return next_of_run
        preparation = evaluator.prepare(cycle)
        return _Attempt(cycle, evaluator, search, preparation).run()
    except FairleadError as error:
        return Broken(failed(str(error)))


def _go_on(cycle: Cycle, evaluator: Evaluator, search: Search) -> Placed | None:
    """The place of a pod that is like those before it, if nothing has happened but that they were placed."""
    run, search.run = search.run, None
    if run is None or search.nominated or search.wish >= 0 or not run.goes_on(cycle, evaluator, search.within):
        return None
    run.prepare(cycle)
    results = evaluator.catch_up(cycle)
    table, within = cycle.cluster.table, search.within
    feasible = results.feasible if within is None else int(np.count_nonzero(results.ok[within]))
    if feasible < 2:
        cycle.notes = {}  # the search begins anew
        return None
    ranked = results.ranked[: table.high] if within is None else results.ranked[within]
    total = len(table) if within is None else len(within)
    placed = _pick(cycle, ranked, run.constant, within, feasible=feasible, judged=total)
    run.placed(cycle.cluster, placed.row)
    search.run = run
    return placed


def _pick(
    cycle: Cycle,
    ranked: NDArray[np.signedinteger[Any]],
    constant: ConstantPart,
    within: NDArray[np.int32] | None,
    *,
    feasible: int,
    judged: int,
) -> Placed:
    """The best row of a ranking in which those that are refused have -1; of several, any."""
    best = int(ranked.argmax())
    level = next_level = ranked.item(best)
    ties = (ranked == level).nonzero()[0]
    if len(ties) > 1:
        at = cycle.rng.randrange(len(ties))
        best, second = ties.item(at), ties.item(at - 1)
    else:
        ranked[best] = -1
        second = int(ranked.argmax())
        next_level, ranked[best] = ranked.item(second), level
    row, other = (best, second) if within is None else (within.item(best), within.item(second))
    chosen = ScoredRow(row, level + constant.offset, constant.scores_of(row))
    runner_up = ScoredRow(other, next_level + constant.offset, constant.scores_of(other))
    return Placed(row, feasible, judged, chosen, runner_up=runner_up)


def score_sheet(cycle: Cycle, evaluator: Evaluator) -> ScoreSheet:
    """Every feasible row with every plugin's score, for a cycle that has been prepared and a table that stands as it
    did then: what a choice from the ranking did not have to spell out."""
    judgement = evaluator.judge(cycle)
    nodes = Nodes(cycle.cluster.table, np.flatnonzero(judgement.ok).astype(np.int32))
    totals, contributions = evaluator.score(cycle, nodes)
    return ScoreSheet(nodes.row_numbers(), totals, contributions)


class _Attempt:
    """One search for a node."""

    def __init__(self, cycle: Cycle, evaluator: Evaluator, search: Search, preparation: Preparation) -> None:
        self.cycle = cycle
        self.evaluator = evaluator
        self.search = search
        self.preparation = preparation
        self.table = cycle.cluster.table
        self.refusals: dict[int, int] = {}
        """Rows whose verdict is not the plain one: refused because of nominated pods, or by an extender."""
        self.total = len(self.table) if search.within is None else len(search.within)

    def run(self) -> Placed | Blocked | Broken:
        status = self.preparation.status
        if status is not None:
            return self._refused_early(status) if status.code.rejected else Broken(status)
        judgement = self.evaluator.judge(self.cycle)
        self._consider_nominated_pods()
        nominated = self._nominated_row(judgement)
        if nominated is not None:
            return Placed(nominated, feasible=1, judged=1, chosen=ScoredRow(nominated, 0))
        quick = self._choose_from_ranking(judgement)
        if quick is not None:
            return quick
        ok = judgement.ok if self.search.within is None else self._only_within(judgement.ok)
        if self.refusals:
            ok = ok.copy()
            ok[self._refused_rows()] = False
        feasible, judged = self._sample(ok)
        found = len(feasible)
        feasible = self._ask_extenders(feasible)
        if not len(feasible):
            return self._blocked(judgement, judged, by_extender=found > 0)
        count = self.total if judged is None else len(judged)
        if len(feasible) == 1:
            row = int(feasible[0])
            return Placed(row, feasible=1, judged=count, chosen=ScoredRow(row, 0))
        return self._choose(feasible, count)

    def _refused_rows(self) -> NDArray[np.intp]:
        return np.fromiter(self.refusals, dtype=np.intp, count=len(self.refusals))

    # ---- nominations ----

    def _consider_nominated_pods(self) -> None:
        """A row must fit the pod with and without the pods of the same or higher priority that are nominated to it."""
        nominated = self.search.nominated
        if not nominated:
            return
        sums = sums_alone(self.cycle)
        if sums is None or self.search.promises is None:
            self.refusals.update(self._refused_beside(nominated, sums))
            return
        results = self.cycle.results
        assert results is not None
        beside = results.nominated
        logs = (self.search.promises, self.table.static, self.table.content)
        stale = [row for row in beside.stale(logs, tuple(nominated)) if row in nominated or row in beside.codes]
        for row in stale:
            beside.codes.pop(row, None)
        beside.codes.update(self._refused_beside([row for row in stale if row in nominated], sums))
        self.refusals.update(beside.codes)
        own = self.table.row_of.get(self.cycle.pod.nominated_node) if self.cycle.pod.nominated_node else None
        if own is not None and own in nominated:
            self.refusals.pop(own, None)
            self.refusals.update(self._refused_beside([own], sums))

    def _refused_beside(self, rows: Iterable[int], sums: Sums | None) -> Iterator[tuple[int, int]]:
        """Which of these rows refuse the pod because of others that are expected there, and with which code."""
        for row in rows:
            expected = expected_on(self.search.nominated, self.cycle.pod, row)
            if expected and self.table.alive[row]:
                code = self._judge_with(expected, row, sums)
                if code != FEASIBLE:
                    yield row, code

    def _judge_with(self, expected: Sequence[Pod], row: int, sums: Sums | None) -> int:
        results = self.cycle.results
        assert results is not None
        if sums is None or results.static.codes[row] != FEASIBLE:
            return judge_with(self.cycle, self.evaluator, row, expected)
        verdict = shortage_with(sums, self.table, row, expected)
        return FEASIBLE if verdict is None else self.evaluator.codes.code(verdict)

    def _nominated_before_all(self) -> int | None:
        """The row that this pod itself is nominated to. It is looked at first, even if it is not among those that
        `prepare` left."""
        name, within = self.cycle.pod.nominated_node, self.search.within
        row = self.table.row_of.get(name) if name else None
        row = row if self.search.wish < 0 else self.search.wish
        return row if row is None or within is None or row in within else None

    def _nominated_row(self, judgement: Judgement) -> int | None:
        """That row if the pod (still) fits there: then nothing else is looked at."""
        row = self._nominated_before_all()
        if row is None or not judgement.ok[row] or row in self.refusals:
            return None
        rows = np.array([row], dtype=np.int32)
        return row if len(self._ask_extenders(rows)) else None

    # ---- which rows ----

    def _only_within(self, ok: NDArray[np.bool_]) -> NDArray[np.bool_]:
        narrowed = np.zeros(len(ok), dtype=np.bool_)
        narrowed[self.search.within] = ok[self.search.within]
        return narrowed

    def _sample(self, ok: NDArray[np.bool_]) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
        """Feasible rows, as many as the profile wants to see, and the rows looked at (None: all)."""
        profile, names = self.evaluator.profile, self.preparation.names
        if profile.percentage is None and names is None and not profile.deterministic_ties:
            return np.flatnonzero(ok).astype(np.int32), None
        order = self.table.order()
        if self.search.within is not None:
            order = order[np.isin(order, self.search.within)]
        if names is not None:
            wanted = [row for name in names if (row := self.table.row_of.get(name)) is not None]
            order = order[np.isin(order, wanted)]
        if not len(order):
            return order, order
        start = self.search.start % len(order)
        rotated = np.concatenate((order[start:], order[:start]))
        hits = np.flatnonzero(ok[rotated])
        enough = self._enough(len(order))
        looked_at = rotated if len(hits) < enough else rotated[: hits[enough - 1] + 1]
        self.search.start = (self.search.start + len(looked_at)) % len(self.table)
        return rotated[hits[:enough]], looked_at

    def _enough(self, nodes: int) -> int:
        """How many feasible nodes end the search."""
        profile = self.evaluator.profile
        if not profile.at("score") and not profile.extenders:
            return 1
        percentage = profile.percentage
        if percentage is None or nodes < 100:
            return nodes
        if percentage == 0:
            percentage = max(5, 50 - nodes // 125)
        return max(100, nodes * percentage // 100)

    def _ask_extenders(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        for extender in self.evaluator.profile.extenders:
            if not len(rows) or not extender.filters or not extender.interested(self.cycle.pod):
                continue
            try:
                answer = extender.filter(self.cycle, rows)
            except ExtenderError:
                if extender.ignorable:
                    continue
                raise
            rows = answer.rows
            for row, (message, final) in answer.refused.items():
                self.refusals[row] = self.evaluator.codes.code(Verdict(PSEUDO_PLUGIN, (message,), final))
        return rows

    # ---- the answer ----

    def _choose_from_ranking(self, judgement: Judgement) -> Placed | None:
        """The short way, when all feasible rows are in question: the ranking of an earlier pod of the same signature,
        with the rows brought up to date that changed since. None if the long way has to be gone."""
        results, profile = self.cycle.results, self.evaluator.profile
        assert results is not None
        if (
            self.refusals or self.preparation.names is not None or profile.percentage is not None
            or profile.deterministic_ties or profile.extenders
        ):  # fmt: skip
            return None
        ranked, ok, within = results.ranked[: self.table.high], judgement.ok, self.search.within
        if within is not None:
            ranked, ok = ranked[within], ok[within]
        as_remembered = within is None and judgement.uncached is None
        feasible = results.feasible if as_remembered else int(np.count_nonzero(ok))
        if feasible < 2:
            return None
        nodes = Feasible(self.table, ok) if within is None else Nodes(self.table, np.sort(within[ok]))
        self.evaluator.prepare_scores(self.cycle, nodes)
        constant, varying = self.evaluator.beyond_ranking(self.cycle, nodes)
        if varying is not None:
            totals = nodes.take(results.ranked) + (varying + constant.offset)
            return self._chosen(ScoreSheet(nodes.row_numbers(), totals, constant.contributions), self.total)
        if not as_remembered:
            ranked = np.where(ok, ranked, -1)
        placed = _pick(self.cycle, ranked, constant, within, feasible=feasible, judged=self.total)
        if not self.search.nominated and self.evaluator.repeats(self.cycle):
            self.search.run = EqualPodRun(self.cycle, self.evaluator, constant, within)
            self.search.run.placed(self.cycle.cluster, placed.row)
        return placed

    def _choose(self, feasible: NDArray[np.int32], judged: int) -> Placed:
        nodes = Nodes(self.table, feasible)
        self.evaluator.prepare_scores(self.cycle, nodes)
        totals, contributions = self.evaluator.score(self.cycle, nodes)
        scored_outside = False
        for extender in self.evaluator.profile.extenders:
            if extender.prioritizes and extender.interested(self.cycle.pod):
                try:
                    totals = totals + extender.prioritize(self.cycle, feasible)
                    scored_outside = True
                except ExtenderError:
                    continue
        return self._chosen(ScoreSheet(feasible, totals, contributions), judged, scored_outside=scored_outside)

    def _chosen(self, sheet: ScoreSheet, judged: int, *, scored_outside: bool = False) -> Placed:
        best = self._best(sheet.totals, scored_outside)
        rest = sheet.totals.copy()
        rest[best] = np.iinfo(np.int64).min
        chosen, runner_up = sheet.candidate(best), sheet.candidate(int(rest.argmax()))
        return Placed(chosen.row, len(sheet.rows), judged, chosen, runner_up=runner_up, sheet=sheet)

    def _best(self, totals: NDArray[np.int64], scored_outside: bool) -> int:
        if self.evaluator.profile.deterministic_ties and not scored_outside:
            order = heap_preorder(len(totals))
            return int(order[totals[order].argmax()])
        ties = np.flatnonzero(totals == totals.max())
        return int(ties[self.cycle.rng.randrange(len(ties))] if len(ties) > 1 else ties[0])

    def _refused_early(self, status: Status) -> Blocked:
        nodes = self.total
        diagnosis = Diagnosis(
            total=nodes,
            counts={},
            absent=status,
            absent_count=nodes,
            early=status,
            unschedulable_plugins=self.preparation.rejectors,
        )
        return self._answer(diagnosis, np.full(self.table.high, UNJUDGED, dtype=np.int32))

    def _blocked(self, judgement: Judgement, judged: NDArray[np.int32] | None, *, by_extender: bool) -> Blocked:
        codes = np.full(self.table.high, UNJUDGED, dtype=np.int32)
        looked_at = judged
        if looked_at is None:
            looked_at = np.flatnonzero(self.table.alive[: self.table.high]).astype(np.int32)
            if self.search.within is not None:
                looked_at = self.search.within
        elif (nominated := self._nominated_before_all()) is not None:
            looked_at = np.append(looked_at, np.int32(nominated))
        codes[looked_at] = self.evaluator.refusals(self.cycle, judgement)[looked_at]
        if self.refusals:
            values = np.fromiter(self.refusals.values(), dtype=np.int32, count=len(self.refusals))
            rows = self._refused_rows()
            seen = codes[rows] != UNJUDGED  # who is nominated elsewhere matters to nobody here
            codes[rows[seen]] = values[seen]
        counts = self._counts(codes)
        absent, plugins = self._absent(codes), set(self.preparation.narrowed_by)
        plugins |= {verdict.plugin for verdict in counts}
        if by_extender:
            plugins.add(PSEUDO_PLUGIN)
        diagnosis = Diagnosis(
            total=self.total,
            counts=counts,
            absent=absent,
            absent_count=self.total - sum(counts.values()) if absent else 0,
            unschedulable_plugins=frozenset(plugins),
        )
        return self._answer(diagnosis, codes)

    def _answer(self, diagnosis: Diagnosis, codes: NDArray[np.int32]) -> Blocked:
        return Blocked(Refusals(diagnosis, codes, self.evaluator, self.search.nominated, self.search.promises))

    def _absent(self, codes: NDArray[np.int32]) -> Status | None:
        """Why nobody looked at the other rows. Whoever had refused the nominated one is named too."""
        if self.preparation.names is None:
            return None
        named = set(self.preparation.narrowed_by)
        nominated = self._nominated_before_all()
        if nominated is not None and codes[nominated] > FEASIBLE:
            named.add(self.evaluator.codes.verdict(int(codes[nominated])).plugin)
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(named))}]")

    def _counts(self, codes: NDArray[np.int32]) -> dict[Verdict, int]:
        refused = codes[codes > FEASIBLE]
        histogram = np.bincount(refused) if len(refused) else ()
        return {self.evaluator.codes.verdict(code): int(n) for code, n in enumerate(histogram) if n}


@lru_cache(maxsize=64)
def heap_preorder(size: int) -> NDArray[np.intp]:
    """Positions of a binary heap over a list, in pre-order: the order in which kube-scheduler's heap prefers equals."""
    order: list[int] = []
    waiting = [0] if size else []
    while waiting:
        position = waiting.pop()
        order.append(position)
        waiting += [child for child in (2 * position + 2, 2 * position + 1) if child < size]
    return np.array(order, dtype=np.intp)
