"""The discrete-event frame of Omega's experiments: agenda, jobs, schedulers with queues, and samples of utilisation.

Events run in order of time, those of one time in the order in which they were scheduled. The run ends before the first
event at which the clock is beyond the run time, so that one event beyond it still happens, as in the original. A
random stream belongs to a scheduler; nothing else is left to chance.
"""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.lab.omega.cell import RESOURCES, Cell
from fairlead.lab.omega.placing import RandomFirstFit

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.lab.omega.setup import ExperimentSpec, JobSpec
    from fairlead.lab.omega.streams import Stream
    from fairlead.lab.omega.transactions import TableView

RETRY_AFTER = 1.0
GIVE_UP_WITHOUT_ANY = 100
GIVE_UP_AT_ALL = 1000
"""A job is given up after so many attempts if none of its tasks has a machine, and after so many in any case."""


class Agenda:
    def __init__(self) -> None:
        self.now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._scheduled = 0

    def after(self, delay: float, action: Callable[[], None]) -> None:
        self._scheduled += 1
        heapq.heappush(self._events, (self.now + delay, self._scheduled, action))

    def run(self, until: float) -> None:
        while self._events and self.now <= until:
            self.now, _, action = heapq.heappop(self._events)
            action()

    def __bool__(self) -> bool:
        return bool(self._events)


@dataclass(slots=True)
class JobRun:
    """A job and how it fares."""

    spec: JobSpec
    amounts: dict[str, int]
    unplaced: int
    entered: float = 0.0
    wait_first: float = 0.0
    wait_full: float = 0.0
    attempts: int = 0
    task_attempts: int = 0
    useful: float = 0.0
    wasted: float = 0.0
    abandoned: bool = False

    def leave_queue(self, now: float) -> None:
        waited = now - self.entered
        self.wait_full += waited
        if self.attempts == 0:
            self.wait_first += waited

    def attempt(self) -> None:
        self.attempts += 1
        self.task_attempts += self.unplaced

    def hopeless(self) -> bool:
        none_placed = self.unplaced == self.spec.tasks
        return (self.attempts > GIVE_UP_WITHOUT_ANY and none_placed) or self.attempts > GIVE_UP_AT_ALL


@dataclass(slots=True)
class SchedulerCounts:
    useful: float = 0.0
    wasted: float = 0.0
    tx_ok: int = 0
    tx_failed: int = 0
    tx_retried: int = 0
    task_ok: int = 0
    task_failed: int = 0
    no_resources: int = 0
    abandoned: int = 0


@dataclass(slots=True)
class Samples:
    """Sums of occupied and locked amounts at 0, 1, 2 ... seconds."""

    count: int = 0
    occupied: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0))
    locked: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RESOURCES, 0))

    def take(self, cell: Cell) -> None:
        self.count += 1
        for name in RESOURCES:
            self.occupied[name] += cell.occupied[name]
            self.locked[name] += cell.locked[name]


class Simulation:
    """One run of an experiment."""

    def __init__(self, spec: ExperimentSpec, jobs: Sequence[JobSpec]) -> None:
        self.spec = spec
        self.cell = Cell(spec.cell)
        self.agenda = Agenda()
        self.samples = Samples()
        self.jobs = [JobRun(job, job.amounts(), job.tasks) for job in jobs]
        self.schedulers: dict[str, QueueingScheduler] = {}
        """By name; names are those of their workloads with a number."""

    def deal(self, workloads: dict[str, list[QueueingScheduler]]) -> None:
        """Give every job to one of the schedulers of its workload, in turn; one counter serves all workloads."""
        counter = 0
        for workload in dict.fromkeys(job.spec.workload for job in self.jobs):
            schedulers = workloads[workload]
            for job in self.jobs:
                if job.spec.workload == workload:
                    counter += 1
                    self._arrive(schedulers[counter % len(schedulers)], job)

    def _arrive(self, scheduler: QueueingScheduler, job: JobRun) -> None:
        self.agenda.after(job.spec.submitted, lambda: scheduler.add(job))

    def run(self) -> None:
        self.agenda.after(0.0, self._sample)
        self.agenda.run(self.spec.runtime)

    def _sample(self) -> None:
        self.samples.take(self.cell)
        if self.agenda:
            self.agenda.after(1.0, self._sample)

    def end_later(self, job: JobRun, rows: NDArray[np.int64], then: Callable[[], None] | None = None) -> None:
        """Free the machines of tasks that start now when they end."""

        def end() -> None:
            self.cell.release(rows, job.amounts)
            if then is not None:
                then()

        self.agenda.after(job.spec.duration, end)


class QueueingScheduler(ABC):
    """A scheduler with a queue of jobs, first come, first served, and a way to draw machines."""

    def __init__(self, simulation: Simulation, kind: str, stream: Stream) -> None:
        self.simulation = simulation
        self.kind = kind
        self.counts = SchedulerCounts()
        self.queue: deque[JobRun] = deque()
        spec = simulation.spec
        self.placing = RandomFirstFit(spec.cell.machines, stream, pickiness=spec.pickiness)

    def think_time(self, job: JobRun) -> float:
        return self.simulation.spec.think[job.spec.workload].of(job.unplaced)

    def add(self, job: JobRun) -> None:
        """A job arrives, or comes back."""
        job.entered = self.simulation.agenda.now
        self.queue.append(job)
        self.arrived()

    @abstractmethod
    def arrived(self) -> None:
        """Something has been put into the queue."""

    def plan(self, job: JobRun, view: TableView) -> NDArray[np.int64]:
        """Machines for the tasks that have none, as far as the view has room."""
        return np.array(self.placing.place(view.times(job.amounts).tolist(), job.unplaced), dtype=np.int64)

    def put_back(self, job: JobRun) -> None:
        """A job with tasks left is given up, or comes again after a second."""
        if not job.unplaced:
            return
        if job.hopeless():
            self.counts.abandoned += 1
            job.abandoned = True
        else:
            self.simulation.agenda.after(RETRY_AFTER, lambda: self.add(job))

    def count_commit(self, job: JobRun, seconds: float, placed: int, conflicted: int) -> None:
        """Count a transaction; after a conflict the whole think time was wasted."""
        counts = self.counts
        counts.task_ok += placed
        counts.task_failed += conflicted
        counts.tx_retried += job.attempts > 1
        if conflicted:
            counts.tx_failed += 1
            self.count_wasted(job, seconds)
        else:
            counts.tx_ok += 1
            self.count_useful(job, seconds)

    def count_useful(self, job: JobRun, seconds: float) -> None:
        self.counts.useful += seconds
        job.useful += seconds

    def count_wasted(self, job: JobRun, seconds: float) -> None:
        self.counts.wasted += seconds
        job.wasted += seconds


class OneJobAtATime(QueueingScheduler):
    """A scheduler that thinks about one job, decides, and goes on to the next in the same event."""

    def __init__(self, simulation: Simulation, kind: str, stream: Stream) -> None:
        super().__init__(simulation, kind, stream)
        self._busy = False

    def arrived(self) -> None:
        if not self._busy:
            self._next()

    def _next(self) -> None:
        self._busy = bool(self.queue)
        if self._busy:
            job = self.queue.popleft()
            job.leave_queue(self.simulation.agenda.now)
            seconds = self.think_time(job)
            self.begin()
            self.simulation.agenda.after(seconds, lambda: self._decide(job, seconds))

    def _decide(self, job: JobRun, seconds: float) -> None:
        job.attempt()
        self.decide(job, seconds)
        self.put_back(job)
        self._next()

    def begin(self) -> None:
        """Thinking begins."""

    @abstractmethod
    def decide(self, job: JobRun, seconds: float) -> None:
        """Thinking has ended: place what can be placed."""
