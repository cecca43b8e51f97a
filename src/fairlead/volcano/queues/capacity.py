"""capacity: each queue has what it deserves, may borrow beyond that, and gives back when other queues request theirs.

Queues are flat, or with `hierarchy` a tree (volcano/queues/tree.py) in which every ancestor's limit counts too. Limits
on device classes (`deviceclass/...`) are counted from resource claims (device_quotas.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from fairlead.volcano.queues.account import share_of
from fairlead.volcano.queues.changes import SimulatedChanges
from fairlead.volcano.queues.device_quotas import DeviceQuotas
from fairlead.volcano.queues.ledger import INSUFFICIENT, Endings, flat_accounts, sentence, tree_of
from fairlead.volcano.queues.tree import ROOT, TreeAccount
from fairlead.volcano.records.amounts import INFINITY, Amounts, common_names, larger, total_of
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.job import QUEUE_GATE
from fairlead.volcano.rounds.tiers import GangEvictionContext, TierPlugin, Vote

if TYPE_CHECKING:
    from fairlead.volcano.queues.account import QuotaAccount
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task


TOO_MANY_DEVICES = "dra-resource-exceeded"
"""What a group lacks whose claims request more devices than its queue may have."""


class Capacity(TierPlugin):
    """`gated`: pods that wait for their queue's gate hold their place in it once they were let through."""

    name = "capacity"
    protects = "its queue has no more than it deserves or is guaranteed"

    def __init__(self, *, gated: bool = False) -> None:
        self._gated = gated

    @classmethod
    def of(cls, arguments: Arguments) -> Capacity:
        return cls()

    def open(self, round: Round) -> None:
        self._round = round
        self._simulated = SimulatedChanges()
        self._reserved: dict[str, dict[str, Task]] = {}
        if self._gated:
            self._recall_reservations()
        self._accounts: dict[str, QuotaAccount] | None = self._open_accounts(round)
        for account in (self._accounts or {}).values():
            _set_share(account)
        self._endings = Endings(round, self._names_above)
        self._devices = DeviceQuotas.of(round, (self._accounts or {}).values())
        self._devices.count(round, {queue: self._names_above(queue) for queue in self._accounts or ()})

    def _open_accounts(self, round: Round) -> dict[str, QuotaAccount] | None:
        accounts = flat_accounts(round)
        for account in accounts.values():
            deserved = Amounts.of(account.rules.deserved).cap(account.limit, INFINITY)
            account.deserved = larger(deserved, account.guarantee)
        return accounts

    def account(self, queue: str) -> QuotaAccount | None:
        """What a queue has and deserves; None if it is not connected to the tree."""
        return (self._accounts or {}).get(queue)

    def accounts_up_from(self, queue: str) -> list[QuotaAccount]:
        """The accounts whose limits hold for a queue: its own, then those above it."""
        account = self.account(queue)
        return [] if account is None else list(self._line(account))

    def trouble(self, queue: str) -> str:
        """Why a queue can have nothing; empty if it can."""
        return ""

    def _line(self, account: QuotaAccount) -> Iterator[QuotaAccount]:
        """The accounts that a queue's tasks count for, nearest first."""
        yield account

    def _names_above(self, queue: str) -> list[str]:
        account = self.account(queue)
        return [] if account is None else [one.name for one in self._line(account)]

    def _account_of(self, task: Task) -> QuotaAccount | None:
        return self.account(task.job.queue) if task.job is not None else None

    # ---- order ----

    def queue_order(self, left: QueueState, right: QueueState) -> float:
        """As long as the queues make no tree there is no order, not even by priority."""
        if self._accounts is None:
            return 0
        if left.queue.priority != right.queue.priority:
            return right.queue.priority - left.queue.priority
        one, other = self.account(left.name), self.account(right.name)
        return 0 if one is None or other is None else self._compare(one, other)

    def _compare(self, left: QuotaAccount, right: QuotaAccount) -> float:
        return compare_shares(left, right)

    # ---- queues ----

    def allocatable(self, queue: QueueState, task: Task) -> bool:
        account = self.account(queue.name)
        if account is None or not queue.queue.open or not self._takes_jobs(account):
            return False
        if any(one.would_exceed(one.limit, task.request, self._reserved_in(one, task)) for one in self._line(account)):
            return False
        quirks = self._round.quirks
        if not quirks.ignores_pods_capability and any(one.too_many_pods(task.request) for one in self._line(account)):
            return False
        if not self._devices.allows(task, self._line(account)):
            return False
        if self._gated and _waits_for_gate(task):
            self._reserved.setdefault(queue.name, {})[task.uid] = task
        return True

    def holdable(self, queue: QueueState, task: Task) -> bool:
        account = self.account(queue.name)
        if account is None:
            return True
        for one in self._line(account):
            ending = self._endings.of(one.name)
            if one.would_exceed(one.limit, task.request, ending) or one.too_many_pods(task.request, ending):
                return False
        return True

    def preemptive(self, queue: QueueState, tasks: Sequence[Task]) -> bool:
        """Whether it would stay within its limit, and within what it deserves in some dimension that is requested."""
        account = self.account(queue.name)
        if account is None or not queue.queue.open or not self._takes_jobs(account):
            return False
        request = total_of(task.request for task in tasks)
        if account.would_exceed(account.limit, request):
            return False
        return any(_stays_within(one, request) for one in self._owed(account))

    def _owed(self, account: QuotaAccount) -> Iterator[QuotaAccount]:
        """Whose deserved amount gives a queue a claim on others."""
        yield account

    def _takes_jobs(self, account: QuotaAccount) -> bool:
        return True

    # ---- victims ----

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        """Tasks that share a dimension with the reclaimer and whose queue keeps its guarantee and has more than it
        deserves."""
        reclaimer = self._account_of(evictor)
        if reclaimer is None:
            return []
        left: dict[str, Amounts] = {}
        victims = []
        heap = self._round.victims_heap(candidates, evictor)
        while heap:
            task = heap.pop()
            account = self._account_of(task)
            if account is None or not common_names(task.request, evictor.request, ignore_pods=True):
                continue
            touched = self._gives(task, account, reclaimer, evictor, left)
            if touched is not None:
                for allocated in touched:
                    allocated.subtract(task.request)
                victims.append(task)
        return victims

    def _gives(
        self, task: Task, account: QuotaAccount, reclaimer: QuotaAccount, evictor: Task, left: dict[str, Amounts]
    ) -> list[Amounts] | None:
        """The running sums from which a task is subtracted if it is evicted; None if it must not be."""
        allocated = left.setdefault(account.name, account.allocated.copy())
        if not account.guarantee.less_equal(allocated - task.request):
            return None
        return [allocated] if _has_too_much(allocated, account, task) else None

    def unified_evictable(self, eviction: GangEvictionContext, candidates: Sequence[Task]) -> list[Task]:
        if eviction.kind == "gangpreempt":
            return list(candidates)
        left: dict[str, Amounts] = {}
        victims = []
        for task in candidates:
            account = self._account_of(task)
            if account is None:
                continue
            allocated = left.setdefault(account.name, account.allocated.copy())
            if account.guarantee.less_equal(allocated - task.request) and _has_too_much(allocated, account, task):
                allocated.subtract(task.request)
                victims.append(task)
        return victims

    # ---- letting in ----

    def job_enqueueable(self, job: Job) -> Vote:
        account = self.account(job.queue)
        if account is None or not self._takes_jobs(account) or not self._round.queues[job.queue].queue.open:
            if (trouble := self.trouble(job.queue)) and not self._round.quirks.broken_tree_stops_all_queues:
                self._round.note(job, f"queue {job.queue} can have nothing: {trouble}")
            return Vote.REJECT
        if job.min_resources is None and not self._devices.asks_for_some(job):
            return Vote.PERMIT
        least = job.minimum()
        for one in self._line(account):
            lacking = one.lacks(least) or ([] if self._devices.lets_in(job, [one]) else [TOO_MANY_DEVICES])
            if lacking:
                self._round.note(job, sentence(*INSUFFICIENT, lacking))
                return Vote.REJECT
        if self._round.quirks.reserves_before_admission:
            self._promise(job, account)
        return Vote.PERMIT

    def job_enqueued(self, job: Job) -> None:
        """A group holds room once all plugins have let it in."""
        account = self.account(job.queue)
        if self._round.quirks.reserves_before_admission:
            return
        if account is not None and (job.min_resources is not None or self._devices.asks_for_some(job)):
            self._promise(job, account)

    def _promise(self, job: Job, account: QuotaAccount) -> None:
        for one in self._line(account):
            one.inqueue.add(job.without_gated(job.minimum()))
        self._devices.promise(job, self._names_above(account.name))

    # ---- the queue's own gate ----

    def _recall_reservations(self) -> None:
        for job in self._round.jobs.values():
            for task in job.in_status(TaskStatus.PENDING):
                if not task.gated and _waits_for_gate(task):
                    self._reserved.setdefault(job.queue, {})[task.uid] = task

    def _reserved_in(self, account: QuotaAccount, task: Task) -> Amounts:
        others = self._reserved.get(account.name, {}).values()
        return total_of(other.request for other in others if other is not task)

    # ---- simulated evictions ----

    def pre_predicate(self, task: Task) -> None:
        self._simulated.forget(task.uid)

    def simulate_add_task(self, task: Task, victim: Task, row: int) -> None:
        for one in self._accounts_for(victim):
            self._simulated.add(task.uid, one.name, victim.request)

    def simulate_remove_task(self, task: Task, victim: Task, row: int) -> None:
        for one in self._accounts_for(victim):
            self._simulated.remove(task.uid, one.name, victim.request)

    def _accounts_for(self, task: Task) -> Iterator[QuotaAccount]:
        account = self._account_of(task)
        return self._line(account) if account is not None else iter(())

    def simulate_allocatable(self, queue: QueueState, task: Task) -> bool:
        account = self.account(queue.name)
        if account is None or not self._takes_jobs(account):
            return False
        for one in self._line(account):
            reserved = self._reserved_in(one, task).add(self._simulated.of(task.uid, one.name) or Amounts())
            if one.would_exceed(one.limit, task.request, reserved):
                return False
        return True

    # ---- what happens ----

    def allocated(self, task: Task) -> None:
        self._endings.allocated(task)
        account = self._account_of(task)
        if account is None:
            return
        for one in self._line(account):
            one.allocated.add(task.request)
        self._devices.take(task, self._names_above(account.name))
        self._refresh(account)
        for reserved in self._reserved.values():
            reserved.pop(task.uid, None)

    def deallocated(self, task: Task) -> None:
        self._endings.deallocated(task)
        account = self._account_of(task)
        if account is None:
            return
        for one in self._line(account):
            one.allocated.subtract(task.request)
        self._devices.give_back(task, self._names_above(account.name))
        self._refresh(account)
        if self._gated and _waits_for_gate(task):
            self._reserved.setdefault(account.name, {})[task.uid] = task

    def _refresh(self, account: QuotaAccount) -> None:
        """Update shares. In the original those of ancestors stay as when the round began
        (`ancestor_shares_go_stale`)."""
        for one in [account] if self._round.quirks.ancestor_shares_go_stale else self._line(account):
            _set_share(one)


def _waits_for_gate(task: Task) -> bool:
    return task.pod.annotations.get(QUEUE_GATE) == "true"


def _set_share(account: QuotaAccount) -> None:
    """A queue that deserves nothing has the share 1: it comes after all queues that have less than they deserve."""
    account.share = 1.0 if account.deserved.empty else share_of(account.allocated, account.deserved)


def compare_shares(left: QuotaAccount, right: QuotaAccount) -> float:
    """The smaller share first; of equal shares, a queue that deserves anything before one that does not."""
    return left.share - right.share or int(left.deserved.empty) - int(right.deserved.empty)


def _stays_within(account: QuotaAccount, request: Amounts) -> bool:
    used = account.allocated + request
    return bool(used.within_some_requested(account.deserved, request, ignore_zeros=True))


def _shares_nothing(task: Task, account: QuotaAccount) -> bool:
    """Whether a task has no resource of which its queue deserves any."""
    return not common_names(task.request, account.deserved)


def _has_too_much(allocated: Amounts, account: QuotaAccount, task: Task) -> bool:
    return _shares_nothing(task, account) or bool(allocated.above_some_relevant(account.deserved, task.request))


class HierarchicalCapacity(Capacity):
    """capacity with `enableHierarchy`. `reclaim_level` is how many of a queue's ancestors, from its parent up, have a
    say in reclaiming: what they deserve gives a claim, and only what they have too much of is reclaimed."""

    def __init__(self, *, reclaim_level: int = 0, gated: bool = False) -> None:
        super().__init__(gated=gated)
        self._level = max(0, reclaim_level)

    def _open_accounts(self, round: Round) -> dict[str, QuotaAccount] | None:
        tree = tree_of(round)
        self._troubles = tree.troubles
        return None if tree.troubles and round.quirks.broken_tree_stops_all_queues else dict(tree.accounts)

    def trouble(self, queue: str) -> str:
        return self._troubles.get(queue, "")

    def _line(self, account: QuotaAccount) -> Iterator[QuotaAccount]:
        return _branch(account).line()

    def _takes_jobs(self, account: QuotaAccount) -> bool:
        return _branch(account).is_leaf

    def _compare(self, left: QuotaAccount, right: QuotaAccount) -> float:
        """Leaves first; two leaves by the branches in which they part."""
        one, other = _branch(left), _branch(right)
        if one.is_leaf != other.is_leaf:
            return -1 if one.is_leaf else 1
        if not one.is_leaf:
            return compare_shares(one, other)
        depth = one.common_depth(other) + 1
        return compare_shares(one.at_depth(depth), other.at_depth(depth))

    def victim_queue_order(self, left: QueueState, right: QueueState, preemptor: QueueState) -> float:
        """Victims come from the queues that are nearest to the preemptor's in the tree first."""
        one, other, own = self.account(left.name), self.account(right.name), self.account(preemptor.name)
        if one is None or other is None or own is None:
            return 0
        return _branch(other).common_depth(_branch(own)) - _branch(one).common_depth(_branch(own))

    def _owed(self, account: QuotaAccount) -> Iterator[QuotaAccount]:
        yield account
        for level in range(1, self._level + 1):
            ancestor = _branch(account).ancestor_at(level)
            if ancestor is not None and ancestor.name != ROOT:
                yield ancestor

    def _gives(
        self, task: Task, account: QuotaAccount, reclaimer: QuotaAccount, evictor: Task, left: dict[str, Amounts]
    ) -> list[Amounts] | None:
        touched = super()._gives(task, account, reclaimer, evictor, left)
        if touched is None or not self._level:
            return touched
        if _shares_nothing(task, account) and self._are_kin(account, reclaimer) and _shares_nothing(evictor, reclaimer):
            return None
        for level in range(1, self._level + 1):
            ancestor = _branch(account).ancestor_at(level)
            if ancestor is None or ancestor.name == ROOT or ancestor is _branch(reclaimer).ancestor_at(level):
                continue
            allocated = left.setdefault(ancestor.name, ancestor.allocated.copy())
            if not _has_too_much(allocated, ancestor, task):
                return None
            touched.append(allocated)
        return touched

    def _are_kin(self, one: QuotaAccount, other: QuotaAccount) -> bool:
        """Whether two queues share an ancestor within the levels that count, the root aside."""
        theirs = [_branch(other).ancestor_at(level) for level in range(1, self._level + 1)]
        own = [_branch(one).ancestor_at(level) for level in range(1, self._level + 1)]
        return any(ancestor in theirs for ancestor in own if ancestor is not None and ancestor.name != ROOT)


def _branch(account: QuotaAccount) -> TreeAccount:
    assert isinstance(account, TreeAccount)
    return account


def capacity(arguments: Arguments, *, hierarchy: bool, gated: bool = False) -> Capacity:
    if not hierarchy:
        return Capacity(gated=gated)
    return HierarchicalCapacity(reclaim_level=arguments.whole("ancestorReclaimLevel", 0, least=0), gated=gated)
