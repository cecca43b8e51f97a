"""What preempt and reclaim share: which jobs are short of room, what could be evicted where, and trying one node.

Evictions are tried node by node, in a transaction of their own that counts only if the task is pipelined. Nodes on
which evicting everything would not be enough are left out before anything is tried: what could be evicted from each row
is kept as sums per queue (Evictable). A row that refused a task is left out for the equal tasks of its job, until
something changes (RefusedRows). Prospects keeps both up to date and gets every transaction that ends. Neither
changes what is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.goheap import Heap
from fairlead.volcano.rounds.node_search import NodeSearch

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.rounds.fit import FitErrors
    from fairlead.volcano.rounds.round import Job, QueueState, Round, Task
    from fairlead.volcano.rounds.transaction import Transaction

_Number = TypeVar("_Number", np.float64, np.int32)
NEVER = "Never"
_SLACK = 1.0
"""Sums are only there to leave out hopeless rows, so rounding must not make a row look too small."""


class Starving:
    """Jobs that want more than they have, by queue, and their waiting tasks."""

    def __init__(self, round: Round, *, with_topology: bool = True) -> None:
        self._round = round
        self.queues: dict[str, QueueState] = {}
        """Every queue with a job that is let in and valid, starving or not."""
        self.jobs: dict[str, Heap[Job]] = {}
        self.by_queue: dict[str, list[Job]] = {}
        self._tasks: dict[str, Heap[Task]] = {}
        tiers = round.tiers
        for job in round.choices.walk("jobs", list(round.jobs.values())):
            if job.is_pending or tiers.job_valid(job) is not None:
                continue
            self.queues[job.queue] = round.queues[job.queue]
            if tiers.job_starving(job) and (with_topology or not job.contains_topology):
                self.jobs.setdefault(job.queue, Heap(tiers.job_first)).push(job)
                self.by_queue.setdefault(job.queue, []).append(job)

    def tasks(self, job: Job) -> Heap[Task]:
        """Those of its tasks that have not had their turn."""
        heap = self._tasks.get(job.uid)
        if heap is None:
            heap = self._tasks[job.uid] = waiting_tasks(self._round, job)
        return heap


def waiting_tasks(round: Round, job: Job) -> Heap[Task]:
    """What is pending now and not held back by a gate."""
    return Heap(round.tiers.task_first, (task for task in job.in_status(TaskStatus.PENDING) if not task.gated))


class Evictable:
    """What could be evicted from each row at most, summed per queue over the tasks that `counted` lets through.

    Invariant: the sums of a row are never below what could be evicted from it now. Evictions only make them too large,
    and `changed` brings a row up to date."""

    def __init__(self, round: Round, counted: Callable[[Task], bool]) -> None:
        self._round = round
        self._counted = counted
        self._index = {name: place for place, name in enumerate(round.queues)}
        self._rows = round.cluster.table.high
        self._sums: dict[str, NDArray[np.float64]] = {}
        self._numbers = np.zeros((len(self._index), self._rows), dtype=np.int32)
        self._stale: set[int] = set()
        for job in round.jobs.values():
            for task in job.in_status(TaskStatus.BOUND, TaskStatus.RUNNING):
                self._count(task)

    def _count(self, task: Task) -> None:
        if task.job is None or task.row < 0 or not self._counted(task):
            return
        queue = self._index[task.job.queue]
        self._numbers[queue, task.row] += 1
        for name, amount in task.request.items():
            if name not in self._sums:
                self._sums[name] = np.zeros(self._numbers.shape, dtype=np.float64)
            self._sums[name][queue, task.row] += amount

    def changed(self, row: int) -> None:
        self._stale.add(row)

    def _refresh(self) -> None:
        for row in self._stale:
            self._numbers[:, row] = 0
            for column in self._sums.values():
                column[:, row] = 0.0
            for task in self._round.resources.tasks_on(row):
                self._count(task)
        self._stale.clear()

    def promising(
        self, request: Amounts, rows: NDArray[np.int32], queues: Collection[str], *, at_least_one: bool
    ) -> NDArray[np.bool_]:
        """Which rows could have room for a request if all that counts of some queues were evicted there."""
        self._refresh()
        picked = np.array([self._index[name] for name in queues], dtype=np.intp)
        resources = self._round.resources
        hopeful = np.ones(len(rows), dtype=np.bool_)
        if at_least_one:
            hopeful &= _summed(self._numbers, picked, rows) > 0
        for name, amount in request.items():
            room = resources.future_on(name, rows)
            if name in self._sums:
                room = room + _summed(self._sums[name], picked, rows)
            hopeful &= amount <= room + _SLACK
        return hopeful


def _summed(columns: NDArray[_Number], picked: NDArray[np.intp], rows: NDArray[np.int32]) -> NDArray[_Number]:
    """Over the queues picked."""
    found: NDArray[_Number] = (
        columns[picked[0]][rows] if len(picked) == 1 else columns[np.ix_(picked, rows)].sum(axis=0)
    )
    return found


class RefusedRows:
    """Rows on which tasks of one job were tried in vain, by what is equal among such tasks. Cleared on any change."""

    def __init__(self, rows: int) -> None:
        self._size = rows
        self._known: dict[object, NDArray[np.bool_]] = {}

    def of(self, task: Task) -> NDArray[np.bool_]:
        key = (task.pod.shape, task.priority, task.role, task.preemptable, task.revocable_zone)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = np.zeros(self._size, dtype=np.bool_)
        return found

    def forget(self) -> None:
        self._known.clear()


class Prospects:
    """On which rows evictions for a task could succeed, kept up to date with every transaction that is kept or taken
    back through it. The sums are made when they are first needed."""

    def __init__(self, round: Round, counted: Callable[[Task], bool]) -> None:
        self._round = round
        self._counted = counted
        self._refused = RefusedRows(round.cluster.table.high)
        self._evictable: Evictable | None = None

    def start_over(self) -> None:
        """Forget refusals: those of one job, in one part of the cluster, do not hold for the next."""
        self._refused.forget()

    def promising(
        self, task: Task, rows: NDArray[np.int32], queues: Collection[str], *, at_least_one: bool
    ) -> NDArray[np.bool_]:
        if self._evictable is None:
            self._evictable = Evictable(self._round, self._counted)
        found = self._evictable.promising(task.request, rows, queues, at_least_one=at_least_one)
        return found & ~self._refused.of(task)[rows]

    def refuse(self, task: Task, row: int) -> None:
        """Leave a row out for the tasks that are like this one, until something changes."""
        if not self._round.quirks.asks_refused_nodes_again:
            self._refused.of(task)[row] = True

    def keep(self, trial: Transaction, transaction: Transaction) -> None:
        """A trial that led to something becomes part of the job's transaction."""
        self._note(trial)
        transaction.merge(trial)

    def take_back(self, transaction: Transaction) -> None:
        self._note(transaction)
        transaction.discard()

    def _note(self, transaction: Transaction) -> None:
        for operation in transaction.operations():
            self._refused.forget()
            if self._evictable is not None:
                self._evictable.changed(operation.row)


def suffice(round: Round, task: Task, row: int, victims: Sequence[Task]) -> bool:
    """ValidateVictims: whether the task fits once these victims are gone; it may without any."""
    room = round.resources.future_idle_at(row)
    for victim in victims:
        room.add(victim.request)
    return task.request.less_equal(room)


def refusals_at(round: Round, task: Task, row: int) -> FitErrors | None:
    """The reasons of predicates against a task on one row, by what `pre_predicate` noted last; None if there are
    none."""
    errors = NodeSearch(round, keep_errors=False).refusals(task, np.array([row], dtype=np.int32))
    return errors if errors.parts else None
