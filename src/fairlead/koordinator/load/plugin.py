"""LoadAwareScheduling: refuses nodes that are used too much, and prefers nodes that are used little.

Usage comes from NodeMetrics and from estimates of pods that were placed since. Which usage counts depends on the pod:
for a prod pod that of prod pods where a threshold for it is set, else a percentile where one is configured, else the
plain one. Nodes without a metric pass the filter and score nothing. Answers are kept per row; a metric that comes or
grows too old has its row judged again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import floor
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np

from fairlead.core.framework.plugin import Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import POD, ActionType, ClusterEvent
from fairlead.core.model.reasons import Reason, Reject, Status, Verdict
from fairlead.koordinator.kinds import KOORD_NODE_METRIC, NODE_METRIC_EVENTS
from fairlead.koordinator.load.columns import LoadColumns, LoadIndex
from fairlead.koordinator.load.estimates import FACTORS_ANNOTATION, Estimator
from fairlead.koordinator.records.bands import PRIORITY_CLASS_LABEL, PROD, QOS_LABEL, band_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.nodes import Nodes
    from fairlead.koordinator.load.settings import AggregatedUsage, LoadSettings, Thresholds

_READS = frozenset({"spec", "owner", f"labels.{PRIORITY_CLASS_LABEL}", f"labels.{QOS_LABEL}"})
_MAX_SCORE = 100
AnyNumber = TypeVar("AnyNumber", bound=np.generic)


class _View(NamedTuple):
    """The usage of nodes that counts for a pod, and its limits: of prod pods, a percentile, or the plain one."""

    limits: Mapping[str, int]
    prod: bool
    aggregated: AggregatedUsage | None

    @property
    def window(self) -> tuple[str, float] | None:
        return None if self.aggregated is None else (self.aggregated.kind, self.aggregated.window)

    @property
    def words(self) -> str:
        return "usage" if self.aggregated is None else "aggregated usage"


class LoadAwareScheduling(CachedPlugin):
    name = "LoadAwareScheduling"
    scope = Scope.ROW
    kinds_read = (KOORD_NODE_METRIC,)
    _EXPIRED = Reason(name, "node(s) nodeMetric expired")

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        factors = {f"annotations.{FACTORS_ANNOTATION}"} if settings.customizes_estimation else ()
        self.reads = _READS.union(factors)
        self._names = settings.names
        self._estimator = Estimator(settings)
        self._weights = np.array([settings.weights.get(name, 0) for name in self._names], dtype=np.int64)
        self._scores = bool(self._weights.any() or settings.dominant_weight)
        self._index: tuple[Cluster, LoadIndex] | None = None

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE)),
            Interest(ClusterEvent(NODE_METRIC_EVENTS, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE)),
        )

    def index_of(self, cluster: Cluster) -> LoadIndex:
        """What is used of each node. The plugin keeps it, not the cluster: its sums depend on nearly every setting, so
        that no other plugin could use them, and a plugin with new settings begins with new ones."""
        if self._index is None or self._index[0] is not cluster:
            self._index = (cluster, LoadIndex(cluster, self._settings, self._estimator))
        return self._index[1]

    def _caught_up(self, cycle: Cycle) -> LoadIndex:
        index = self.index_of(cycle.cluster)
        index.touch_stale(cycle.now)
        index.catch_up(cycle.now)
        return index

    def columns(self, cycle: Cycle) -> LoadColumns:
        """The sums of the cycle's cluster, up to date."""
        return self._caught_up(cycle).columns

    def refresh(self, cycle: Cycle) -> bool:
        self.columns(cycle)
        return True

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return False

    # ---- filter ----

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        pod = cycle.pod
        if _is_daemon(pod):
            return
        index = self._caught_up(cycle)
        columns, thresholds = index.columns, index.thresholds.by_code
        prod = band_of(pod) == PROD
        if len(thresholds) == 1:  # no node has thresholds of its own
            yield from self._by_thresholds(cycle, nodes, columns, thresholds[0], None, prod=prod)
            return
        codes = nodes.take(columns.threshold_code)
        for code in np.unique(codes).tolist():
            yield from self._by_thresholds(cycle, nodes, columns, thresholds[code], codes == code, prod=prod)

    def _by_thresholds(
        self,
        cycle: Cycle,
        nodes: Nodes,
        columns: LoadColumns,
        limits: Thresholds,
        some: NDArray[np.bool_] | None,
        *,
        prod: bool,
    ) -> Iterator[Reject]:
        """Judge rows that share thresholds; `some` of them, or all."""
        view = self._view(limits, prod=prod)
        if view is None:
            return
        rows = nodes.take(columns.reported)
        if some is not None:
            rows = rows & some
        if self._settings.filters_expired:
            expired = rows & nodes.take(columns.expired)
            if expired.any():
                rows = rows & ~expired
                if not self._settings.schedules_when_expired:
                    yield Reject(self._EXPIRED, expired)
        rows = rows & nodes.take(columns.measured)
        if rows.any():
            expected = _expected(columns, nodes, prod=view.prod, aggregated=view.window)
            expected = expected + np.array(self._estimator.estimate(cycle.pod), dtype=np.int64)
            yield from self._above(nodes, columns, expected, view, rows)

    def _view(self, limits: Thresholds, *, prod: bool) -> _View | None:
        """What counts under some thresholds; None if they limit nothing."""
        prod = prod and any(limits.prod.get(name) for name in self._names)
        aggregated = None if prod else limits.aggregated
        chosen = limits.prod if prod else aggregated.thresholds if aggregated is not None else limits.plain
        return _View(chosen, prod, aggregated) if any(chosen.get(name) for name in self._names) else None

    def _above(
        self, nodes: Nodes, columns: LoadColumns, expected: NDArray[np.int64], view: _View, rows: NDArray[np.bool_]
    ) -> Iterator[Reject]:
        allocatable = _rows(nodes, columns.allocatable)
        for at, name in enumerate(self._names):
            limit = view.limits.get(name, 0)
            if not limit:
                continue
            total = allocatable[:, at]
            share = np.floor(expected[:, at] / np.maximum(total, 1) * 100 + 0.5)
            above = rows & (total != 0) & (share > limit)
            if above.any():
                yield Reject(Reason(self.name, f"node(s) {name} {view.words} exceed threshold"), above)
                rows = rows & ~above

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        index = self._caught_up(cycle)
        columns = index.columns
        if not columns.reported.item(row) or _is_daemon(cycle.pod):
            return None
        prod = band_of(cycle.pod) == PROD
        view = self._view(index.thresholds.by_code[columns.threshold_code.item(row)], prod=prod)
        if view is None:
            return None
        if self._settings.filters_expired and columns.expired.item(row):
            return None if self._settings.schedules_when_expired else Verdict(self.name, (self._EXPIRED.text,), False)
        if not columns.measured.item(row):
            return None
        expected = columns.expected(row, prod=view.prod, aggregated=view.window)
        estimate, allocatable = self._estimator.estimate(cycle.pod), columns.allocatable[row].tolist()
        for at, name in enumerate(self._names):
            limit, total = view.limits.get(name, 0), allocatable[at]
            if limit and total and floor((expected[at] + estimate[at]) / max(total, 1) * 100 + 0.5) > limit:
                return Verdict(self.name, (f"node(s) {name} {view.words} exceed threshold",), False)
        return None

    # ---- score ----

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        if not self._scores:
            return 0
        columns, settings = self.columns(cycle), self._settings
        scored = nodes.take(columns.measured) & ~nodes.take(columns.expired)
        if not scored.any():
            return 0
        prod, key = self._scored_view(cycle.pod)
        expected = _expected(columns, nodes, prod=prod, aggregated=key)
        expected = expected + np.array(self._estimator.estimate(cycle.pod), dtype=np.int64)
        capacity = _rows(nodes, columns.allocatable)
        over = (capacity == 0) | (expected > capacity)
        shares = np.where(over, 0, (capacity - expected) * _MAX_SCORE // np.maximum(capacity, 1))
        total, weights = (shares * self._weights).sum(axis=1), int(self._weights.sum())
        if settings.dominant_weight:
            total += np.minimum(shares.min(axis=1), _MAX_SCORE) * settings.dominant_weight
            weights += settings.dominant_weight
        return np.where(scored, total // weights, 0) if weights > 0 else np.zeros(len(nodes), dtype=np.int64)

    def _scored_view(self, pod: Pod) -> tuple[bool, tuple[str, float] | None]:
        """Whether the usage of prod pods is scored, and the kind and window of the percentile if one is."""
        settings = self._settings
        prod = settings.prod_scores and band_of(pod) == PROD
        return prod, (settings.score_kind, settings.score_window) if settings.score_kind and not prod else None

    def score_row(self, cycle: Cycle, row: int) -> int:
        columns = self.columns(cycle)
        if not self._scores or not columns.measured.item(row) or columns.expired.item(row):
            return 0
        prod, key = self._scored_view(cycle.pod)
        expected = columns.expected(row, prod=prod, aggregated=key)
        estimate, allocatable = self._estimator.estimate(cycle.pod), columns.allocatable[row].tolist()
        total, lowest = 0, _MAX_SCORE
        for at, (name, capacity) in enumerate(zip(self._names, allocatable, strict=True)):
            used = expected[at] + estimate[at]
            share = 0 if not capacity or used > capacity else (capacity - used) * _MAX_SCORE // max(capacity, 1)
            total += share * self._settings.weights.get(name, 0)
            lowest = min(lowest, share)
        dominant = self._settings.dominant_weight
        weights = int(self._weights.sum()) + dominant
        return (total + lowest * dominant) // weights if weights > 0 else 0

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        self.index_of(cycle.cluster).assigned(cycle.pod, row, cycle.now)
        return None


def _is_daemon(pod: Pod) -> bool:
    return pod.owner is not None and pod.owner.kind == "DaemonSet"


def _expected(
    columns: LoadColumns, nodes: Nodes, *, prod: bool, aggregated: tuple[str, float] | None
) -> NDArray[np.int64]:
    """The usage that is expected of each row without the pod in question."""
    if prod:
        return _rows(nodes, columns.prod_usage) + _rows(nodes, columns.prod_delta)
    usage, delta = _rows(nodes, columns.usage), _rows(nodes, columns.delta)
    if aggregated is None:
        return usage + delta
    window = columns.windows.get(aggregated)
    if window is None:
        return usage + delta if aggregated[1] == 0 else _rows(nodes, columns.estimated)
    reported = _rows(nodes, window)
    missing = np.isnan(reported)
    instead = usage + delta if aggregated[1] == 0 else _rows(nodes, columns.estimated)
    return np.where(missing, instead, np.where(missing, 0, reported).astype(np.int64) + delta)


def _rows(nodes: Nodes, column: NDArray[AnyNumber]) -> NDArray[AnyNumber]:
    """The selected rows of a column with several values per row."""
    return column[: nodes.table.high] if nodes.rows is None else column[nodes.positions()]
