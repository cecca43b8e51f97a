"""What queues have, ask for and are owed: the sums that proportion and capacity keep, and shares of a whole.

A job that was let in but has not got its minimum yet holds the rest of it (`held`), so that others are not let in on
the same room. What a job has beyond its minimum is elastic: it does not stand in the way of others being let in.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from fairlead.model.amounts import EPSILON, INFINITY, PODS, UNLIMITED, Amounts, share, total_of
from fairlead.model.tasks import TaskStatus

if TYPE_CHECKING:
    from fairlead.framework.round import Job, QueueState, Round, Task

INSUFFICIENT = "queue resource quota insufficient", "insufficient"


def share_of(part: Amounts, whole: Amounts) -> float:
    """The largest share of any dimension that the whole has."""
    return max((share(part.get(name), whole.get(name)) for name in whole.names()), default=0.0)


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


class LedgerAccount:
    """One queue's sums. `limit` is how far it may grow: its capability, and what others' guarantees leave."""

    __slots__ = (
        "allocated", "capability", "deserved", "elastic", "guarantee", "inqueue", "limit", "name", "queue", "request",
        "share",
    )  # fmt: skip

    def __init__(self, queue: QueueState) -> None:
        self.queue = queue
        self.name = queue.name
        self.allocated = Amounts()
        self.request = Amounts()
        self.inqueue = Amounts()
        self.elastic = Amounts()
        self.deserved = Amounts()
        self.guarantee = Amounts.of(queue.queue.guarantee)
        self.capability = Amounts.of(queue.queue.capability)
        self.limit = Amounts()
        self.share = 0.0

    def count(self, job: Job) -> None:
        """Take in a job as it stands when the round begins."""
        self.allocated.add(job.allocated)
        self.request.add(job.allocated)
        self.request.add(total_of(task.request for task in job.in_status(TaskStatus.PENDING)))
        self.elastic.add(job.elastic())
        if (waiting := held(job)) is not None:
            self.inqueue.add(waiting)

    def set_limit(self, left: Amounts) -> None:
        """`left` is what all guarantees together leave of the cluster."""
        self.limit = left + self.guarantee
        if self.queue.queue.capability:
            if self.capability.cpu <= 0:
                self.capability.cpu = UNLIMITED
            if self.capability.memory <= 0:
                self.capability.memory = UNLIMITED
            self.limit.cap(self.capability, INFINITY)

    def lacks(self, job: Job) -> list[str]:
        """The dimensions in which a job's minimum would exceed the limit, were it let in."""
        least = job.minimum()
        wanted = (least + self.allocated).add(self.inqueue).subtract(self.elastic)
        return wanted.exceeding_requested(self.limit, least)

    def too_many_pods(self, request: Amounts, ending: Amounts | None = None) -> bool:
        """Whether a limit on the number of pods would be exceeded, which the comparison of requests leaves out."""
        if PODS not in (self.queue.queue.capability or ()):
            return False
        there = self.allocated.get(PODS) + (ending.get(PODS) if ending is not None else 0.0)
        return there + request.get(PODS) >= self.limit.get(PODS) + EPSILON

    def would_exceed(self, what: Amounts, request: Amounts, reserved: Amounts | None = None) -> bool:
        """Whether a request on top of what it has exceeds `what` in a dimension that is requested."""
        used = self.allocated + request
        if reserved is not None:
            used.add(reserved)
        return bool(used.exceeding_requested(what, request))


def flat_accounts(round: Round) -> dict[str, LedgerAccount]:
    """Accounts of the queues that have jobs, each on its own."""
    guarantees = total_of(Amounts.of(queue.queue.guarantee) for queue in round.queues.values())
    left = round.total.exceeded_part(guarantees)
    accounts: dict[str, LedgerAccount] = {}
    for job in round.jobs.values():
        account = accounts.get(job.queue)
        if account is None:
            account = accounts[job.queue] = LedgerAccount(round.queues[job.queue])
            account.set_limit(left)
        account.count(job)
    return accounts


class Endings:
    """What pods still hold that are on their way out, by the queues that they count for. The original counts it no
    more; but the pods are there, so a queue that is to hold no more than its limit has to wait for them to be gone."""

    def __init__(self, round: Round, names_of: Callable[[str], Iterable[str]]) -> None:
        self._names_of = names_of
        self._held: dict[str, Amounts] = {}
        for job in round.jobs.values():
            for task in job.in_status(TaskStatus.RELEASING):
                self._count(task, job.queue, 1.0)

    def of(self, queue: str) -> Amounts:
        return self._held.get(queue) or Amounts()

    def deallocated(self, task: Task) -> None:
        """A pod that has a node in earnest is evicted, and ends; one that has none was only placed in this round."""
        if task.pod.node_name and task.job is not None:
            self._count(task, task.job.queue, 1.0)

    def allocated(self, task: Task) -> None:
        if task.pod.node_name and task.job is not None:
            self._count(task, task.job.queue, -1.0)

    def _count(self, task: Task, queue: str, by: float) -> None:
        for name in self._names_of(queue):
            self._held.setdefault(name, Amounts()).add(task.request * by)


class WhatIf:
    """Changes that a preemption only imagines, by the task it is for. Whoever imagines takes them back."""

    def __init__(self) -> None:
        self._changes: dict[str, dict[str, Amounts]] = {}

    def change(self, task: Task, queue: str, request: Amounts, *, remove: bool) -> None:
        changes = self._changes.setdefault(task.uid, {}).setdefault(queue, Amounts())
        if remove:
            changes.add(request * -1.0)
        else:
            changes.add(request)

    def of(self, task: Task, queue: str) -> Amounts | None:
        return self._changes.get(task.uid, {}).get(queue)

    def forget(self, task: Task) -> None:
        self._changes.pop(task.uid, None)
