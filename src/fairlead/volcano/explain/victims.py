"""Who had to go for a job of the Volcano profile, who might have had to, and which rule protected each.

The votes of plugins come from the log of the rounds (`volcano/rounds/eviction_log.py`). Tasks that no plugin was asked
about were ruled out before, by the rules of preempt and reclaim themselves; those come from the round's records.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from fairlead.core.model.explanation import ProtectedPod
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.eviction_log import priority_beside

if TYPE_CHECKING:
    from fairlead.volcano.rounds.driver import RoundDriver
    from fairlead.volcano.rounds.round import Job, Round, Task

_NAMED = 100
_WITHIN = frozenset({"preempt", "gangpreempt"})
_BETWEEN = frozenset({"reclaim", "gangreclaim"})
EVICTING = _WITHIN | _BETWEEN
"""The actions that make room by evicting."""


def who_might_go(driver: RoundDriver, round: Round, job: Job) -> tuple[ProtectedPod, ...]:
    """Tasks that were evicted for a job and, while it waits, those that were not. Empty if no action evicts."""
    victims = list(driver.evictions.about(job))
    if not job.is_ready:
        known = {one.name for one in victims}
        others = (task for task in _placed(round, job) if task.key not in known)
        victims += islice(_ruled_out(driver, round, job, others), max(0, _NAMED - len(victims)))
    return tuple(victims)


def _placed(round: Round, job: Job) -> Iterator[Task]:
    for other in round.jobs.values():
        if other is not job:
            yield from other.in_status(TaskStatus.BOUND, TaskStatus.RUNNING)


def _ruled_out(driver: RoundDriver, round: Round, job: Job, tasks: Iterator[Task]) -> Iterator[ProtectedPod]:
    actions = frozenset(round.settings.actions)
    if not actions & EVICTING or job.is_pending or not job.counts.of(TaskStatus.PENDING) + job.counts.waiting:
        return
    for task in tasks:
        rule = _rule(driver, round, job, task, actions)
        yield ProtectedPod(task.key, priority_beside(task, job), rule)


def _rule(driver: RoundDriver, round: Round, job: Job, task: Task, actions: frozenset[str]) -> str:
    """The first rule by which a task was not even put to the vote."""
    assert task.job is not None
    if not task.preemptable:
        return "its annotation volcano.sh/preemptable says that it may not be evicted"
    if task.job.queue == job.queue:
        if not actions & _WITHIN:
            return "it is of the same queue, and there is no action preempt"
    elif not actions & _BETWEEN:
        return "it is of another queue, and there is no action reclaim"
    elif not round.queues[task.job.queue].queue.reclaimable:
        return f"its queue {task.job.queue} is not reclaimable"
    elif job.queue in driver.evictions.overused:
        return f"it is of another queue, and queue {job.queue} has all that it deserves"
    if job.counts.waiting:
        return "another node was chosen to make room on"
    return "evictions on its node were not tried or would not make enough room"
