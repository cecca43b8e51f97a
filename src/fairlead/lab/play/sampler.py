"""RunSampler: looks at the cluster from time to time and writes what it sees as samples.

Shares of the cluster come from the recorder's sums; what would fit, and how fragmented idle GPUs are, is read from the
scheduler's own table between two of its steps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.lab.play.recorder import MEASURED, RunRecorder
from fairlead.lab.scenario.gpu_policies import typical_of
from fairlead.model.quantity import parse_quantity
from fairlead.plugins.gpu_share.fragmentation import FragmentationMeasure
from fairlead.state.gpu_shares import WHOLE, gpu_shares_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.engine.scheduler import Scheduler
    from fairlead.lab.results.writing import RowSink
    from fairlead.lab.scenario.jobs import LabJob
    from fairlead.lab.scenario.records import FitSpec, MeasureSpec
    from fairlead.state.cluster import Cluster

Ask = Callable[["Callable[[Scheduler], None]"], object]
GPU = "gpu"
"""In the shape of a FitSpec: GPUs that can be shared, a part of one or several whole ones."""


class RunSampler:
    def __init__(
        self, measure: MeasureSpec, jobs: Sequence[LabJob], capacity: Mapping[str, float], writer: RowSink
    ) -> None:
        self._measure = measure
        self._capacity = capacity
        self._writer = writer
        self._typical = typical_of(jobs) if measure.fragmentation else ()

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
        for spec in self._measure.fits:
            self._add(now, f"fits.{spec.name}", count_fitting(cluster, spec))
        if self._measure.fragmentation:
            shares, rows = gpu_shares_of(cluster), np.flatnonzero(cluster.table.alive)
            free = shares.free[rows]
            cpu = _free(cluster, "cpu")[rows]
            idle, total = int(free.sum()), int(shares.gpus[rows].sum()) * WHOLE
            wasted = float(FragmentationMeasure(self._typical, shares).of(free, cpu, shares.model[rows]).sum())
            self._add(now, "fragmentation", wasted / total if total else 0.0)
            self._add(now, "fragmentation.idle", wasted / idle if idle else 0.0)

    def _add(self, now: float, measure: str, value: float, scope: str = "cluster") -> None:
        self._writer.add("samples", now, scope, measure, float(value))


def count_fitting(cluster: Cluster, spec: FitSpec) -> int:
    """How many pods of a shape the nodes could take now, each node by itself."""
    rows = np.flatnonzero(cluster.table.alive)
    fitting = np.full(len(rows), 1_000_000, dtype=np.int64)
    for name, amount in spec.resources.items():
        if name == GPU:
            fitting = np.minimum(fitting, _gpus_fitting(gpu_shares_of(cluster).free[rows], float(amount)))
        elif asked := parse_quantity(amount).nanos // (1_000_000 if name == "cpu" else 1_000_000_000):
            fitting = np.minimum(fitting, np.maximum(_free(cluster, name)[rows], 0) // asked)
    return int(fitting.sum())


def _gpus_fitting(free: NDArray[np.int64], gpus: float) -> NDArray[np.int64]:
    fitting: NDArray[np.int64]
    if gpus < 1:
        fitting = (free // round(gpus * WHOLE)).sum(axis=1)
    else:
        fitting = (free == WHOLE).sum(axis=1) // round(gpus)
    return fitting


def _free(cluster: Cluster, resource: str) -> NDArray[np.int64]:
    table = cluster.table
    free: NDArray[np.int64] = table.allocatable_column(resource) - table.requested_column(resource)
    return free
