"""Shockwave's traces (NSDI 2023) as static work: what each of our policies makes of them, beside the paper's tables.

Most jobs of these traces change their batch size while they train, by rules that live in the training programs. Here a
job runs at the speed of its first batch size from beginning to end, so figures are compared between our policies, and
the published ones stand beside them for the order and rough size of effects.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairlead.lab.omega.setup import ExperimentError, read_rows
from papers.sharing.rounds import SharingJob, play_rounds
from papers.sharing.shares import SHARE_POLICIES

CLUSTERS = {120: 32, 220: 64, 460: 128, 900: 256}
"""GPUs of the paper's cluster for each list, by its number of jobs."""
STATIC_POLICIES = ("fifo", "max_min_fairness", "finish_time_fairness")
"""Policies for one type of GPU."""
_ROUND = 120.0
_UNFAIR = 1.05
"""A job whose finish-time fairness is above this was treated unfairly, as in the paper."""


@dataclass(frozen=True, slots=True)
class StaticOutcome:
    """What a policy made of a list. `fairness` of a job is its completion time divided by what it would have taken
    with an equal share of the cluster all along; `unfair` is the share of jobs for which that is above 1.05."""

    makespan: float
    mean_seconds: float
    worst_fairness: float
    unfair: float
    utilisation: float


def is_shockwave(directory: Path) -> bool:
    """Whether a directory holds Shockwave's job lists and results."""
    return (directory / "throughputs_v100.csv").is_file() and (directory / "results.json").is_file()


def read_static_jobs(directory: Path, count: int) -> list[SharingJob]:
    """The list of so many jobs; a step is a second of a job alone on all its GPUs."""
    path = directory / f"jobs{count}.csv"
    rows = read_rows(path, ("job", "gpus", "static_seconds", "arrival"))
    return [
        SharingJob(int(row["job"]), float(row["arrival"]), float(row["static_seconds"]), (1.0,), int(row["gpus"]))
        for row in rows
    ]


def play_static(policy: str, jobs: Sequence[SharingJob], gpus: int) -> StaticOutcome:
    """Play a list with a policy on so many equal GPUs."""
    widest = max(job.gpus for job in jobs)
    if widest > gpus:
        raise ExperimentError(f"a job of the list needs {widest} GPUs, and the cluster has {gpus}")
    play_rounds(SHARE_POLICIES[policy]((gpus,)), jobs, jobs, seconds=_ROUND)
    ends = [job.end for job in jobs if job.end is not None]
    times = [end - job.arrival for job, end in zip(jobs, ends, strict=True)]
    fairness = [seconds / job.fair_seconds for job, seconds in zip(jobs, times, strict=True)]
    makespan = max(ends) - min(job.arrival for job in jobs)
    return StaticOutcome(
        makespan=makespan,
        mean_seconds=math.fsum(times) / len(times),
        worst_fairness=max(fairness),
        unfair=sum(one > _UNFAIR for one in fairness) / len(fairness),
        utilisation=sum(job.steps * job.gpus for job in jobs) / (makespan * gpus),
    )


def published(directory: Path) -> dict[str, StaticOutcome]:
    """The paper's own simulation of the list of 120 jobs, by policy."""
    tables: Mapping[str, Mapping[str, float]] = json.loads((directory / "results.json").read_text())
    return {
        name.removeprefix("canonical/"): StaticOutcome(
            row["makespan"], row["avg_jct"], row["worst_ftf"], row["unfair_fraction_pct"] / 100, row["cluster_util"]
        )
        for name, row in tables.items()
        if name.startswith("canonical/")
    }


def static_report(directory: Path, count: int) -> Iterator[tuple[str, str, StaticOutcome]]:
    """Whose run (`ours` or `published`), the policy, and what came of it."""
    if not is_shockwave(directory):
        raise ExperimentError(
            f"{directory} has no throughputs_v100.csv and results.json: these are not Shockwave's traces"
        )
    if count not in CLUSTERS:
        raise ExperimentError(f"there is no list of {count} jobs; there are {', '.join(map(str, CLUSTERS))}")
    for policy in STATIC_POLICIES:
        yield "ours", policy, play_static(policy, read_static_jobs(directory, count), CLUSTERS[count])
    if count == min(CLUSTERS):
        for policy, outcome in published(directory).items():
            yield "published", policy, outcome
