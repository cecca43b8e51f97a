"""Batch policies as plugins of a scenario: the order of the queue, and who may overtake whom.

Each is a function of the jobs of a run, whose run times are the estimates. `shortest_first` and `smallest_first` order
the queue, in the place of PrioritySort. `first_come` lets nobody overtake the first waiting job. `easy` lets a job
overtake it that ends before its reservation, or takes only what is spare then.

Preemptive policies are in `papers/queues`, on a pool of GPUs: there a stopped job goes on where it was, pods cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Interest, Plugin
from fairlead.core.model.events import ASSIGNED_POD, ActionType, ClusterEvent
from fairlead.core.model.quantity import parse_quantity
from fairlead.core.model.reasons import Status, unschedulable
from fairlead.lab.scenario.documents import JOB_LABEL

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.lab.scenario.jobs import LabJob

NEVER = float("inf")


def _job_of(pod: Pod) -> str:
    """The job of a pod. Bare pods of a job have no label for it, so that they are equal, but its name in theirs."""
    return pod.labels.get(JOB_LABEL) or pod.name.rpartition("-")[0]


class JobOrder(Plugin):
    """QueueSort by a number that each job has; equal ones in the order of arrival, and strangers first."""

    name = "JobOrder"

    def __init__(self, jobs: Sequence[LabJob], key: Callable[[LabJob], float]) -> None:
        self._keys = {job.name: key(job) for job in jobs}

    def queue_key(self, pod: Pod, since: float) -> tuple[float, ...]:
        return (self._keys.get(_job_of(pod), -1.0), since)


class Backfill(Plugin):
    """PreFilter by reservations: the first waiting job has one, made from the estimated ends of those that run."""

    name = "Backfill"

    def __init__(self, jobs: Sequence[LabJob], *, overtaking: bool) -> None:
        self._jobs = {job.name: job for job in sorted(jobs, key=lambda job: job.arrival)}
        """In the order of arrival."""
        self._overtaking = overtaking
        self._resource = _scarce(jobs)
        self._each: Mapping[str, int] = {job.name: _units(job, self._resource) for job in jobs}
        self._started: dict[str, float] = {}

    def events(self) -> Sequence[Interest]:
        return (Interest(ClusterEvent(ASSIGNED_POD, ActionType.ADD | ActionType.DELETE)),)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        own = _job_of(cycle.pod)
        if own not in self._jobs:
            return None
        waiting, running = self._pods_of_jobs(cycle.cluster)
        first = next((name for name in self._jobs if name in waiting), own)
        if own == first:
            return None
        if not self._overtaking:
            return unschedulable(f"job {first} comes first")
        instant, spare = self._reservation(cycle.cluster, first, waiting[first], running)
        if cycle.now + self._estimate(own) <= instant or waiting.get(own, 1) * self._each[own] <= spare:
            return None
        return unschedulable(f"job {first} has a reservation, which this pod would delay")

    def reserve(self, cycle: Cycle, row: int) -> None:
        self._started.setdefault(_job_of(cycle.pod), cycle.now)

    def unreserve(self, cycle: Cycle, row: int) -> None:
        self._started.pop(_job_of(cycle.pod), None)

    def _pods_of_jobs(self, cluster: Cluster) -> tuple[dict[str, int], dict[str, int]]:
        """How many pods of each job wait, and how many have a node."""
        waiting: dict[str, int] = {}
        running: dict[str, int] = {}
        for state in cluster.pods.values():
            name = _job_of(state.pod)
            if name in self._jobs:
                counts = waiting if state.row < 0 else running
                counts[name] = counts.get(name, 0) + 1
        return waiting, running

    def _reservation(self, cluster: Cluster, first: str, pods: int, running: Mapping[str, int]) -> tuple[float, int]:
        """When there is enough for the first job by estimated ends, and how much is left over then."""
        table, wanted = cluster.table, pods * self._each[first]
        columns = (table.allocatable_column(self._resource), table.requested_column(self._resource))
        free = int(columns[0][: table.high].sum()) - int(columns[1][: table.high].sum())
        ends = sorted((self._started.get(name, 0.0) + self._estimate(name), name) for name in running)
        instant = 0.0
        for at, (instant, name) in enumerate(ends):
            free += running[name] * self._each[name]
            if free >= wanted and (at + 1 == len(ends) or ends[at + 1][0] > instant):
                return instant, free - wanted
        return (NEVER, free) if free < wanted else (instant, free - wanted)

    def _estimate(self, name: str) -> float:
        duration = self._jobs[name].duration
        return NEVER if duration is None else duration


def _scarce(jobs: Sequence[LabJob]) -> str:
    """The resource that reservations are about: the first that is not built in, or cpu."""
    return next((name for job in jobs for name in job.resources if "/" in name), "cpu")


def _units(job: LabJob, resource: str) -> int:
    amount = parse_quantity(job.resources.get(resource, "0"))
    return amount.milli() if resource == "cpu" else amount.nanos // 10**9


def shortest_first(jobs: Sequence[LabJob]) -> Plugin:
    """Jobs that run for a shorter time are tried first."""
    return JobOrder(jobs, lambda job: NEVER if job.duration is None else job.duration)


def smallest_first(jobs: Sequence[LabJob]) -> Plugin:
    """Jobs with less of what is scarce are tried first."""
    resource = _scarce(jobs)
    return JobOrder(jobs, lambda job: float(job.pods * _units(job, resource)))


def first_come(jobs: Sequence[LabJob]) -> Plugin:
    """First come, first served: nobody overtakes."""
    return Backfill(jobs, overtaking=False)


def easy(jobs: Sequence[LabJob]) -> Plugin:
    """EASY backfilling: the first waiting job has a reservation."""
    return Backfill(jobs, overtaking=True)
