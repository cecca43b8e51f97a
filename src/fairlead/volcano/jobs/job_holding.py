"""HeldStatuses: statuses of Volcano Jobs in which nothing is new but numbers of pods, and are written when these stand.

While pods are made, start or end one after the other each would otherwise cost a write that the next one replaces at
once. Phases, conditions, retries and notes are never held back, and they take the numbers along. Numbers wait for a few
seconds at most, and while the controller has other writes under way they wait for these: pods come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.volcano.jobs.job_status import controlled_of
from fairlead.volcano.jobs.phases import JobState, phase_of

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

Key = tuple[str, str]

QUIET = 1.0
"""Seconds for which numbers must stand before they are written."""
LONGEST_HELD = 5.0
"""Seconds after which they are written whatever happens."""


@dataclass(slots=True)
class _Held:
    state: JobState
    since: float
    due: float


class HeldStatuses:
    def __init__(self) -> None:
        self._held: dict[Key, _Held] = {}

    def holds(self, key: Key, job: Doc, state: JobState, controlled: dict[str, str], now: float, *, busy: bool) -> bool:
        """Whether a status that differs from the Job's is to be written later; `busy` says whether the controller has
        writes under way."""
        if not _only_counts(job, state, controlled):
            self.forget(key)
            return False
        held = self._held.get(key)
        if held is None:
            self._held[key] = _Held(state, now, now + QUIET)
            return True
        if held.state != state:
            held.state, held.due = state, min(now + QUIET, held.since + LONGEST_HELD)
        return self.due_state(key, now, busy=busy) is None

    def due_state(self, key: Key, now: float, *, busy: bool) -> JobState | None:
        """What the status is to say now, if it was held back for long enough; it is not held any more then."""
        held = self._held.get(key)
        if held is None:
            return None
        if busy and now >= held.due:
            held.due = min(now + QUIET, held.since + LONGEST_HELD)
        return None if now < held.due else self._held.pop(key).state

    def due(self, key: Key) -> float | None:
        """When the Job is to be looked at again; None if nothing is held."""
        held = self._held.get(key)
        return None if held is None else held.due

    def forget(self, key: Key) -> None:
        self._held.pop(key, None)


def _only_counts(job: Doc, state: JobState, controlled: dict[str, str]) -> bool:
    """Whether nothing differs in a status but numbers of pods than the Job's."""
    if not phase_of(job) or controlled != controlled_of(job):
        return False
    known = JobState.of(job)
    known.counts = state.counts
    return known == state
