"""Bundles: tasks of a job that are evicted together, so that gangs are not broken without need.

The tasks that a job can lose and stay ready are its safe bundle, of which a part may be taken; the rest is a whole
bundle, taken as a whole or not at all, because losing any of it breaks the gang. Safe bundles go first. Among whole
ones the order is by how much of the need a bundle covers here, against all that its job loses everywhere.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cmp_to_key
from math import inf
from typing import TYPE_CHECKING

from fairlead.volcano.records.amounts import Amounts, total_of

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, Task

Before = Callable[["Job", "Job"], bool]


@dataclass(frozen=True, slots=True)
class Bundle:
    job: Job
    tasks: tuple[Task, ...]
    safe: bool

    def freed(self) -> Amounts:
        return total_of(task.request for task in self.tasks)

    def bargain(self, need: Amounts) -> float:
        """How good a bargain evicting it is; what is safe costs nothing."""
        if self.safe:
            return inf
        lost = _against(total_of(task.request for task in self.job.tasks.values()), need, capped=False)
        return _against(self.freed(), need, capped=True) / lost if lost else inf


def _against(amounts: Amounts, need: Amounts, *, capped: bool) -> float:
    """How many times the need is contained in some amounts, summed over dimensions, each at most once if capped."""
    score = 0.0
    for name in need.names():
        amount = amounts.get(name)
        score += (min(amount, need.get(name)) if capped else amount) / need.get(name)
    return score


def bundles_of(job: Job, tasks: Iterable[Task]) -> list[Bundle]:
    """The bundles that some tasks of a job make, least important tasks first. A job that is not ready anyway has
    nothing to lose."""
    ordered = sorted(tasks, key=lambda task: (task.priority, task.uid))
    if not ordered:
        return []
    if job.counts.ready < job.min_available:
        return [Bundle(job, tuple(ordered), safe=True)]
    surplus = _Surplus(job)
    safe = tuple(task for task in ordered if surplus.spends(task))
    spared = {task.uid for task in safe}
    whole = tuple(task for task in ordered if task.uid not in spared)
    return [Bundle(job, part, safe=part is safe) for part in (safe, whole) if part]


class _Surplus:
    """What a job can lose: tasks, tasks of each role with a minimum, and sub-jobs of each policy."""

    def __init__(self, job: Job) -> None:
        self._tasks = job.counts.ready - job.min_available
        self._roles: dict[str, int] = {}
        if job.min_available >= job.role_total:
            self._roles = {role: job.placed_in_role(role) - least for role, least in job.role_minimums.items()}
        self._counts_groups = job.has_sub_groups
        self._broken = {sub_job.uid for sub_job in job.sub_jobs.values() if not sub_job.is_ready}
        self._groups = Counter(sub_job.policy for sub_job in job.sub_jobs.values() if sub_job.is_ready)
        for policy in job.group.sub_groups:
            self._groups[policy.name] -= policy.minimum

    def spends(self, task: Task) -> bool:
        """Whether a task can still be lost; if so, it is."""
        if self._tasks <= 0 or self._roles.get(task.role, 1) <= 0 or not self._group_can_lose(task):
            return False
        self._tasks -= 1
        if task.role in self._roles:
            self._roles[task.role] -= 1
        assert task.sub_job is not None
        if task.sub_job.uid not in self._broken:
            self._broken.add(task.sub_job.uid)
            self._groups[task.sub_job.policy] -= 1
        return True

    def _group_can_lose(self, task: Task) -> bool:
        assert task.sub_job is not None
        if not self._counts_groups or task.sub_job.uid in self._broken:
            return True
        return self._groups[task.sub_job.policy] > 0


def in_order(bundles: Iterable[Bundle], need: Amounts, goes_before: Before) -> list[Bundle]:
    """Safe bundles first, then in the order of their jobs, then by `bargain`."""
    kept = list(bundles)
    bargains = {id(bundle): bundle.bargain(need) for bundle in kept}

    def before(left: Bundle, right: Bundle) -> bool:
        if left.safe != right.safe:
            return left.safe
        if left.job is not right.job:
            one, other = goes_before(left.job, right.job), goes_before(right.job, left.job)
            if one != other:
                return one
        if bargains[id(left)] != bargains[id(right)]:
            return bargains[id(left)] > bargains[id(right)]
        return _name(left) < _name(right)

    def compare(left: Bundle, right: Bundle) -> int:
        return int(before(right, left)) - int(before(left, right))

    return sorted(kept, key=cmp_to_key(compare))


def _name(bundle: Bundle) -> tuple[str, str, int]:
    return bundle.job.uid, bundle.tasks[0].uid, len(bundle.tasks)


def allowed_only(bundles: Sequence[Bundle], allowed: Collection[str]) -> list[Bundle]:
    """What is left of bundles when only some tasks may go: whole ones only whole."""
    kept = []
    for bundle in bundles:
        tasks = tuple(task for task in bundle.tasks if task.uid in allowed)
        if tasks and (bundle.safe or len(tasks) == len(bundle.tasks)):
            kept.append(replace(bundle, tasks=tasks))
    return kept
