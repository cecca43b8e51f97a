"""Two-level scheduling as in Mesos: an allocator offers all that is free to one framework, and locks it meanwhile.

Requests, answers and ends of tasks arm one timer; when it fires, the framework with the lowest dominant share gets an
offer, if enough is free. The framework places as many of its jobs as fit, at once, and answers after the sum of their
think times: until then nobody else can use what was offered. Some rules are those of the program and not of the paper:
the dominant share leaves locks out, and free memory is compared with the cpus of a task.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from fairlead.lab.omega.setup import GIB, MILLI
from fairlead.lab.omega.simulation import JobRun, QueueingScheduler, Simulation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.lab.omega.streams import Stream
    from fairlead.lab.omega.transactions import TableView

BATCHING = 1.0
ALLOCATION = 0.001
LEAST_OFFER = 100 * MILLI
"""Seconds for which requests are collected, seconds that a choice takes, and the least cpus worth offering."""


class MesosAllocator:
    def __init__(self, simulation: Simulation) -> None:
        self._simulation = simulation
        self._wanting: dict[str, MesosFramework] = {}
        self._armed = False

    def request(self, framework: MesosFramework) -> None:
        self._wanting[framework.name] = framework
        self.arm()

    def cancel(self, framework: MesosFramework) -> None:
        self._wanting.pop(framework.name, None)

    def arm(self) -> None:
        if not self._armed:
            self._armed = True
            self._simulation.agenda.after(BATCHING, self._fire)

    def _fire(self) -> None:
        self._offer()
        self._armed = False

    def _offer(self) -> None:
        cell = self._simulation.cell
        if not self._wanting or cell.free("cpu") < LEAST_OFFER:
            return
        framework = min(self._wanting.values(), key=lambda one: (one.dominant_share(), one.name))
        view = cell.view()
        locked = {name: column.copy() for name, column in view.free.items()}
        cell.lock(view)
        self._simulation.agenda.after(ALLOCATION, lambda: framework.offered(view, locked))


class MesosFramework(QueueingScheduler):
    def __init__(
        self, simulation: Simulation, kind: str, stream: Stream, *, name: str, allocator: MesosAllocator
    ) -> None:
        super().__init__(simulation, kind, stream)
        self.name = name
        self._allocator = allocator
        self._occupied = {"cpu": 0, "memory": 0}

    def dominant_share(self) -> float:
        total = self.simulation.cell.total
        return float(max(amount / total[name] for name, amount in self._occupied.items()))

    def arrived(self) -> None:
        self._allocator.request(self)

    def offered(self, view: TableView, locked: dict[str, NDArray[np.int64]]) -> None:
        """Use an offer: decide now, answer when all the thinking is done."""
        now = self.simulation.agenda.now
        answer: list[tuple[JobRun, NDArray[np.int64]]] = []
        thinking = 0.0
        left = {name: int(column.sum()) for name, column in view.free.items()}
        while self.queue and all(left.values()):
            job = self.queue.popleft()
            job.leave_queue(now)
            seconds = self.think_time(job)
            thinking += seconds
            job.attempt()
            cpus = job.spec.cpus
            if left["cpu"] / MILLI > cpus and left["memory"] / GIB > cpus:
                rows = self._place(job, seconds, view)
                if len(rows):
                    answer.append((job, rows))
                    for name, amount in job.amounts.items():
                        left[name] -= amount * len(rows)
            self.put_back(job)
        if not self.queue:
            self._allocator.cancel(self)
        self.simulation.agenda.after(thinking, lambda: self._answer(locked, answer))

    def _place(self, job: JobRun, seconds: float, view: TableView) -> NDArray[np.int64]:
        rows = self.plan(job, view)
        if len(rows):
            view.take(rows, job.amounts)
            self.counts.tx_ok += 1
            self.count_useful(job, seconds)
            job.unplaced -= len(rows)
        else:
            self.counts.no_resources += 1
        return rows

    def _answer(self, locked: dict[str, NDArray[np.int64]], answer: list[tuple[JobRun, NDArray[np.int64]]]) -> None:
        simulation = self.simulation
        simulation.cell.unlock(locked)
        for job, rows in answer:
            simulation.cell.claim(rows, job.amounts)
            self._charge(job, len(rows))
            simulation.end_later(job, rows, partial(self._ended, job, len(rows)))
        self._allocator.arm()

    def _charge(self, job: JobRun, tasks: int) -> None:
        for name, amount in job.amounts.items():
            self._occupied[name] += amount * tasks

    def _ended(self, job: JobRun, tasks: int) -> None:
        self._charge(job, -tasks)
        self._allocator.arm()
