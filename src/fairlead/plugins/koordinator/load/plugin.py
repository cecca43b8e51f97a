"""LoadAwareScheduling: refuses nodes that are used too much, and prefers nodes that are used little.

Usage comes from NodeMetrics and from estimates of pods that were placed since. Which usage counts depends on the pod:
for a prod pod that of prod pods where a threshold for it is set, else a percentile where one is configured, else the
plain one. Nodes without a metric pass the filter and score nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairlead.framework.plugin import Interest, Plugin
from fairlead.model import kinds
from fairlead.model.events import NODE_METRIC, POD, ActionType, ClusterEvent
from fairlead.model.koordinator.bands import PROD, band_of
from fairlead.model.reasons import Reason, Reject, Status
from fairlead.plugins.koordinator.load.columns import LoadColumns
from fairlead.plugins.koordinator.load.estimates import Estimator

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.plugins.koordinator.load.settings import AggregatedUsage, LoadSettings, Thresholds
    from fairlead.state.cluster import Cluster
    from fairlead.state.nodes import Nodes

_MAX_SCORE = 100
AnyNumber = TypeVar("AnyNumber", bound=np.generic)


class LoadAwareScheduling(Plugin):
    name = "LoadAwareScheduling"
    kinds_read = (kinds.KOORD_NODE_METRIC,)
    _EXPIRED = Reason(name, "node(s) nodeMetric expired")

    def __init__(self, settings: LoadSettings) -> None:
        self._settings = settings
        self._names = settings.names
        self._estimator = Estimator(settings)
        self._weights = np.array([settings.weights.get(name, 0) for name in self._names], dtype=np.int64)
        self._scores = bool(self._weights.any() or settings.dominant_weight)
        self._columns: tuple[Cluster, LoadColumns] | None = None

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE)),
            Interest(ClusterEvent(NODE_METRIC, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE)),
        )

    def columns(self, cycle: Cycle) -> LoadColumns:
        """The sums of the cycle's cluster, up to date."""
        if self._columns is None or self._columns[0] is not cycle.cluster:
            self._columns = (cycle.cluster, LoadColumns(cycle.cluster, self._settings, self._estimator))
        columns = self._columns[1]
        columns.catch_up(cycle.now)
        return columns

    # ---- filter ----

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        pod = cycle.pod
        if pod.owner is not None and pod.owner.kind == "DaemonSet":
            return
        columns = self.columns(cycle)
        prod = band_of(pod) == PROD
        if len(columns.thresholds) == 1:  # no node has thresholds of its own
            yield from self._by_thresholds(cycle, nodes, columns, columns.thresholds[0], None, prod=prod)
            return
        codes = nodes.take(columns.threshold_code)
        for code in np.unique(codes).tolist():
            yield from self._by_thresholds(cycle, nodes, columns, columns.thresholds[code], codes == code, prod=prod)

    def _by_thresholds(
        self, cycle: Cycle, nodes: Nodes, columns: LoadColumns, limits: Thresholds, some: NDArray[np.bool_] | None, *,
        prod: bool,
    ) -> Iterator[Reject]:  # fmt: skip
        """Judge rows that share thresholds; `some` of them, or all."""
        prod_view = prod and any(limits.prod.get(name) for name in self._names)
        aggregated = None if prod_view else limits.aggregated
        chosen = limits.prod if prod_view else aggregated.thresholds if aggregated is not None else limits.plain
        if not any(chosen.get(name) for name in self._names):
            return
        rows = nodes.take(columns.reported)
        if some is not None:
            rows = rows & some
        if self._settings.filters_expired:
            expired = rows & self._expired(cycle, nodes, columns)
            if expired.any():
                rows = rows & ~expired
                if not self._settings.schedules_when_expired:
                    yield Reject(self._EXPIRED, expired)
        rows = rows & nodes.take(columns.measured)
        if rows.any():
            expected = _expected(columns, nodes, prod=prod_view, aggregated=_key(aggregated))
            expected = expected + np.array(self._estimator.estimate(cycle.pod), dtype=np.int64)
            yield from self._above(nodes, columns, expected, chosen, rows, aggregated=aggregated is not None)

    def _above(
        self, nodes: Nodes, columns: LoadColumns, expected: NDArray[np.int64], limits: Mapping[str, int],
        rows: NDArray[np.bool_], *, aggregated: bool,
    ) -> Iterator[Reject]:  # fmt: skip
        word = "aggregated usage" if aggregated else "usage"
        allocatable = _rows(nodes, columns.allocatable)
        for at, name in enumerate(self._names):
            limit = limits.get(name, 0)
            if not limit:
                continue
            total = allocatable[:, at]
            share = np.floor(expected[:, at] / np.maximum(total, 1) * 100 + 0.5)
            above = rows & (total != 0) & (share > limit)
            if above.any():
                yield Reject(Reason(self.name, f"node(s) {name} {word} exceed threshold"), above)
                rows = rows & ~above

    def _expired(self, cycle: Cycle, nodes: Nodes, columns: LoadColumns) -> NDArray[np.bool_]:
        updated: NDArray[np.float64] = nodes.take(columns.updated)
        never = np.isneginf(updated)
        if self._settings.expiration <= 0:
            return never
        return never | (cycle.now - updated >= self._settings.expiration)

    # ---- score ----

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        if not self._scores:
            return 0
        columns, settings = self.columns(cycle), self._settings
        scored = nodes.take(columns.measured) & ~self._expired(cycle, nodes, columns)
        if not scored.any():
            return 0
        prod = settings.prod_scores and band_of(cycle.pod) == PROD
        key = (settings.score_kind, settings.score_window) if settings.score_kind and not prod else None
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

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        self.columns(cycle).assigned(cycle.pod, row, cycle.now)
        return None


def _key(aggregated: AggregatedUsage | None) -> tuple[str, float] | None:
    return None if aggregated is None else (aggregated.kind, aggregated.window)


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
