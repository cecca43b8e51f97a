"""DynamicResources, as far as it is built: pods with resource claims are refused, and told so.

What pods without claims see of this plugin is complete: a score of nothing, and its part of every refusal's text, which
in kube-scheduler comes from here and depends on whether the plugin had its turn before the search was cut short.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.framework.plugin import Interest, Rescued
from fairlead.framework.results.cached_plugin import CachedPlugin
from fairlead.model.reasons import SKIP, Status, failed, unresolvable, unschedulable

if TYPE_CHECKING:
    from fairlead.framework.cycle import Cycle
    from fairlead.framework.refusals import Refusals
    from fairlead.model.pod import Pod
    from fairlead.state.nodes import Nodes

NOT_BUILT = "fairlead cannot allocate resource claims yet"


class DynamicResources(CachedPlugin):
    name = "DynamicResources"
    frees_room = False

    def events(self) -> Sequence[Interest]:
        """Nothing that happens in the cluster turns this refusal around."""
        return ()

    def same_after_placing(self, pod: Pod) -> bool:
        return True

    def prepare(self, cycle: Cycle) -> Status | None:
        cycle.notes[self.name] = True
        return unresolvable(NOT_BUILT) if cycle.pod.shape.claims else SKIP

    def rescue(self, cycle: Cycle, refusals: Refusals) -> Rescued:
        """Without a note another plugin ended the search before this one was asked; the original then stumbles over
        its missing state, and nobody after it is asked either."""
        if self.name not in cycle.notes:
            return Rescued(failed("not found"))
        return Rescued(unschedulable("no new claims to deallocate"))

    def score(self, cycle: Cycle, nodes: Nodes) -> int:
        return 0
