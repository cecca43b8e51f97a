"""Cycle: what a plugin sees while one pod is being placed (kube-scheduler's CycleState, with the pod and the cluster).

It lives for one attempt. A plugin may leave a note under its own name in `pre_filter` and read it in `filter`, `score`
or `reserve`. `copy` gives a trial its own notes, so that nothing of a trial is left in the attempt.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

    from fairlead.core.framework.effects import Effects
    from fairlead.core.framework.meter import Meter
    from fairlead.core.framework.profile import Profile
    from fairlead.core.framework.results.signature import SignatureResults
    from fairlead.core.framework.row_view import RowView
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


@dataclass(slots=True, eq=False, kw_only=True)
class Cycle:
    """One attempt to place one pod: the pod, the cluster, and what plugins note about them."""

    pod: Pod
    cluster: Cluster
    profile: Profile
    now: float
    rng: Random
    effects: Effects
    """What plugins request besides their answers."""
    notes: dict[str, Any] = field(init=False, default_factory=dict)
    no_filter: set[str] = field(init=False, default_factory=set)
    """Plugins that stepped aside in `pre_filter`: they are not called at `filter`, `add_pod` and `remove_pod`."""
    no_score: set[str] = field(init=False, default_factory=set)
    """Plugins that stepped aside in `pre_score`."""
    aside: bool = field(init=False, default=False)
    """Whether all plugins that are not cached stand aside for the pod (`CachedPlugin.stands_aside`)."""
    results: SignatureResults | None = field(init=False, default=None)
    """Cached results for pods like this one."""
    view: RowView | None = field(init=False, default=None)
    """Rows that `before_pre_filter` has the pod see otherwise than they are; None if none, or if they are shown
    already."""
    meter: Meter | None = field(init=False, default=None)
    """Measures the time that plugins take, in the few cycles that are measured."""

    def copy(self) -> Cycle:
        """The same attempt with notes of its own, for a trial. A note that changes in `add_pod` and `remove_pod` has a
        `copy` method; others are never modified."""
        twin = copy(self)
        twin.notes = {name: note.copy() if hasattr(note, "copy") else note for name, note in self.notes.items()}
        twin.no_filter = set(self.no_filter)
        twin.no_score = set(self.no_score)
        return twin
