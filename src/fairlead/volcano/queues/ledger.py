"""Jobs and tasks of a round as entries in the quota accounts of their queues (volcano/queues), for Volcano's plugins.

A job that was let in but has not got its minimum yet holds the rest of it (`held`), so that others are not let in on
the same room. What a job has beyond its minimum is elastic: it does not keep others from being let in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fairlead.volcano.queues.account import QuotaAccount, left_by_guarantees
from fairlead.volcano.queues.changes import EndingAmounts
from fairlead.volcano.queues.tree import QuotaTree
from fairlead.volcano.records.amounts import Amounts, total_of
from fairlead.volcano.records.tasks import TaskStatus

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, Round, Task

INSUFFICIENT = "queue resource quota insufficient", "insufficient"

_PENDING, _RELEASING = TaskStatus.PENDING, TaskStatus.RELEASING


def missing_minimum(job: Job) -> Amounts:
    """GetInqueueResource: what of its minimum a job has not got yet, in the dimensions that it names."""
    missing = Amounts()
    for name, least in (job.min_resources or Amounts()).items():
        lacking = least - job.allocated.get(name)
        if lacking > 0:
            missing.set(name, lacking)
    return missing


def has_enough_running(job: Job) -> bool:
    """Whether a running job still has its members: one whose pods have ended does not get its minimum reserved."""
    return job.phase == "Running" and job.counts.allocated_class >= job.group.min_member


def held(job: Job) -> Amounts | None:
    """What is kept for a job that was let in; None if nothing is."""
    if job.min_resources is None:
        return None
    if job.phase == "Inqueue" or has_enough_running(job):
        return job.without_gated(missing_minimum(job))
    return None


def sentence(prefix: str, verb: str, names: Iterable[str]) -> str:
    """`queue resource quota insufficient: insufficient cpu, insufficient memory`"""
    parts = ", ".join(f"{verb} {name}" for name in names)
    return f"{prefix}: {parts}" if parts else prefix


# ---- accounts ----


def flat_accounts(round: Round) -> dict[str, QuotaAccount]:
    """Accounts of the queues that have jobs, each on its own."""
    left = left_by_guarantees(round.total, (queue.queue for queue in round.queues.values()))
    accounts: dict[str, QuotaAccount] = {}
    for job in round.jobs.values():
        account = accounts.get(job.queue)
        if account is None:
            account = accounts[job.queue] = QuotaAccount(round.queues[job.queue].queue)
            account.set_limit(left)
        _count([account], job)
    return accounts


def tree_of(round: Round) -> QuotaTree:
    """Accounts of all queues, as the tree that their parents make."""
    tree = QuotaTree([queue.queue for queue in round.queues.values()])
    for job in round.jobs.values():
        _count(tree.accounts_for_work(job.queue), job)
    tree.set_limits(round.total)
    return tree


def _count(accounts: Iterable[QuotaAccount], job: Job) -> None:
    """Add a job as it is when the round opens."""
    pending = total_of(task.request for task in job.in_status(_PENDING))
    elastic, kept = job.elastic(), held(job)
    for account in accounts:
        account.count(job.allocated, pending, elastic=elastic, held=kept)


class Endings:
    """Follows the tasks of a round that are about to end. Volcano frees their quota at once
    (`ending_pods_free_quota`); here it counts until the pods are gone."""

    def __init__(self, round: Round, names_of: Callable[[str], Iterable[str]]) -> None:
        self._amounts = EndingAmounts(names_of)
        for job in round.jobs.values():
            for task in job.in_status(_RELEASING):
                self._amounts.add(job.queue, task.request)

    def of(self, queue: str) -> Amounts:
        return self._amounts.of(queue)

    def deallocated(self, task: Task) -> None:
        """A pod that is bound to a node is evicted, and ends; one that is not was only placed in this round."""
        if task.pod.node_name and task.job is not None:
            self._amounts.add(task.job.queue, task.request)

    def allocated(self, task: Task) -> None:
        if task.pod.node_name and task.job is not None:
            self._amounts.subtract(task.job.queue, task.request)
