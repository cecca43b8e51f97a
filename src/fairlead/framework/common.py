"""Common: what is kept once for all pods that are alike in what its plugins read of them.

Most remembered plugins read a facet of the pod: its tolerations, its node affinity, its images. A thousand shapes that
differ in nothing but their requests have those facets in common, so what such plugins say of the rows is judged once,
not a thousand times. `Roster` sorts a profile's plugins by how they are asked.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

from fairlead.framework.layers import Layer, LevelScored, asked
from fairlead.framework.plugin import Scope, takes_part
from fairlead.model.reasons import Code, Status
from fairlead.state.nodes import Nodes

if TYPE_CHECKING:
    from fairlead.framework.cycle import Cycle
    from fairlead.framework.plugin import Plugin
    from fairlead.framework.profile import Profile
    from fairlead.framework.verdicts import VerdictCodes
    from fairlead.model.pod import Pod

Said = Status | frozenset[str] | None


class Roster:
    """A profile's plugins, sorted once. `shared` are the remembered ones that read no more of a pod than a facet, or
    only look at Node objects; `own` are the remembered ones that are asked anew for every signature."""

    def __init__(self, profile: Profile) -> None:
        self.profile = profile
        plugins = profile.plugins()
        self._shared = {p.name for p in plugins if p.scope is Scope.STATIC or _shares(p)}
        self._with_facets = [plugin for plugin in plugins if _shares(plugin)]
        self._by_signature = any(p.scope is Scope.STATIC and not _shares(p) for p in plugins)
        choosy = [plugin for plugin in plugins if takes_part(plugin, "concerns")]
        self.shared_choosy = [plugin for plugin in choosy if plugin.name in self._shared]
        self.own_choosy = [plugin for plugin in choosy if plugin.name not in self._shared]
        """Those that do not concern every pod."""
        self.filtering = {plugin.name for point in ("filter", "prepare") for plugin in profile.at(point)}
        self.weights = {plugin.name: profile.weight(plugin) for plugin in profile.at("score")}
        self.own_filters = [p for p in profile.at("filter") if p.scope is Scope.ROW and p.name not in self._shared]
        own_scores = [p for p in profile.at("score") if p.scope is Scope.ROW and p.name not in self._shared]
        self.own_scores = [(plugin, self.weights[plugin.name]) for plugin in own_scores]
        self.own_have_epochs = any(takes_part(plugin, "epoch") for plugin in (*self.own_filters, *own_scores))
        self.own_have_row_twins = all(takes_part(p, "filter_row") for p in self.own_filters) and all(
            takes_part(plugin, "score_row") for plugin in own_scores
        )
        """Whether all of them can be asked about a single row."""
        self.own_prepare = self._remembered("prepare", shared=False)
        self.own_prepare_scores = self._remembered("prepare_scores", shared=False)
        self.shared_prepare = self._remembered("prepare", shared=True)
        self.shared_prepare_scores = self._remembered("prepare_scores", shared=True)

    def _remembered(self, point: str, *, shared: bool) -> list[Plugin]:
        return [
            plugin
            for plugin in self.profile.at(point)
            if plugin.scope is not Scope.CLUSTER and (plugin.name in self._shared) is shared
        ]

    def facets(self, pod: Pod, signature: Hashable) -> Hashable:
        """What the shared plugins read of a pod."""
        facets: list[Hashable] = [plugin.facet(pod) for plugin in self._with_facets]
        if self._by_signature:
            facets.append(signature)
        return tuple(facets)

    def shared_at(self, point: str, scope: Scope) -> list[Plugin]:
        return [p for p in self.profile.at(point) if p.scope is scope and p.name in self._shared]


def _shares(plugin: Plugin) -> bool:
    return plugin.scope is not Scope.CLUSTER and takes_part(plugin, "facet")


class Preparations:
    """What plugins said when they were asked about the pod alone: who steps aside, who refuses, who left which note."""

    __slots__ = ("no_filter", "no_score", "notes", "said", "score_error")

    def __init__(self, start: Preparations | None = None) -> None:
        self.said: dict[str, Said] = {} if start is None else dict(start.said)
        self.no_filter: set[str] = set() if start is None else set(start.no_filter)
        self.no_score: set[str] = set() if start is None else set(start.no_score)
        self.notes: dict[str, Any] = {}
        self.score_error: str = "" if start is None else start.score_error
        """Why nothing can be scored. Nobody hears of it unless there are several rows to choose from."""

    def leave_out(self, choosy: list[Plugin], cycle: Cycle, roster: Roster) -> None:
        """Plugins whom the pod does not concern are not asked at all."""
        for plugin in choosy:
            if not plugin.concerns(cycle.pod):
                self.said[plugin.name] = None
                if plugin.name in roster.filtering:
                    self.no_filter.add(plugin.name)
                if plugin.name in roster.weights:
                    self.no_score.add(plugin.name)

    def ask(self, cycle: Cycle, prepare: list[Plugin], prepare_scores: list[Plugin]) -> None:
        for plugin in prepare:
            if plugin.name not in self.said:
                answer = asked(plugin, "prepare", cycle)
                if isinstance(answer, Status) and answer.code is Code.SKIP:
                    self.no_filter.add(plugin.name)
                    answer = None
                self.said[plugin.name] = answer
        nodes = Nodes(cycle.cluster.table)
        for plugin in prepare_scores:
            if plugin.name not in self.no_score:
                answer = asked(plugin, "prepare_scores", cycle, nodes)
                if isinstance(answer, Status) and answer.code is Code.SKIP:
                    self.no_score.add(plugin.name)
                elif isinstance(answer, Status) and not answer.ok:
                    self.no_score.add(plugin.name)
                    self.score_error = self.score_error or f'running PreScore plugin "{plugin.name}": {answer.message}'
        self.notes = dict(cycle.notes)


class Common:
    """All that is kept for some facets: preparations, and two layers. `static` follows what Node objects say, `row`
    also what lies on the nodes."""

    __slots__ = ("added", "facets", "preparations", "row", "scored", "static", "users")

    def __init__(self, cycle: Cycle, facets: Hashable, roster: Roster, codes: VerdictCodes) -> None:
        self.facets = facets
        self.preparations = preparations = Preparations()
        preparations.leave_out(roster.shared_choosy, cycle, roster)
        preparations.ask(cycle, roster.shared_prepare, roster.shared_prepare_scores)
        self.static = self._layer(roster, Scope.STATIC, cycle.cluster.table.capacity, codes)
        self.row = self._layer(roster, Scope.ROW, cycle.cluster.table.capacity, codes)
        self.scored = {scored.plugin.name: scored for layer in (self.static, self.row) for scored in layer.scores}
        self.added = [scored for scored in self.scored.values() if not scored.needs_normalising]
        self.users = 0
        """How many signatures have these facets."""

    def _layer(self, roster: Roster, scope: Scope, capacity: int, codes: VerdictCodes) -> Layer:
        filters = [p for p in roster.shared_at("filter", scope) if p.name not in self.preparations.no_filter]
        scores = [
            LevelScored(plugin, roster.weights[plugin.name], capacity)
            for plugin in roster.shared_at("score", scope)
            if plugin.name not in self.preparations.no_score
        ]
        return Layer(filters, scores, capacity, codes)

    def catch_up(self, cycle: Cycle) -> None:
        table = cycle.cluster.table
        self.static.catch_up(cycle, table.static)
        if self.row.filters or self.row.scores:
            self.row.catch_up(cycle, table.content)

    @property
    def rows_judged(self) -> int:
        return self.static.rows_judged + self.row.rows_judged
