"""From a configuration to Profiles: the last step before scheduling.

Which plugins take part where, and in which order, is decided in config/kube.py; here the names become plugins. A plugin
is made once per profile, whichever points it takes part in.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.config.registry import METHOD_OF_POINT, Registry
from fairlead.framework.plugin import takes_part
from fairlead.framework.profile import Profile

if TYPE_CHECKING:
    from fairlead.config.kube_records import KubeConfig, KubeProfile
    from fairlead.framework.extender import Extender
    from fairlead.framework.plugin import Plugin

_WITH_FILTERS = ("added", "removed")
"""Points that kube-scheduler has no list of its own for: whoever prepares hears of trials."""


def profiles_of(
    config: KubeConfig, registry: Registry | None = None, *, extenders: tuple[Extender, ...] = ()
) -> list[Profile]:
    registry = registry or Registry()
    return [profile_from(profile, registry, extenders=extenders) for profile in config.profiles]


def profile_from(config: KubeProfile, registry: Registry, *, extenders: tuple[Extender, ...] = ()) -> Profile:
    listed = {name for entries in config.points.values() for name, _ in entries}
    made = {name: registry.create(name, config.args.get(name, {})) for name in sorted(listed)}
    points = {
        METHOD_OF_POINT[point]: _plugins(entries, made)
        for point, entries in config.points.items()
        if point in METHOD_OF_POINT
    }
    points["normalise"] = tuple(plugin for plugin in points["score"] if takes_part(plugin, "normalise"))
    for point in _WITH_FILTERS:
        points[point] = tuple(plugin for plugin in points["prepare"] if takes_part(plugin, point))
    return Profile(
        name=config.scheduler_name,
        points=points,
        weights=config.weights,
        percentage=config.percentage_of_nodes_to_score,
        extenders=extenders,
    )


def _plugins(entries: tuple[tuple[str, int], ...], made: Mapping[str, Plugin]) -> tuple[Plugin, ...]:
    return tuple(made[name] for name, _ in entries)
