"""shuffle: evict the running tasks that plugins name, to have them placed anew (rescheduling, tdm, pdb).

There is nothing to try out, so nothing is taken back.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.transaction import evict_now

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Round

NAME = "shuffle"


def execute(round: Round) -> Iterator[None]:
    running = [task for job in round.jobs.values() for task in job.in_status(TaskStatus.RUNNING)]
    for victim in round.choices.walk("victims", round.tiers.victim_tasks(running)):
        evict_now(round, victim, NAME)
        yield
