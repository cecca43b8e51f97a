"""Runs filters and scores over Nodes, column by column, remembering by signature and scope.

An Evaluator belongs to one profile. For each attempt it prepares the plugins, finds the feasible rows, and weighs them;
when nothing is feasible it says why, row by row. Plugins whose scope is STATIC or ROW are answered from memory
(framework/remember.py); the others are asked every time.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from fairlead.errors import FairleadError
from fairlead.framework.common import Common, Roster
from fairlead.framework.layers import Contribution, Even, asked, check_range, judged
from fairlead.framework.plugin import Scope, takes_part
from fairlead.framework.points import Preparation, merge_prepared
from fairlead.framework.remember import Remembered
from fairlead.framework.verdicts import FEASIBLE, VerdictCodes
from fairlead.model.reasons import Code, Status
from fairlead.state.nodes import Nodes

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence

    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.plugin import Plugin
    from fairlead.framework.profile import Profile
    from fairlead.model.pod import Pod

_MEMORY_BYTES = 256 << 20
"""Remembered columns beyond this are forgotten, least recently used first."""
_BYTES_PER_ROW = 8
_BYTES_PER_ROW_IN_COMMON = 32


@dataclass(slots=True)
class Judgement:
    """Which rows are feasible. `dynamic` holds the refusal codes of the plugins that are not remembered, if any."""

    ok: NDArray[np.bool_]
    dynamic: NDArray[np.int32] | None


class Weighed(NamedTuple):
    """What is added to the remembered ranking: to every row, and to the feasible ones in their order (None if nothing
    that differs)."""

    even: Even
    uneven: NDArray[np.int64] | None


class Evaluator:
    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        self.codes = VerdictCodes(plugin.name for plugin in profile.at("filter"))
        self._reads = frozenset[str]().union(*(p.reads for p in profile.plugins() if p.scope is not Scope.CLUSTER))
        self._dynamic_filters = [p for p in profile.at("filter") if p.scope is Scope.CLUSTER]
        self._row_twins = {p.name for p in profile.at("filter") if takes_part(p, "filter_row")}
        self._dynamic_preparers = [p for p in profile.at("prepare_scores") if p.scope is Scope.CLUSTER]
        self._scorers = [(plugin, profile.weight(plugin)) for plugin in profile.at("score")]
        self._dynamic_scorers = [plugin for plugin, _ in self._scorers if plugin.scope is Scope.CLUSTER]
        points = ("prepare", "filter", "prepare_scores", "score")
        dynamic = [p for point in points for p in profile.at(point) if p.scope is Scope.CLUSTER]
        self._dynamic = {plugin.name: plugin for plugin in dynamic}
        self._roster = Roster(profile)
        self._memory: OrderedDict[Hashable, Remembered] = OrderedDict()
        self._commons: dict[Hashable, Common] = {}
        self.rows_judged = 0

    # ---- memory ----

    def signature(self, pod: Pod) -> Hashable:
        """What the remembered plugins can read of a pod."""
        reads = self._reads
        if reads <= {"spec", "node"}:
            return (pod.shape, pod.node_name) if pod.node_name else pod.shape
        return (
            pod.shape,
            pod.node_name,
            pod.namespace if "namespace" in reads else None,
            frozenset(pod.labels.items()) if "labels" in reads else None,
            frozenset(pod.annotations.items()) if "annotations" in reads else None,
            pod.uid if "name" in reads else None,
        )

    def recall(self, cycle: Cycle) -> Remembered:
        """What is known of pods like this one, brought up to date; or a new page for them."""
        signature = self.signature(cycle.pod)
        remembered = self._memory.get(signature)
        if remembered is None:
            remembered = self._memory[signature] = self._meet(cycle, signature)
            self._forget_oldest(remembered.capacity)
        else:
            self._memory.move_to_end(signature)
            cycle.notes.update(remembered.notes)
        cycle.no_filter = set(remembered.no_filter)
        cycle.no_score = set(remembered.no_score)
        cycle.remembered = remembered
        return remembered

    def _meet(self, cycle: Cycle, signature: Hashable) -> Remembered:
        facets = self._roster.facets(cycle.pod, signature)
        common = self._commons.get(facets)
        if common is None:
            common = Common(cycle, facets, self._roster, self.codes)
        remembered = Remembered(cycle, self._roster, common, self.codes)
        self._commons[facets] = common
        common.users += 1
        pod = cycle.pod
        concerned = [plugin for plugin in self._dynamic.values() if plugin.concerns(pod)]
        remembered.unmoved = "name" not in self._reads and all(plugin.unmoved_by(pod) for plugin in concerned)
        return remembered

    def _forget_oldest(self, capacity: int) -> None:
        limit = _MEMORY_BYTES // capacity
        memory, commons = self._memory, self._commons
        while len(memory) > 16 and len(memory) * _BYTES_PER_ROW + len(commons) * _BYTES_PER_ROW_IN_COMMON > limit:
            _, forgotten = memory.popitem(last=False)
            forgotten.common.users -= 1
            if not forgotten.common.users:
                del commons[forgotten.common.facets]

    def forget(self) -> None:
        """Drop all that is remembered."""
        self._memory.clear()
        self._commons.clear()

    # ---- prepare ----

    def prepare(self, cycle: Cycle) -> Preparation:
        """PreFilter: every plugin looks at the pod once."""
        remembered = self.recall(cycle)

        def answer(plugin: Plugin) -> Status | frozenset[str] | None:
            if plugin.name in remembered.prepared:
                return remembered.prepared[plugin.name]
            return asked(plugin, "prepare", cycle)  # type: ignore[no-any-return]

        return merge_prepared(remembered.to_prepare, answer, cycle.no_filter)

    # ---- filter ----

    def catch_up(self, cycle: Cycle) -> Remembered:
        """What is remembered, brought up to date."""
        remembered = cycle.remembered
        assert remembered is not None
        before = remembered.rows_judged + remembered.common.rows_judged
        remembered.catch_up(cycle)
        self.rows_judged += remembered.rows_judged + remembered.common.rows_judged - before
        return remembered

    def judge(self, cycle: Cycle) -> Judgement:
        """Which rows of the whole table are feasible, without regard to nominations."""
        remembered = self.catch_up(cycle)
        table = cycle.cluster.table
        ok = remembered.ok[: table.high]
        dynamic: NDArray[np.int32] | None = None
        nodes = Nodes(table)
        for plugin in self._dynamic_filters:
            if plugin.name not in cycle.no_filter:
                cycle.refused = dynamic
                refused = judged(cycle, plugin, nodes, self.codes)
                self.rows_judged += table.high
                if refused is not None:
                    dynamic = refused if dynamic is None else np.where(dynamic == FEASIBLE, refused, dynamic)
        cycle.refused = None
        return Judgement(ok if dynamic is None else ok & (dynamic == FEASIBLE), dynamic)

    def repeats(self, cycle: Cycle) -> bool:
        """Whether those who are asked every time need not be for the next pod, if it is like this one: they stepped
        aside, or give all rows the same, and this one's place does not change that."""
        remembered = cycle.remembered
        assert remembered is not None
        return remembered.unmoved and all(plugin.name in cycle.no_filter for plugin in self._dynamic_filters)

    def refusals(self, cycle: Cycle, judgement: Judgement) -> NDArray[np.int32]:
        """The code of the first refusing plugin of each row, for those that explain."""
        remembered = cycle.remembered
        assert remembered is not None
        high = cycle.cluster.table.high
        columns = remembered.refusals(high)
        if judgement.dynamic is not None:
            columns.append(judgement.dynamic)
        return self.codes.first_of(*columns)

    def judge_rows(self, cycle: Cycle, rows: NDArray[np.int32]) -> NDArray[np.int32]:
        """First refusals of some rows as they are now, from no memory: for trials, where the table only pretends."""
        nodes = Nodes(cycle.cluster.table, rows)
        self.rows_judged += len(rows)
        codes = np.zeros(len(rows), dtype=np.int32)
        for plugin in self.profile.at("filter"):
            if plugin.name not in cycle.no_filter:
                refused = judged(cycle, plugin, nodes, self.codes)
                if refused is not None:
                    codes = np.where(codes == FEASIBLE, refused, codes)
                    if codes.all():
                        break
        return codes

    def judge_row(self, cycle: Cycle, row: int) -> int:
        """The same for a single row, where arrays are all overhead. Who looks at the Node object alone and had nothing
        against it when the attempt began has nothing in a trial either."""
        remembered = cycle.remembered
        assert remembered is not None
        passes_by_itself = bool(remembered.static.codes[row] == FEASIBLE)
        self.rows_judged += 1
        alone: Nodes | None = None
        for plugin in self.profile.at("filter"):
            if plugin.name in cycle.no_filter or (passes_by_itself and plugin.scope is Scope.STATIC):
                continue
            if plugin.name in self._row_twins:
                verdict = asked(plugin, "filter_row", cycle, row)
                if verdict is not None:
                    return self.codes.code(verdict)
                continue
            alone = alone or Nodes(cycle.cluster.table, np.array([row], dtype=np.int32))
            refused = judged(cycle, plugin, alone, self.codes)
            if refused is not None and refused[0] != FEASIBLE:
                return int(refused[0])
        return FEASIBLE

    # ---- score ----

    def score(self, cycle: Cycle, nodes: Nodes) -> tuple[NDArray[np.int64], Sequence[Contribution]]:
        """Totals of the feasible rows, and who contributed what. `prepare_scores` has been asked before."""
        remembered = cycle.remembered
        assert remembered is not None
        even, uneven = self.weigh(cycle, nodes)
        total = nodes.take(remembered.ranked).astype(np.int64) + even.offset
        return total if uneven is None else total + uneven, even.contributions

    def weigh(self, cycle: Cycle, nodes: Nodes) -> Weighed:
        """What the feasible rows get on top of the remembered ranking. If it is the same for all of them, it is what an
        earlier pod of the same signature got, as long as nobody says anything else."""
        remembered = cycle.remembered
        assert remembered is not None
        levels = remembered.levels()
        if None in levels:
            return self._add_up(cycle, remembered, nodes, {})
        said = {p.name: asked(p, "score", cycle, nodes) for p in self._dynamic_scorers if p.name not in cycle.no_score}
        if not all(isinstance(answer, int) for answer in said.values()):
            return self._add_up(cycle, remembered, nodes, said)
        key = (levels, *said.items())
        even = remembered.even.get(key)
        if even is None:
            even = remembered.even[key] = self._add_up(cycle, remembered, nodes, said).even
        return Weighed(even, None)

    def _add_up(self, cycle: Cycle, remembered: Remembered, nodes: Nodes, said: Mapping[str, Any]) -> Weighed:
        """Scorer by scorer; `said` are answers that are known already."""
        offset, uneven = 0, None
        contributions: list[Contribution] = []
        for plugin, weight in self._scorers:
            if plugin.name in cycle.no_score:
                continue
            scored = remembered.scored.get(plugin.name)
            if scored is not None and (flat := scored.same_for_all) is not None:
                offset += flat
                contributions.append(scored.contribution)
                continue
            raw = said.get(plugin.name)
            if raw is None:
                raw = nodes.take(scored.column) if scored is not None else asked(plugin, "score", cycle, nodes)
            if isinstance(raw, int):
                check_range(plugin.name, raw, raw)
                offset += raw * weight
                contributions.append(Contribution(plugin.name, weight, flat=raw * weight))
                continue
            values = asked(plugin, "normalise", cycle, nodes, raw) if takes_part(plugin, "normalise") else raw
            if len(values):
                check_range(plugin.name, int(values.min()), int(values.max()))
            weighted = values.astype(np.int64, copy=False) * weight  # plugins of users may answer in narrower numbers
            uneven = weighted if uneven is None else uneven + weighted
            contributions.append(Contribution(plugin.name, weight, weighted=weighted))
        return Weighed(Even(offset, contributions), uneven)

    def prepare_scores(self, cycle: Cycle, nodes: Nodes) -> None:
        """PreScore: who steps aside."""
        if cycle.remembered is not None and cycle.remembered.score_error:
            raise FairleadError(cycle.remembered.score_error)
        for plugin in self._dynamic_preparers:
            if plugin.name not in cycle.no_score:
                answer = asked(plugin, "prepare_scores", cycle, nodes)
                if answer is not None and answer.code is Code.SKIP:
                    cycle.no_score.add(plugin.name)
                elif answer is not None and not answer.ok:
                    raise FairleadError(f'running PreScore plugin "{plugin.name}": {answer.message}')
