"""Figures: what a scheduler can say of itself, for metrics and logs. Data only; the core neither logs nor counts time.

`Figures` is how things stand between two steps. `Observed` is what happened since it was last taken.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fairlead.core.model.explanation import Explanation

from fairlead.core.model.records import record


@record(frozen=True, slots=True)
class Decision:
    """What became of one attempt or one binding. `result` is scheduled, unschedulable or error."""

    at: float
    profile: str
    pod: str
    uid: str
    result: str
    node: str = ""
    message: str = ""
    attempts: int = 0
    waited: float = 0.0
    took: float | None = None
    """Seconds from the beginning of the attempt to the decision, if a meter measures them."""


class LoudDecision(NamedTuple):
    """A decision about a pod that is to be logged: its annotation `scheduling.fairlead.io/verbosity` is 2 or more.
    From 4 on `explanation` says what was looked at."""

    decision: Decision
    explanation: Explanation | None


class Sample(NamedTuple):
    """One measured call of a plugin. `point` is the name of the method; `cycle` distinguishes cycles.
    `began` is by the meter's clock."""

    cycle: int
    profile: str
    plugin: str
    point: str
    status: str
    seconds: float
    pod: str = ""
    began: float = 0.0


class EvictedPod(NamedTuple):
    """An eviction, for the log: who went from where, for whose sake, by which rule."""

    pod: str
    node: str
    beneficiary: str
    rule: str
    priority: int
    lost: float


class Lapse(NamedTuple):
    """One span of a scheduling mode that was measured. `labels` say of what, such as a plugin or a stage."""

    span: str
    labels: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class Figures:
    pending: Mapping[str, int] = field(default_factory=dict)
    """Pods by queue."""
    incoming: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By queue and event: pods that have entered."""
    blamed: Mapping[tuple[str, str], int] = field(default_factory=dict)
    """By plugin and profile: pods that wait because of it."""
    in_flight: Mapping[str, int] = field(default_factory=dict)
    """By event: what is kept for pods that are being scheduled."""
    evaluations: Mapping[tuple[str, str, str], int] = field(default_factory=dict)
    """By plugin, method and profile: attempts in which it was asked."""
    nodes: int = 0
    pods: int = 0
    assumed: int = 0
    preemptions: int = 0
    evicted: Mapping[str, int] = field(default_factory=dict)
    """By rule: pods that were evicted."""
    rows_judged: int = 0
    domains_tried: int = 0
    rows_one_by_one: Mapping[str, int] = field(default_factory=dict)
    """By lifted plugin: nodes judged one at a time."""
    raised: Mapping[str, int] = field(default_factory=dict)
    """By what was being done: exceptions that cost one object its turn."""
    quarantined: int = 0
    drift: int = 0
    """How often the table differed from its pods."""
    costliest: tuple[str, float] | None = None
    """The plugin that took the most of the measured time, and its share."""
    of_modes: Mapping[str, object] = field(default_factory=dict)
    """By profile with a scheduling mode of its own: that mode's figures."""


@dataclass(frozen=True, slots=True)
class Observed:
    decisions: tuple[Decision, ...] = ()
    loud: tuple[LoudDecision, ...] = ()
    algorithm: tuple[float, ...] = ()
    """Seconds per attempt."""
    samples: tuple[Sample, ...] = ()
    victims: tuple[int, ...] = ()
    """How many pods each preemption evicts."""
    complaints: tuple[str, ...] = ()
    evicted: tuple[EvictedPod, ...] = ()
    lapses: tuple[Lapse, ...] = ()
    """The durations that scheduling modes measured."""
    costliest: tuple[str, float] | None = None
    """The plugin that took the most of the measured time since the start, and its share."""
