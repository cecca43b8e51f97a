"""One run of an experiment: makes the schedulers of its architecture, deals the jobs, and runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from fairlead.lab.omega.simulation import QueueingScheduler, Simulation
from papers.omega.mesos import MesosAllocator, MesosFramework
from papers.omega.monolithic import MonolithicScheduler
from papers.omega.shared_state import SharedStateScheduler

if TYPE_CHECKING:
    from fairlead.lab.omega.setup import ExperimentSpec, JobSpec
    from fairlead.lab.omega.streams import Stream


def run_experiment(spec: ExperimentSpec, jobs: Sequence[JobSpec], streams: Callable[[int], Stream]) -> Simulation:
    """Run to the end. `streams` gives the random numbers of a scheduler by its number, in the order of names."""
    simulation = Simulation(spec, jobs)
    if spec.architecture == "monolithic":
        only = MonolithicScheduler(simulation, "monolithic", streams(0))
        simulation.schedulers["monolithic"] = only
        simulation.deal({workload: [only] for workload in spec.schedulers})
    else:
        simulation.deal(_by_workload(simulation, streams))
    simulation.run()
    return simulation


def _by_workload(simulation: Simulation, streams: Callable[[int], Stream]) -> dict[str, list[QueueingScheduler]]:
    spec = simulation.spec
    allocator = MesosAllocator(simulation)
    named = {
        f"{workload}-{number}": workload
        for workload, count in spec.schedulers.items()
        for number in range(1, count + 1)
    }
    for index, name in enumerate(sorted(named)):
        kind = named[name].lower()
        simulation.schedulers[name] = (
            MesosFramework(simulation, kind, streams(index), name=name, allocator=allocator)
            if spec.architecture == "mesos"
            else SharedStateScheduler(simulation, kind, streams(index))
        )
    return {
        workload: [simulation.schedulers[name] for name, of in named.items() if of == workload]
        for workload in spec.schedulers
    }
