"""Traces: nodes and jobs from CSV files, packed with gzip or not.

`openb` is the form of Alibaba's 2023 GPU trace; its GPUs become the annotations and resources of open-gpu-share, which
the plugins in `gpu_share` read. `csv` is any table with a line of headings; `helios`, `philly` and `swf` are those of
public archives (`recorded_jobs.py`); the other forms are lists of papers (`paper_traces.py`). Every complaint names the
file and the line; a file that breaks off is refused as a whole.

A recorded list is the same with every seed. `order: bootstrap` and `jitter` draw another one like it for each seed, so
that intervals over seeds say something about the load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from fairlead.cluster.kubelets.simulated_nodes import simulated_node
from fairlead.gpu_share.gpu_shares import COUNT, MILLI, MODEL, WHOLE
from fairlead.lab.scenario.csv_lines import CsvLine, read_lines
from fairlead.lab.scenario.drawing import draw
from fairlead.lab.scenario.jobs import LabJob
from fairlead.lab.scenario.paper_traces import OMEGA_CELL, PAPER_JOBS, room_of_machine
from fairlead.lab.scenario.recorded_jobs import LargestNode, swf_jobs, table_of_jobs

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.lab.scenario.records import JobTraceSpec, NodeTraceSpec

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time")


# ---- nodes ----


def nodes_of_trace(spec: NodeTraceSpec, *, now: float) -> list[Doc]:
    """The nodes of a list, as documents. In the format `csv` there is a column for each resource beside `name`."""
    columns, make = _NODE_FORMATS[spec.format]
    lines = list(read_lines(spec.file, columns))
    return [make(line, f"-{copy}" if copy else "", now) for copy in range(spec.copies) for line in lines]


def _openb_node(line: CsvLine, ending: str, now: float) -> Doc:
    gpus, model = line.whole("gpu"), line.text("model")
    return simulated_node(
        line.text("sn") + ending,
        cpu=f"{line.whole('cpu_milli')}m",
        memory=f"{line.whole('memory_mib')}Mi",
        pods="1000",
        extra={COUNT: str(gpus)} if gpus else {},
        labels={MODEL: model} if model else {},
        now=now,
    )


def _csv_node(line: CsvLine, ending: str, now: float) -> Doc:
    return simulated_node(line.text("name") + ending, cpu=line.quantity("cpu"), memory=line.quantity("memory"), now=now)


def _omega_node(line: CsvLine, ending: str, now: float) -> Doc:
    name, cpu, memory = room_of_machine(line)
    return simulated_node(name + ending, cpu=cpu, memory=memory, now=now)


_NODE_FORMATS: Mapping[str, tuple[tuple[str, ...], Callable[[CsvLine, str, float], Doc]]] = {
    "openb": (NODE_COLUMNS, _openb_node),
    "csv": (("name", "cpu", "memory"), _csv_node),
    "omega": (OMEGA_CELL, _omega_node),
}


# ---- jobs ----


def jobs_of_trace(spec: JobTraceSpec, rng: Random, largest: LargestNode) -> list[LabJob]:
    """The jobs of a trace, in the order and with the times that the spec requests. `largest` says how much of a
    resource the largest node has."""
    jobs = _listed_jobs(spec, largest)
    jobs = jobs[: spec.limit] if spec.limit is not None else jobs
    jobs = [replace(job, name=f"{job.name}-{copy}") if copy else job for copy in range(spec.copies) for job in jobs]
    if spec.order == "bootstrap":
        drawn = sorted(rng.choices(jobs, k=len(jobs)), key=lambda job: job.arrival) if jobs else []
        jobs = [replace(job, name=f"job-{number}") for number, job in enumerate(drawn)]
    elif spec.order != "file":
        jobs = _reordered(jobs, rng, with_replacement=spec.order == "sampled")
    if spec.gap is not None:
        time, timed = 0.0, []
        for number, job in enumerate(jobs, 1):
            timed.append(replace(job, arrival=time))
            if number % spec.burst == 0:
                time += draw(spec.gap, rng)
        jobs = timed
    if spec.jitter:
        jobs = [replace(job, arrival=job.arrival + rng.uniform(-spec.jitter, spec.jitter)) for job in jobs]
    first = min((job.arrival for job in jobs), default=0.0)
    return [replace(job, arrival=job.arrival - first) for job in jobs]


def _listed_jobs(spec: JobTraceSpec, largest: LargestNode) -> list[LabJob]:
    if spec.format in PAPER_JOBS:
        columns, make = PAPER_JOBS[spec.format]
        return [replace(make(line, spec), line=line.line) for line in read_lines(spec.file, columns)]
    if spec.format == "openb":
        return _openb_jobs(spec)
    return swf_jobs(spec, largest) if spec.format == "swf" else table_of_jobs(spec, largest)


def _reordered(jobs: list[LabJob], rng: Random, *, with_replacement: bool) -> list[LabJob]:
    """The times of the trace, with its jobs dealt out to them anew."""
    times = sorted(job.arrival for job in jobs)
    if with_replacement:
        dealt = [replace(rng.choice(jobs), name=f"job-{number}") for number in range(len(jobs))]
    else:
        dealt = jobs.copy()
        rng.shuffle(dealt)
    return [replace(job, arrival=time) for job, time in zip(dealt, times, strict=True)]


def _openb_jobs(spec: JobTraceSpec) -> list[LabJob]:
    return [_openb_job(line, spec.time_scale) for line in read_lines(spec.file, POD_COLUMNS)]


def _openb_job(line: CsvLine, scale: float) -> LabJob:
    arrival, gone = line.number("creation_time"), line.number("deletion_time")
    count = line.whole("num_gpu")
    milli = line.whole("gpu_milli") if count == 1 else WHOLE
    annotations = {COUNT: str(count), MILLI: str(milli)} if count else {}
    if count and (models := line.text("gpu_spec")):
        annotations[MODEL] = models
    resources = {"cpu": f"{line.whole('cpu_milli')}m", "memory": f"{line.whole('memory_mib')}Mi"}
    kind = "cpu" if not count else "shared" if milli < WHOLE else "whole" if count == 1 else "several"
    return LabJob(
        line.text("name"),
        arrival * scale,
        kind,
        resources=resources,
        annotations=annotations,
        duration=max(1.0, (gone - arrival) * scale),
        line=line.line,
    )
