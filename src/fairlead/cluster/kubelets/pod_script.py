"""What a simulated pod shall do, read from its annotations: how long it takes to start, to run, and how it ends.

Our own annotations come first, kwok's stage delays second, the kubelet's defaults last:

    fairlead.io/start-delay       pod-create.stage.kwok.x-k8s.io/delay + pod-ready.stage.kwok.x-k8s.io/delay
    fairlead.io/run-time          pod-complete.stage.kwok.x-k8s.io/delay
    fairlead.io/exit-code         (kwok has none)
    fairlead.io/terminate-delay   pod-delete.stage.kwok.x-k8s.io/delay

A pod without annotations runs until it is deleted; one of a Job's ends by itself, after a second unless its cluster
says otherwise (`fairlead up --run-time`). Every kwok delay may
have a `jitter-delay` beside it: then the time is drawn between the two. Durations that cannot be read count as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import TYPE_CHECKING

from fairlead.core.model.durations import parse_duration
from fairlead.core.model.records import record

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

START_DELAY = "fairlead.io/start-delay"
RUN_TIME = "fairlead.io/run-time"
EXIT_CODE = "fairlead.io/exit-code"
TERMINATE_DELAY = "fairlead.io/terminate-delay"
JOB_RUN_TIME = 1.0
"""Seconds that a Job's pod runs if nothing says otherwise."""

_START_STAGES = ("pod-create", "pod-init-container-running", "pod-init-container-completed", "pod-ready")
_STAGES = {
    stage: (f"{stage}.stage.kwok.x-k8s.io/delay", f"{stage}.stage.kwok.x-k8s.io/jitter-delay")
    for stage in (*_START_STAGES, "pod-complete", "pod-delete")
}
_KWOK = frozenset(name for names in _STAGES.values() for name in names)


@record(frozen=True, slots=True)
class PodScript:
    """`run_time` is None for a pod that runs until it is deleted; a Job's pod then runs for `job_run_time`."""

    start_delay: float = 0.0
    run_time: float | None = None
    exit_code: int = 0
    terminate_delay: float = 0.0
    job_run_time: float = JOB_RUN_TIME


def default_for(doc: Doc, default: PodScript) -> PodScript:
    """What a pod does that says nothing itself: a Job's pod has something to finish, so it does, as with kwok."""
    owners = doc["metadata"].get("ownerReferences")
    if owners and default.run_time is None and any(owner.get("kind") == "Job" for owner in owners):
        return replace(default, run_time=default.job_run_time)
    return default


def read_script(annotations: Mapping[str, str], rng: Random, default: PodScript) -> PodScript:
    if not annotations:
        return default
    start, run_time = _own(annotations, START_DELAY), _own(annotations, RUN_TIME)
    terminate = _own(annotations, TERMINATE_DELAY)
    if not _KWOK.isdisjoint(annotations):
        start = _sum_of_stages(annotations, rng) if start is None else start
        run_time = _stage(annotations, "pod-complete", rng) if run_time is None else run_time
        terminate = _stage(annotations, "pod-delete", rng) if terminate is None else terminate
    return PodScript(
        start_delay=default.start_delay if start is None else start,
        run_time=default.run_time if run_time is None else run_time,
        exit_code=_exit_code(annotations, default.exit_code),
        terminate_delay=default.terminate_delay if terminate is None else terminate,
    )


def _own(annotations: Mapping[str, str], name: str) -> float | None:
    """Seconds, also of a number alone; what is no pause says nothing."""
    text = annotations.get(name)
    return None if text is None else _pause(text)


@lru_cache(maxsize=1024)
def _pause(text: str) -> float | None:
    try:
        seconds = parse_duration(text.strip(), unit="s")
    except ValueError:
        return None
    return seconds if seconds >= 0 else None


def _stage(annotations: Mapping[str, str], stage: str, rng: Random) -> float | None:
    delay, jitter = (_own(annotations, name) for name in _STAGES[stage])
    if jitter is None:
        return delay
    if jitter <= (delay or 0.0):
        return jitter
    return rng.uniform(delay or 0.0, jitter)


def _sum_of_stages(annotations: Mapping[str, str], rng: Random) -> float | None:
    delays = [delay for stage in _START_STAGES if (delay := _stage(annotations, stage, rng)) is not None]
    return sum(delays) if delays else None


def _exit_code(annotations: Mapping[str, str], default: int) -> int:
    text = annotations.get(EXIT_CODE, "").strip()
    return int(text) if text.isdecimal() else default
