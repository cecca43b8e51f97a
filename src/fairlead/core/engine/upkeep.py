"""Upkeep: what plugins do besides attempts, such as writing the status of the objects that are theirs.

A plugin that overrides `tend` is asked once in every step, between taking in changes and the next attempts, and says
with `tends_at` when it wants to be asked although nothing happens. It compares what is with what its objects show, so
a write that was lost is asked for again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import takes_part

if TYPE_CHECKING:
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Write
    from fairlead.core.state.cluster import Cluster


class Upkeep:
    def __init__(self, profiles: Iterable[Profile], cluster: Cluster) -> None:
        self._cluster = cluster
        self._plugins: tuple[Plugin, ...] = ()
        self.reconfigure(profiles)

    def reconfigure(self, profiles: Iterable[Profile]) -> None:
        plugins = (plugin for profile in profiles for plugin in profile.plugins())
        self._plugins = tuple(plugin for plugin in plugins if takes_part(plugin, "tend"))

    def step(self, now: float, writes: list[Write]) -> None:
        """Add what is to be written."""
        for plugin in self._plugins:
            writes.extend(plugin.tend(self._cluster, now))

    def wake_at(self) -> float | None:
        if not self._plugins:
            return None
        times = (plugin.tends_at() for plugin in self._plugins)
        return min((at for at in times if at is not None), default=None)
