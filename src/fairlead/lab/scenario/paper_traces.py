"""Job lists of papers as jobs of a scenario: Omega's, Gavel's, Shockwave's, and lists for a pool of equal GPUs.

A job of several GPUs has a pod for each, so that it is a gang where the load says so, and may span nodes. Jobs without
a name of their own in the list are called after its form and their number.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fairlead.lab.scenario.jobs import LabJob

if TYPE_CHECKING:
    from fairlead.lab.scenario.csv_lines import CsvLine
    from fairlead.lab.scenario.records import JobTraceSpec

GPU = "nvidia.com/gpu"
GIB = 1 << 30
OMEGA_CPUS, OMEGA_GIB = 4.0, 16.0
"""A machine of Omega's cell."""
OMEGA_CELL = ("machine", "cpus", "mem")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9]+")

JobOfLine = Callable[["CsvLine", "JobTraceSpec"], LabJob]


def _omega(line: CsvLine, spec: JobTraceSpec) -> LabJob:
    """Equal tasks with cpus and gigabytes; each runs for the duration from its own placement."""
    workload = line.text("workload").lower()
    resources = {"cpu": _milli(line.number("cpus")), "memory": _bytes(line.number("mem"))}
    return _job(
        f"{workload}-{line.whole('job')}",
        workload,
        line.number("submitted") * spec.time_scale,
        line.whole("tasks"),
        line.number("duration") * spec.time_scale,
        spec,
        resources,
    )


def _pool(line: CsvLine, spec: JobTraceSpec) -> LabJob:
    return _job(
        f"job-{line.whole('job')}",
        "job",
        line.number("submit") * spec.time_scale,
        line.whole("gpus"),
        line.number("duration") * spec.time_scale,
        spec,
    )


def _shockwave(line: CsvLine, spec: JobTraceSpec) -> LabJob:
    """A job at the speed of its first batch size, from beginning to end."""
    return _job(
        f"job-{line.whole('job')}",
        _model(line),
        line.number("arrival") * spec.time_scale,
        line.whole("gpus"),
        line.number("static_seconds") * spec.time_scale,
        spec,
    )


def _gavel(line: CsvLine, spec: JobTraceSpec) -> LabJob:
    """Arrivals are in units of the mean gap, which `time_scale` gives in seconds; run times are those of V100s."""
    return _job(
        f"job-{line.whole('job')}",
        _model(line),
        line.number("unit_arrival") * spec.time_scale,
        line.whole("gpus"),
        line.number("v100_seconds"),
        spec,
    )


PAPER_JOBS: Mapping[str, tuple[tuple[str, ...], JobOfLine]] = {
    "omega": (("job", "workload", "submitted", "tasks", "duration", "cpus", "mem"), _omega),
    "pool": (("job", "gpus", "submit", "duration"), _pool),
    "shockwave": (("job", "job_type", "gpus", "static_seconds", "arrival"), _shockwave),
    "gavel": (("job", "job_type", "gpus", "unit_arrival", "v100_seconds"), _gavel),
}
"""By format: the columns that a list must have, and what makes a job of a line."""


def _job(
    name: str,
    job_class: str,
    arrival: float,
    pods: int,
    seconds: float,
    spec: JobTraceSpec,
    resources: Mapping[str, str] | None = None,
) -> LabJob:
    minimum = pods if spec.gang else 1
    return LabJob(name, arrival, job_class, pods, minimum, resources or {GPU: "1"}, duration=seconds)


def _model(line: CsvLine) -> str:
    """The model that a job trains: the job's type without its batch size."""
    return _NOT_IN_NAMES.sub("-", line.text("job_type").partition("(")[0].strip().lower()).strip("-")


def _milli(cpus: float) -> str:
    return f"{round(cpus * 1000)}m"


def _bytes(gigabytes: float) -> str:
    return str(round(gigabytes * GIB))


def room_of_machine(line: CsvLine) -> tuple[str, str, str]:
    """The name, cpu and memory of a machine of Omega's cell: what is not taken from the beginning."""
    cpus, mem = OMEGA_CPUS - line.number("cpus"), OMEGA_GIB - line.number("mem")
    return f"machine-{line.whole('machine')}", _milli(cpus), _bytes(mem)
