"""sla: a job that has waited as long as it may goes first, and is let in whatever other plugins say."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.durations import parse_duration
from fairlead.volcano.rounds.tiers import TierPlugin, Vote

if TYPE_CHECKING:
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, Round

_ARGUMENT = "sla-waiting-time"
_ANNOTATIONS = ("volcano.sh/sla-waiting-time", _ARGUMENT)


class Sla(TierPlugin):
    """`waiting_time`, in seconds, is for jobs that name none themselves; None promises nothing."""

    name = "sla"
    timed = True

    def __init__(self, *, waiting_time: float | None = None) -> None:
        self._waiting_time = waiting_time

    @classmethod
    def of(cls, arguments: Arguments) -> Sla:
        return cls(waiting_time=positive_duration(arguments.text(_ARGUMENT)))

    def open(self, round: Round) -> None:
        self._now = round.now

    def job_order(self, left: Job, right: Job) -> float:
        """The earlier deadline first; a job without one comes last."""
        one, other = self._deadline(left), self._deadline(right)
        if one is None or other is None:
            return int(one is None) - int(other is None)
        return one - other

    def job_enqueueable(self, job: Job) -> Vote:
        return self._vote(job)

    def job_pipelined(self, job: Job) -> Vote:
        return self._vote(job)

    def _vote(self, job: Job) -> Vote:
        deadline = self._deadline(job)
        return Vote.PERMIT if deadline is not None and self._now >= deadline else Vote.ABSTAIN

    def _deadline(self, job: Job) -> float | None:
        given = next((job.group.annotations[key] for key in _ANNOTATIONS if key in job.group.annotations), "")
        wait = positive_duration(given) or self._waiting_time
        return None if wait is None else job.created + wait


def positive_duration(text: str) -> float | None:
    """Seconds; None for what is no duration, or none above zero."""
    try:
        seconds = parse_duration(text)
    except ValueError:
        return None
    return seconds if seconds > 0 else None
