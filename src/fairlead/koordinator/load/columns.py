"""LoadColumns: what nodes use, one row per node and one column per resource; LoadIndex keeps them up to date.

A node's expected usage is what its NodeMetric says plus, for pods that it does not know yet or not for long, what they
are estimated to use beyond what was measured of them. `delta` and `prod_delta` are those additions over all pods and
over prod pods, `estimated` is the sum of all estimates, which stands in for a percentile that is not reported.

A metric that comes, and one that is too old, touch their rows in the table's log of pods (`touch_stale`), so that all
caches of answers about rows are notified.

Invariant: after both, every row equals what `_count` makes of the pods on it and of its NodeMetric.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.quantity import read_quantity, to_units
from fairlead.koordinator.kinds import KOORD_NODE_METRIC
from fairlead.koordinator.load.settings import THRESHOLDS_ANNOTATION, Thresholds, thresholds_of_node
from fairlead.koordinator.records.bands import PROD, band_of
from fairlead.koordinator.records.reservations import is_reserve_pod
from fairlead.koordinator.reservations.holdings import reservations_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.load.estimates import Estimator
    from fairlead.koordinator.load.settings import LoadSettings
    from fairlead.koordinator.records.node_metrics import NodeMetric, Usage

RAW_ALLOCATABLE_ANNOTATION = "node.koordinator.sh/raw-allocatable"
_ABSENT = np.nan
_FORGET_ABOVE = 1024
_BEFORE = 0.001
"""So many seconds before a metric may be too old, all are looked at: the sum of two times is not exact."""


class LoadColumns:
    """One row per node, and of most columns one value per resource in `names`."""

    def __init__(self, capacity: int, names: Sequence[str]) -> None:
        shape = (capacity, len(names))
        self.capacity = capacity
        self.names = names
        self.reported: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self.measured: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self.updated: NDArray[np.float64] = np.full(capacity, -np.inf)
        self.expired: NDArray[np.bool_] = np.ones(capacity, dtype=np.bool_)
        """Rows whose metric is too old, or does not say when it was taken, or is not there."""
        self.threshold_code: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        """Which of the thresholds holds for a row."""
        self.allocatable: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.usage: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.prod_usage: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.delta: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.prod_delta: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.estimated: NDArray[np.int64] = np.zeros(shape, dtype=np.int64)
        self.windows: dict[tuple[str, float], NDArray[np.float64]] = {}
        """Percentiles by kind and window, one row per node; NaN where they are not reported."""

    def window(self, key: tuple[str, float]) -> NDArray[np.float64]:
        window = self.windows.get(key)
        if window is None:
            window = self.windows[key] = np.full((self.capacity, len(self.names)), _ABSENT)
        return window

    def clear(self, row: int) -> None:
        """Nothing is known of what a node uses."""
        for column in (self.usage, self.prod_usage, self.delta, self.prod_delta, self.estimated):
            column[row] = 0
        for window in self.windows.values():
            window[row] = _ABSENT

    def expected(self, row: int, *, prod: bool, aggregated: tuple[str, float] | None) -> list[int]:
        """The usage that is expected of one row: of prod pods, of the percentile of a kind over a window, or plain."""
        if prod:
            return (self.prod_usage[row] + self.prod_delta[row]).tolist()  # type: ignore[no-any-return]
        plain: list[int] = (self.usage[row] + self.delta[row]).tolist()
        if aggregated is None:
            return plain
        instead = plain if aggregated[1] == 0 else self.estimated[row].tolist()
        window = self.windows.get(aggregated)
        if window is None:
            return instead
        deltas = self.delta[row].tolist()
        return [
            other if isnan(reported) else int(reported) + delta
            for reported, delta, other in zip(window[row].tolist(), deltas, instead, strict=True)
        ]


class NodeThresholds:
    """The configured thresholds (code 0), and each set of thresholds that nodes have of their own."""

    def __init__(self, configured: Thresholds) -> None:
        self.by_code: list[Thresholds] = [configured]
        self._codes: dict[str, int] = {}

    def code_of(self, annotation: str | None) -> int:
        if not annotation:
            return 0
        code = self._codes.get(annotation)
        if code is None:
            code = self._codes[annotation] = len(self.by_code)
            self.by_code.append(thresholds_of_node(annotation, self.by_code[0]))
        return code


@dataclass(slots=True)
class _Marks:
    """Up to where metrics, the pods on rows and the Node objects were read."""

    metrics: int = -1
    content: int = -1
    static: int = -1


class LoadIndex:
    """Keeps the LoadColumns of a cluster up to date."""

    def __init__(self, cluster: Cluster, settings: LoadSettings, estimator: Estimator) -> None:
        self._cluster = cluster
        self._reservations = reservations_of(cluster)
        self._settings = settings
        self._estimator = estimator
        self._assigned: dict[str, float] = {}
        """When pods were placed or first seen, by uid, of those whose condition does not say it."""
        self._reserve_pods: dict[int, dict[str, Pod]] = {}
        """Reserve pods that were placed, by row: they count even when their reservations have ended."""
        self._metrics = cluster.object_index.of(KOORD_NODE_METRIC)
        self._latest = -np.inf
        """The time up to which metrics were looked at."""
        self._expires_at = np.inf
        """When the first metric may be too old that is not yet."""
        self.thresholds = NodeThresholds(settings.thresholds)
        self.columns = LoadColumns(cluster.table.capacity, settings.names)
        self._marks = _Marks()

    # ---- pods ----

    def assigned(self, pod: Pod, row: int, now: float) -> None:
        """A pod was placed now."""
        self._assigned[pod.uid] = now
        if self._settings.keeps_ended_reservations and is_reserve_pod(pod):
            self._reserve_pods.setdefault(row, {})[pod.uid] = pod
        if len(self._assigned) > _FORGET_ABOVE + 2 * len(self._cluster.pods):
            self._assigned = {uid: at for uid, at in self._assigned.items() if uid in self._cluster.pods}

    # ---- catching up ----

    def touch_stale(self, now: float) -> None:
        """Touch the rows whose metric has changed or become too old since the last time."""
        table, kind_index = self._cluster.table, self._metrics
        if self._marks.metrics != kind_index.version:
            # At first every row is counted, and judged by the caches of answers.
            changed = kind_index.since(self._marks.metrics) if self._marks.metrics >= 0 else ()
            self._marks.metrics = kind_index.version
            for name in table.row_of if changed is None else dict.fromkeys(changed):
                if (row := table.row_of.get(name)) is not None:
                    table.content.touch(row)
        if now >= self._expires_at or now < self._latest:
            expired = self._too_old(self.columns.updated, now)
            for row in (expired != self.columns.expired).nonzero()[0].tolist():
                table.content.touch(row)
            self.columns.expired = expired
            left = self.columns.updated[~expired]
            self._expires_at = float(left.min()) + self._settings.expiration - _BEFORE if len(left) else np.inf
            self._latest = now

    def _too_old(self, updated: NDArray[np.float64], now: float) -> NDArray[np.bool_]:
        """Which of some times of metrics are too long ago."""
        never: NDArray[np.bool_] = np.isneginf(updated)
        return never if self._settings.expiration <= 0 else never | (now - updated >= self._settings.expiration)

    def catch_up(self, now: float) -> None:
        """Count again the rows that were touched."""
        table = self._cluster.table
        if table.capacity != self.columns.capacity:
            self.columns, self._marks = LoadColumns(table.capacity, self._settings.names), _Marks()
        self._latest = max(now, self._latest)
        if table.static.mark != self._marks.static:
            self._catch_up_allocatable()
        if table.content.mark == self._marks.content:
            return
        rows = table.content.since(self._marks.content) if self._marks.content >= 0 else None
        self._marks.content = table.content.mark
        for row in range(table.high) if rows is None else dict.fromkeys(rows):
            if row < table.high:
                self._count(row, now)

    def _catch_up_allocatable(self) -> None:
        table = self._cluster.table
        rows = table.static.since(self._marks.static) if self._marks.static >= 0 else None
        self._marks.static = table.static.mark
        for row in range(table.high) if rows is None else rows:
            if row >= table.high:
                continue
            node = table.nodes[row]
            if node is None:
                continue
            amounts = {**node.allocatable, **_raw(node.annotations.get(RAW_ALLOCATABLE_ANNOTATION))}
            self.columns.allocatable[row] = [amounts.get(name, 0) for name in self.columns.names]
            self.columns.threshold_code[row] = self.thresholds.code_of(node.annotations.get(THRESHOLDS_ANNOTATION))

    def _count(self, row: int, now: float) -> None:
        node, taken_off = self._cluster.table.nodes[row], self._reservations.taken_off
        metric: NodeMetric | None = None if node is None else self._metrics.get(node.name)
        if metric is not None or self.columns.reported[row]:
            self._read(row, metric, now)
        pods: Sequence[Pod] = self._cluster.table.pods[row]
        if row in taken_off:
            pods = [*pods, *taken_off[row]]
        if row in self._reserve_pods:
            there = {pod.uid for pod in pods}
            pods = [*pods, *(pod for uid, pod in self._reserve_pods[row].items() if uid not in there)]
        assigned = self._assigned
        for pod in pods:
            if pod.scheduled_since is None and pod.uid not in assigned:
                assigned[pod.uid] = now
        if metric is not None:
            for pod in pods:
                self._add(row, pod, metric)

    def _read(self, row: int, metric: NodeMetric | None, now: float) -> None:
        """Take over what a metric says of a node; nothing is added for pods yet."""
        columns = self.columns
        columns.clear(row)
        updated = -np.inf if metric is None or metric.updated is None else metric.updated
        columns.reported[row] = metric is not None
        columns.measured[row] = metric is not None and metric.usage is not None
        columns.updated[row] = updated
        columns.expired[row] = too_old = bool(self._too_old(columns.updated[row], now))
        if not too_old and self._settings.expiration > 0:
            self._expires_at = min(self._expires_at, updated + self._settings.expiration - _BEFORE)
        if metric is None:
            return
        if metric.usage is not None:
            columns.usage[row] = self._vector(metric.usage)
            if self._settings.prod_includes_system:
                columns.prod_usage[row] = self._vector(metric.system)
        for key, usage in metric.aggregated.items():
            columns.window(key)[row] = self._vector(usage)

    def _vector(self, usage: Usage) -> list[int]:
        return [usage.get(name, 0) for name in self.columns.names]

    def _add(self, row: int, pod: Pod, metric: NodeMetric) -> None:
        """Count a pod on a row that has a metric."""
        measured = metric.pods.get(pod.key)
        used = self._vector(measured.usage) if measured is not None else None
        prod = band_of(pod) == PROD
        active_prod = prod and measured is not None and measured.band == PROD
        if active_prod and used is not None:
            self.columns.prod_usage[row] += used
        estimate = self._estimator.estimate(pod)
        if not any(estimate):
            return
        counts = used is None or self._counts(pod, metric)
        if counts:
            self.columns.delta[row] += _beyond(estimate, used)
        self.columns.estimated[row] += estimate
        if not prod:
            return
        if not active_prod and used is not None:
            used, counts = None, True
        if counts:
            self.columns.prod_delta[row] += _beyond(estimate, used)

    def _counts(self, pod: Pod, metric: NodeMetric) -> bool:
        """Whether a pod is so young that what was measured of it may be too little."""
        updated = metric.updated if metric.updated is not None else -np.inf
        assigned = pod.scheduled_since if pod.scheduled_since is not None else self._assigned[pod.uid]
        if updated - metric.report_interval < assigned:
            return True
        deadline = self._estimator.deadline(pod, assigned)
        return deadline is not None and deadline > updated


def _beyond(estimate: tuple[int, ...], used: list[int] | None) -> list[int]:
    if used is None:
        return [max(0, amount) for amount in estimate]
    return [max(0, amount - known) for amount, known in zip(estimate, used, strict=True)]


def _raw(text: str | None) -> dict[str, int]:
    """What a node really has, where the amounts in its status are amplified."""
    if not text:
        return {}
    try:
        return {name: to_units(name, read_quantity(amount)) for name, amount in json.loads(text).items()}
    except (ValueError, AttributeError, TypeError):
        return {}
