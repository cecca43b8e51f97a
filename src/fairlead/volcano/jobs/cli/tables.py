"""How `fairlead job` shows Jobs: rows of a list, the tasks of one, and its life so far."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.durations import format_duration
from fairlead.core.model.times import seconds_of
from fairlead.volcano.jobs.cli.gpus import gpus_of
from fairlead.volcano.jobs.phases import COUNTERS, RUNNING, phase_of, total_replicas

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.jobs.cli.waiting import JobScene

_LIST = ("NAME", "PHASE", "READY", "GPUS", "QUEUE", "AGE")
_WIDE = ("MIN", "PENDING", "RUNNING", "SUCCEEDED", "FAILED", "RETRIES", "PLUGINS")
_TASKS = ("TASK", "REPLICAS", "MIN", "PENDING", "RUNNING", "SUCCEEDED", "FAILED")


def listed(jobs: Sequence[Doc], *, now: float, wide: bool, namespaces: bool) -> str:
    head = [*(["NAMESPACE"] if namespaces else []), *_LIST, *(_WIDE if wide else [])]
    rows = [[*([job["metadata"]["namespace"]] if namespaces else []), *_row(job, now, wide=wide)] for job in jobs]
    return table(head, rows)


def _row(job: Doc, now: float, *, wide: bool) -> list[str]:
    status, spec = job.get("status") or {}, job["spec"]
    done = sum(int(status.get(field) or 0) for field in ("running", "succeeded"))
    row = [
        job["metadata"]["name"],
        phase_of(job) or "-",
        f"{done}/{total_replicas(spec)}",
        gpus_of(spec),
        spec.get("queue") or "default",
        age(job["metadata"].get("creationTimestamp"), now),
    ]
    if wide:
        counts = [str(status.get(field) or 0) for field in COUNTERS.values()]
        plugins = ",".join(sorted(spec.get("plugins") or {})) or "-"
        row += [str(spec.get("minAvailable") or 0), *counts, str(status.get("retryCount") or 0), plugins]
    return row


def viewed(scene: JobScene, reasons: Sequence[str], *, now: float) -> str:
    return "\n".join(_view(scene, reasons, now))


def _view(scene: JobScene, reasons: Sequence[str], now: float) -> Iterator[str]:
    job = scene.job
    metadata, spec, status = job["metadata"], job["spec"], job.get("status") or {}
    facts = {
        "Job": f"{metadata['namespace']}/{metadata['name']}",
        "Phase": phase_of(job) or "-",
        "Queue": spec.get("queue") or "default",
        "Age": age(metadata.get("creationTimestamp"), now),
        "Minimum": f"{spec.get('minAvailable') or 0} of {total_replicas(spec)} pods",
        "Retries": f"{status.get('retryCount') or 0} of {spec.get('maxRetry') or 0}",
    }
    if spec.get("priorityClassName"):
        facts["Priority"] = spec["priorityClassName"]
    if spec.get("plugins"):
        facts["Plugins"] = ", ".join(sorted(spec["plugins"]))
    if (ran := _ran_for(status, now)) is not None:
        facts["Ran for"] = format_duration(max(0.0, ran))
    yield from (f"{title + ':':<9} {value}" for title, value in facts.items())
    yield ""
    yield tasks_table(job)
    if reasons:
        yield ""
        yield "Waits:"
        yield from (f"  {reason}" for reason in reasons)
    passed = [
        f"{one['status']} {age(one.get('lastTransitionTime'), now)} ago" for one in status.get("conditions") or ()
    ]
    if passed:
        yield ""
        yield f"Phases:   {', '.join(passed)}"
    if scene.events:
        yield ""
        yield "Events:"
        yield from (f"  {one.get('type')} {one.get('reason')}: {one.get('message')}" for one in scene.events[-10:])


def _ran_for(status: Doc, now: float) -> float | None:
    """Seconds that a Job has been Running since it was last started; None if it never was. `runningDuration` of the
    status is from when the Job was made, waiting included."""
    entered = [(one["status"], seconds_of(one["lastTransitionTime"])) for one in status.get("conditions") or ()]
    left = [*(moment for _, moment in entered[1:]), float(int(now))]
    return next((end - start for (phase, start), end in zip(entered, left, strict=True) if phase == RUNNING), None)


def tasks_table(job: Doc) -> str:
    counted = (job.get("status") or {}).get("taskStatusCount") or {}
    rows = []
    for task in job["spec"].get("tasks") or ():
        phases = (counted.get(task.get("name")) or {}).get("phase") or {}
        replicas = int(task.get("replicas") or 0)
        minimum = task.get("minAvailable")
        rows.append(
            [
                task.get("name") or "-",
                str(replicas),
                str(replicas if minimum is None else minimum),
                *(str(phases.get(phase) or 0) for phase in COUNTERS),
            ]
        )
    return table(_TASKS, rows)


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns as wide as their longest cell, three spaces apart."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def age(since: str | None, now: float) -> str:
    """As kubectl prints ages: the largest unit, or two while small."""
    if not since:
        return "-"
    seconds = max(0, int(now - seconds_of(since)))
    if seconds < 120:
        return f"{seconds}s"
    if seconds < 7200:
        return f"{seconds // 60}m"
    return f"{seconds // 3600}h" if seconds < 172800 else f"{seconds // 86400}d"
