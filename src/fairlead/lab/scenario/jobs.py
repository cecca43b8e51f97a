"""The jobs of a load: when each arrives, how many pods it has, and what they request and do.

Every class, and every queue of a class, has a generator of its own, seeded by the run's seed and the names. So adding a
class changes no other one, and two policies with the same seed get the same jobs.

Invariant: jobs are sorted by arrival; names are unique.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING

from fairlead.lab.scenario.drawing import draw, drawn_or
from fairlead.lab.scenario.queues import names_of_queues

if TYPE_CHECKING:
    from fairlead.lab.scenario.records import ArrivalSpec, JobClassSpec, LoadSpec, QueueSpec


@dataclass(frozen=True, slots=True)
class LabJob:
    """One job of a run: equal pods, which each run for `duration` seconds (None: until deleted)."""

    name: str
    arrival: float
    job_class: str = "job"
    pods: int = 1
    minimum: int = 1
    resources: Mapping[str, str] = field(default_factory=dict)
    duration: float | None = None
    start_delay: float = 0.0
    priority: int = 0
    queue: str = ""
    user: str = ""
    failing: tuple[int, ...] = ()
    """The pods, by number, that end with exit code 1."""
    made_as: str = "pods"
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    node_selector: Mapping[str, str] = field(default_factory=dict)
    estimate: float | None = None
    """How long its submitter estimated that it would run, in seconds."""
    line: int = 0
    """The line of its trace; 0 for a job of a class."""
    works_with: int | None = None
    """How many pods have to run for each to work, if that is another number than the minimum."""
    pod_gap: float = 0.0
    """The time between the creations of two pods."""

    @property
    def together(self) -> int:
        """How many pods have to run at once for their work to go on."""
        return self.minimum if self.works_with is None else self.works_with


def jobs_of(
    load: LoadSpec, seed: int, queues: Sequence[QueueSpec] = (), *, largest: Callable[[str], float] = lambda _: 0.0
) -> list[LabJob]:
    """All jobs of a load, in the order of their arrival. `queues` are the cluster's, and `largest` says how much of a
    resource its largest node has. Raises ConfigError if its trace cannot be used."""
    names = names_of_queues(queues)
    jobs = [job for one in load.jobs for job in _jobs_of_class(one, seed, names)]
    if load.trace is not None:
        from fairlead.lab.scenario.traces import jobs_of_trace

        jobs += jobs_of_trace(load.trace, Random(f"{seed}/trace"), largest)
    return sorted(jobs, key=lambda job: (job.arrival, job.name))


def _jobs_of_class(spec: JobClassSpec, seed: int, names: Mapping[str, Sequence[str]]) -> Iterator[LabJob]:
    for queue in [name for one in spec.queues for name in names.get(one, (one,))] or (spec.queue,):
        rng = Random(f"{seed}/{spec.name}/{queue}")
        prefix = f"{spec.name}-{queue}" if spec.queues else spec.name
        for number, arrival in enumerate(_arrivals(spec.arrivals, rng)):
            yield _job(spec, f"{prefix}-{number}", arrival, queue, rng)


def _job(spec: JobClassSpec, name: str, arrival: float, queue: str, rng: Random) -> LabJob:
    pods = max(1, round(draw(spec.pods, rng)))
    duration = None if spec.duration is None else draw(spec.duration, rng)
    failing = tuple(at for at in range(pods) if spec.fails and rng.random() < spec.fails)
    return LabJob(
        name,
        arrival,
        spec.name,
        pods,
        pods if spec.gang else 1,
        spec.resources,
        duration,
        drawn_or(spec.start_delay, rng, 0.0),
        spec.priority,
        queue,
        rng.choice(spec.users) if spec.users else "",
        failing,
        spec.made_as,
        spec.labels,
        spec.annotations,
        spec.node_selector,
        works_with=None if spec.runs_together is None else pods if spec.runs_together else 1,
        pod_gap=spec.pod_gap,
    )


def _arrivals(spec: ArrivalSpec, rng: Random) -> Iterator[float]:
    if spec.at:
        yield from sorted(spec.at)
        return
    assert spec.gap is not None
    time, arrived = spec.first, 0
    while (spec.within is None or time <= spec.first + spec.within) and (spec.count is None or arrived < spec.count):
        for _ in range(spec.burst if spec.count is None else min(spec.burst, spec.count - arrived)):
            arrived += 1
            yield time
        time += draw(spec.gap, rng)
