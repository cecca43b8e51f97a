"""HeldStatuses: statuses of Volcano Jobs that are not written yet, because they will say something else in a moment.

    the first status of a Job     waits until the scheduler has let the PodGroup in: then it has pods to count
    nothing but numbers of pods   wait until they stand, while pods start or end one after the other

Both would otherwise be a write for each Job or for each pod that somebody replaces at once. Phases, conditions, retries
and notes are never held back. A status waits no longer than some seconds, and while the controller has other writes
under way it waits for these: pods and groups that are to be made come first.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.controllers.volcano.job_status import controlled_of
from fairlead.controllers.volcano.phases import PENDING, JobState, PodCounts, phase_of

if TYPE_CHECKING:
    from fairlead.model.flow import Doc

Key = tuple[str, str]

TO_BE_LET_IN = 2.0
"""Seconds for which a new Job waits to be let in before its status says that it waits."""
QUIET = 1.0
"""Seconds for which numbers must stand before they are written."""
LONGEST_HELD = 5.0
"""Seconds after which a status is written whatever happens."""


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
        if not _is_passing(job, state, controlled):
            self.forget(key)
            return False
        held = self._held.get(key)
        if held is None:
            self._held[key] = _Held(state, now, now + (QUIET if phase_of(job) else TO_BE_LET_IN))
            return True
        if held.state != state:
            held.state, held.due = state, min(now + QUIET, held.since + LONGEST_HELD)
        return self.due_state(key, now, busy=busy) is None

    def group_is_there(self, key: Key, now: float) -> None:
        """The PodGroup of a new Job was made: from now on the scheduler can let it in."""
        if (held := self._held.get(key)) is not None:
            held.since, held.due = now, now + TO_BE_LET_IN

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


def _is_passing(job: Doc, state: JobState, controlled: dict[str, str]) -> bool:
    """Whether a status is the first one of a Job that has no pods yet, or tells nothing but numbers of pods."""
    if controlled != controlled_of(job):
        return False
    if not phase_of(job):
        return state.phase == PENDING and state.counts == PodCounts()
    known = JobState.of(job)
    known.counts = state.counts
    return known == state
