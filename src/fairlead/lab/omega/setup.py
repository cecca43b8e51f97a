"""What an experiment is: the cell, the list of jobs, the architecture, think times, and how transactions are committed.

The files are those of a reference directory: `jobs_<list>.csv.gz`, `cell_<machines>.csv.gz` and the `setup` of an
experiment in `results.json`.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fairlead.errors import FairleadError
from fairlead.lab.omega.transactions import CommitMode, ConflictRule, OptimisticCommit

MILLI = 1000
GIB = 1 << 30
"""Cpus and gigabytes in the files are thousandths and bytes on the table."""


class ExperimentError(FairleadError):
    """A file of an experiment that cannot be used."""


@dataclass(frozen=True, slots=True)
class JobSpec:
    """One job: equal tasks, each of which runs for `duration` seconds from its own placement."""

    id: int
    workload: str
    submitted: float
    tasks: int
    duration: float
    cpus: float
    mem: float

    def amounts(self) -> dict[str, int]:
        return {"cpu": round(self.cpus * MILLI), "memory": round(self.mem * GIB)}


@dataclass(frozen=True, slots=True)
class ThinkTime:
    """Seconds that a decision takes: for the job, and for each of its tasks that has no machine."""

    job: float
    task: float

    def of(self, tasks: int) -> float:
        return self.job + self.task * tasks


@dataclass(frozen=True, slots=True)
class CellSpec:
    machines: int
    cpus: float
    mem: float
    taken: tuple[tuple[float, float], ...] = ()
    """Cpus and gigabytes that are taken on each machine from the beginning and never freed."""


@dataclass(frozen=True, slots=True)
class ExperimentSpec:
    architecture: str
    runtime: float
    cell: CellSpec
    think: Mapping[str, ThinkTime]
    schedulers: Mapping[str, int]
    """How many schedulers each workload has; a monolithic scheduler has all workloads."""
    pickiness: float
    commit: OptimisticCommit


ARCHITECTURES = ("monolithic", "mesos", "omega")


def read_experiment(name: str, setup: Mapping[str, Any], directory: Path) -> ExperimentSpec:
    """The experiment that a `setup` of results.json describes."""
    try:
        architecture = setup["arch"]
        if architecture not in ARCHITECTURES:
            raise ExperimentError(f"{name}: arch is {architecture!r}; it must be one of {', '.join(ARCHITECTURES)}")
        taken = _read_cell(directory / f"cell_{setup['init']}.csv.gz") if setup.get("init") else ()
        return ExperimentSpec(
            architecture=architecture,
            runtime=float(setup["runtime"]),
            cell=CellSpec(int(setup["machines"]), float(setup["cpus"]), float(setup["mem"]), taken),
            think={
                "Batch": ThinkTime(float(setup["bj"]), float(setup["bt"])),
                "Service": ThinkTime(float(setup["sj"]), float(setup["st"])),
            },
            schedulers={"Batch": int(setup["nbatch"]), "Service": int(setup["nservice"])},
            pickiness=float(setup.get("pick", 0)),
            commit=OptimisticCommit(
                ConflictRule(setup.get("conflict", "resource-fit")),
                CommitMode(setup.get("tx", "incremental")),
                failures_raise_versions=True,
            ),
        )
    except KeyError as error:
        raise ExperimentError(f"{name}: the setup has no field {error}") from error
    except (TypeError, ValueError) as error:
        raise ExperimentError(f"{name}: the setup cannot be used: {error}") from error


def read_jobs(path: Path) -> tuple[JobSpec, ...]:
    return tuple(
        JobSpec(
            int(row["job"]),
            row["workload"],
            float(row["submitted"]),
            int(row["tasks"]),
            float(row["duration"]),
            float(row["cpus"]),
            float(row["mem"]),
        )
        for row in read_rows(path, ("job", "workload", "submitted", "tasks", "duration", "cpus", "mem"))
    )


def _read_cell(path: Path) -> tuple[tuple[float, float], ...]:
    return tuple((float(row["cpus"]), float(row["mem"])) for row in read_rows(path, ("machine", "cpus", "mem")))


def packed_or_not(path: Path) -> Path:
    """A file, or the same packed if only that is there."""
    packed = path.with_name(f"{path.name}.gz")
    return packed if packed.is_file() and not path.is_file() else path


def read_rows(path: Path, columns: tuple[str, ...] = ()) -> list[dict[str, str]]:
    """The lines of a CSV file, packed or not; an error names the file and the columns that it lacks."""
    try:
        with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
            reader = csv.DictReader(file)
            missing = [name for name in columns if name not in (reader.fieldnames or ())]
            if missing:
                raise ExperimentError(f"{path}: no column {', '.join(missing)}")
            return list(reader)
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror or error}") from error
