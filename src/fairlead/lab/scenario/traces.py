"""Traces: nodes and jobs from CSV files, packed with gzip or not.

`openb` is the form of Alibaba's 2023 GPU trace; its GPUs become the annotations and resources of open-gpu-share, which
the plugins in `gpu_share` read. `csv` is any table with a line of headings; the other forms
are lists of papers (`paper_traces.py`). Every complaint names the file and the line; a file that breaks off is refused
as a whole.
"""

from __future__ import annotations

import csv
import gzip
import re
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING

from fairlead.cluster.kubelets.simulated_nodes import simulated_node
from fairlead.core.model.durations import parse_duration
from fairlead.core.model.quantity import parse_quantity
from fairlead.errors import ConfigError
from fairlead.gpu_share.gpu_shares import COUNT, MILLI, MODEL, WHOLE
from fairlead.lab.scenario.drawing import draw
from fairlead.lab.scenario.jobs import LabJob
from fairlead.lab.scenario.paper_traces import OMEGA_CELL, PAPER_JOBS, room_of_machine

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.lab.scenario.records import JobTraceSpec, NodeTraceSpec

NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = ("name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "creation_time", "deletion_time")
_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")
Row = Mapping[str, str]


class CsvLine:
    """One line of a CSV file, whose values are read with complaints that name it."""

    def __init__(self, file: Path, number: int, row: Row) -> None:
        self._file, self._number, self._row = file, number, row

    def text(self, column: str) -> str:
        return self._row[column]

    def whole(self, column: str) -> int:
        return int(self.number(column))

    def number(self, column: str) -> float:
        """A number, or a duration as seconds."""
        text = self._row[column]
        try:
            return float(text)
        except ValueError:
            pass
        try:
            return parse_duration(text)
        except ValueError:
            raise self.error(column, f'"{text}" is neither a number nor a duration') from None

    def quantity(self, column: str) -> str:
        text = self._row[column]
        try:
            parse_quantity(text)
        except ValueError:
            raise self.error(column, f'"{text}" is not a quantity') from None
        return text

    def error(self, column: str, words: str) -> ConfigError:
        return ConfigError(words, file=str(self._file), line=self._number, path=column)


def read_lines(file: Path, columns: tuple[str, ...]) -> Iterator[CsvLine]:
    """The lines of a file that has these columns. Raises ConfigError for what cannot be read, with the line."""
    number = 1
    try:
        with gzip.open(file, "rt", newline="") if file.suffix == ".gz" else file.open(newline="") as opened:
            reader = csv.DictReader(opened)
            known = reader.fieldnames or ()
            if missing := [name for name in columns if name not in known]:
                raise ConfigError(
                    f"has no column {', '.join(missing)}", file=str(file), line=1, hint=f"it has {', '.join(known)}"
                )
            for row in reader:
                number = reader.line_num
                if None in row or None in row.values():
                    hint = f"{len(known)} values, as in the line of headings"
                    raise ConfigError("the line breaks off, or is too long", file=str(file), line=number, hint=hint)
                yield CsvLine(file, number, row)
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        words = f"cannot be read after line {number}: {error}"
        raise ConfigError(words, file=str(file), hint="is the file complete?") from None


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


def jobs_of_trace(spec: JobTraceSpec, rng: Random) -> list[LabJob]:
    """The jobs of a trace, in the order and with the times that the spec requests."""
    jobs = _listed_jobs(spec)
    jobs = jobs[: spec.limit] if spec.limit is not None else jobs
    jobs = [replace(job, name=f"{job.name}-{copy}") if copy else job for copy in range(spec.copies) for job in jobs]
    if spec.order != "file":
        jobs = _reordered(jobs, rng, with_replacement=spec.order == "sampled")
    if spec.gap is not None:
        time, timed = 0.0, []
        for number, job in enumerate(jobs, 1):
            timed.append(replace(job, arrival=time))
            if number % spec.burst == 0:
                time += draw(spec.gap, rng)
        jobs = timed
    first = min((job.arrival for job in jobs), default=0.0)
    return [replace(job, arrival=job.arrival - first) for job in jobs]


def _listed_jobs(spec: JobTraceSpec) -> list[LabJob]:
    if spec.format in PAPER_JOBS:
        columns, make = PAPER_JOBS[spec.format]
        return [make(line, spec) for line in read_lines(spec.file, columns)]
    return _openb_jobs(spec) if spec.format == "openb" else _csv_jobs(spec)


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
    )


_FIELDS = ("name", "arrival", "duration", "pods", "class", "queue", "user", "priority")


def _csv_jobs(spec: JobTraceSpec) -> list[LabJob]:
    column = {name: spec.columns.get(name, name) for name in _FIELDS}
    if unknown := [name for name in spec.columns if name not in _FIELDS]:
        raise ConfigError(f"{', '.join(unknown)} is no field of a job", path="columns", hint=f"known: {_FIELDS}")
    resources = spec.resources or {"cpu": "cpu", "memory": "memory"}
    asked = tuple(column[name] for name in ("arrival", "duration") if spec.gap is None or name != "arrival")
    lines = list(read_lines(spec.file, (*asked, *spec.columns.values(), *resources.values())))
    return [_csv_job(line, spec, column, resources, number) for number, line in enumerate(lines)]


def _csv_job(
    line: CsvLine, spec: JobTraceSpec, column: Mapping[str, str], resources: Mapping[str, str], number: int
) -> LabJob:
    def maybe(name: str) -> str:
        try:
            return line.text(column[name])
        except KeyError:
            return ""

    name = _NOT_IN_NAMES.sub("-", maybe("name").lower()).strip("-") or f"job-{number}"
    pods = line.whole(column["pods"]) if maybe("pods") else 1
    return LabJob(
        name,
        line.number(column["arrival"]) * spec.time_scale if maybe("arrival") else 0.0,
        maybe("class") or "job",
        pods,
        pods if spec.gang else 1,
        {resource: line.quantity(one) for resource, one in resources.items()},
        line.number(column["duration"]) * spec.time_scale,
        priority=line.whole(column["priority"]) if maybe("priority") else 0,
        queue=maybe("queue"),
        user=maybe("user"),
    )
