"""drf: dominant resource fairness. The job with the smallest share of whatever it has most of comes first.

With `hierarchy`, queues are compared too, along the paths that their annotations name: a tree of weighted shares in
which a child that can use no more does not hold the others back (volcano/queues/share_tree.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.queues.account import share_of
from fairlead.volcano.queues.share_tree import ShareTree
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.records.queues import Queue
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task

_ALIKE = 0.000001
"""Shares that differ by less are equal, as in the original (shareDelta)."""
_PATH = "volcano.sh/hierarchy"
_WEIGHTS = "volcano.sh/hierarchy-weights"


class Drf(TierPlugin):
    name = "drf"
    protects = "its job would have a smaller share of the cluster than the one that waits"

    @classmethod
    def of(cls, arguments: Arguments) -> Drf:
        return cls()

    def open(self, round: Round) -> None:
        self._round = round
        self._allocated: dict[str, Amounts] = {uid: job.allocated.copy() for uid, job in round.jobs.items()}
        self._shares = {uid: share_of(amounts, round.total) for uid, amounts in self._allocated.items()}

    def share(self, job: Job) -> float:
        return self._shares[job.uid]

    # ---- order ----

    def job_order(self, left: Job, right: Job) -> float:
        return self._shares[left.uid] - self._shares[right.uid]

    # ---- victims ----

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Tasks whose jobs would still have no smaller share than the preemptor's, each candidate subtracted before the
        next."""
        if evictor.job is None or evictor.job.uid not in self._allocated:
            return []
        total = self._round.total
        own = share_of(self._allocated[evictor.job.uid] + evictor.request, total)
        left: dict[str, Amounts] = {}
        victims = []
        for task in candidates:
            if task.job is None or task.job.uid not in self._allocated:
                continue
            rest = left.setdefault(task.job.uid, self._allocated[task.job.uid].copy()).subtract(task.request)
            theirs = share_of(rest, total)
            if own < theirs or abs(own - theirs) <= _ALIKE:
                victims.append(task)
        return victims

    # ---- what happens ----

    def allocated(self, task: Task) -> None:
        self._follow(task, 1)

    def deallocated(self, task: Task) -> None:
        self._follow(task, -1)

    def _follow(self, task: Task, sign: int) -> None:
        job = task.job
        amounts = self._allocated.get(job.uid) if job is not None else None
        if job is None or amounts is None:
            return
        if sign > 0:
            amounts.add(task.request)
        else:
            amounts.subtract(task.request)
        self._shares[job.uid] = share_of(amounts, self._round.total)


class HierarchicalDrf(Drf):
    """drf with `enableHierarchy`: queues have an order, and may reclaim from those that come after them."""

    def open(self, round: Round) -> None:
        super().open(round)
        self._tree = ShareTree(round.total)
        for job in round.jobs.values():
            queue, allocated = round.queues[job.queue].queue, self._allocated[job.uid]
            self._tree.put(job.uid, _path(queue), _weights(queue), request=job.total_request, allocated=allocated)
        self._tree.update()

    def queue_order(self, left: QueueState, right: QueueState) -> float:
        return self._tree.compare(_path(left.queue), _path(right.queue))

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Each candidate by itself: whether its queue would still come after the reclaimer's, with the reclaimer placed
        and the candidate gone."""
        own = evictor.job
        if own is None or own.uid not in self._allocated:
            return []
        queues, tree = self._round.queues, self._tree.copy()
        tree.give(own.uid, self._allocated[own.uid] + evictor.request)
        victims = []
        for task in candidates:
            if task.job is None or task.job.uid not in self._allocated:
                continue
            before = tree.allocated(task.job.uid)
            tree.give(task.job.uid, self._allocated[task.job.uid] - task.request)
            tree.update()
            if tree.compare(_path(queues[own.queue].queue), _path(queues[task.job.queue].queue)) < 0:
                victims.append(task)
            tree.give(task.job.uid, before)
        return victims

    def _follow(self, task: Task, sign: int) -> None:
        super()._follow(task, sign)
        if task.job is not None and task.job.uid in self._allocated:
            self._tree.give(task.job.uid, self._allocated[task.job.uid])
            self._tree.update()


def _path(queue: Queue) -> list[str]:
    return queue.annotations.get(_PATH, "").split("/")


def _weights(queue: Queue) -> list[float]:
    """Of the elements of its path. Weights below 1, and those that cannot be read, are 1."""
    return [_weight(text) for text in queue.annotations.get(_WEIGHTS, "").split("/")]


def _weight(text: str) -> float:
    try:
        return max(1.0, float(text))
    except ValueError:
        return 1.0


def drf(arguments: Arguments, *, hierarchy: bool) -> Drf:
    return HierarchicalDrf() if hierarchy else Drf()
