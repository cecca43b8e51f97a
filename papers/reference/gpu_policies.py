"""Recorded runs of batch policies on a pool of GPUs: `results_per_job.csv.gz` with job lists. Every job is equal."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.lab.omega.setup import ExperimentError, read_rows
from papers.queues.policies import POLICIES
from papers.queues.pool import GpuPool, QueueJob, play

if TYPE_CHECKING:
    from papers.reference.checks import CheckOptions, ReferenceCheck

_RESULTS = "results_per_job.csv.gz"
_COLUMNS = ("list", "gpus", "policy", "job", "start", "end", "jct", "preemptions")


def is_gpu_policies(directory: Path) -> bool:
    path = directory / _RESULTS
    return path.is_file() and {"list", "policy", "preemptions"} <= set(next(iter(read_rows(path)), {}))


def gpu_policy_checks(directory: Path, options: CheckOptions) -> Iterator[ReferenceCheck]:
    rows = read_rows(directory / _RESULTS, _COLUMNS)
    for jobs, gpus, policy in dict.fromkeys((row["list"], row["gpus"], row["policy"]) for row in rows):
        yield GpuPolicyRun(directory, jobs, int(gpus), policy)


def read_queue_jobs(path: Path) -> list[QueueJob]:
    """A list of jobs; without the column `estimate`, users know how long their jobs run."""
    return [
        QueueJob(
            id=int(row["job"]),
            gpus=int(row["gpus"]),
            submit=int(row["submit"]),
            duration=int(row["duration"]),
            estimate=int(row.get("estimate") or row["duration"]),
        )
        for row in read_rows(path, ("job", "gpus", "submit", "duration"))
    ]


@dataclass(frozen=True)
class GpuPolicyRun:
    directory: Path
    jobs: str
    gpus: int
    policy: str

    @property
    def name(self) -> str:
        return f"{self.jobs}/{self.gpus}gpus/{self.policy}"

    def differences(self) -> list[str]:
        make = POLICIES.get(self.policy)
        if make is None:
            known = ", ".join(POLICIES)
            raise ExperimentError(f"{self.directory / _RESULTS}: no policy {self.policy}; known are {known}")
        jobs = read_queue_jobs(self.directory / f"{self.jobs}.csv")
        play(make(GpuPool(self.gpus)), jobs)
        ours = {job.id: job for job in jobs}
        return [
            words
            for row in read_rows(self.directory / _RESULTS)
            if (row["list"], row["gpus"], row["policy"]) == (self.jobs, str(self.gpus), self.policy)
            for words in _unequal(ours[int(row["job"])], row)
        ]


def _unequal(job: QueueJob, row: dict[str, str]) -> Iterator[str]:
    assert job.end is not None
    for name, value in (("start", job.start), ("end", job.end), ("jct", job.end - job.submit)):
        if value != int(row[name]):
            yield f"job {job.id}: {name} is {value}, recorded {row[name]}"
    if job.preemptions != int(row["preemptions"]):
        yield f"job {job.id}: {job.preemptions} preemptions, recorded {row['preemptions']}"
