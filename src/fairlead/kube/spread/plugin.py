"""PodTopologySpread: pods that belong together are spread over the domains of a topology key.

Hard constraints refuse nodes, soft ones score them (kube/spread/scores.py). A pod without constraints of its own may
get default ones, with the selectors of its Services and its owner. Counts come from the affinity index, so a pod costs
a few passes over the rows, whatever the number of pods.

As in the original, an empty selector counts no pods and terminating pods do not count; but both count when a trial adds
or removes a pod.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Interest
from fairlead.core.framework.results.cached_plugin import AfterPlacing, CachedPlugin
from fairlead.core.model.events import NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status, failed
from fairlead.core.model.requirements import EVERYTHING
from fairlead.core.model.terms import SpreadConstraint
from fairlead.core.state.nodes import either
from fairlead.kube.affinity.index import AffinityIndex, affinity_index
from fairlead.kube.spread.hints import SpreadHints
from fairlead.kube.spread.rows import Effective, counted_rows, own_constraints, tally_of
from fairlead.kube.spread.scores import HOSTNAME, SpreadScores

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.nodes import Nodes
    from fairlead.kube.affinity.domains import CountedRows

_LOWEST_OF_NONE = 2**31 - 1
_NO_DOMAIN = -(2**62)
_SCORES = "PodTopologySpread.scores"
_NO_CONSTRAINTS: tuple[Effective, ...] = ()

SYSTEM_DEFAULTS = (
    SpreadConstraint(max_skew=3, topology_key=HOSTNAME, hard=False, selector=EVERYTHING),
    SpreadConstraint(max_skew=5, topology_key="topology.kubernetes.io/zone", hard=False, selector=EVERYTHING),
)


class SpreadCheck:
    """One hard constraint with its counts by domain; rows without the label find a count below any limit."""

    __slots__ = ("_limit", "counted", "itself", "of", "sums")

    def __init__(self, of: Effective, counted: CountedRows, sums: NDArray[np.int64], itself: bool) -> None:
        self.of = of
        self.counted = counted
        self.sums = sums
        self.itself = itself
        self._limit: int | None = None

    def copy(self) -> SpreadCheck:
        twin = SpreadCheck(self.of, self.counted, self.sums, self.itself)
        twin._limit = self._limit
        return twin

    def change(self, code: int, amount: int) -> None:
        """Add to the count of a domain. Copies of this check share the array, so it is replaced, not written to."""
        self.sums = self.sums.copy()
        self.sums[code] += amount
        self._limit = None

    @property
    def limit(self) -> int:
        """The highest count of a domain that may take the pod."""
        if self._limit is None:
            self._limit = self.of.constraint.max_skew + self._fewest() - self.itself
        return self._limit

    def unlabelled(self, nodes: Nodes) -> NDArray[np.bool_] | None:
        """Rows without the label; None if every node has it."""
        return nodes.without_label(self.of.key)

    def crowded(self, nodes: Nodes) -> NDArray[np.bool_] | None:
        """Rows in domains that hold too many; None if no domain does."""
        return nodes.with_label(self.of.key, self.sums > self.limit)

    def _fewest(self) -> int:
        seen = self.counted.seen
        if len(seen) < self.of.constraint.min_domains:
            return 0
        return int(self.sums.take(seen).min()) if len(seen) else _LOWEST_OF_NONE


class Checks:
    """The note of a pod with hard constraints."""

    __slots__ = ("checks",)

    def __init__(self, checks: list[SpreadCheck]) -> None:
        self.checks = checks

    def copy(self) -> Checks:
        return Checks([check.copy() for check in self.checks])


class PodTopologySpread(CachedPlugin):
    name = "PodTopologySpread"
    _MISMATCH = Reason(name, "node(s) didn't match pod topology spread constraints")
    _MISSING = Reason(name, "node(s) didn't match pod topology spread constraints (missing required label)", final=True)

    def __init__(self, *, default_constraints: Sequence[SpreadConstraint] = (), defaulting: str = "System") -> None:
        self._system = defaulting == "System"
        defaults = SYSTEM_DEFAULTS if self._system else tuple(default_constraints)
        self._hard_defaults = tuple(constraint for constraint in defaults if constraint.hard)
        self._soft_defaults = tuple(constraint for constraint in defaults if not constraint.hard)
        self._index: AffinityIndex | None = None
        """The affinity index of the last attempt, for hints: they are not given the cluster, and default constraints
        need its Services."""

    def events(self) -> Sequence[Interest]:
        hints = SpreadHints(self._hard_for_hint)
        pods = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_POD_LABEL | ActionType.UPDATE_POD_TOLERATION
        nodes = ActionType.ADD | ActionType.DELETE | ActionType.UPDATE_NODE_LABEL | ActionType.UPDATE_NODE_TAINT
        return (
            Interest(ClusterEvent(POD, pods), hints.after_pod_change),
            Interest(ClusterEvent(NODE, nodes), hints.after_node_change),
        )

    def concerns(self, pod: Pod) -> bool:
        return bool(pod.shape.spread or self._hard_defaults or self._soft_defaults)

    def after_placing(self, pod: Pod) -> AfterPlacing:
        """SAME: whether the plugin steps aside depends on the pod's constraints, not on placed pods, and a pod with
        constraints does not let it step aside."""
        return AfterPlacing.SAME

    def stands_aside(self, cycle: Cycle) -> bool:
        pod = cycle.pod
        if pod.shape.spread or self._hard_defaults:
            return False
        return not self._soft_defaults or affinity_index(cycle.cluster).workloads.selector_for(pod).empty

    def looks_at_pods(self, cycle: Cycle) -> bool:
        pod = cycle.pod
        if pod.shape.spread:
            return True
        return not affinity_index(cycle.cluster).workloads.selector_for(pod).empty

    # ---- constraints ----

    def _effective(self, pod: Pod, index: AffinityIndex, *, hard: bool) -> Sequence[Effective]:
        """The constraints of a pod, its own or default ones; raises ValueError if a selector is invalid."""
        if pod.shape.spread:
            return own_constraints(pod, hard=hard)
        defaults = self._hard_defaults if hard else self._soft_defaults
        if not defaults:
            return _NO_CONSTRAINTS
        selector = index.workloads.selector_for(pod)
        return _NO_CONSTRAINTS if selector.empty else [Effective(default, selector) for default in defaults]

    def _hard_for_hint(self, pod: Pod) -> Sequence[Effective]:
        if pod.shape.spread:
            return own_constraints(pod, hard=True)
        return _NO_CONSTRAINTS if self._index is None else self._effective(pod, self._index, hard=True)

    # ---- filter ----

    def pre_filter(self, cycle: Cycle) -> Status | None:
        pod = cycle.pod
        if not pod.shape.spread and not self._hard_defaults:
            return SKIP
        index = self._index = affinity_index(cycle.cluster)
        try:
            constraints = self._effective(pod, index, hard=True)
        except ValueError as error:
            return failed(f"get constraints from pod: obtaining pod's hard topology spread constraints: {error}")
        if not constraints:
            return SKIP
        keys = tuple(of.key for of in constraints)
        cycle.notes[self.name] = Checks([_check(of, pod, index, keys) for of in constraints])
        return None

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        """Refuse each row for the first constraint that it fails."""
        note: Checks = cycle.notes[self.name]
        missing: NDArray[np.bool_] | None = None
        skewed: NDArray[np.bool_] | None = None
        for check in note.checks:
            unlabelled, crowded = check.unlabelled(nodes), check.crowded(nodes)
            if missing is not None:
                unlabelled = None if unlabelled is None else unlabelled & ~missing
                crowded = None if crowded is None else crowded & ~missing
            if skewed is not None:
                unlabelled = None if unlabelled is None else unlabelled & ~skewed
            missing, skewed = either(missing, unlabelled), either(skewed, crowded)
        if missing is not None:
            yield Reject(self._MISSING, missing)
        if skewed is not None:
            yield Reject(self._MISMATCH, skewed)

    def add_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        self._changed(cycle, pod, row, 1)

    def remove_pod(self, cycle: Cycle, pod: Pod, row: int) -> None:
        self._changed(cycle, pod, row, -1)

    def _changed(self, cycle: Cycle, pod: Pod, row: int, amount: int) -> None:
        if pod.namespace != cycle.pod.namespace:
            return
        note: Checks = cycle.notes[self.name]
        for check in note.checks:
            if check.counted.mask[row] and check.of.selector.matches(pod.labels):
                code = cycle.cluster.table.label(check.of.key).codes[row]
                check.change(int(code), amount)

    # ---- score ----

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        pod = cycle.pod
        index = affinity_index(cycle.cluster)
        try:
            constraints = self._effective(pod, index, hard=False)
        except ValueError as error:
            return failed(f"calculating preScoreState: obtaining pod's soft topology spread constraints: {error}")
        if not constraints:
            return SKIP
        every_key = bool(pod.shape.spread) or not self._system
        cycle.notes[_SCORES] = SpreadScores(constraints, pod, index, nodes, every_key=every_key)
        return None

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        note: SpreadScores = cycle.notes[_SCORES]
        return note.raw(nodes)

    def normalize_score(self, cycle: Cycle, nodes: Nodes, raw: NDArray[np.int64]) -> NDArray[np.int64]:
        note: SpreadScores = cycle.notes[_SCORES]
        return note.normalised(nodes, raw)


def _check(of: Effective, pod: Pod, index: AffinityIndex, keys: tuple[str, ...]) -> SpreadCheck:
    counted = counted_rows(of, pod, index, keys)
    sums = counted.sums(tally_of(of, pod, index))
    sums[-1] = _NO_DOMAIN
    return SpreadCheck(of, counted, sums, of.selector.matches(pod.labels))
