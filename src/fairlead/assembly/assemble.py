"""From a configuration to Profiles: the last step before scheduling.

Which plugins take part where, and in which order, is decided in kube/config/kube.py; here the names become plugins. A
plugin is made once per profile, whichever points it takes part in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.assembly.registry import METHOD_OF_POINT, PluginRegistry
from fairlead.core.family import families, resolve
from fairlead.core.framework.extended_plugin import ExtendedPlugin, extends
from fairlead.core.framework.plugin import takes_part
from fairlead.core.framework.profile import Profile
from fairlead.kube.config.finish import Finish
from fairlead.kube.config.gates import DEFAULT_GATES, KUBE_COMPATIBLE

if TYPE_CHECKING:
    from fairlead.core.framework.extender import Extender
    from fairlead.core.framework.plugin import Plugin
    from fairlead.kube.config.gates import Gates
    from fairlead.kube.config.records import KubeConfig, KubeProfile

_FOLLOWERS = {
    "normalize_score": "score", "add_pod": "pre_filter", "remove_pod": "pre_filter",
    "pod_group_post_filter": "post_filter",
}  # fmt: skip
"""Points without a list of their own in a configuration, each with the point whose list counts for it."""
_EXTENDED_FOLLOWERS = {"next_pod": "pre_enqueue", "before_pre_filter": "pre_filter", "preferred_nodes": "pre_filter"}
"""The same for points that kube-scheduler does not have."""


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
    settings: Sequence[object] = (),
) -> Profile:
    """`settings` are looked at by the families whose plugins the profile lists (`Family.finish`)."""
    config = _finished(config, Finish(gates, compatible, settings))
    made = {name: registry.create(name, config.args.get(name, {})) for name in sorted(config.listed)}
    points: dict[str, tuple[Plugin, ...]] = {}
    for point, method in METHOD_OF_POINT.items():
        plugins = (made[name] for name, _ in config.points.get(point, ()))
        # Where the original has a method that only fills a cache, ours has none.
        points[method] = tuple(plugin for plugin in plugins if takes_part(plugin, method))
    for follower, leader in _FOLLOWERS.items():
        points[follower] = tuple(plugin for plugin in points[leader] if takes_part(plugin, follower))
    extended = {
        follower: tuple(one for one in points[leader] if isinstance(one, ExtendedPlugin) and extends(one, follower))
        for follower, leader in _EXTENDED_FOLLOWERS.items()
    }
    everyone = dict.fromkeys([*(plugin for listed in points.values() for plugin in listed), *made.values()])
    extended["sync"] = tuple(one for one in everyone if isinstance(one, ExtendedPlugin) and extends(one, "sync"))
    return Profile(
        name=config.scheduler_name,
        points=points,
        extended=extended,
        weights=_weights(config, made),
        # All of them is what None says, and the short way to a choice is open only then.
        percentage=None if config.percentage_of_nodes_to_score == 100 else config.percentage_of_nodes_to_score,
        extenders=extenders,
        compatible=compatible,
    )


def _finished(config: KubeProfile, context: Finish) -> KubeProfile:
    """The profile as the families of its plugins need it."""
    for family in families():
        if family.finish and not config.listed.isdisjoint(family.plugins):
            config = resolve(family.finish)(config, context)
    return config


def _weights(config: KubeProfile, made: Mapping[str, Plugin]) -> dict[str, int]:
    """By the plugins' own names, which differ from the configuration's for a `module:Name`. A weight that nobody wrote
    is the plugin's own."""
    written = {ref.name for plugin_set in config.plugins.values() for ref in plugin_set.enabled if ref.weight}
    return {
        made[name].name: weight if name in written else made[name].weight * weight
        for name, weight in config.weights.items()
    }
