"""Run: equal pods that are placed one right after the other, as the members of a gang are, or a Deployment's pods.

All that has happened since the last of them was placed is that it came to its row. So whoever is asked every time says
of the next what was said of the first (`Plugin.unmoved_by`), what all rows get on top of the ranking is the same, and
what is left to do is to judge that one row again and to choose.

Invariant: a run goes on only if a search from the beginning would find the same, and draw the same numbers. It ends
with the first pod that is another, with any change of the cluster, and with any nomination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.evaluate import Evaluator
    from fairlead.framework.layers import Even
    from fairlead.model.pod import Pod
    from fairlead.state.cluster import Cluster


class EqualPodRun:
    """`even` is what all rows get on top of the ranking."""

    __slots__ = ("_applied", "_content", "_first", "_notes", "_row", "_static", "_within", "evaluator", "even")

    def __init__(self, cycle: Cycle, evaluator: Evaluator, even: Even, within: NDArray[np.int32] | None) -> None:
        self._first = cycle
        self._notes = dict(cycle.notes)  # before what comes after the search adds to them
        self._within = within
        self.evaluator = evaluator
        self.even = even

    def placed(self, cluster: Cluster, row: int) -> None:
        """The last pod is about to come to a row."""
        self._row = row
        self._applied, self._static = cluster.applied, cluster.table.static.mark
        self._content = cluster.table.content.mark + 1

    def goes_on(self, cycle: Cycle, evaluator: Evaluator, within: NDArray[np.int32] | None) -> bool:
        """Whether the last pod was placed, nothing else has happened, and the next one is like it. What is measured is
        asked in full."""
        cluster = cycle.cluster
        table = cluster.table
        return (
            table.content.mark == self._content
            and table.content.newest == self._row
            and table.static.mark == self._static
            and cluster.applied == self._applied
            and evaluator is self.evaluator
            and within is self._within
            and cycle.meter is None
            and _alike(self._first.pod, cycle.pod)
        )

    def prepare(self, cycle: Cycle) -> None:
        """Give the next cycle what plugins left behind in the first one."""
        first = self._first
        cycle.notes = dict(self._notes)
        cycle.no_filter, cycle.no_score, cycle.remembered = first.no_filter, first.no_score, first.remembered


def _alike(one: Pod, other: Pod) -> bool:
    """Whether plugins that do not read names see the same in both. (Equal labels are one object for most pods.)"""
    return (
        one.shape is other.shape
        and one.labels is other.labels
        and one.annotations is other.annotations
        and one.namespace == other.namespace
        and one.owner == other.owner
        and one.node_name == other.node_name
        and not other.nominated_node
    )
