"""race: a scenario with several schedulers on one shared state, as in Omega's experiment, and real profiles.

Each class of jobs has schedulers of its own, which think for a while about each job, plan with the policy's profile on
a copy of the cluster, and commit optimistically (lab/omega/real_schedulers.py). Jobs, nodes and the policy are those
of the scenario: gangs are placed whole or not at all, and devices, selectors and taints hold. Controllers, kubelets
and the API take no part: a pod that has a node runs for its duration and is gone.

Invariant: the same scenario, policy, load, seed and options give the same figures.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.core.model.quantity import parse_quantity
from fairlead.errors import ConfigError
from fairlead.lab.omega.metrics import Metrics, measure
from fairlead.lab.omega.real_schedulers import PodsOfJobs, ProfileExperiment
from fairlead.lab.omega.setup import GIB, MILLI, CellSpec, ExperimentSpec, JobSpec, ThinkTime
from fairlead.lab.omega.transactions import CommitMode, ConflictRule, OptimisticCommit
from fairlead.lab.scenario.documents import JOB_LABEL, objects_of
from fairlead.lab.scenario.fleet import largest_node, nodes_of
from fairlead.lab.scenario.jobs import LabJob, jobs_of
from fairlead.lab.scenario.policies import assembly_of, scheduler_name_of

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster
    from fairlead.lab.scenario.records import LabScenario, LoadSpec, PolicySpec

ONE_SECOND = ThinkTime(1.0, 0.0)
INCREMENTAL_BY_FIT = OptimisticCommit(ConflictRule.RESOURCE_FIT, CommitMode.INCREMENTAL)


@dataclass(frozen=True, slots=True)
class RaceOptions:
    """How schedulers share the state. `schedulers` is how many each class of jobs has; `think` are the times that they
    think, by class, where it is not a second a job. `sharded` schedulers look first at nodes of their own. `apart` is a
    label: no two pods of a job go to nodes with the same value of it. The run ends at `until`, by default when the last
    job could have ended if it had not waited."""

    schedulers: int = 1
    think: Mapping[str, ThinkTime] = field(default_factory=dict)
    commit: OptimisticCommit = INCREMENTAL_BY_FIT
    sharded: bool = False
    apart: str = ""
    until: float | None = None


@dataclass(frozen=True, slots=True)
class RaceOutcome:
    """What came of a race: metrics of each class of jobs and of the whole, and the cluster as it was at the end."""

    classes: Mapping[str, Metrics]
    cpu_in_use: float
    cluster: Cluster


def race(
    scenario: LabScenario, policy: PolicySpec, load: LoadSpec, seed: int, options: RaceOptions, *, base: Path = Path()
) -> RaceOutcome:
    """Play one run. Raises ConfigError if the scenario's policy or nodes cannot be raced with."""
    if policy.volcano:
        raise ConfigError(
            f"policy {policy.name} works in rounds, which have no transactions", hint="take a policy without `volcano`"
        )
    if scenario.cluster.snapshot is not None:
        raise ConfigError("a race takes no snapshot of a cluster", hint="give the scenario nodes or a trace")
    jobs = jobs_of(load, seed, largest=partial(largest_node, scenario.cluster))
    specs = [_spec_of(number, job) for number, job in enumerate(jobs)]

    def make_profile() -> Profile:
        made = assembly_of(policy, jobs, seed=seed, base=base).scheduler()
        return made.profiles[scheduler_name_of(policy)]

    experiment = ProfileExperiment(
        _experiment_spec(specs, options),
        specs,
        make_profile,
        nodes=[_with_uid(node) for node in nodes_of(scenario.cluster, now=0.0)],
        pods=PodsOfJobs(
            new_pod=lambda job, number: _pod(jobs[job.id], number, scheduler_name_of(policy), options.apart),
            gangs=lambda job: jobs[job.id].minimum > 1,
        ),
        sharded=options.sharded,
        seed=seed,
    )
    return _outcome(experiment, specs)


def _spec_of(number: int, job: LabJob) -> JobSpec:
    cpu, memory = (parse_quantity(job.resources.get(name, "0")) for name in ("cpu", "memory"))
    duration = math.inf if job.duration is None else job.duration
    return JobSpec(number, job.job_class, job.arrival, job.pods, duration, cpu.milli() / MILLI, memory.value() / GIB)


def _experiment_spec(jobs: Sequence[JobSpec], options: RaceOptions) -> ExperimentSpec:
    classes = dict.fromkeys(job.workload for job in jobs)
    until = options.until
    if until is None:
        until = max((job.submitted + (job.duration if job.duration < math.inf else 0.0) for job in jobs), default=0.0)
    think = {name: options.think.get(name, ONE_SECOND) for name in classes}
    counts = dict.fromkeys(classes, options.schedulers)
    return ExperimentSpec("omega", until, CellSpec(0, 0, 0), think, counts, 0.0, options.commit)


def _with_uid(node: Doc) -> Doc:
    return {**node, "metadata": {**node["metadata"], "uid": node["metadata"]["name"]}}


def _pod(job: LabJob, number: int, scheduler_name: str, apart: str) -> dict[str, Any]:
    """A pod of a job, with a name that no other pod of the run has."""
    alone = replace(job, pods=1, minimum=1, made_as="pods", failing=())
    ((_, doc),) = objects_of(alone, scheduler_name=scheduler_name, rounds=False)
    name = f"{job.name}-{number}"
    doc["metadata"] |= {"name": name, "uid": name}
    if apart:
        doc["metadata"]["labels"] = {**doc["metadata"].get("labels", {}), JOB_LABEL: job.name}
        term = {"labelSelector": {"matchLabels": {JOB_LABEL: job.name}}, "topologyKey": apart}
        doc["spec"]["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return doc


def _outcome(experiment: ProfileExperiment, jobs: Sequence[JobSpec]) -> RaceOutcome:
    simulation = experiment.run()
    found = measure(simulation)
    classes: dict[str, Metrics] = {}
    for name in dict.fromkeys(job.workload for job in jobs):
        prefixes = {f"{name}.", f"{name.lower()}."}
        classes[name] = {
            key.removeprefix(prefix): value
            for key, value in found.items()
            for prefix in prefixes
            if key.startswith(prefix)
        }
    return RaceOutcome(classes, found["cpu_util"] or 0.0, experiment.common.cluster)
