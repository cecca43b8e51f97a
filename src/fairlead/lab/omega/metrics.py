"""What a run came to, under the names of the reference files.

Small letters are schedulers of a kind (`batch.busy`), capitals are jobs of a workload (`Batch.wait_first_mean`). A
percentile is the element floor((n - 1) p) of the ascending list, as in the original.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from fairlead.lab.omega.simulation import JobRun, QueueingScheduler, Simulation

Metrics: TypeAlias = dict[str, "float | None"]


def measure(simulation: Simulation) -> Metrics:
    cell, samples = simulation.cell, simulation.samples
    metrics: Metrics = {
        "end_time": simulation.agenda.now,
        "cpu_util": samples.occupied["cpu"] / samples.count / cell.total["cpu"],
        "mem_util": samples.occupied["memory"] / samples.count / cell.total["memory"],
        "cpu_locked": samples.locked["cpu"] / samples.count / cell.total["cpu"],
    }
    schedulers = list(simulation.schedulers.values())
    for kind in dict.fromkeys(scheduler.kind for scheduler in schedulers):
        of_kind = [scheduler for scheduler in schedulers if scheduler.kind == kind]
        found = _of_schedulers(of_kind, simulation.agenda.now, shared=simulation.spec.architecture == "omega")
        metrics.update({f"{kind}.{name}": value for name, value in found.items()})
    for workload in dict.fromkeys(job.spec.workload for job in simulation.jobs):
        jobs = [job for job in simulation.jobs if job.spec.workload == workload]
        metrics.update({f"{workload}.{name}": value for name, value in _of_jobs(jobs).items()})
    return metrics


def _of_schedulers(schedulers: Sequence[QueueingScheduler], end: float, *, shared: bool) -> Metrics:
    counts = [scheduler.counts for scheduler in schedulers]
    useful = sum(one.useful for one in counts) / end / len(counts)
    wasted = sum(one.wasted for one in counts) / end / len(counts)
    sums = {
        name: sum(getattr(one, name) for one in counts)
        for name in ("tx_ok", "tx_failed", "tx_retried", "task_ok", "task_failed", "no_resources", "abandoned")
    }
    return {
        "busy": useful + wasted,
        "busy_useful": useful,
        "busy_wasted": wasted,
        **sums,
        "conflict_fraction": _ratio(sums["tx_failed"], sums["tx_ok"]),
        "task_conflict_fraction": _ratio(sums["task_failed"], sums["task_ok"]) if shared else None,
        "queue_left": sum(len(scheduler.queue) for scheduler in schedulers),
        "misses": sum(scheduler.placing.misses for scheduler in schedulers),
    }


def _of_jobs(jobs: Sequence[JobRun]) -> Metrics:
    tried = [job for job in jobs if job.attempts]
    attempts = [job.attempts for job in tried]
    first = [job.wait_first for job in tried]
    full = [job.wait_full for job in tried]
    whole = sum(not job.unplaced for job in jobs)
    return {
        "jobs": len(jobs),
        "attempted": len(tried),
        "never_attempted": len(jobs) - len(tried),
        "fully_scheduled": whole,
        "abandoned": sum(job.abandoned for job in jobs),
        "unscheduled_fraction": 1 - whole / len(jobs),
        "tasks_unscheduled": sum(job.unplaced for job in jobs),
        "task_attempts": sum(job.task_attempts for job in jobs),
        "attempts_mean": _mean(attempts),
        "attempts_p90": percentile(attempts, 0.9),
        "attempts_p99": percentile(attempts, 0.99),
        "attempts_max": max(attempts, default=None),
        "wait_first_mean": _mean(first),
        "wait_first_p50": percentile(first, 0.5),
        "wait_first_p90": percentile(first, 0.9),
        "wait_full_mean": _mean(full),
        "wait_full_p90": percentile(full, 0.9),
        "wait_full_p99": percentile(full, 0.99),
    }


def percentile(values: Sequence[float], share: float) -> float | None:
    return sorted(values)[int((len(values) - 1) * share)] if values else None


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
