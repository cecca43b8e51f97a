"""The phases of a Volcano Job as a table: what an action does in each phase, and which phase follows.

    Pending ◀─▶ Running ─▶ Completing ─▶ Completed        Restarting ─▶ Pending, or Failed after the last retry
       │           │  └──▶ Terminating ─▶ Terminated      Aborting ─▶ Aborted ─resume▶ Restarting
       └───────────┴──▶ Completed, Failed (by counting pods)

An action either synchronises the Job with its spec or kills pods; then a rule looks at the counted pods and says the
next phase. Everything here is a function of spec and status: the controller (jobs.py) counts, writes and retries.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.volcano.records.quirks import Quirks

PENDING, RUNNING, RESTARTING = "Pending", "Running", "Restarting"
ABORTING, ABORTED = "Aborting", "Aborted"
COMPLETING, COMPLETED = "Completing", "Completed"
TERMINATING, TERMINATED, FAILED = "Terminating", "Terminated", "Failed"
PHASES = (
    PENDING, RUNNING, RESTARTING, ABORTING, ABORTED, COMPLETING, COMPLETED, TERMINATING, TERMINATED, FAILED,
)  # fmt: skip
FINISHED = frozenset({COMPLETED, FAILED, TERMINATED})
"""A finished Job stays as it is; an aborted one can be resumed."""

SYNC_JOB, ABORT_JOB, RESUME_JOB = "SyncJob", "AbortJob", "ResumeJob"
RESTART_JOB, COMPLETE_JOB, TERMINATE_JOB = "RestartJob", "CompleteJob", "TerminateJob"
RESTART_TASK, RESTART_POD, RESTART_PARTITION = "RestartTask", "RestartPod", "RestartPartition"
TARGETED = frozenset({RESTART_TASK, RESTART_POD, RESTART_PARTITION})

KEEP_NONE: frozenset[str] = frozenset()
KEEP_FINISHED = frozenset({"Succeeded", "Failed"})
COUNTERS: Mapping[str, str] = {
    "Pending": "pending",
    "Running": "running",
    "Succeeded": "succeeded",
    "Failed": "failed",
}
"""Phase of a pod -> counter in the Job's status; every other phase is `unknown`."""
_COUNTER_FIELDS = (*COUNTERS.values(), "terminating", "unknown")


@dataclass(slots=True)
class PodCounts:
    """How many pods of a Job are in which state, and the same task by task."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unknown: int = 0
    by_task: dict[str, dict[str, int]] = field(default_factory=dict)

    def add(self, task: str, phase: str) -> None:
        counter = COUNTERS.get(phase, "unknown")
        setattr(self, counter, getattr(self, counter) + 1)
        phases = self.by_task.setdefault(task, {})
        phases[phase] = phases.get(phase, 0) + 1

    @property
    def is_drained(self) -> bool:
        return not (self.terminating or self.pending or self.running)


@dataclass(slots=True)
class JobState:
    """The part of a Job's status that actions change; `counts` are replaced by each counting."""

    phase: str
    min_available: int
    version: int
    retries: int
    counts: PodCounts

    @classmethod
    def of(cls, job: Doc) -> JobState:
        status = job.get("status") or {}
        by_task = {task: dict(one.get("phase") or {}) for task, one in (status.get("taskStatusCount") or {}).items()}
        counts = PodCounts(by_task=by_task)
        for name in _COUNTER_FIELDS:
            if status.get(name):
                setattr(counts, name, int(status[name]))
        return cls(
            phase=phase_of(job),
            min_available=int(status.get("minAvailable") or 0),
            version=version_of(job),
            retries=int(status.get("retryCount") or 0),
            counts=counts,
        )

    def copy(self) -> JobState:
        return replace(self)

    def document(self) -> dict[str, Any]:
        """The fields of `status` that are not zero."""
        counts = self.counts
        fields: dict[str, Any] = {name: value for name in _COUNTER_FIELDS if (value := getattr(counts, name))}
        if self.min_available:
            fields["minAvailable"] = self.min_available
        if self.version:
            fields["version"] = self.version
        if self.retries:
            fields["retryCount"] = self.retries
        if counts.by_task:
            fields["taskStatusCount"] = {task: {"phase": dict(phases)} for task, phases in counts.by_task.items()}
        return fields


def phase_of(job: Doc) -> str:
    """The phase in a Job's status; empty for a Job that nobody has looked at."""
    phase: str = ((job.get("status") or {}).get("state") or {}).get("phase") or ""
    return phase


def version_of(job: Doc) -> int:
    """How often the pods of a Job were killed together."""
    return int((job.get("status") or {}).get("version") or 0)


Rule = Callable[["Doc", JobState], None]
"""Sets the next phase (and retries) of a state from the Job's spec and the counts in the state."""


class MoveKind(Enum):
    SYNC = "sync"
    KILL = "kill"
    KILL_TARGET = "kill target"


_SYNC = MoveKind.SYNC


@dataclass(frozen=True, slots=True)
class Move:
    """What an action does in a phase: an operation, the phases of pods that a kill leaves alone, and the rule."""

    operation: MoveKind
    rule: Rule
    keep: frozenset[str] = KEEP_NONE


# ---- rules ----


def total_replicas(spec: Doc) -> int:
    return sum(int(task.get("replicas") or 0) for task in spec.get("tasks") or ())


def _stay(spec: Doc, state: JobState) -> None:
    """A rule that changes nothing."""


def _to(phase: str) -> Rule:
    def rule(spec: Doc, state: JobState) -> None:
        state.phase = phase

    return rule


def _restart(spec: Doc, state: JobState) -> None:
    state.phase = RESTARTING
    state.retries += 1


def _once_drained(phase: str) -> Rule:
    def rule(spec: Doc, state: JobState) -> None:
        if state.counts.is_drained:
            state.phase = phase

    return rule


def _start(spec: Doc, state: JobState) -> None:
    """Pending: the Job runs once as many pods as its minimum have started, failed ones included."""
    counts = state.counts
    if int(spec.get("minAvailable") or 0) <= counts.running + counts.succeeded + counts.failed:
        state.phase = RUNNING


def _after_restart(spec: Doc, state: JobState) -> None:
    max_retry = int(spec.get("maxRetry") or 0)
    if state.retries >= max_retry:
        state.phase = FAILED
    elif total_replicas(spec) - state.counts.terminating >= state.min_available:
        state.phase = PENDING


def _progress(spec: Doc, state: JobState) -> None:
    """Running: over when enough have succeeded or all have ended; Pending again when too many pods are."""
    counts, total, min_available = state.counts, total_replicas(spec), int(spec.get("minAvailable") or 0)
    if not total:
        return
    min_success = spec.get("minSuccess")
    if min_success is not None and counts.succeeded >= min_success:
        state.phase = COMPLETED
    elif counts.succeeded + counts.failed == total:
        state.phase = _verdict(spec, counts, min_available)
    elif counts.pending > total - min_available:
        state.phase = PENDING


def _verdict(spec: Doc, counts: PodCounts, min_available: int) -> str:
    """Completed or Failed, for a Job all of whose pods have ended."""
    minima = {task.get("name"): task.get("minAvailable") for task in spec.get("tasks") or ()}
    if min_available >= sum(int(minimum or 0) for minimum in minima.values()):
        for task, minimum in minima.items():
            phases = counts.by_task.get(str(task))
            if minimum is not None and phases is not None and phases.get("Succeeded", 0) < minimum:
                return FAILED
    min_success = spec.get("minSuccess")
    if min_success is not None and counts.succeeded < min_success:
        return FAILED
    return COMPLETED if counts.succeeded >= min_available else FAILED


def is_last_try(spec: Doc, state: JobState) -> bool:
    """Whether a restart would be the last."""
    return state.retries >= int(spec.get("maxRetry") or 0) - 1


def has_no_try_left(spec: Doc, state: JobState) -> bool:
    """Whether a Job that restarts is about to fail: it must not get pods before it does."""
    return state.phase == RESTARTING and state.retries >= int(spec.get("maxRetry") or 0)


# ---- the table ----

_ENDINGS = {
    ABORT_JOB: Move(MoveKind.KILL, _to(ABORTING), KEEP_FINISHED),
    COMPLETE_JOB: Move(MoveKind.KILL, _to(COMPLETING), KEEP_FINISHED),
    TERMINATE_JOB: Move(MoveKind.KILL, _to(TERMINATING), KEEP_FINISHED),
}
_ALIVE = {
    RESTART_JOB: Move(MoveKind.KILL, _restart),
    **{action: Move(MoveKind.KILL_TARGET, _restart) for action in TARGETED},
    **_ENDINGS,
}
_RESTARTING = {
    SYNC_JOB: Move(MoveKind.SYNC, _after_restart),
    **{action: Move(MoveKind.KILL_TARGET, _after_restart) for action in TARGETED},
}
_RESUME = {RESUME_JOB: Move(MoveKind.KILL, _restart, KEEP_FINISHED)}


def _kill(rule: Rule) -> Move:
    return Move(MoveKind.KILL, rule, KEEP_FINISHED)


_TABLE: Mapping[str, tuple[Mapping[str, Move], Move]] = {
    PENDING: (_ALIVE, Move(MoveKind.SYNC, _start)),
    RUNNING: (_ALIVE, Move(MoveKind.SYNC, _progress)),
    RESTARTING: (_RESTARTING, Move(MoveKind.KILL, _after_restart)),
    ABORTING: (_RESUME, _kill(_once_drained(ABORTED))),
    ABORTED: (_RESUME, _kill(_stay)),
    COMPLETING: ({}, _kill(_once_drained(COMPLETED))),
    TERMINATING: ({}, _kill(_once_drained(TERMINATED))),
    **{phase: ({}, _kill(_stay)) for phase in FINISHED},
}
"""Phase -> what named actions do in it, and what every other action does."""


def stays(spec: Doc, state: JobState, quirks: Quirks) -> bool:
    """Whether a sync is what a Job in the phase of `state` needs, and leaves it in that phase."""
    move, after = move_for(state.phase, SYNC_JOB, quirks), state.copy()
    move.rule(spec, after)
    return move.operation is _SYNC and after == state


def move_for(phase: str, action: str, quirks: Quirks) -> Move:
    """What `action` does to a Job in `phase`; an empty phase counts as Pending."""
    named, other = _TABLE.get(phase or PENDING, _TABLE[PENDING])
    if phase == RESTARTING and action in _ENDINGS and not quirks.restart_swallows_actions:
        return _ENDINGS[action]
    return named.get(action, other)
