"""Profile: which plugins schedule the pods of one scheduler name, at which points and with which weights.

A profile serves the pods that name it in `spec.schedulerName`. It lists, for each extension point, the plugins in
asking order, and the weights of their scores. Plugins are instances; no plugin is known here by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Protocol

from fairlead.core.framework.extended_plugin import EXTENDED_POINTS, ExtendedPlugin, extends
from fairlead.core.framework.plugin import POINTS, takes_part

if TYPE_CHECKING:
    from fairlead.core.framework.extender import Extender
    from fairlead.core.framework.gang import GangRules
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.model.flow import OutsideWork


class ModeSettings(Protocol):
    """What a profile says of the scheduling mode by which it works."""

    @property
    def made_by(self) -> str:
        """The name of the mode in the record of its family (`Family.modes`)."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """`points` maps a point (a method of Plugin) to its plugins in order. `percentage` is percentageOfNodesToScore:
    None scores all feasible nodes, 0 is kube-scheduler's adaptive formula."""

    name: str
    points: Mapping[str, tuple[Plugin, ...]]
    weights: Mapping[str, int] = field(default_factory=dict)
    extended: Mapping[str, tuple[ExtendedPlugin, ...]] = field(default_factory=dict)
    """The same for the points of ExtendedPlugin."""
    percentage: int | None = None
    deterministic_ties: bool = False
    """Break ties as kube-scheduler's heap would if it saw nodes in tree order, instead of by the seeded rng."""
    extenders: tuple[Extender, ...] = ()
    mode: ModeSettings | None = None
    """The settings of another scheduling mode. None: pods are placed one by one, by the plugins above."""
    compatible: bool = False
    """Keep the original's bugs where decisions differ for them."""
    gangs: GangRules | None = field(init=False, default=None)
    """How groups are scheduled as wholes, taken from the plugin that says it; None schedules members singly."""

    is_extended: bool = field(init=False, default=False)
    """Whether a plugin takes part in a search at a point that kube-scheduler does not have."""

    def __post_init__(self) -> None:
        in_search = self.extended_at("before_pre_filter") or self.extended_at("preferred_nodes")
        object.__setattr__(self, "is_extended", bool(in_search))
        rules = (plugin.gang_rules for plugin in self.plugins() if plugin.gang_rules is not None)
        object.__setattr__(self, "gangs", next(rules, None))

    def at(self, point: str) -> tuple[Plugin, ...]:
        return self.points.get(point, ())

    def extended_at(self, point: str) -> tuple[ExtendedPlugin, ...]:
        """The plugins at a point that kube-scheduler does not have."""
        return self.extended.get(point, ())

    def weight(self, plugin: Plugin) -> int:
        return self.weights.get(plugin.name) or plugin.weight

    def plugins(self) -> tuple[Plugin, ...]:
        """Every plugin once, in order of first mention."""
        lists = (*map(self.at, POINTS), *map(self.extended_at, EXTENDED_POINTS))
        return tuple({id(plugin): plugin for listed in lists for plugin in listed}.values())

    def outside(self) -> list[OutsideWork]:
        """What its plugins and extenders do in threads."""
        of_plugins = [plugin.outside for plugin in self.plugins()]
        of_extenders = [extender.outside for extender in self.extenders]
        return [work for work in of_plugins + of_extenders if work is not None]

    def with_plugins(self, more: Sequence[Plugin]) -> Profile:
        """The same profile, with further plugins after the others at every point that they override. There is one order
        of the queue: a further plugin that has one takes the place of the profile's."""
        points = {point: (*self.at(point), *(one for one in more if takes_part(one, point))) for point in POINTS}
        points["queue_key"] = points["queue_key"][-1:]
        extended = {point: (*self.extended_at(point), *_extending(more, point)) for point in EXTENDED_POINTS}
        return replace(self, points=points, extended=extended)


def profile_of(
    name: str,
    plugins: Iterable[Plugin],
    *,
    weights: Mapping[str, int] | None = None,
    percentage: int | None = None,
    deterministic_ties: bool = False,
) -> Profile:
    """A profile in which each plugin takes part at every point it overrides, in the order given."""
    listed: Sequence[Plugin] = tuple(plugins)
    points = {point: tuple(plugin for plugin in listed if takes_part(plugin, point)) for point in POINTS}
    return Profile(
        name=name,
        points=points,
        extended={point: _extending(listed, point) for point in EXTENDED_POINTS},
        weights=dict(weights or {}),
        percentage=percentage,
        deterministic_ties=deterministic_ties,
    )


def _extending(plugins: Iterable[Plugin], point: str) -> tuple[ExtendedPlugin, ...]:
    return tuple(plugin for plugin in plugins if isinstance(plugin, ExtendedPlugin) and extends(plugin, point))
