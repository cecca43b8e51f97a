"""Gates: the PreEnqueue plugins, which decide whether a pod may enter the active queue.

The plugin that gated a pod is asked first the next time, because it most likely still refuses.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.points import merge_pre_enqueue
from fairlead.core.model.reasons import Code, Status

if TYPE_CHECKING:
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


class Gates:
    def __init__(self, profiles: Mapping[str, Profile], cluster: Cluster, complaints: deque[str]) -> None:
        self.profiles = profiles
        self._cluster = cluster
        self._complaints = complaints

    def reconfigure(self, profiles: Mapping[str, Profile]) -> None:
        """Ask the plugins of other profiles from now on."""
        self.profiles = profiles

    def ask(self, entry: Entry) -> Status | None:
        """The first refusal, with the name of its plugin; None if all plugins admit the entry."""
        profile = self.profiles.get(entry.pod.scheduler_name)
        plugins = profile.at("pre_enqueue") if profile else ()
        if entry.gated:
            plugins = tuple(sorted(plugins, key=lambda plugin: plugin.name != entry.gated_by))
        return self._first_refusal(plugins, entry.pod)

    def is_shut(self, entry: Entry) -> bool:
        """Whether the plugin that gates an entry still refuses it; the others are not asked."""
        profile = self.profiles.get(entry.pod.scheduler_name)
        for plugin in profile.at("pre_enqueue") if profile else ():
            if plugin.name == entry.gated_by:
                return self._first_refusal((plugin,), entry.pod) is not None
        return False

    def refusal(self, pod: Pod, *, but: str = "") -> Status | None:
        """The first refusal of one pod, also of one that is not the pod that stands for its gang. The plugin `but` is
        not asked."""
        profile = self.profiles.get(pod.scheduler_name)
        plugins = (plugin for plugin in (profile.at("pre_enqueue") if profile else ()) if plugin.name != but)
        return self._first_refusal(tuple(plugins), pod)

    def _first_refusal(self, plugins: Sequence[Plugin], pod: Pod) -> Status | None:
        """An error gates the pod like any refusal, and is complained of."""
        refusal = merge_pre_enqueue(plugins, pod, self._cluster)
        if refusal is not None and refusal.code is Code.ERROR:
            self._complaints.append(f'running PreEnqueue plugin "{refusal.plugin}" for {pod.key}: {refusal.message}')
        return refusal
