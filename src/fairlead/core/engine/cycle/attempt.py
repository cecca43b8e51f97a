"""One attempt at one pod, from PreFilter to Permit: what schedule_one.go is in kube-scheduler. Read it top to bottom.

    attempt ─▶ place:  PreFilter ─▶ Filter ─▶ the nominated node, if it fits
                                 └─▶ sampling ─▶ extenders ─▶ PreScore, Score ─▶ the choice
            ─▶ no node:  PostFilter
            ─▶ a node:   assume ─▶ Reserve ─▶ Permit; the rest is core/engine/cycle/binding.py

The steps and their order are kube-scheduler's. Plugins are called through the Evaluator (core/framework/evaluate.py).
The attempt ends in a value: `Committed`, a placement that is ASSUMED and may begin its way to the API, `Failure`, or
`Rescue`. Placements go through a Statement, so that a refusal by Reserve or Permit leaves no trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.cycle.choice import best_of_ranking, best_of_sheet
from fairlead.core.engine.cycle.diagnosis import refused_by_prefilter, refused_everywhere
from fairlead.core.engine.cycle.nominated import refused_for_nominated
from fairlead.core.engine.cycle.outcome import Failure, RoomMade
from fairlead.core.engine.cycle.placement import Blocked, Broken, Placed, ScoredRow, ScoreSheet, Search
from fairlead.core.engine.cycle.run import EqualPodRun, next_of_run
from fairlead.core.framework.calls import call_plugin
from fairlead.core.framework.extender import PSEUDO_PLUGIN, answers_of, note_answers
from fairlead.core.framework.points import (
    Permission,
    PreFilterResult,
    merge_permit,
    merge_post_filter,
    merge_reserve,
    unreserve,
)
from fairlead.core.framework.refusals import UNJUDGED, expected_on, judge_with
from fairlead.core.framework.results.constant import Contribution
from fairlead.core.framework.sampling import enough_nodes
from fairlead.core.framework.verdicts import FEASIBLE
from fairlead.core.model.reasons import Code, Diagnosis, Status, Verdict, failed, with_rescue
from fairlead.core.model.records import record
from fairlead.core.state.nodes import Feasible, Nodes
from fairlead.core.state.statement import assume_on
from fairlead.errors import ExtenderError, FairleadError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.evaluate import Evaluator, Judgement
    from fairlead.core.framework.plugin import PostFilterResult
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.pod import Pod

NO_NODES = "no nodes available to schedule pods"


@record(frozen=True, slots=True)
class Committed:
    """A pod that is assumed on a row, and what Permit said."""

    placed: Placed
    permission: Permission


@record(frozen=True, slots=True)
class Rescue:
    """A failure after which room is being made: the victims, and the node that they leave for the pod that failed."""

    failure: Failure
    rescued: PostFilterResult


def attempt(cycle: Cycle, evaluator: Evaluator, search: Search) -> Committed | Failure | Rescue:
    """Find a node for the cycle's pod and assume it there; or make room; or say why not."""
    try:
        answer = place(cycle, evaluator, search)
        if isinstance(answer, Broken):
            return Failure(answer.status, answer.status.message)
        if isinstance(answer, Blocked):
            return rescue(cycle, answer.refusals)
    finally:
        end_search(cycle)
    return _commit(cycle, answer)


def end_search(cycle: Cycle) -> None:
    """Call those that were called before PreFilter once more, the last of them first."""
    if begun := cycle.profile.extended_at("before_pre_filter"):
        for plugin in reversed(begun):
            plugin.after_search(cycle)


def place(cycle: Cycle, evaluator: Evaluator, search: Search) -> Placed | Blocked | Broken:
    """Choose a node for the cycle's pod."""
    if not cycle.cluster.table.row_of:
        return Broken(failed(NO_NODES))
    cycle.cluster.begin_cycle()
    try:
        # A shortcut with the same result, for a pod that is equal to the one placed just before it.
        placed = next_of_run(cycle, evaluator, search)
        return _NodeSearch(cycle, evaluator, search).run() if placed is None else placed
    except FairleadError as error:
        return Broken(failed(str(error)))


class _NodeSearch:
    """One search for a node; `run` is the way through it."""

    def __init__(self, cycle: Cycle, evaluator: Evaluator, search: Search) -> None:
        self.cycle = cycle
        self.evaluator = evaluator
        self.search = search
        self.table = cycle.cluster.table
        self.refusals: dict[int, int] = {}
        """Rows that the filters pass, or refuse for another reason, and that are refused because of nominated pods or
        by an extender."""
        self.total = len(self.table) if search.within is None else len(search.within)

    def run(self) -> Placed | Blocked | Broken:
        cycle, evaluator, search = self.cycle, self.evaluator, self.search
        # Before PreFilter
        if (refused := self._before_pre_filter()) is not None:
            return refused
        if cycle.view is not None and not self._chooses_from_ranking():
            cycle.view.show(None)
        # PreFilter
        preparation = evaluator.pre_filter(cycle)
        if preparation.status is not None:
            return self._refused_by_prefilter(preparation.status, preparation)
        # Filter, without and with nominated pods
        judgement = evaluator.judge(cycle)
        self.refusals = refused_for_nominated(cycle, evaluator, search)
        # The nominated node ends the search if it fits.
        nominated = self._fitting_nominated_row(judgement)
        if nominated is not None:
            return Placed(nominated, feasible=1, judged=1, chosen=ScoredRow(nominated, 0))
        # Nodes that a plugin wants to be tried first
        preferred = self._fitting_preferred_row(preparation, judgement)
        if isinstance(preferred, (Blocked, Broken)):
            return preferred
        if preferred is not None:
            return Placed(preferred, feasible=1, judged=1, chosen=ScoredRow(preferred, 0))
        errors = bool(evaluator.codes.errors) and self._first_error(judgement, None) is not None
        if not errors and (placed := self._choose_from_ranking(preparation, judgement)) is not None:
            return placed
        if cycle.view is not None:
            cycle.view.show(None)
        # Sampling: which rows count as looked at. An error of a filter on one of them ends the attempt.
        feasible, judged = self._sample(preparation, self._passing(judgement))
        if errors and (error := self._first_error(judgement, judged)) is not None:
            return Broken(failed(*error.reasons))
        # Extenders
        found = len(feasible)
        feasible = self._ask_extenders(feasible)
        if not len(feasible):
            return self._blocked(preparation, judgement, judged, by_extender=found > 0)
        # The choice. A single feasible row is not scored.
        count = self.total if judged is None else len(judged)
        if len(feasible) == 1:
            row = int(feasible[0])
            return Placed(row, feasible=1, judged=count, chosen=ScoredRow(row, 0))
        return self._score_and_choose(feasible, count)

    # ---- before PreFilter ----

    def _before_pre_filter(self) -> Blocked | Broken | None:
        """Call the plugins that see the pod before all others do; the first refusal ends the search."""
        for plugin in self.cycle.profile.extended_at("before_pre_filter"):
            said: Status | None = call_plugin(plugin, "before_pre_filter", self.cycle)
            if said is not None and not said.ok:
                self.evaluator.cache.results_for(self.cycle)
                status = said.by(plugin.name)
                return self._refused_by_prefilter(status, PreFilterResult(rejectors=frozenset({plugin.name})))
        return None

    # ---- PreFilter refused ----

    def _refused_by_prefilter(self, status: Status, preparation: PreFilterResult) -> Blocked | Broken:
        if not status.code.rejected:
            return Broken(status)
        return refused_by_prefilter(
            status, preparation, self.evaluator, self.search, total=self.total, high=self.table.high
        )

    # ---- the nominated node ----

    def _nominated_row(self) -> int | None:
        """The row that this pod is nominated to (or had before, if its bind failed). It is looked at first, even if
        PreFilter excluded it."""
        name, within = self.cycle.pod.nominated_node, self.search.within
        row = self.table.row_of.get(name) if name else None
        row = row if self.search.preferred_row < 0 else self.search.preferred_row
        return row if row is None or within is None or row in within else None

    def _fitting_nominated_row(self, judgement: Judgement) -> int | None:
        """That row if the pod fits there: then no other is looked at, and errors on others do not count."""
        row = self._nominated_row()
        if row is None or not judgement.ok[row] or row in self.refusals:
            return None
        rows = np.array([row], dtype=np.int32)
        return row if len(self._ask_extenders(rows)) else None

    # ---- preferred nodes ----

    def _fitting_preferred_row(
        self, preparation: PreFilterResult, judgement: Judgement
    ) -> int | Blocked | Broken | None:
        """The first of the nodes that a plugin prefers on which the pod fits."""
        for plugin in self.cycle.profile.extended_at("preferred_nodes"):
            said: Sequence[str] | Status = call_plugin(
                plugin, "preferred_nodes", self.cycle, preparation.names, self._try_row
            )
            if isinstance(said, Status):
                return self._refused_by_prefilter(
                    said.by(plugin.name), PreFilterResult(rejectors=frozenset({plugin.name}))
                )
            for name in said:
                row = self.table.row_of.get(name)
                if row is not None and judgement.ok[row] and row not in self.refusals:
                    return row
        return None

    def _try_row(self, row: int, there: Sequence[Pod], own: frozenset[str]) -> int:
        """The verdict on a row if some pods were there too, and those nominated to it, but for `own`."""
        nominated = expected_on(self.search.nominated, self.cycle.pod, row)
        others = [pod for pod in nominated if pod.uid not in own]
        if others:
            code = judge_with(self.cycle, self.evaluator, row, [*there, *others])
            if code != FEASIBLE:
                return code
        return judge_with(self.cycle, self.evaluator, row, there)

    # ---- which rows are looked at ----

    def _passing(self, judgement: Judgement) -> NDArray[np.bool_]:
        """Rows that pass all filters, with and without nominated pods."""
        ok, within = judgement.ok, self.search.within
        if within is not None:
            ok = np.zeros(len(judgement.ok), dtype=np.bool_)
            ok[within] = judgement.ok[within]
        if self.refusals:
            ok = ok.copy()
            ok[self._refused_rows()] = False
        return ok

    def _refused_rows(self) -> NDArray[np.intp]:
        return np.fromiter(self.refusals, dtype=np.intp, count=len(self.refusals))

    def _sample(
        self, preparation: PreFilterResult, ok: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int32], NDArray[np.int32] | None]:
        """Feasible rows, as many as the profile wants to see, and the rows looked at (None: all)."""
        profile, names = self.evaluator.profile, preparation.names
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
        last = self.search.last
        start = last.start % len(order)
        rotated = np.concatenate((order[start:], order[:start]))
        hits = np.flatnonzero(ok[rotated])
        enough = self._enough(len(order))
        looked_at = rotated if len(hits) < enough else rotated[: hits[enough - 1] + 1]
        last.start = (last.start + len(looked_at)) % len(self.table)
        return rotated[hits[:enough]], looked_at

    def _enough(self, nodes: int) -> int:
        """How many feasible rows end the search; without anything to score with, the first."""
        profile = self.evaluator.profile
        if not profile.at("score") and not profile.extenders:
            return 1
        return nodes if profile.percentage is None else enough_nodes(nodes, profile.percentage)

    def _ask_extenders(self, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """The rows that are left when the extenders have filtered them, one after the other."""
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
            answers = note_answers(self.cycle, extender)
            answers.kept = tuple(map(self.table.name, rows.tolist()))
            answers.refused = {self.table.name(row): said for row, said in answer.refused.items()}
        return rows

    # ---- no row is left ----

    def _verdicts(self, judgement: Judgement, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Of each row of the table, the code of its refusal; UNJUDGED for all but some rows."""
        codes = np.full(self.table.high, UNJUDGED, dtype=np.int32)
        codes[rows] = self.evaluator.refusals(self.cycle, judgement)[rows]
        if self.refusals:
            values = np.fromiter(self.refusals.values(), dtype=np.int32, count=len(self.refusals))
            refused = self._refused_rows()
            judged = codes[refused] != UNJUDGED
            codes[refused[judged]] = values[judged]
        return codes

    def _looked_at(self, judged: NDArray[np.int32] | None) -> NDArray[np.int32]:
        if judged is not None:
            return judged
        if self.search.within is not None:
            return self.search.within
        return np.flatnonzero(self.table.alive[: self.table.high]).astype(np.int32)

    def _first_error(self, judgement: Judgement, judged: NDArray[np.int32] | None) -> Verdict | None:
        """The error of a filter on the first row, of those looked at, that has one. It fails the whole attempt."""
        rows = self._looked_at(judged)
        return self.evaluator.codes.first_error(self._verdicts(judgement, rows)[rows])

    def _blocked(
        self, preparation: PreFilterResult, judgement: Judgement, judged: NDArray[np.int32] | None, *, by_extender: bool
    ) -> Blocked:
        rows, nominated = self._looked_at(judged), self._nominated_row()
        if judged is not None and nominated is not None:
            rows = np.append(rows, np.int32(nominated))
        codes = self._verdicts(judgement, rows)
        if nominated is not None and int(codes[nominated]) in self.evaluator.codes.errors:
            codes[nominated] = UNJUDGED  # an error on the nominated row is only logged, if the search excludes that row
        return refused_everywhere(
            codes,
            preparation,
            self.evaluator,
            self.search,
            total=self.total,
            nominated=nominated,
            by_extender=by_extender,
        )

    # ---- PreScore, Score and the choice ----

    def _score_and_choose(self, feasible: NDArray[np.int32], judged: int) -> Placed:
        nodes = Nodes(self.table, feasible)
        self.evaluator.pre_score(self.cycle, nodes)
        totals, contributions = self.evaluator.score(self.cycle, nodes)
        outside = self._scores_of_extenders(feasible)
        for _, scores in outside:
            totals = totals + scores
        contributions = [*contributions, *(Contribution(name, 1, weighted=scores) for name, scores in outside)]
        heap_order = self.evaluator.profile.deterministic_ties and not outside
        sheet = ScoreSheet(feasible, totals, contributions)
        return best_of_sheet(sheet, judged, self.cycle.rng, heap_order=heap_order)

    def _scores_of_extenders(self, feasible: NDArray[np.int32]) -> list[tuple[str, NDArray[np.int64]]]:
        """The weighted scores of the extenders that answer, each under the extender's name."""
        found = []
        for extender in self.evaluator.profile.extenders:
            if extender.prioritizes and extender.interested(self.cycle.pod):
                with suppress(ExtenderError):
                    scores = extender.prioritize(self.cycle, feasible)
                    found.append((f"extender {extender.name}", scores))
                    names = map(self.table.name, feasible.tolist())
                    answers = note_answers(self.cycle, extender)
                    answers.scores = dict(zip(names, scores.tolist(), strict=True))
        return found

    def _ranks_all(self) -> bool:
        """Whether every feasible row is in question, and nobody outside scores."""
        profile = self.evaluator.profile
        return profile.percentage is None and not profile.deterministic_ties and not profile.extenders

    def _chooses_from_ranking(self) -> bool:
        """Whether the ranking is all that the search looks at, as far as can be said before it."""
        search = self.search
        return (
            self._ranks_all()
            and not search.nominated
            and search.preferred_row < 0
            and not self.cycle.pod.nominated_node
        )

    def _choose_from_ranking(self, preparation: PreFilterResult, judgement: Judgement) -> Placed | None:
        """The same with less work, where every feasible row is in question: scores are the cached ranking of pods like
        this one (docs/result-cache.md) and what comes on top of it. None if there are not several feasible rows, or if
        something stands against it."""
        results = self.cycle.results
        assert results is not None
        if self.refusals or preparation.names is not None or not self._ranks_all():
            return None
        ranked, ok, within = results.ranked[: self.table.high], judgement.ok, self.search.within
        if within is not None:
            ranked, ok = ranked[within], ok[within]
        as_cached = within is None and judgement.uncached is None
        feasible = results.feasible if as_cached else int(np.count_nonzero(ok))
        if feasible < 2:
            return None
        nodes = Feasible(self.table, ok) if within is None else Nodes(self.table, np.sort(within[ok]))
        self.evaluator.pre_score(self.cycle, nodes)
        constant, varying = self.evaluator.beyond_ranking(self.cycle, nodes)
        if varying is not None:
            totals = nodes.take(results.ranked) + (varying + constant.offset)
            sheet = ScoreSheet(nodes.row_numbers(), totals, constant.contributions)
            return best_of_sheet(sheet, self.total, self.cycle.rng, heap_order=False)
        if not as_cached:
            ranked = np.where(ok, ranked, -1)
        placed = best_of_ranking(self.cycle, ranked, constant, within, feasible=feasible, judged=self.total)
        # An equal pod is looked at again by plugins with points of their own.
        if not self.search.nominated and self.evaluator.repeats(self.cycle) and not self.cycle.profile.is_extended:
            run, last = EqualPodRun(self.cycle, self.evaluator, constant, within), self.search.last
            last.run = run
            run.placed(self.cycle.cluster, placed.row)
        return placed


def score_sheet(cycle: Cycle, evaluator: Evaluator) -> ScoreSheet:
    """Every feasible row with every plugin's score, for a cycle that has been prepared and a table that has not changed
    since: a choice from the ranking does not work them out."""
    judgement = evaluator.judge(cycle)
    nodes = Nodes(cycle.cluster.table, np.flatnonzero(judgement.ok).astype(np.int32))
    totals, contributions = evaluator.score(cycle, nodes)
    return ScoreSheet(nodes.row_numbers(), totals, contributions)


# ---- PostFilter ----


def rescue(cycle: Cycle, refusals: Refusals) -> Failure | Rescue:
    """PostFilter: no row is feasible; can room be made?"""
    diagnosis = refusals.diagnosis
    plugins = cycle.profile.at("post_filter")
    blamed = diagnosis.unschedulable_plugins
    if not plugins:
        status = Status(Code.UNSCHEDULABLE, (diagnosis.message,))
        return Failure(status, diagnosis.message, blamed, diagnosis.pending_plugins, refusals=refusals)
    try:
        rescued = merge_post_filter(
            (plugin.name, call_plugin(plugin, "post_filter", cycle, refusals)) for plugin in plugins
        )
    except FairleadError as error:
        return Failure(failed(str(error)), str(error))
    text = "" if rescued.status.ok else rescued.status.message
    message = with_rescue(diagnosis.message, text)
    failure = Failure(
        Status(Code.UNSCHEDULABLE, (message,)),
        message,
        blamed,
        diagnosis.pending_plugins,
        nominated=rescued.nominated,
        refusals=refusals,
        room=_room_made(rescued),
        victims=rescued.victims,
        extended=answers_of(cycle),
    )
    return Rescue(failure, rescued) if rescued.status.ok else failure


def _room_made(rescued: PostFilterResult) -> RoomMade:
    if rescued.status.ok:
        return RoomMade.VICTIMS
    return RoomMade.NOT_TRIED if rescued.nominated is None else RoomMade.IN_VAIN


# ---- assume, Reserve, Permit ----


def _commit(cycle: Cycle, placed: Placed) -> Committed | Failure:
    said = commit_on(cycle, placed.row)
    return said if isinstance(said, Failure) else Committed(placed, said)


def commit_on(cycle: Cycle, row: int) -> Permission | Failure:
    """Assume the pod on a row, then ask Reserve and Permit; if one refuses, take it back."""
    assume_on(cycle.cluster, cycle.pod, row)
    try:
        refused = merge_reserve(cycle, row)
        if refused is None:
            permission = merge_permit(cycle, row)
            if permission.status is None:
                return permission
            refused = permission.status
    except FairleadError as error:
        refused = failed(str(error))
    undo(cycle, row)
    return refused_on_node(refused)


def undo(cycle: Cycle, row: int) -> Pod | None:
    """Unreserve, then forget the placement, whatever Unreserve raised; returns the pod as it was placed, or None if it
    was not assumed any more."""
    try:
        unreserve(cycle, row)
    finally:
        left = cycle.cluster.forget(cycle.pod.uid)
    return left


def refused_on_node(status: Status) -> Failure:
    """A refusal after a node was chosen speaks of that one node: `0/1 nodes are available: ...`."""
    if not status.code.rejected:
        return Failure(status, status.message)
    verdict = Verdict(status.plugin, status.reasons, status.code is Code.UNRESOLVABLE)
    diagnosis = Diagnosis(total=1, counts={verdict: 1})
    plugins = frozenset({status.plugin})
    pending = plugins if status.code is Code.PENDING else frozenset[str]()
    return Failure(status, diagnosis.message, plugins, pending)
