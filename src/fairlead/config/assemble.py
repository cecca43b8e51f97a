"""From a configuration to Profiles: the last step before scheduling.

Which plugins take part where, and in which order, is decided in config/kube.py; here the names become plugins. A plugin
is made once per profile, whichever points it takes part in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.config.gates import DEFAULT_GATES, KUBE_COMPATIBLE
from fairlead.config.registry import METHOD_OF_POINT, PluginRegistry
from fairlead.framework.plugin import takes_part
from fairlead.framework.profile import Profile

if TYPE_CHECKING:
    from fairlead.config.gates import Gates
    from fairlead.config.kube_records import KubeConfig, KubeProfile
    from fairlead.config.plugin_args import Args
    from fairlead.framework.extender import Extender
    from fairlead.framework.plugin import Plugin

_FOLLOWERS = {"normalise": "score", "added": "prepare", "removed": "prepare", "rescue_gang": "rescue"}
"""Points without a list of their own in a configuration: who scores may normalise, who prepares hears of trials, who
rescues pods may rescue gangs."""


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
) -> Profile:
    listed = {name for entries in config.points.values() for name, _ in entries}
    made = {name: registry.create(name, _args(config, name, gates)) for name in sorted(listed)}
    points: dict[str, tuple[Plugin, ...]] = {}
    for point, method in METHOD_OF_POINT.items():
        plugins = (made[name] for name, _ in config.points.get(point, ()))
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


def _args(config: KubeProfile, name: str, gates: Gates) -> Args:
    """A plugin's args from the file, with defaults that depend on feature gates."""
    args = config.args.get(name, {})
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
