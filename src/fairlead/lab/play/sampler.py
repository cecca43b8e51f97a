"""RunSampler: looks at the cluster from time to time and writes what it sees as samples.

Shares of the cluster come from the recorder's sums; what would fit, and how fragmented idle GPUs are, is read from the
scheduler's own table between two of its steps. Between two samples most nodes stand still, so what was found of a row
is kept until one of the numbers changes that it was found from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from fairlead.core.model.quantity import parse_quantity
from fairlead.gpu_share.fragmentation import FragmentationMeasure
from fairlead.gpu_share.gpu_shares import WHOLE, gpu_shares_of
from fairlead.lab.play.recorder import MEASURED, RunRecorder
from fairlead.lab.scenario.gpu_policies import typical_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.state.cluster import Cluster
    from fairlead.lab.results.writing import RowSink
    from fairlead.lab.scenario.jobs import LabJob
    from fairlead.lab.scenario.records import FitSpec, MeasureSpec

Ask = Callable[["Callable[[Scheduler], None]"], object]
GPU = "gpu"
"""In the shape of a FitSpec: GPUs that can be shared, a part of one or several whole ones."""
_MODEL = "gpu model"
_MOST_PODS = 1_000_000
"""So many pods fit on a node if they request nothing."""

RowColumns: TypeAlias = "Mapping[str, NDArray[np.int64]]"
"""Columns about the same rows. Under the name of a resource is what is free of it."""
Judge: TypeAlias = "Callable[[RowColumns], NDArray[Any]]"
"""Finds a number for each row, from what the columns say of that row alone."""


class RowAnswers:
    """What some judges find of rows. A row is judged again only if a column says something else of it than the last
    time, so that it does not matter which rows they are."""

    def __init__(self, judges: Sequence[Judge]) -> None:
        self._judges = judges
        self._columns: RowColumns = {}
        self._found: list[NDArray[Any]] = []

    def of(self, columns: RowColumns) -> Sequence[NDArray[Any]]:
        """The answer of each judge, a number for each row: to be read, and before the next call. The columns are kept,
        and must not be changed any more."""
        known, self._columns = self._columns, columns
        if [column.shape for column in known.values()] != [column.shape for column in columns.values()]:
            self._found = [judge(columns) for judge in self._judges]
            return self._found
        changed = np.flatnonzero(np.logical_or.reduce([_differs(known[name], columns[name]) for name in columns]))
        of_changed = {name: column[changed] for name, column in columns.items()}
        for judge, found in zip(self._judges, self._found, strict=True):
            found[changed] = judge(of_changed)
        return self._found


def _differs(before: NDArray[np.int64], after: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of each row, whether a column of numbers, or of lines of numbers, says something else of it."""
    differs: NDArray[np.bool_] = before != after
    return differs if differs.ndim == 1 else np.logical_or.reduce(differs, axis=1)


class RunSampler:
    def __init__(
        self, measure: MeasureSpec, jobs: Sequence[LabJob], capacity: Mapping[str, float], writer: RowSink
    ) -> None:
        self._measure = measure
        self._capacity = capacity
        self._writer = writer
        self._typical = typical_of(jobs) if measure.fragmentation else ()
        self._fitting = [partial(_fitting, spec) for spec in measure.fits]
        self._resources = dict.fromkeys(["cpu", *(name for spec in measure.fits for name in spec.resources)])
        if measure.fragmentation:
            self._resources[GPU] = None
        self._answers = RowAnswers(self._fitting)
        self._models: Mapping[str, int] | None = None
        """The models of GPUs that there were when the measure of fragmentation was made: it knows those alone."""

    def sample(self, now: float, recorder: RunRecorder, ask: Ask) -> None:
        """Write what there is to see now. `ask` calls a function with the scheduler."""
        self._add(now, "pending", len(recorder.pending))
        self._add(now, "running", recorder.running)
        self._add(now, "evictions", recorder.evictions)
        self._add(now, "oldest_wait", recorder.oldest_wait())
        for at, name in enumerate(MEASURED):
            if self._capacity[name]:
                held = sum(queue[at] for queue in recorder.allocated.values())
                self._add(now, f"utilisation.{name}", held / self._capacity[name])
        for queue in sorted(recorder.allocated):
            for at, name in enumerate(MEASURED):
                if self._capacity[name]:
                    self._add(now, name, recorder.allocated[queue][at], scope=f"queue:{queue}")
        if self._measure.fits or self._measure.fragmentation:
            ask(lambda scheduler: self._look(now, scheduler.cluster))

    def _look(self, now: float, cluster: Cluster) -> None:
        """How many pods of each shape the nodes could take now, each node by itself, and how much of the GPUs is idle
        and of no use to typical pods."""
        rows, measure = np.flatnonzero(cluster.table.alive), self._measure
        columns = {name: _free(cluster, name, rows) for name in self._resources}
        if measure.fragmentation:
            shares = gpu_shares_of(cluster)
            columns[_MODEL] = shares.model[rows]
            if shares.models != self._models:
                self._models = dict(shares.models)
                wasted = partial(_wasted, FragmentationMeasure(self._typical, shares))
                self._answers = RowAnswers([*self._fitting, wasted])
        found = self._answers.of(columns)
        for spec, pods in zip(measure.fits, found, strict=False):
            self._add(now, f"fits.{spec.name}", int(pods.sum()))
        if measure.fragmentation:
            idle, total = int(columns[GPU].sum()), int(shares.gpus[rows].sum()) * WHOLE
            fragments = float(found[-1].sum())
            self._add(now, "fragmentation", fragments / total if total else 0.0)
            self._add(now, "fragmentation.idle", fragments / idle if idle else 0.0)

    def _add(self, now: float, measure: str, value: float, scope: str = "cluster") -> None:
        self._writer.add("samples", now, scope, measure, float(value))


def _fitting(spec: FitSpec, columns: RowColumns) -> NDArray[np.int64]:
    """How many pods of a shape each row could take."""
    fitting: NDArray[np.int64] = np.full(len(columns["cpu"]), _MOST_PODS, dtype=np.int64)
    for name, amount in spec.resources.items():
        if name == GPU:
            fitting = np.minimum(fitting, _gpus_fitting(columns[GPU], float(amount)))
        elif asked := parse_quantity(amount).nanos // (1_000_000 if name == "cpu" else 1_000_000_000):
            fitting = np.minimum(fitting, np.maximum(columns[name], 0) // asked)
    return fitting


def _gpus_fitting(free: NDArray[np.int64], gpus: float) -> NDArray[np.int64]:
    fitting: NDArray[np.int64]
    if gpus < 1:
        fitting = (free // round(gpus * WHOLE)).sum(axis=1)
    else:
        fitting = (free == WHOLE).sum(axis=1) // round(gpus)
    return fitting


def _wasted(measure: FragmentationMeasure, columns: RowColumns) -> NDArray[np.float64]:
    return measure.of(columns[GPU], columns["cpu"], columns[_MODEL])


def _free(cluster: Cluster, resource: str, rows: NDArray[np.intp]) -> NDArray[np.int64]:
    """What is free of a resource on each of some rows; of GPUs, on each GPU."""
    if resource == GPU:
        return gpu_shares_of(cluster).free[rows]
    table = cluster.table
    free: NDArray[np.int64] = table.allocatable_column(resource)[rows] - table.requested_column(resource)[rows]
    return free
