"""Profile: which plugins schedule the pods of one scheduler name, at which points and with which weights.

A profile serves the pods that name it in `spec.schedulerName`. It lists, for each extension point, the plugins in
asking order, and the weights of their scores. Plugins are instances; no plugin is known here by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fairlead.core.framework.plugin import POINTS, takes_part
from fairlead.volcano.records.quirks import FIXED, Quirks
from fairlead.volcano.rounds.partition import WHOLE, Partition

if TYPE_CHECKING:
    from fairlead.core.framework.extender import Extender
    from fairlead.core.framework.gang import GangRules
    from fairlead.core.framework.plugin import Plugin
    from fairlead.volcano.rounds.tiers import Enabled


@dataclass(frozen=True, slots=True, eq=False)
class Rounds:
    """Scheduling in rounds, as Volcano does: every `period` seconds after the last one ended, `actions` run in order
    over all jobs, asking the plugins tier by tier. `configurations` are the actions' arguments.

    `quirks` are the behaviours of the original that are kept and not repaired. `slice` is the number of attempts after
    which others have a turn. `percentage`, `min_feasible` and `min_percentage` say how many nodes are looked at.
    `partition` is the part of the cluster that the rounds are about. Volumes of `ignored_provisioners` are not counted
    among what pods ask for. `opens_queue_gates`: the gate of pods that wait for their queue is taken away once it has
    room for them."""

    actions: tuple[str, ...]
    tiers: tuple[tuple[Enabled, ...], ...]
    configurations: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    period: float = 1.0
    quirks: Quirks = FIXED
    slice: int = 64
    default_queue: str = "default"
    percentage: int = 0
    min_feasible: int = 100
    min_percentage: int = 5
    scheduler_names: tuple[str, ...] = ("volcano",)
    partition: Partition = WHOLE
    ignored_provisioners: frozenset[str] = frozenset({"rancher.io/local-path", "hostpath.csi.k8s.io"})
    opens_queue_gates: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """`points` maps a point (a method of Plugin) to its plugins in order. `percentage` is percentageOfNodesToScore:
    None scores all feasible nodes, 0 is kube-scheduler's adaptive formula."""

    name: str
    points: Mapping[str, tuple[Plugin, ...]]
    weights: Mapping[str, int] = field(default_factory=dict)
    percentage: int | None = None
    deterministic_ties: bool = False
    """Break ties as kube-scheduler's heap would if it saw nodes in tree order, instead of by the seeded rng."""
    extenders: tuple[Extender, ...] = ()
    rounds: Rounds | None = None
    """If it is not None, pods are placed in Volcano's rounds, and the points above are not asked."""
    compatible: bool = False
    """Keep the original's bugs where decisions differ for them."""
    gangs: GangRules | None = field(init=False, default=None)
    """How groups are scheduled as wholes, taken from the plugin that says it; None schedules members singly."""

    def __post_init__(self) -> None:
        rules = (plugin.gang_rules for plugin in self.plugins() if plugin.gang_rules is not None)
        object.__setattr__(self, "gangs", next(rules, None))

    def at(self, point: str) -> tuple[Plugin, ...]:
        return self.points.get(point, ())

    def weight(self, plugin: Plugin) -> int:
        return self.weights.get(plugin.name) or plugin.weight

    def plugins(self) -> tuple[Plugin, ...]:
        """Every plugin once, in order of first mention."""
        return tuple({id(plugin): plugin for point in POINTS for plugin in self.at(point)}.values())

    def with_plugins(self, more: Sequence[Plugin]) -> Profile:
        """The same profile, with further plugins after the others at every point that they override. There is one order
        of the queue: a further plugin that has one takes the place of the profile's."""
        points = {point: (*self.at(point), *(one for one in more if takes_part(one, point))) for point in POINTS}
        points["queue_key"] = points["queue_key"][-1:]
        return replace(self, points=points)


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
        weights=dict(weights or {}),
        percentage=percentage,
        deterministic_ties=deterministic_ties,
    )
