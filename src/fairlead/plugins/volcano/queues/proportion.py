"""proportion: queues share the cluster by weight. What one does not ask for, the others get.

What each queue deserves is found by filling: in every step the rest is offered to all who are not content, by weight,
up to what they ask for and may have, and at least what they are guaranteed. All queues are the rows of one array.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.tiers import TierPlugin, Vote
from fairlead.model.amounts import EPSILON, PODS, Amounts
from fairlead.plugins.volcano.queues.ledger import INSUFFICIENT, Endings, WhatIf, flat_accounts, sentence, share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.round import Job, QueueState, Round, Task
    from fairlead.plugins.volcano.arguments import Arguments
    from fairlead.plugins.volcano.queues.ledger import LedgerAccount


class Proportion(TierPlugin):
    name = "proportion"

    @classmethod
    def of(cls, arguments: Arguments) -> Proportion:
        return cls()

    def open(self, round: Round) -> None:
        self._round = round
        self._what_if = WhatIf()
        self._accounts = flat_accounts(round)
        self._endings = Endings(round, lambda queue: (queue,))
        share_out(round.total, list(round.choices.walk("queues", list(self._accounts.values()))))
        for account in self._accounts.values():
            account.share = share_of(account.allocated, account.deserved)

    def account(self, queue: str) -> LedgerAccount | None:
        """What a queue with jobs has and deserves."""
        return self._accounts.get(queue)

    def accounts_up_from(self, queue: str) -> list[LedgerAccount]:
        """The one that binds a queue: those above it do not."""
        account = self.account(queue)
        return [] if account is None else [account]

    # ---- order ----

    def queue_order(self, left: QueueState, right: QueueState) -> float:
        return right.queue.priority - left.queue.priority or self._share(left) - self._share(right)

    def _share(self, queue: QueueState) -> float:
        account = self._accounts.get(queue.name)
        return account.share if account is not None else 0.0

    # ---- queues ----

    def overused(self, queue: QueueState) -> bool:
        account = self._accounts.get(queue.name)
        return account is not None and account.deserved.less_equal(account.allocated)

    def allocatable(self, queue: QueueState, task: Task) -> bool:
        return self._has_room(queue, task.request)

    def holdable(self, queue: QueueState, task: Task) -> bool:
        account, ending = self._accounts.get(queue.name), self._endings.of(queue.name)
        return account is None or not (
            account.would_exceed(account.limit, task.request, ending) or account.too_many_pods(task.request, ending)
        )

    def preemptive(self, queue: QueueState, tasks: Sequence[Task]) -> bool:
        return self._has_room(queue, _requests(tasks))

    def _has_room(self, queue: QueueState, request: Amounts) -> bool:
        account = self._accounts.get(queue.name)
        if account is None or not queue.queue.open or account.would_exceed(account.deserved, request):
            return False
        return self._round.quirks.ignores_pods_capability or not account.too_many_pods(request)

    # ---- victims ----

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        """In the order given, from queues that have more than they deserve in any dimension."""
        left: dict[str, Amounts] = {}
        victims = []
        for task in candidates:
            account = self._accounts.get(task.job.queue) if task.job is not None else None
            if account is None:
                continue
            allocated = left.setdefault(account.name, account.allocated.copy())
            if not allocated.less_equal(account.deserved):
                allocated.subtract(task.request)
                victims.append(task)
        return victims

    # ---- letting in ----

    def job_enqueueable(self, job: Job) -> Vote:
        account = self._accounts[job.queue]
        if not account.queue.queue.open:
            return Vote.REJECT
        if job.min_resources is None:
            return Vote.PERMIT
        if lacking := account.lacks(job):
            self._round.note(job, sentence(*INSUFFICIENT, lacking))
            return Vote.REJECT
        if self._round.quirks.reserves_before_admission:
            self._promise(job)
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        """Only who is really let in holds room; the original counts them here already when they are asked about."""
        if not self._round.quirks.reserves_before_admission and job.min_resources is not None:
            self._promise(job)

    def _promise(self, job: Job) -> None:
        self._accounts[job.queue].inqueue.add(job.without_gated(job.minimum()))

    # ---- what-ifs ----

    def pre_predicate(self, task: Task) -> None:
        self._what_if.forget(task)

    def simulate_add_task(self, task: Task, victim: Task, row: int) -> None:
        if victim.job is not None:
            self._what_if.change(task, victim.job.queue, victim.request, remove=False)

    def simulate_remove_task(self, task: Task, victim: Task, row: int) -> None:
        if victim.job is not None:
            self._what_if.change(task, victim.job.queue, victim.request, remove=True)

    def simulate_allocatable(self, queue: QueueState, task: Task) -> bool:
        account = self._accounts.get(queue.name)
        if account is None:
            return False
        return not account.would_exceed(account.deserved, task.request, self._what_if.of(task, queue.name))

    # ---- what happens ----

    def allocated(self, task: Task) -> None:
        self._endings.allocated(task)
        account = self._accounts.get(task.job.queue) if task.job is not None else None
        if account is not None:
            account.allocated.add(task.request)
            account.share = share_of(account.allocated, account.deserved)

    def deallocated(self, task: Task) -> None:
        self._endings.deallocated(task)
        account = self._accounts.get(task.job.queue) if task.job is not None else None
        if account is not None:
            account.allocated.subtract(task.request)
            account.share = share_of(account.allocated, account.deserved)


def _requests(tasks: Iterable[Task]) -> Amounts:
    total = Amounts()
    for task in tasks:
        total.add(task.request)
    return total


# ---- filling ----


def share_out(total: Amounts, accounts: Sequence[LedgerAccount]) -> None:
    """Set what each queue deserves."""
    if not accounts:
        return
    names = _names(total, accounts)
    deserved = fill(
        np.array([total.get(name) for name in names]),
        weights=np.array([account.queue.queue.weight for account in accounts], dtype=np.float64),
        request=_matrix([account.request for account in accounts], names),
        limit=_matrix([account.limit for account in accounts], names, missing=np.inf),
        guarantee=_matrix([account.guarantee for account in accounts], names),
        counted=np.array([name != PODS for name in names]),
    )
    for account, row in zip(accounts, deserved.tolist(), strict=True):
        account.deserved = Amounts()
        for name, amount in zip(names, row, strict=True):
            if name in ("cpu", "memory") or name in total.scalars or name in account.guarantee.scalars:
                account.deserved.set(name, amount)


def _names(total: Amounts, accounts: Sequence[LedgerAccount]) -> list[str]:
    names = dict.fromkeys(["cpu", "memory", *total.scalars])
    for account in accounts:
        names |= dict.fromkeys([*account.request.scalars, *account.guarantee.scalars])
    return list(names)


def _matrix(amounts: Sequence[Amounts], names: Sequence[str], missing: float = 0.0) -> NDArray[np.float64]:
    """Rows of amounts; what one does not name is `missing` (cpu and memory are always named)."""
    return np.array(
        [
            [each.get(name) if name in ("cpu", "memory") or name in each.scalars else missing for name in names]
            for each in amounts
        ],
        dtype=np.float64,
    )


def fill(
    total: NDArray[np.float64],
    *,
    weights: NDArray[np.float64],
    request: NDArray[np.float64],
    limit: NDArray[np.float64],
    guarantee: NDArray[np.float64],
    counted: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """What each queue (a row) deserves of each dimension (a column). `counted` are the dimensions of which something
    must be left for another step."""
    deserved = np.zeros(request.shape, dtype=np.float64)
    content = np.zeros(len(weights), dtype=np.bool_)
    remaining = total.copy()
    first = request.shape[1] > 2  # the original then counts names that come up for the first time as a change
    while (weight := weights[~content].sum()) > 0:
        before = deserved.copy()
        offered = before + remaining * (weights / weight)[:, None]
        wanted = np.maximum(np.minimum(np.minimum(offered, limit), request), guarantee)
        deserved[~content] = wanted[~content]
        met = ((request < deserved) | (np.abs(request - deserved) < EPSILON)).all(axis=1)
        stuck = (deserved == before).all(axis=1)
        content |= met | (stuck & (not first))
        change = deserved - before
        left = np.maximum(0.0, remaining + np.maximum(-change, 0).sum(axis=0) - np.maximum(change, 0).sum(axis=0))
        if (left[counted] < EPSILON).all() or (left == remaining).all():
            break
        remaining = left
        first = False
    return deserved
