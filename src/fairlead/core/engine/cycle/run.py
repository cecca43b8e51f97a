"""EqualPodRun: equal pods that are placed one right after the other, as a Deployment's pods or a gang's members are.

The only change since the last of them was placed is that placement. If no plugin that is not cached answers differently
for it (`CachedPlugin.after_placing`), the constant part of the score is as it was, and it is enough to judge that one
row again and to choose. Plugins of which only their own answers may differ are called for each pod: devices for its
claims, which are its own, are looked for anew.

Invariant: a run goes on only if a search from the beginning would find the same and draw the same random numbers. It
ends with the first different pod, with any other change of the cluster, and with any nomination.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.cycle.choice import best_of_ranking
from fairlead.core.state.nodes import Nodes

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.cycle.placement import Placed, Search
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.framework.results.constant import ConstantPart
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster


class EqualPodRun:
    """`constant` is what all rows get on top of the ranking."""

    __slots__ = (
        "_applied", "_counted", "_first", "_notes", "_row", "_scores", "_static", "_within", "constant", "evaluator",
        "plugins",
    )  # fmt: skip

    def __init__(
        self, cycle: Cycle, evaluator: Evaluator, constant: ConstantPart, within: NDArray[np.int32] | None
    ) -> None:
        self._first = cycle
        self._notes = dict(cycle.notes)  # Reserve and later points add to the cycle's own notes
        self._within = within
        self.evaluator = evaluator
        self.constant = constant
        self.plugins = evaluator.called_in_runs(cycle)
        self._scores = self._scored(cycle) if self.plugins else []

    def _scored(self, cycle: Cycle) -> list[int | None]:
        nodes = Nodes(cycle.cluster.table)
        return [self.evaluator.uniform_score(cycle, plugin, nodes) for plugin in self.plugins]

    def scored_alike(self, cycle: Cycle) -> bool:
        """Whether those plugins score the pod's rows as they did those of the first one."""
        return not self.plugins or (None not in self._scores and self._scored(cycle) == self._scores)

    def placed(self, cluster: Cluster, row: int) -> None:
        """The last pod is about to be assigned to a row."""
        self._row = row
        self._applied, self._static = cluster.applied, cluster.table.static.mark
        self._counted = cluster.table.counted.mark + 1

    def goes_on(self, cycle: Cycle, evaluator: Evaluator, within: NDArray[np.int32] | None) -> bool:
        """Whether the last pod was placed, nothing else has changed, and the next pod is equal to it. A cycle that is
        measured does not go on, so that every plugin is called."""
        cluster = cycle.cluster
        table = cluster.table
        return (
            table.counted.mark == self._counted
            and table.counted.newest == self._row
            and table.static.mark == self._static
            and cluster.applied == self._applied
            and evaluator is self.evaluator
            and within is self._within
            and cycle.meter is None
            and _equal(self._first.pod, cycle.pod)
        )

    def prepare(self, cycle: Cycle) -> None:
        """Give the next cycle what plugins left behind in the first one."""
        first = self._first
        cycle.notes = dict(self._notes)
        cycle.no_filter, cycle.no_score, cycle.results = first.no_filter, first.no_score, first.results


def next_of_run(cycle: Cycle, evaluator: Evaluator, search: Search) -> Placed | None:
    """The place of a pod that continues a run; None if it has to be searched for from the beginning."""
    last = search.last
    run, last.run = last.run, None
    if run is None or search.nominated or search.preferred_row >= 0 or not run.goes_on(cycle, evaluator, search.within):
        return None
    run.prepare(cycle)
    ok = evaluator.judge_again(cycle, run.plugins)
    placed = None
    if ok is not None and run.scored_alike(cycle):
        placed = _chosen(cycle, run, ok, search.within)
    if placed is None:
        cycle.notes = {}  # the search begins anew
        return None
    run.placed(cycle.cluster, placed.row)
    last.run = run
    return placed


def _chosen(cycle: Cycle, run: EqualPodRun, ok: NDArray[np.bool_], within: NDArray[np.int32] | None) -> Placed | None:
    """The best of the rows that are `ok`; None if there are fewer than two."""
    table, results = cycle.cluster.table, cycle.results
    assert results is not None
    ok = ok if within is None else ok[within]
    as_cached = within is None and not run.plugins
    feasible = results.feasible if as_cached else int(np.count_nonzero(ok))
    if feasible < 2:
        return None
    ranked = results.ranked[: table.high] if within is None else results.ranked[within]
    if run.plugins:
        ranked = np.where(ok, ranked, -1)
    total = len(table) if within is None else len(within)
    return best_of_ranking(cycle, ranked, run.constant, within, feasible=feasible, judged=total)


def _equal(one: Pod, other: Pod) -> bool:
    """Whether plugins that do not read names see the same in both. (Equal labels of most pods are one object.)"""
    return (
        one.shape is other.shape
        and one.labels is other.labels
        and one.annotations is other.annotations
        and one.namespace == other.namespace
        and one.owner == other.owner
        and one.node_name == other.node_name
        and not other.nominated_node
    )
