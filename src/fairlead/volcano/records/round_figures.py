"""What a scheduler in rounds can say of itself: how long things took, and how its queues and jobs stand.

Data only, as all figures are. Amounts are in Volcano's units: cpu in milli, memory in bytes, other resources as
volcano/records/amounts.py counts them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Span(StrEnum):
    """What takes time: a round, its opening, a plugin when rounds open and close, an action, a stage of placing a task;
    and what is counted from a task's or job's creation: how far it has come."""

    ROUND = "round"
    OPENING = "opening"
    PLUGIN = "plugin"
    ACTION = "action"
    STAGE = "stage"
    TASK = "task"
    JOB = "job"


OPENED, CLOSED = "OnSessionOpen", "OnSessionClose"
PREDICATE, SCORING, PRE_BIND, BIND = "Predicate", "Scoring", "PreBind", "Bind"
WATCHED, ASSUMED, PRE_BOUND, BOUND = "Watched", "Assumed", "PreBound", "Bound"


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """A queue as the plugin that keeps accounts has it; None is what that plugin does not keep."""

    name: str
    allocated: Mapping[str, float] = field(default_factory=dict)
    request: Mapping[str, float] = field(default_factory=dict)
    inqueue: Mapping[str, float] | None = None
    deserved: Mapping[str, float] | None = None
    capacity: Mapping[str, float] | None = None
    real_capacity: Mapping[str, float] | None = None
    share: float | None = None
    weight: int | None = None
    overused: bool | None = None


@dataclass(frozen=True, slots=True)
class JobFigures:
    """A job. `lacking` is how many tasks its gang lacks, `duration` how old it was, in seconds, when one of its tasks
    last got a place, which was at `placed_at`."""

    namespace: str
    name: str
    queue: str
    created: float
    lacking: int | None = None
    retries: int = 0
    share: float | None = None
    duration: float | None = None
    placed_at: float | None = None


@dataclass(frozen=True, slots=True)
class RoundFigures:
    """How things stand after a profile's last round. `victims` is what the last preemption would have cost."""

    queues: tuple[QueueFigures, ...] = ()
    jobs: tuple[JobFigures, ...] = ()
    unschedulable_jobs: int = 0
    victims: int = 0
    preemptions: int = 0
    evicting: Mapping[str, int] = field(default_factory=dict)
    """By action, the transactions that were kept and evict somebody."""
