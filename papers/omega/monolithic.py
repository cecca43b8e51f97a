"""The monolithic scheduler: one queue, one decision at a time, on the cell itself, so that nothing ever conflicts.

With the same think time for all workloads it is the paper's single path, with one per workload the multi path.
"""

from __future__ import annotations

from fairlead.lab.omega.simulation import JobRun, OneJobAtATime


class MonolithicScheduler(OneJobAtATime):
    def decide(self, job: JobRun, seconds: float) -> None:
        simulation = self.simulation
        rows = self.plan(job, simulation.cell.view())
        if len(rows):
            simulation.cell.claim(rows, job.amounts)
            simulation.end_later(job, rows)
            job.unplaced -= len(rows)
            self.counts.tx_ok += 1
            self.count_useful(job, seconds)
