"""overcommit: lets groups in while a cluster some factor larger than the real one has room for their minimums."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.volcano.queues.ledger import has_enough_running, missing_minimum, sentence
from fairlead.volcano.records.amounts import Amounts
from fairlead.volcano.rounds.tiers import TierPlugin, Vote

if TYPE_CHECKING:
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, Round

_FACTOR = 1.2


class Overcommit(TierPlugin):
    name = "overcommit"

    def __init__(self, *, factor: float = _FACTOR) -> None:
        self._factor = factor if factor >= 1 else _FACTOR

    @classmethod
    def of(cls, arguments: Arguments) -> Overcommit:
        return cls(factor=arguments.number("overcommit-factor", _FACTOR))

    def open(self, round: Round) -> None:
        self._round = round
        self._idle = round.total * self._factor
        used = Amounts()
        for name, column in round.resources.used.items():
            used.set(name, float(column[round.rows].sum()))
        self._idle.subtract(used)
        self._inqueue = Amounts()
        for job in round.jobs.values():
            self._inqueue.add(_promised(job))

    def entry_room(self) -> Amounts:
        """What is left for the minimums of further groups."""
        return self._idle - self._inqueue

    def job_enqueueable(self, job: Job) -> Vote:
        if job.min_resources is None:
            return Vote.PERMIT
        least = job.minimum()
        overused = (self._inqueue + least).exceeding_requested(self._idle, least)
        if overused:
            self._round.note(job, sentence("resource in cluster is overused", "overused", overused))
        return Vote.REJECT if overused else Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        if job.min_resources is not None:
            self._inqueue.add(job.without_gated(job.minimum()))


def _promised(job: Job) -> Amounts:
    """What is reserved for a job that was let in: its whole minimum until it runs, even if part of it is placed."""
    if job.min_resources is None:
        return Amounts()
    if job.phase == "Inqueue":
        return job.without_gated(job.minimum())
    return job.without_gated(missing_minimum(job)) if has_enough_running(job) else Amounts()
