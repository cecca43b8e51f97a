"""Which plugins take part where: the default set, the user's changes to it, and its expansion to extension points.

A file says `multiPoint` and expects each plugin at every point it implements; it re-lists a plugin at one point to
change its order or weight there, and disables with a name or `*`. The rules are the original's and have corners: a
re-listed plugin moves to the front of its point and, without a weight, weighs 1 again.

Invariant: `expand` returns every point of POINTS, and no plugin twice at one point.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fairlead.kube.config.shapes import POINTS
from fairlead.kube.family import FAMILY

if TYPE_CHECKING:
    from fairlead.kube.config.gates import Gates

ANY = "*"
SCORING_POINTS = ("score", "placementScore")

PLUGIN_TYPES: Mapping[str, str] = {
    "preFilter": "PreFilterPlugin", "filter": "FilterPlugin", "postFilter": "PostFilterPlugin",
    "reserve": "ReservePlugin", "preScore": "PreScorePlugin", "score": "ScorePlugin", "preBind": "PreBindPlugin",
    "bind": "BindPlugin", "postBind": "PostBindPlugin", "permit": "PermitPlugin", "preEnqueue": "PreEnqueuePlugin",
    "queueSort": "QueueSortPlugin", "placementGenerate": "PlacementGeneratePlugin",
    "placementScore": "PlacementScorePlugin",
}  # fmt: skip
"""What the original's errors call a plugin of a point, in the order in which it looks at the points."""

Capabilities = Mapping[str, frozenset[str]]
"""The extension points that each plugin implements."""


IN_TREE: Capabilities = {name: entry.points or frozenset() for name, entry in FAMILY.plugins.items()}

_DEFAULT_WEIGHTS = {
    "TaintToleration": 3, "NodeAffinity": 2, "NodeResourcesFit": 1, "PodTopologySpread": 2, "InterPodAffinity": 2,
    "DynamicResources": 2, "NodeResourcesBalancedAllocation": 1, "ImageLocality": 1, "PodGroupPodsCount": 1,
}  # fmt: skip
_GATED = {
    "NodeDeclaredFeatures": "NodeDeclaredFeatures",
    "DynamicResources": "DynamicResourceAllocation",
    "GangScheduling": "GangScheduling",
    "TopologyPlacementGenerator": "TopologyAwareWorkloadScheduling",
    "PodGroupPodsCount": "TopologyAwareWorkloadScheduling",
}


@dataclass(frozen=True, slots=True)
class PluginRef:
    """A plugin named in a set; weight 0 is no weight."""

    name: str
    weight: int = 0


@dataclass(frozen=True, slots=True)
class PluginSet:
    enabled: tuple[PluginRef, ...] = ()
    disabled: tuple[str, ...] = ()


Plugins = Mapping[str, PluginSet]
"""By extension point, and `multiPoint`."""
Points = Mapping[str, tuple[tuple[str, int], ...]]
"""By extension point: the plugins in order with their weights (0 where nothing is scored)."""


def default_multi_point(gates: Gates) -> PluginSet:
    names = (name for name in IN_TREE if _GATED.get(name) is None or _GATED[name] in gates)
    return PluginSet(enabled=tuple(PluginRef(name, _DEFAULT_WEIGHTS.get(name, 0)) for name in names))


def read_plugins(fields: Mapping[str, Any]) -> Plugins:
    """The user's sets, as decoded."""
    return {point: _read_set(fields.get(point, {})) for point in (*POINTS, "multiPoint")}


def _read_set(fields: Mapping[str, Any]) -> PluginSet:
    return PluginSet(
        enabled=tuple(PluginRef(entry.get("name", ""), entry.get("weight", 0)) for entry in fields.get("enabled", ())),
        disabled=tuple(entry.get("name", "") for entry in fields.get("disabled", ())),
    )


def merge_plugins(user: Plugins, gates: Gates) -> Plugins:
    """The defaults, which are all at multiPoint, with the user's changes."""
    return {**user, "multiPoint": _merge(default_multi_point(gates), user["multiPoint"])}


def _merge(default: PluginSet, user: PluginSet) -> PluginSet:
    """A default that the user lists again keeps its place and takes the user's weight; the last mention counts, and
    earlier ones remain as the double registrations they are."""
    kept = () if ANY in user.disabled else tuple(ref for ref in default.enabled if ref.name not in user.disabled)
    last = {ref.name: at for at, ref in enumerate(user.enabled)}
    replaced = {last[ref.name] for ref in kept if ref.name in last}
    in_place = (user.enabled[last[ref.name]] if ref.name in last else ref for ref in kept)
    appended = (ref for at, ref in enumerate(user.enabled) if at not in replaced)
    return PluginSet(enabled=(*in_place, *appended), disabled=user.disabled)


def needed_plugins(plugins: Plugins) -> tuple[str, ...]:
    """Every plugin that is enabled anywhere, once, in alphabetical order."""
    return tuple(sorted({ref.name for plugin_set in plugins.values() for ref in plugin_set.enabled}))


def expand(plugins: Plugins, capabilities: Capabilities) -> Points:
    """The effective plugins of every point, in order, with weights."""
    return {point: _weighted(point, plugins, _order(point, plugins, capabilities)) for point in POINTS}


def _order(point: str, plugins: Plugins, capabilities: Capabilities) -> list[str]:
    """Re-listed plugins of multiPoint first, in the order they are re-listed; then what multiPoint brings; then what
    only this point lists."""
    here, everywhere = plugins[point], plugins["multiPoint"]
    explicit = list(dict.fromkeys(ref.name for ref in here.enabled if point in capabilities.get(ref.name, ())))
    if ANY in here.disabled:
        return explicit
    spread = [
        ref.name
        for ref in everywhere.enabled
        if point in capabilities.get(ref.name, ()) and ref.name not in here.disabled
    ]
    overriding = [name for name in explicit if name in spread]
    brought = list(dict.fromkeys(name for name in spread if name not in explicit))
    return [*overriding, *brought, *(name for name in explicit if name not in overriding)]


def _weighted(point: str, plugins: Plugins, names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    if point not in SCORING_POINTS:
        return tuple((name, 0) for name in names)
    weights = score_weights(point, plugins)
    return tuple((name, weights[name]) for name in names)


def score_weights(point: str, plugins: Plugins) -> Mapping[str, int]:
    """The point's own entry counts before multiPoint's, and no weight is a weight of 1."""
    weights: dict[str, int] = {}
    for ref in (*plugins[point].enabled, *plugins["multiPoint"].enabled):
        weights.setdefault(ref.name, ref.weight or 1)
    return weights
