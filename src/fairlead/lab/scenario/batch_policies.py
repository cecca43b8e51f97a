"""Batch policies as plugins of a scenario: the order of the queue, and who may overtake whom.

Each is a function of the jobs of a run, and `BATCH_POLICIES` has them by the names that a scenario gives them.
`shortest_first` and `smallest_first` order the queue, in the place of PrioritySort. `first_come` lets nobody overtake
the first waiting job. `easy` lets a job overtake it that ends before its reservation, or takes only what is spare then.
What a job is expected to run is its estimate, or its duration where it has none.

Every waiting job is tried again whenever a pod gets a node or leaves one, so an attempt must not count all pods: the
counts are kept from attempt to attempt, and only pods that the cluster's log names are counted again.

Preemptive policies are in `papers/queues`, on a pool of GPUs: there a stopped job goes on where it was, pods cannot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
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


class JobCounts:
    """How many pods of each job wait, and how many have a node, in one cluster."""

    def __init__(self, cluster: Cluster, jobs: Mapping[str, LabJob]) -> None:
        self._cluster = cluster
        self._jobs = jobs
        self._order = {name: at for at, name in enumerate(jobs)}
        self.waiting: dict[str, int] = {}
        self.placed: dict[str, int] = {}
        self._pods: dict[str, tuple[str, dict[str, int]]] = {}
        self.first: str | None = None
        """The first job with a waiting pod, in the order of the jobs."""
        self.changes = 0
        """How many times something was counted."""
        self._mark = cluster.pod_log.mark
        self._count(cluster.pods)

    def refresh(self) -> None:
        """Count what the cluster's log names since the last time."""
        log = self._cluster.pod_log
        touched, self._mark = log.since(self._mark), log.mark
        if touched is None:
            touched = [*self._pods, *self._cluster.pods]
        if touched:
            self._count(touched)

    def _count(self, uids: Iterable[str]) -> None:
        for uid in dict.fromkeys(uids):
            if uid in self._pods:
                name, counts = self._pods.pop(uid)
                counts[name] -= 1
                if not counts[name]:
                    del counts[name]
            state = self._cluster.pods.get(uid)
            if state is not None and (name := _job_of(state.pod)) in self._jobs:
                counts = self.waiting if state.row < 0 else self.placed
                counts[name] = counts.get(name, 0) + 1
                self._pods[uid] = name, counts
        self.changes += 1
        self.first = min(self.waiting, key=self._order.__getitem__, default=None)


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
        self._ends: list[tuple[float, str]] = []
        """The estimated ends of jobs with a node, the earliest first."""
        self._ends_of: tuple[JobCounts, int] | None = None
        """The counts that they were found from; None if they have to be found again."""

    def events(self) -> Sequence[Interest]:
        return (Interest(ClusterEvent(ASSIGNED_POD, ActionType.ADD | ActionType.DELETE)),)

    def pre_filter(self, cycle: Cycle) -> Status | None:
        own = _job_of(cycle.pod)
        if own not in self._jobs:
            return None
        counts = cycle.cluster.index(lambda cluster: JobCounts(cluster, self._jobs), JobCounts)
        counts.refresh()
        first = counts.first
        if first is None or own == first:
            return None
        if not self._overtaking:
            return unschedulable(f"job {first} comes first")
        instant, spare = self._reservation(cycle.cluster, first, counts)
        if cycle.now + expected(self._jobs[own]) <= instant or counts.waiting.get(own, 1) * self._each[own] <= spare:
            return None
        return unschedulable(f"job {first} has a reservation, which this pod would delay")

    def reserve(self, cycle: Cycle, row: int) -> None:
        self._started.setdefault(_job_of(cycle.pod), cycle.now)
        self._ends_of = None

    def unreserve(self, cycle: Cycle, row: int) -> None:
        self._started.pop(_job_of(cycle.pod), None)
        self._ends_of = None

    def _reservation(self, cluster: Cluster, first: str, counts: JobCounts) -> tuple[float, int]:
        """When there is enough for the first job by estimated ends, and how much is left over then."""
        table, wanted = cluster.table, counts.waiting[first] * self._each[first]
        columns = (table.allocatable_column(self._resource), table.requested_column(self._resource))
        free = int(columns[0][: table.high].sum()) - int(columns[1][: table.high].sum())
        if self._ends_of != (counts, counts.changes):
            known = self._started
            self._ends = sorted((known.get(name, 0.0) + expected(self._jobs[name]), name) for name in counts.placed)
            self._ends_of = counts, counts.changes
        ends, instant = self._ends, 0.0
        for at, (instant, name) in enumerate(ends):
            free += counts.placed[name] * self._each[name]
            if free >= wanted and (at + 1 == len(ends) or ends[at + 1][0] > instant):
                return instant, free - wanted
        return (NEVER, free) if free < wanted else (instant, free - wanted)


def expected(job: LabJob) -> float:
    """How long a job is expected to run: its estimate, or its duration."""
    if job.estimate is not None:
        return job.estimate
    return NEVER if job.duration is None else job.duration


def _scarce(jobs: Sequence[LabJob]) -> str:
    """The resource that reservations are about: the first that is not built in, or cpu."""
    return next((name for job in jobs for name in job.resources if "/" in name), "cpu")


def _units(job: LabJob, resource: str) -> int:
    amount = parse_quantity(job.resources.get(resource, "0"))
    return amount.milli() if resource == "cpu" else amount.nanos // 10**9


def shortest_first(jobs: Sequence[LabJob]) -> Plugin:
    """Jobs that are expected to run for a shorter time are tried first."""
    return JobOrder(jobs, expected)


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


BATCH_POLICIES: Mapping[str, Callable[[Sequence[LabJob]], Plugin]] = {
    "fifo": first_come,
    "easy": easy,
    "sjf": shortest_first,
    "smallest": smallest_first,
}
"""By the name that a scenario gives as `policy`."""
