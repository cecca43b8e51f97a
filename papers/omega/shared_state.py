"""Omega's scheduler: plans on a view that it took when it began to think, and commits what it planned.

A failed commit costs the whole think time, also if most of the tasks were placed. A job with tasks left comes again
after a second, whether it conflicted or found no room.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.lab.omega.simulation import JobRun, OneJobAtATime, Simulation

if TYPE_CHECKING:
    from fairlead.lab.omega.streams import Stream


class SharedStateScheduler(OneJobAtATime):
    def __init__(self, simulation: Simulation, kind: str, stream: Stream) -> None:
        super().__init__(simulation, kind, stream)
        self._view = simulation.cell.view()

    def begin(self) -> None:
        self._view = self.simulation.cell.view()

    def decide(self, job: JobRun, seconds: float) -> None:
        simulation = self.simulation
        rows = self.plan(job, self._view)
        if not len(rows):
            self.counts.no_resources += 1
            return
        result = simulation.spec.commit.commit(simulation.cell.cluster, self._view.version, rows, job.amounts)
        placed = len(result.rows)
        if placed:
            simulation.cell.count(placed, job.amounts)
            simulation.end_later(job, result.rows)
            job.unplaced -= placed
        self.count_commit(job, seconds, placed, result.conflicted)
