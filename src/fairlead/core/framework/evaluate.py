"""Evaluator: calls a profile's plugins at PreFilter, Filter, PreScore and Score, for one attempt after the other.

Filters and scores answer for all rows at once, in columns. Plugins of scope CLUSTER are called every time, here; the
others are called through the result cache (core/framework/results/), which calls them again only for rows that changed.
Which plugins are called, and in which order, can be read here without the cache.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairlead.core.framework.calls import all_stand_aside, call_plugin, check_range, passing, refusals_by, scores_by
from fairlead.core.framework.plugin import Scope, takes_part
from fairlead.core.framework.points import ALL_NODES, PreFilterAnswer, PreFilterResult, merge_pre_filter, prescore_error
from fairlead.core.framework.results.cache import ResultCache
from fairlead.core.framework.results.cached_plugin import CachedPlugin, overrides
from fairlead.core.framework.results.constant import ConstantPart, Contribution
from fairlead.core.framework.verdicts import FEASIBLE, VerdictCodes
from fairlead.core.state.nodes import Nodes
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.framework.results.signature import SignatureResults


@dataclass(slots=True)
class Judgement:
    """Which rows are feasible. `uncached` holds the refusal codes of the plugins that are not cached, if any."""

    ok: NDArray[np.bool_]
    uncached: NDArray[np.int32] | None


class BeyondRanking(NamedTuple):
    """What is added to the cached ranking: a constant for every row, and a part that varies, in the order of the
    feasible rows (None if nothing varies)."""

    constant: ConstantPart
    varying: NDArray[np.int64] | None


class Evaluator:
    """One profile's plugins, called for one attempt after the other."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.codes = VerdictCodes(plugin.name for plugin in profile.at("filter"))
        self.cache = ResultCache(profile, self.codes)
        self._scorers = [(plugin, profile.weight(plugin)) for plugin in profile.at("score")]
        self._filter_by_row = {p.name for p in profile.at("filter") if overrides(p, "filter_row")}
        self.rows_judged = 0
        """How many rows plugins judged, for tests and benchmarks."""

    # ---- PreFilter ----

    def pre_filter(self, cycle: Cycle) -> PreFilterResult:
        """PreFilter: every plugin looks at the pod once."""
        results = self.cache.results_for(cycle)
        if cycle.meter is None and self._all_stand_aside(cycle, results):
            return ALL_NODES

        def answer(plugin: Plugin) -> PreFilterAnswer:
            if plugin.name in results.prepared:
                return results.prepared[plugin.name]
            return call_plugin(plugin, "pre_filter", cycle)  # type: ignore[no-any-return]

        return merge_pre_filter(results.to_pre_filter, answer, cycle.no_filter)

    def _all_stand_aside(self, cycle: Cycle, results: SignatureResults) -> bool:
        """Whether no plugin that is not cached has anything to say about the pod, which is what most pods find."""
        aside = results.aside
        if aside.plugins is None or not all_stand_aside(aside.plugins, cycle):
            return False
        cycle.aside, cycle.no_filter, cycle.no_score = True, set(aside.no_filter), set(aside.no_score)
        return True

    # ---- Filter ----

    def catch_up(self, cycle: Cycle) -> SignatureResults:
        """Filter and Score of the cached plugins: bring the results of the pod's signature up to date."""
        results = cycle.results
        assert results is not None
        self.rows_judged += results.catch_up(cycle)
        return results

    def judge(self, cycle: Cycle) -> Judgement:
        """Filter: which rows of the whole table are feasible, without regard to nominated pods."""
        return self._judged(cycle, None)

    def _judged(self, cycle: Cycle, plugins: Sequence[Plugin] | None) -> Judgement:
        """The cached plugins' answers brought up to date, and those of some that are not cached (None: of all)."""
        results = self.catch_up(cycle)
        ok = results.ok[: cycle.cluster.table.high]
        if plugins is None:  # most often all of them have stepped aside
            plugins = () if results.plan.uncached.filter_names <= cycle.no_filter else results.plan.uncached.filters
        uncached = self._refused_uncached(cycle, plugins) if plugins else None
        return Judgement(ok if uncached is None else ok & (uncached == FEASIBLE), uncached)

    def _refused_uncached(self, cycle: Cycle, plugins: Sequence[Plugin]) -> NDArray[np.int32] | None:
        """Of each row, the code of the first of these plugins that refuses it; None if none refuses any."""
        table = cycle.cluster.table
        uncached: NDArray[np.int32] | None = None
        nodes = Nodes(table)
        for plugin in plugins:
            if plugin.name not in cycle.no_filter:
                refused = refusals_by(plugin, cycle, nodes, self.codes)
                self.rows_judged += table.high
                if refused is not None:
                    uncached = refused if uncached is None else np.where(uncached == FEASIBLE, refused, uncached)
        return uncached

    def repeats(self, cycle: Cycle) -> bool:
        """Whether the plugins that are not cached need not be called for the next pod if it is identical to this one:
        they stepped aside or gave all rows the same score, and placing this pod does not change that. Those of
        `called_in_runs` are."""
        results = cycle.results
        assert results is not None
        called = results.called_in_runs
        return called is not None and (
            results.plan.uncached.filter_names <= cycle.no_filter
            or all(p.name in cycle.no_filter or p in called for p in results.plan.uncached.filters)
        )

    def called_in_runs(self, cycle: Cycle) -> list[CachedPlugin]:
        """The plugins that have to be called for each pod that is identical to this one."""
        results = cycle.results
        assert results is not None
        return [plugin for plugin in results.called_in_runs or () if plugin.name not in cycle.no_filter]

    def judge_again(self, cycle: Cycle, plugins: Sequence[CachedPlugin]) -> NDArray[np.bool_] | None:
        """Filter for a pod that is identical to the one before: only these plugins are called, and the results of the
        others are brought up to date. Returns the mask of feasible rows; None if one of the plugins does not let the
        pod pass PreFilter, if a filter failed on a row, or if other plugins are cached for it."""
        results = cycle.results
        assert results is not None
        if self.cache.refreshed_plan(cycle) is not results.plan:
            return None
        for plugin in plugins:
            if call_plugin(plugin, "pre_filter", cycle) is not None:
                return None
        if self.codes.errors:
            judgement = self._judged(cycle, plugins)
            failed = self.codes.first_error(self.refusals(cycle, judgement)) is not None
            return None if failed else judgement.ok
        table = cycle.cluster.table
        nodes = Nodes(table)
        ok: NDArray[np.bool_] | None = self.catch_up(cycle).ok[: table.high]
        for plugin in plugins:
            self.rows_judged += table.high
            ok = passing(plugin, cycle, nodes, ok) if ok is not None else None
        return ok

    def uniform_score(self, cycle: Cycle, plugin: CachedPlugin, nodes: Nodes) -> int | None:
        """What a plugin that is not cached scores every one of these rows with; None if it is not the same for all."""
        results = cycle.results
        assert results is not None
        if plugin.name in cycle.no_score or plugin not in results.plan.uncached.scorers:
            return 0
        said = scores_by(plugin, cycle, nodes)
        return said if isinstance(said, int) else None

    def refusals(self, cycle: Cycle, judgement: Judgement) -> NDArray[np.int32]:
        """Of each row, the code of the plugin that refused it first, in filter order."""
        results = cycle.results
        assert results is not None
        high = cycle.cluster.table.high
        columns = results.refusals(cycle, high)
        if judgement.uncached is not None:
            columns.append(judgement.uncached)
        return self.codes.first_of(*columns)

    def judge_rows(self, cycle: Cycle, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """Filter some rows without the cache, for trials, in which the table is not as it really is."""
        nodes = Nodes(cycle.cluster.table, rows)
        self.rows_judged += len(rows)
        codes = np.zeros(len(rows), dtype=np.int32)
        for plugin in self.profile.at("filter"):
            if plugin.name not in cycle.no_filter:
                refused = refusals_by(plugin, cycle, nodes, self.codes)
                if refused is not None:
                    codes = np.where(codes == FEASIBLE, refused, codes)
                    if codes.all():
                        break
        return codes

    def judge_row(self, cycle: Cycle, row: int) -> int:
        """Filter a single row without the cache. A plugin of scope STATIC that did not refuse the row when the attempt
        began is not called again: a trial moves pods, and leaves Node objects as they are."""
        results = cycle.results
        assert results is not None
        passes_static = bool(results.static.codes[row] == FEASIBLE)
        self.rows_judged += 1
        alone: Nodes | None = None
        for plugin in self.profile.at("filter"):
            if plugin.name in cycle.no_filter or (passes_static and plugin.scope is Scope.STATIC):
                continue
            if plugin.name in self._filter_by_row:
                verdict = call_plugin(plugin, "filter_row", cycle, row)
                if verdict is not None:
                    return self.codes.code(verdict)
                continue
            alone = alone or Nodes(cycle.cluster.table, np.array([row], dtype=np.int32))
            refused = refusals_by(plugin, cycle, alone, self.codes)
            if refused is not None and refused[0] != FEASIBLE:
                return int(refused[0])
        return FEASIBLE

    # ---- PreScore and Score ----

    def score(self, cycle: Cycle, nodes: Nodes) -> tuple[NDArray[np.int64], Sequence[Contribution]]:
        """Score: totals of the feasible rows, and who contributed what. `pre_score` has been called before."""
        results = cycle.results
        assert results is not None
        constant, varying = self.beyond_ranking(cycle, nodes)
        total = nodes.take(results.ranked).astype(np.int64) + constant.offset
        return total if varying is None else total + varying, constant.contributions

    def beyond_ranking(self, cycle: Cycle, nodes: Nodes) -> BeyondRanking:
        """What the feasible rows get on top of the cached ranking: scores that are normalised, and scores of plugins
        that are not cached. If each of them gives all rows the same, the sum is kept for later pods."""
        results = cycle.results
        assert results is not None
        uniform = results.uniform_scores()
        if None in uniform:
            return self._add_up(cycle, results, nodes, {})
        if cycle.aside:
            said = results.aside.scores
        else:
            scorers = results.plan.uncached.scorers
            said = {p.name: scores_by(p, cycle, nodes) for p in scorers if p.name not in cycle.no_score}
            if not all(isinstance(answer, int) for answer in said.values()):
                return self._add_up(cycle, results, nodes, said)
        key = (uniform, *said.items())
        constant = results.constants.get(key)
        if constant is None:
            constant = results.constants[key] = self._add_up(cycle, results, nodes, said).constant
        return BeyondRanking(constant, None)

    def _add_up(self, cycle: Cycle, results: SignatureResults, nodes: Nodes, said: Mapping[str, Any]) -> BeyondRanking:
        """Add up scorer by scorer; `said` are the answers that are known already."""
        offset, varying = 0, None
        contributions: list[Contribution] = []
        for plugin, weight in self._scorers:
            if plugin.name in cycle.no_score:
                continue
            scored = results.scored.get(plugin.name)
            if scored is not None and (uniform := scored.beyond_ranking) is not None:
                offset += uniform
                contributions.append(scored.contribution)
                continue
            raw = said.get(plugin.name)
            if raw is None:
                raw = nodes.take(scored.column) if scored is not None else scores_by(plugin, cycle, nodes)
            if isinstance(raw, int):
                check_range(plugin.name, raw, raw)
                offset += raw * weight
                contributions.append(Contribution(plugin.name, weight, uniform=raw * weight))
                continue
            values = (
                call_plugin(plugin, "normalize_score", cycle, nodes, raw)
                if takes_part(plugin, "normalize_score")
                else raw
            )
            if len(values):
                check_range(plugin.name, int(values.min()), int(values.max()))
            weighted = values.astype(np.int64, copy=False) * weight  # plugins of users may answer in narrower numbers
            varying = weighted if varying is None else varying + weighted
            contributions.append(Contribution(plugin.name, weight, weighted=weighted))
        return BeyondRanking(ConstantPart(offset, contributions), varying)

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> None:
        """PreScore: which plugins step aside. An error of any of them fails the attempt."""
        results = cycle.results
        assert results is not None
        if results.score_error:
            raise FairleadError(results.score_error)
        if cycle.aside:
            return
        for plugin in results.plan.uncached.pre_scorers:
            if plugin.name not in cycle.no_score:
                said = call_plugin(plugin, "pre_score", cycle, nodes)
                if said is not None and (error := prescore_error(plugin, said, cycle.no_score)) is not None:
                    raise FairleadError(error)
