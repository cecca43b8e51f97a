"""SharedResults: the results that many signatures share, because the plugins read equal fields of their pods.

Most cached plugins read little of a pod: its tolerations, its node affinity, its images. A thousand templates that
differ only in their requests are equal in those fields, so such plugins judge the rows once, not a thousand times.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from fairlead.core.framework.calls import call_plugin
from fairlead.core.framework.points import PreFilterAnswer, prescore_error, unless_skipped
from fairlead.core.framework.results.columns import ResultColumns, UniformScoreColumn
from fairlead.core.state.nodes import Nodes

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.results.plan import PluginPlan
    from fairlead.core.framework.verdicts import VerdictCodes


class Preparations:
    """The answers of cached plugins to PreFilter and PreScore, which depend on the pod alone: who steps aside, who
    refuses, and the notes they left."""

    __slots__ = ("answers", "no_filter", "no_score", "notes", "score_error")

    def __init__(self, start: Preparations | None = None) -> None:
        self.answers: dict[str, PreFilterAnswer] = {} if start is None else dict(start.answers)
        self.no_filter: set[str] = set() if start is None else set(start.no_filter)
        self.no_score: set[str] = set() if start is None else set(start.no_score)
        self.notes: dict[str, Any] = {}
        self.score_error: str = "" if start is None else start.score_error
        """Why nothing can be scored. It fails the attempt only if there are several rows to choose from."""

    def leave_out(self, selective: list[Plugin], cycle: Cycle, plan: PluginPlan) -> None:
        """Do not ask plugins that the pod does not concern."""
        for plugin in selective:
            if not plugin.concerns(cycle.pod):
                self.answers[plugin.name] = None
                if plugin.name in plan.filtering:
                    self.no_filter.add(plugin.name)
                if plugin.name in plan.weights:
                    self.no_score.add(plugin.name)

    def ask(self, cycle: Cycle, pre_filter: list[Plugin], pre_score: list[Plugin]) -> None:
        for plugin in pre_filter:
            if plugin.name not in self.answers:
                self.answers[plugin.name] = unless_skipped(
                    plugin, call_plugin(plugin, "pre_filter", cycle), self.no_filter
                )
        nodes = Nodes(cycle.cluster.table)
        for plugin in pre_score:
            if plugin.name not in self.no_score:
                said = call_plugin(plugin, "pre_score", cycle, nodes)
                if (error := prescore_error(plugin, said, self.no_score)) is not None:
                    self.no_score.add(plugin.name)
                    self.score_error = self.score_error or error
        self.notes = dict(cycle.notes)


class SharedResults:
    """All that is kept for one shared key: preparations, and two sets of columns. `static` follows changes of Node
    objects, `row` also changes of the pods on a node."""

    __slots__ = ("_pod_log", "_users", "in_ranking", "key", "preparations", "row", "scored", "static")

    def __init__(self, cycle: Cycle, key: Hashable, plan: PluginPlan, codes: VerdictCodes) -> None:
        self.key = key
        self._pod_log = plan.pod_log(cycle.cluster.table)
        self.preparations = preparations = Preparations()
        preparations.leave_out(plan.shared.selective, cycle, plan)
        preparations.ask(cycle, plan.shared.pre_filter, plan.shared.pre_score)
        self.static = self._columns(plan, cycle.cluster.table.capacity, codes, by_pods=False)
        self.row = self._columns(plan, cycle.cluster.table.capacity, codes, by_pods=True)
        self.scored = {scored.plugin.name: scored for columns in (self.static, self.row) for scored in columns.scores}
        self.in_ranking = [scored for scored in self.scored.values() if not scored.needs_normalising]
        self._users = 0

    def add_user(self) -> None:
        """One more cached signature has this key."""
        self._users += 1

    def remove_user(self) -> bool:
        """One cached signature less has this key; whether none is left."""
        self._users -= 1
        return not self._users

    def _columns(self, plan: PluginPlan, capacity: int, codes: VerdictCodes, *, by_pods: bool) -> ResultColumns:
        filters = [p for p in plan.shared_at("filter", by_pods=by_pods) if p.name not in self.preparations.no_filter]
        scores = [
            UniformScoreColumn(plugin, plan.weights[plugin.name], capacity)
            for plugin in plan.shared_at("score", by_pods=by_pods)
            if plugin.name not in self.preparations.no_score
        ]
        return ResultColumns(filters, scores, capacity, codes)

    def catch_up(self, cycle: Cycle) -> int:
        """Judge again the rows that changed since the last time; returns how many, some of them twice."""
        table = cycle.cluster.table
        judged = self.static.catch_up(cycle, table.static)
        if self.row.filters or self.row.scores:
            judged += self.row.catch_up(cycle, self._pod_log)
        return judged
