"""Upkeep: what plugins do besides attempts, such as writing the status of the objects that are theirs.

`ExtendedPlugin.sync` is called once in every step, between taking in changes and the next attempts, and at `sync_at`
although nothing happens. A plugin compares what is with what its objects show, so a write that was lost is sent again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.engine.step_output import StepOutput
    from fairlead.core.framework.extended_plugin import ExtendedPlugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import OutsideWork
    from fairlead.core.state.cluster import Cluster


class Upkeep:
    def __init__(self, profiles: Sequence[Profile], cluster: Cluster) -> None:
        self._cluster = cluster
        self._plugins: tuple[ExtendedPlugin, ...] = ()
        self.outside: Sequence[OutsideWork] = []
        """What plugins and extenders do in threads."""
        self.reconfigure(profiles)

    def reconfigure(self, profiles: Sequence[Profile]) -> None:
        left = [work for work in self.outside if work.under_way]
        self.outside = left + [work for profile in profiles for work in profile.outside()]
        self._plugins = tuple(plugin for profile in profiles for plugin in profile.extended_at("sync"))

    def step(self, now: float, output: StepOutput) -> None:
        """Add what is to be written."""
        for plugin in self._plugins:
            output.add(plugin.sync(self._cluster, now))

    def wake_at(self) -> float | None:
        if not self._plugins:
            return None
        times = (plugin.sync_at() for plugin in self._plugins)
        return min((at for at in times if at is not None), default=None)
