"""proportion: queues share the cluster by weight. What one does not request, the others get.

What each queue deserves is found by filling (volcano/queues/filling.py) when a round opens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.queues.account import share_of
from fairlead.volcano.queues.changes import SimulatedChanges
from fairlead.volcano.queues.filling import share_out
from fairlead.volcano.queues.ledger import INSUFFICIENT, Endings, flat_accounts, sentence
from fairlead.volcano.records.amounts import Amounts, total_of
from fairlead.volcano.rounds.tiers import TierPlugin, Vote

if TYPE_CHECKING:
    from fairlead.volcano.queues.account import QuotaAccount
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task


class Proportion(TierPlugin):
    name = "proportion"
    protects = "its queue has no more than it deserves"

    @classmethod
    def of(cls, arguments: Arguments) -> Proportion:
        return cls()

    def open(self, round: Round) -> None:
        self._round = round
        self._simulated = SimulatedChanges()
        self._accounts = flat_accounts(round)
        self._endings = Endings(round, lambda queue: (queue,))
        share_out(round.total, list(round.choices.walk("queues", list(self._accounts.values()))))
        for account in self._accounts.values():
            account.share = share_of(account.allocated, account.deserved)

    def account(self, queue: str) -> QuotaAccount | None:
        """What a queue with jobs has and deserves."""
        return self._accounts.get(queue)

    def accounts_up_from(self, queue: str) -> list[QuotaAccount]:
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
        return self._has_room(queue, task.request, self._may_be_beyond(queue, task))

    def _may_be_beyond(self, queue: QueueState, task: Task) -> bool:
        """Whether a task is of the gang that may take its queue beyond what it deserves, and no other has done so."""
        account, job = self._accounts.get(queue.name), self._round.beyond.trying
        if account is None or job is None or task.job is not job:
            return False
        return (account.allocated - job.allocated).less_equal(account.deserved)

    def holdable(self, queue: QueueState, task: Task) -> bool:
        account, ending = self._accounts.get(queue.name), self._endings.of(queue.name)
        return account is None or not (
            account.would_exceed(account.limit, task.request, ending) or account.too_many_pods(task.request, ending)
        )

    def preemptive(self, queue: QueueState, tasks: Sequence[Task]) -> bool:
        return self._has_room(queue, total_of(task.request for task in tasks))

    def _has_room(self, queue: QueueState, request: Amounts, beyond: bool = False) -> bool:
        account = self._accounts.get(queue.name)
        if account is None or not queue.queue.open:
            return False
        if account.would_exceed(account.limit if beyond else account.deserved, request):
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
        if not self._round.queues[job.queue].queue.open:
            return Vote.REJECT
        if job.min_resources is None:
            return Vote.PERMIT
        if lacking := account.lacks(job.minimum()):
            self._round.note(job, sentence(*INSUFFICIENT, lacking))
            return Vote.REJECT
        if self._round.quirks.reserves_before_admission:
            self._promise(job)
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        """A group holds room once all plugins have let it in."""
        if not self._round.quirks.reserves_before_admission and job.min_resources is not None:
            self._promise(job)

    def _promise(self, job: Job) -> None:
        self._accounts[job.queue].inqueue.add(job.without_gated(job.minimum()))

    # ---- simulated evictions ----

    def pre_predicate(self, task: Task) -> None:
        self._simulated.forget(task.uid)

    def simulate_add_task(self, task: Task, victim: Task, row: int) -> None:
        if victim.job is not None:
            self._simulated.add(task.uid, victim.job.queue, victim.request)

    def simulate_remove_task(self, task: Task, victim: Task, row: int) -> None:
        if victim.job is not None:
            self._simulated.remove(task.uid, victim.job.queue, victim.request)

    def simulate_allocatable(self, queue: QueueState, task: Task) -> bool:
        account = self._accounts.get(queue.name)
        if account is None:
            return False
        return not account.would_exceed(account.deserved, task.request, self._simulated.of(task.uid, queue.name))

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
