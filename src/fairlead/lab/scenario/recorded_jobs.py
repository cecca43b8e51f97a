"""Recorded jobs: CSV tables of any form, Helios's and Philly's, and the Standard Workload Format.

Recordings of GPU clusters and of the Parallel Workloads Archive say what a job had in all: so many GPUs, or processors.
A job of ours is equal pods, so it is split into as few equal pods as fit on nodes of the cluster: 12 GPUs are two pods
of 6 on nodes of 8, and 13 are thirteen pods of one.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from fairlead.errors import ConfigError
from fairlead.lab.scenario.csv_lines import UNREADABLE, CsvLine, open_text, read_lines, unreadable
from fairlead.lab.scenario.jobs import LabJob
from fairlead.lab.scenario.paper_traces import GPU

if TYPE_CHECKING:
    from fairlead.lab.scenario.records import JobTraceSpec

LargestNode = Callable[[str], float]
"""How much of a resource the largest node has; 0 where that is not known."""

_NOT_IN_NAMES = re.compile(r"[^a-z0-9-]+")
_BY_OWN_NAME = ("name", "arrival", "duration", "pods", "class", "queue", "user", "priority")
"""Fields that are read from a column of their own name without being listed."""
_LISTED_ONLY = ("estimate", "gpus", "cpus", "nodes", "start", "end")
_FIELDS = (*_BY_OWN_NAME, *_LISTED_ONLY)

_PRESETS: Mapping[str, Mapping[str, str]] = {
    "csv": {},
    "helios": {
        "name": "job_id", "arrival": "submit_time", "duration": "duration", "gpus": "gpu_num", "cpus": "cpu_num",
        "nodes": "node_num", "user": "user", "queue": "vc",
    },
    "philly": {
        "name": "jobid", "arrival": "submitted_time", "start": "start_time", "end": "end_time", "gpus": "gpus",
        "user": "user", "queue": "vc",
    },
}  # fmt: skip
"""By format: the column of each field, where `columns` names no other one."""
_MAY_BE_MISSING = ("name", "cpus", "nodes", "user", "queue")
"""Columns of a preset that some releases of these recordings do not have."""


# ---- tables ----


def table_of_jobs(spec: JobTraceSpec, largest: LargestNode) -> list[LabJob]:
    """The jobs of a CSV file. Raises ConfigError that names the line."""
    return _JobTable(spec, largest).jobs()


class _JobTable:
    """How the columns of one file become fields of jobs."""

    def __init__(self, spec: JobTraceSpec, largest: LargestNode) -> None:
        self._spec = spec
        if unknown := [name for name in spec.columns if name not in _FIELDS]:
            raise ConfigError(f"{', '.join(unknown)} is no field of a job", path="columns", hint=f"known: {_FIELDS}")
        preset = _PRESETS[spec.format]
        self._listed = {**preset, **spec.columns}
        if "duration" in spec.columns:
            self._listed = {name: one for name, one in self._listed.items() if name not in ("start", "end")}
        self._column = {name: name for name in _BY_OWN_NAME} | self._listed
        in_all = "gpus" in self._listed or "cpus" in self._listed
        self._resources = spec.resources or ({} if in_all else {"cpu": "cpu", "memory": "memory"})
        self._most = _most_per_pod(spec, largest, GPU) if "gpus" in self._listed else 0
        self._optional = {one for name, one in preset.items() if name in _MAY_BE_MISSING and name not in spec.columns}

    def jobs(self) -> list[LabJob]:
        times = ("start", "end") if "end" in self._listed else ("duration",)
        asked = tuple(self._column[name] for name in (*times, *(() if self._spec.gap is not None else ("arrival",))))
        needed = [one for one in self._listed.values() if one not in self._optional]
        lines = read_lines(self._spec.file, (*asked, *needed, *self._resources.values()))
        jobs = (self._job(line, number) for number, line in enumerate(lines))
        return [job for job in jobs if job is not None]

    def _maybe(self, line: CsvLine, name: str) -> str:
        try:
            return line.text(self._column[name])
        except KeyError:
            return ""

    def _job(self, line: CsvLine, number: int) -> LabJob | None:
        """The job of a line; None for a job that never began."""
        spec, column = self._spec, self._column
        duration = self._duration(line)
        if duration is None:
            return None
        name = _NOT_IN_NAMES.sub("-", self._maybe(line, "name").lower()).strip("-") or f"job-{number}"
        pods, resources = self._pods(line)
        return LabJob(
            name,
            line.instant(column["arrival"]) * spec.time_scale if self._maybe(line, "arrival") else 0.0,
            self._maybe(line, "class") or "job",
            pods,
            pods if spec.gang else 1,
            {resource: line.quantity(one) for resource, one in self._resources.items()} | resources,
            duration * spec.time_scale,
            priority=line.whole(column["priority"]) if self._maybe(line, "priority") else 0,
            queue=self._maybe(line, "queue"),
            user=self._maybe(line, "user"),
            estimate=line.number(column["estimate"]) * spec.time_scale if self._maybe(line, "estimate") else None,
            line=line.line,
        )

    def _duration(self, line: CsvLine) -> float | None:
        if "end" not in self._listed:
            return line.number(self._column["duration"])
        start, end = self._column["start"], self._column["end"]
        if line.text(start) in _NO_TIME or line.text(end) in _NO_TIME:
            return None
        lasted = line.instant(end) - line.instant(start)
        if lasted < 0:
            raise line.error(end, "is before the start of the job")
        return lasted

    def _pods(self, line: CsvLine) -> tuple[int, dict[str, str]]:
        """How many pods a job has, and what each has of the amounts that are given for the whole job."""
        gpus, cpus, nodes, pods = (
            line.number(self._column[name]) if self._maybe(line, name) else 0.0
            for name in ("gpus", "cpus", "nodes", "pods")
        )
        if gpus != int(gpus):
            raise line.error(self._column["gpus"], f"{gpus:g} is not a whole number of GPUs")
        if pods and gpus % pods:
            raise line.error(self._column["pods"], f"{gpus:g} GPUs cannot be divided among {pods:g} pods")
        if nodes and not pods and gpus % nodes == 0 and gpus / nodes <= (self._most or math.inf):
            pods = nodes
        count = int(pods) or equal_parts(int(gpus), self._most)
        resources = {GPU: str(int(gpus) // count)} if gpus else {}
        if cpus > 0:
            resources["cpu"] = f"{math.ceil(1000 * cpus / count)}m"
        return count, resources


_NO_TIME = ("", "None", "null", "NaT")


def equal_parts(amount: int, most: int) -> int:
    """The least number of equal parts of an amount of which none is more than `most`; 1 if there is nothing."""
    if amount <= max(most, 1):
        return 1
    return next(parts for parts in range(-(-amount // most), amount + 1) if amount % parts == 0)


def _most_per_pod(spec: JobTraceSpec, largest: LargestNode, resource: str) -> int:
    most = spec.per_pod if spec.per_pod is not None else int(largest(resource))
    if most < 1:
        raise ConfigError(
            f"jobs of {spec.file.name} are split over nodes, and no node is known to have {resource}",
            hint="give the nodes that resource, or say with `perPod` how much of it a pod has at most",
        )
    return most


# ---- the Standard Workload Format ----

_SWF_FIELDS = 18
_PARTIAL = (2, 3, 4)
"""States of lines that are parts of a job which has a line of its own."""


def swf_jobs(spec: JobTraceSpec, largest: LargestNode) -> list[LabJob]:
    """The jobs of a file in the Standard Workload Format, version 2. A processor is a core; memory is left out, which
    few of these recordings have. Jobs that never ran are passed over, and so are lines about a part of a job."""
    most = _most_per_pod(spec, largest, "cpu")
    jobs: list[LabJob] = []
    number = 0
    try:
        with open_text(spec.file) as opened:
            for number, text in enumerate(opened, 1):
                if text.strip() and not text.lstrip().startswith(";"):
                    job = _swf_job(_swf_values(text, spec, number), spec, most, number)
                    jobs += [job] if job is not None else []
    except UNREADABLE as error:
        raise unreadable(spec.file, number, error) from None
    return jobs


def _swf_values(text: str, spec: JobTraceSpec, number: int) -> list[float]:
    try:
        values = [float(one) for one in text.split()]
    except ValueError:
        raise ConfigError("is not a line of numbers", file=str(spec.file), line=number) from None
    if len(values) != _SWF_FIELDS:
        words = f"has {len(values)} numbers, and a line of the Standard Workload Format has {_SWF_FIELDS}"
        raise ConfigError(words, file=str(spec.file), line=number, hint="is the file complete?")
    return values


def _swf_job(values: list[float], spec: JobTraceSpec, most: int, line: int) -> LabJob | None:
    job, submit, _, run_time, allocated, _, _, requested, estimate, _, status, user, *_ = values
    queue = int(values[14])
    processors = int(allocated if allocated > 0 else requested)
    if run_time <= 0 or processors <= 0 or int(status) in _PARTIAL:
        return None
    pods = equal_parts(processors, most)
    return LabJob(
        f"job-{int(job)}",
        submit * spec.time_scale,
        "job",
        pods,
        pods if spec.gang else 1,
        {"cpu": str(processors // pods)},
        run_time * spec.time_scale,
        queue=f"queue-{queue}" if queue >= 0 else "",
        user=f"user-{int(user)}" if user >= 0 else "",
        estimate=estimate * spec.time_scale if estimate > 0 else None,
        line=line,
    )
