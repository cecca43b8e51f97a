"""PluginPlan: a profile's plugins, sorted once by how their results are cached.

A plugin of scope CLUSTER is not cached. Of the others, those whose answers depend on a cache key or on Node objects
alone are *shared*: one set of results serves many signatures. The rest are *own*: called anew for every signature. A
profile with plugins that are not cached for every pod (`CachedPlugin.refresh`) has one plan for each combination.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Scope, takes_part
from fairlead.core.framework.results.cached_plugin import (
    CachedPlugin,
    misplaced_members,
    overrides,
    reads_of,
)
from fairlead.core.framework.results.pod_parts import unknown_parts
from fairlead.core.model.records import record
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.table import NodeTable
    from fairlead.core.state.touchlog import TouchLog


_BY_PODS = (Scope.COUNTED, Scope.ROW)


@record(frozen=True, slots=True, eq=False)
class AskedPlugins:
    """Cached plugins that are called before rows are judged: those that do not concern every pod (`selective`), and
    those with a PreFilter or a PreScore."""

    selective: list[Plugin]
    pre_filter: list[Plugin]
    pre_score: list[Plugin]


@record(frozen=True, slots=True, eq=False)
class OwnPlugins:
    """The plugins that are called for each signature. `scores` has their weights; `with_epochs` are those whose answers
    may become void all at once, and `answer_by_row` says whether all of them answer for a single row."""

    filters: list[Plugin]
    scores: list[tuple[Plugin, int]]
    with_epochs: list[CachedPlugin]
    answer_by_row: bool
    asked: AskedPlugins


class UncachedPlugins:
    """The plugins that are called for every pod, by point, and at whichever point (`at_all`)."""

    __slots__ = ("at_all", "filter_names", "filters", "pre_scorers", "scorers")

    def __init__(
        self, pre_filters: list[Plugin], filters: list[Plugin], pre_scorers: list[Plugin], scorers: list[Plugin]
    ) -> None:
        self.filters, self.pre_scorers, self.scorers = filters, pre_scorers, scorers
        self.filter_names = frozenset(plugin.name for plugin in filters)
        at_all = (*pre_filters, *filters, *pre_scorers, *scorers)
        self.at_all = tuple({plugin.name: plugin for plugin in at_all}.values())


class PluginPlan:
    """`apart` are the plugins that are of scope CLUSTER in this plan, though they are of another in general."""

    def __init__(self, profile: Profile, apart: frozenset[str] = frozenset()) -> None:
        self.profile = profile
        self.apart = apart
        plugins = profile.plugins()
        _check(plugins)
        self._with_keys = [p for p in plugins if isinstance(p, CachedPlugin) and self._has_key(p)]
        keyed = {plugin.name for plugin in self._with_keys}
        self._shared = keyed | {p.name for p in plugins if self._scope(p) is Scope.STATIC}
        self._key_has_signature = any(self._scope(p) is Scope.STATIC and p.name not in keyed for p in plugins)
        """Whether some shared plugin names no key: then results are shared within one signature only."""
        selective = [plugin for plugin in plugins if takes_part(plugin, "concerns")]
        self.filtering = {plugin.name for point in ("filter", "pre_filter") for plugin in profile.at(point)}
        self.weights = {plugin.name: profile.weight(plugin) for plugin in profile.at("score")}
        filters, scorers = self._own_at("filter"), self._own_at("score")
        self.own = OwnPlugins(
            filters=filters,
            scores=[(plugin, self.weights[plugin.name]) for plugin in scorers],
            with_epochs=with_epochs((*filters, *scorers)),
            answer_by_row=answer_by_row(filters, scorers),
            asked=self._asked(selective, shared=False),
        )
        self.shared = self._asked(selective, shared=True)
        self.uncached = UncachedPlugins(*map(self.uncached_at, ("pre_filter", "filter", "pre_score", "score")))
        self._reads_placed_pods = any(self._scope(p) is Scope.ROW for p in plugins)

    def _scope(self, plugin: Plugin) -> Scope:
        return Scope.CLUSTER if plugin.name in self.apart else plugin.scope

    def _has_key(self, plugin: Plugin) -> bool:
        return self._scope(plugin) is not Scope.CLUSTER and overrides(plugin, "cache_key")

    def uncached_at(self, point: str) -> list[Plugin]:
        """Those that are called for every pod."""
        return [plugin for plugin in self.profile.at(point) if self._scope(plugin) is Scope.CLUSTER]

    def pod_log(self, table: NodeTable) -> TouchLog:
        """The table's log of rows whose pods have changed in something that a cached answer depends on."""
        return table.content if self._reads_placed_pods else table.counted

    def _own_at(self, point: str) -> list[Plugin]:
        return [p for p in self.profile.at(point) if self._scope(p) in _BY_PODS and p.name not in self._shared]

    def _asked(self, selective: Iterable[Plugin], *, shared: bool) -> AskedPlugins:
        return AskedPlugins(
            [plugin for plugin in selective if (plugin.name in self._shared) is shared],
            self._cached_at("pre_filter", shared=shared),
            self._cached_at("pre_score", shared=shared),
        )

    def _cached_at(self, point: str, *, shared: bool) -> list[Plugin]:
        return [
            plugin
            for plugin in self.profile.at(point)
            if self._scope(plugin) is not Scope.CLUSTER and (plugin.name in self._shared) is shared
        ]

    def shared_key(self, pod: Pod, signature: Hashable) -> Hashable:
        """All that the shared plugins read of a pod: their cache keys, and the signature if one of them names none."""
        keys: list[Hashable] = [plugin.cache_key(pod) for plugin in self._with_keys]
        if self._key_has_signature:
            keys.append(signature)
        return tuple(keys)

    def shared_at(self, point: str, *, by_pods: bool) -> list[Plugin]:
        """Shared plugins that read the pods on a node, or those that do not."""
        shared = [plugin for plugin in self.profile.at(point) if plugin.name in self._shared]
        return [plugin for plugin in shared if (self._scope(plugin) in _BY_PODS) is by_pods]


def answer_by_row(filters: Sequence[Plugin], scores: Sequence[Plugin]) -> bool:
    """Whether all of these plugins answer for a single row."""
    return all(overrides(plugin, "filter_row") for plugin in filters) and all(
        overrides(plugin, "score_row") for plugin in scores
    )


def with_epochs(plugins: Iterable[Plugin]) -> list[CachedPlugin]:
    """Those of the plugins whose cached answers may become void all at once, each once though it filters and scores."""
    found = {id(one): one for one in plugins if isinstance(one, CachedPlugin) and overrides(one, "epoch")}
    return list(found.values())


def _check(plugins: Iterable[Plugin]) -> None:
    for plugin in plugins:
        if misplaced := misplaced_members(plugin):
            remedy = f"derive {type(plugin).__name__} from fairlead.CachedPlugin"
            raise FairleadError(f'plugin "{plugin.name}": {"; ".join(misplaced)}: {remedy}')
        if unknown := unknown_parts(reads_of(plugin)):
            raise FairleadError(f'plugin "{plugin.name}": reads: {", ".join(unknown)} is no part of a pod')
