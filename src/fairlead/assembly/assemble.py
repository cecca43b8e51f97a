"""From a configuration to Profiles: the last step before scheduling.

Which plugins take part where, and in which order, is decided in kube/config/kube.py; here the names become plugins. A plugin
is made once per profile, whichever points it takes part in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.assembly.registry import METHOD_OF_POINT, PluginRegistry
from fairlead.core.framework.plugin import takes_part
from fairlead.core.framework.profile import Profile
from fairlead.koordinator.config.shapes import KOORDINATOR_POINTS
from fairlead.koordinator.records.quirks import KOORDINATOR_FIXED, KOORDINATOR_ORIGINAL
from fairlead.kube.config.gates import DEFAULT_GATES, KOORDINATOR_COMPATIBLE, KUBE_COMPATIBLE
from fairlead.kube.config.plugin_args import KoordinatorArgs, NodeResourcesBalancedAllocationArgs

if TYPE_CHECKING:
    from fairlead.core.framework.extender import Extender
    from fairlead.core.framework.plugin import Plugin
    from fairlead.koordinator.records.quirks import KoordinatorQuirks
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.plugin_args import Args
    from fairlead.kube.config.records import KubeConfig, KubeProfile

_FOLLOWERS = {
    "normalise": "score", "next_pod": "admit", "begin": "prepare", "prefer": "prepare", "added": "prepare",
    "removed": "prepare", "rescue_gang": "rescue",
}  # fmt: skip
"""Points without a list of their own in a configuration: who scores may normalise, who admits pods may say which is
next, who prepares may look before others do, prefer nodes and hear of trials, who rescues pods may rescue gangs."""
_RESERVATION = "Reservation"


def profiles_of(
    config: KubeConfig,
    registry: PluginRegistry | None = None,
    *,
    extenders: tuple[Extender, ...] = (),
    compatible: bool = False,
) -> list[Profile]:
    """`compatible` keeps bugs of the original that are mended otherwise, and so does the gate for it."""
    registry = registry or PluginRegistry()
    compatible = compatible or KUBE_COMPATIBLE in config.gates
    return [
        profile_from(profile, registry, extenders=extenders, gates=config.gates, compatible=compatible)
        for profile in config.profiles
    ]


def profile_from(
    config: KubeProfile,
    registry: PluginRegistry,
    *,
    extenders: tuple[Extender, ...] = (),
    gates: Gates = DEFAULT_GATES,
    compatible: bool = False,
    quirks: KoordinatorQuirks | None = None,
) -> Profile:
    """`quirks` are the slips of Koordinator that are kept; None is all if the profile is compatible, else none."""
    listed = {name for entries in config.points.values() for name, _ in entries}
    quirks = quirks or _koordinator_quirks(listed, gates, compatible=compatible)
    made = {name: registry.create(name, _args(config, name, gates, quirks)) for name in sorted(listed)}
    points: dict[str, tuple[Plugin, ...]] = {}
    for point, method in METHOD_OF_POINT.items():
        plugins = (made[name] for name in _names_at(config, point, quirks))
        # Where the original has a method that only fills a cache, ours has none.
        points[method] = tuple(plugin for plugin in plugins if takes_part(plugin, method))
    for follower, leader in _FOLLOWERS.items():
        points[follower] = tuple(plugin for plugin in points[leader] if takes_part(plugin, follower))
    return Profile(
        name=config.scheduler_name,
        points=points,
        weights=_weights(config, made),
        # All of them is what None says, and the short way to a choice is open only then.
        percentage=None if config.percentage_of_nodes_to_score == 100 else config.percentage_of_nodes_to_score,
        extenders=extenders,
        compatible=compatible,
    )


def _names_at(config: KubeProfile, point: str, quirks: KoordinatorQuirks) -> list[str]:
    """The plugins at a point. Koordinator's own file leaves Reservation out under `reserve`."""
    names = [name for name, _ in config.points.get(point, ())]
    filters = any(name == _RESERVATION for name, _ in config.points.get("filter", ()))
    if point == "reserve" and filters and _RESERVATION not in names and not quirks.reservation_not_reserved:
        return [_RESERVATION, *names]
    return names


def _koordinator_quirks(listed: set[str], gates: Gates, *, compatible: bool) -> KoordinatorQuirks:
    """The slips that are kept in a profile; none where no plugin is Koordinator's."""
    kept = (compatible or KOORDINATOR_COMPATIBLE in gates) and not listed.isdisjoint(KOORDINATOR_POINTS)
    return KOORDINATOR_ORIGINAL if kept else KOORDINATOR_FIXED


def _args(config: KubeProfile, name: str, gates: Gates, quirks: KoordinatorQuirks) -> Args:
    """A plugin's args from the file, with what depends on feature gates and on the slips that are kept."""
    args = config.args.get(name, {})
    if name in KOORDINATOR_POINTS:
        assert isinstance(args, Mapping), "they are read by the plugin's factory"
        return KoordinatorArgs(args, gates, quirks)
    if isinstance(args, NodeResourcesBalancedAllocationArgs) and quirks.balances_without_gain:
        return replace(args, by_gain=False)
    if name == "GangScheduling" and isinstance(args, Mapping):
        return {"preemption": "PodGroup" if "WorkloadAwarePreemption" in gates else "Pod", **args}
    return args


def _weights(config: KubeProfile, made: Mapping[str, Plugin]) -> dict[str, int]:
    """By the plugins' own names, which differ from the configuration's for a `module:Name`. A weight that nobody wrote
    is the plugin's own."""
    written = {ref.name for plugin_set in config.plugins.values() for ref in plugin_set.enabled if ref.weight}
    return {
        made[name].name: weight if name in written else made[name].weight * weight
        for name, weight in config.weights.items()
    }
