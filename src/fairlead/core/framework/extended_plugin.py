"""ExtendedPlugin: a Plugin with points that kube-scheduler does not have, for families that schedule in more ways.

| method | answers |
|---|---|
| `before_pre_filter`, `after_search` | before PreFilter: refuse the pod, or show it the table otherwise than it is |
| `preferred_nodes` | nodes to try before all others |
| `next_pod` | which waiting pod to try next, whatever the queue says |
| `sync`, `sync_at` | what the plugin's own objects are to show, besides attempts |

A profile without such a plugin pays nothing for these points.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol

from fairlead.core.framework.plugin import Plugin

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.effects import Effects
    from fairlead.core.model.flow import Write
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Status
    from fairlead.core.state.cluster import Cluster


class RowTrial(Protocol):
    """Judges a row for the pod of the attempt, as if some pods were there too; the code of the refusal, 0 if it fits.
    Nominations of the pods of `own` do not count."""

    def __call__(self, row: int, there: Sequence[Pod], own: frozenset[str]) -> int: ...


class ExtendedPlugin(Plugin):
    """A policy that takes part at points of its own too. A method that is not overridden is a point that the plugin
    does not take part in."""

    def before_pre_filter(self, cycle: Cycle) -> Status | None:
        """Called before PreFilter of any plugin. A refusal ends the attempt. What is changed here of the table, for the
        sight of this one pod, `after_search` takes back."""
        raise NotImplementedError

    def after_search(self, cycle: Cycle) -> None:
        """The search is over, however it ended. Called, the last plugin first, for those that override
        `before_pre_filter`, whether it was called or not."""

    def preferred_nodes(self, cycle: Cycle, names: frozenset[str] | None, trial: RowTrial) -> Sequence[str] | Status:
        """Names of nodes to be tried first, in order; the first that fits ends the search. `names` are the only nodes
        that PreFilter left, None if it left all. A refusal ends the attempt."""
        raise NotImplementedError

    def next_pod(self, cluster: Cluster, effects: Effects) -> str:
        """The uid of the waiting pod that is to be tried next, whatever the queue says; the empty text if the plugin
        wants no pod tried."""
        raise NotImplementedError

    def sync(self, cluster: Cluster, now: float) -> Iterable[Write]:
        """Called in every step, besides attempts: writes that make the plugin's own objects show what is. It must cost
        next to nothing while nothing has changed."""
        raise NotImplementedError

    def sync_at(self) -> float | None:
        """When `sync` is to be called although nothing happens; None for never."""
        return None


EXTENDED_POINTS = ("next_pod", "before_pre_filter", "preferred_nodes", "sync")
"""The points of which a profile keeps a list of plugins."""


def extends(plugin: Plugin, point: str) -> bool:
    """Whether a plugin overrides a point of ExtendedPlugin."""
    return isinstance(plugin, ExtendedPlugin) and getattr(type(plugin), point) is not getattr(ExtendedPlugin, point)
