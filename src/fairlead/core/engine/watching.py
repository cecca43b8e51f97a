"""What a scheduler watches, from its profiles: pods, nodes, and the kinds that its policies read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.flow import Watch
from fairlead.core.state.object_index import indexed_watches

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile

LIVING_PODS = Watch(kinds.POD, field_selector="status.phase!=Succeeded,status.phase!=Failed")
"""A pod that ends arrives as a deletion."""


def watches_of(profiles: Sequence[Profile]) -> tuple[Watch, ...]:
    modes = any(profile.mode for profile in profiles)
    plugins = [plugin for profile in profiles for plugin in profile.plugins()]
    every_pod = modes or any(kinds.POD in plugin.kinds_read for plugin in plugins)
    more = {kind for plugin in plugins for kind in plugin.kinds_read}
    pods = Watch(kinds.POD) if every_pod else LIVING_PODS
    parts = dict.fromkeys(watch for plugin in plugins for watch in plugin.objects_read)
    return (pods, Watch(kinds.NODE), *indexed_watches(modes=modes, more=more), *parts)
