"""Transaction: Volcano's Statement. Placements, pipelinings and evictions of a round, kept or undone together.

Nothing outside changes while a round runs: its resources, its jobs and the node table show what is tried, and what is
committed is listed in `round.outcome` for the engine to carry out. A transaction that is neither committed nor
discarded stays applied until the round ends; that is how a gang that waits for room keeps it from the jobs after it.

    tx = Transaction(round)
    if tx.allocate(task, row): ...
    tx.commit()            # or tx.discard(), or nothing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from fairlead.core.state.cluster import PodPlace
from fairlead.volcano.records.amounts import within
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.fit import one_of
from fairlead.volcano.rounds.job import LastAttempt

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Job, Round, Task

ALLOCATE = "allocate"
PIPELINE = "pipeline"
EVICT = "evict"


@dataclass(frozen=True, slots=True)
class Operation:
    """One step. `was` is the task's status before it; `reason` is that of an eviction; `eviction_occurred` is about a
    pipelining; `last` is the task's last attempt before it, for a step that is saved; `claimant` is the job for which a
    task is evicted."""

    what: str
    task: Task
    row: int
    was: TaskStatus
    reason: str = ""
    eviction_occurred: bool = False
    last: LastAttempt | None = None
    claimant: Job | None = None


class Transaction:
    def __init__(self, round: Round) -> None:
        self._round = round
        self._operations: list[Operation] = []

    def __len__(self) -> int:
        return len(self._operations)

    def operations(self) -> tuple[Operation, ...]:
        return tuple(self._operations)

    # ---- doing ----

    def allocate(self, task: Task, row: int) -> bool:
        """Put a task where there is room now. False, and nothing is changed, if a plugin refuses or the task is booked
        already."""
        return self._place(Operation(ALLOCATE, task, row, task.status))

    def pipeline(self, task: Task, row: int, *, eviction_occurred: bool) -> bool:
        """Put a task where there will be room once evicted or ending pods are gone."""
        return self._place(Operation(PIPELINE, task, row, task.status, eviction_occurred=eviction_occurred))

    def _place(self, operation: Operation) -> bool:
        round, task, row = self._round, operation.task, operation.row
        round.attempting = task
        assert task.job is not None
        pipelined = operation.what == PIPELINE
        task.job.move(task, TaskStatus.PIPELINED if pipelined else TaskStatus.ALLOCATED)
        task.row = row
        task.eviction_occurred = operation.eviction_occurred
        booked = round.resources.put(task, row)
        round.overlay.place(task.pod, row)
        refusal = round.tiers.allocated(task)
        if refusal is not None or not booked:
            self._undo_placement(operation)
            return False
        self._operations.append(operation)
        round.witness.placed(task, pipelined=pipelined)
        return True

    def evict(self, task: Task, reason: str, preemptor: Task | None = None, *, claimant: Job | None = None) -> None:
        """Take a task's place away, for a task or a whole job; the room counts as releasing."""
        round = self._round
        claimant = claimant if preemptor is None else preemptor.job
        operation = Operation(EVICT, task, task.row, task.status, reason=reason, claimant=claimant)
        _set_status(task, TaskStatus.RELEASING)
        round.resources.update(task, task.row)
        round.overlay.remove(task.pod, task.row)
        round.tiers.deallocated(task)
        self._operations.append(operation)
        round.witness.evicted(task, preemptor)

    # ---- undoing ----

    def undo(self, operation: Operation) -> None:
        if operation.what == EVICT:
            self._undo_eviction(operation)
        else:
            self._undo_placement(operation)

    def _undo_placement(self, operation: Operation) -> None:
        round, task = self._round, operation.task
        _set_status(task, TaskStatus.PENDING)
        round.resources.take_off(task, operation.row)
        round.overlay.remove(task.pod, operation.row)
        round.tiers.deallocated(task)
        task.row = -1
        task.hyper_node = ""

    def _undo_eviction(self, operation: Operation) -> None:
        """The task has its old status again; in the original it is Running (`undone_evictions_become_running`)."""
        round, task = self._round, operation.task
        _set_status(task, TaskStatus.RUNNING if round.quirks.undone_evictions_become_running else operation.was)
        round.resources.update(task, operation.row)
        if not round.undone_evictions_stay_hidden:
            round.overlay.place(task.pod, operation.row)
        round.tiers.allocated(task)

    def discard(self) -> None:
        """Undo all, latest first; each task keeps its last attempt for its condition."""
        self._discard()
        self._round.witness.discarded()

    def _discard(self) -> None:
        for operation in reversed(self._operations):
            task = operation.task
            task.last = LastAttempt(task.row, task.status, task.eviction_occurred, task.hyper_node)
            self.undo(operation)
        self._operations.clear()

    # ---- keeping ----

    def commit(self) -> None:
        """Keep all. Evictions and bindings are carried out; what is pipelined is only promised within the round."""
        for operation in self._operations:
            task = operation.task
            task.last = None
            if operation.what == EVICT:
                self._round.outcome.evictions.append((task, operation.reason))
                if operation.claimant is not None:
                    self._round.witness.eviction_kept(task, operation.reason, operation.claimant)
            elif operation.what == ALLOCATE and bind(self._round, task) is not None:
                self._undo_placement(operation)
        self._operations.clear()
        self._round.witness.committed()

    # ---- moving between transactions ----

    def merge(self, *others: Transaction) -> None:
        """Take over the operations of other transactions."""
        for other in others:
            self._operations += other._operations
            other._operations = []

    def save(self) -> tuple[Operation, ...]:
        """The operations, to be done again by `recover` after a discard."""
        return tuple(replace(operation, last=operation.task.last) for operation in self._operations)

    def recover(self, saved: Sequence[Operation]) -> bool:
        """Do it again. False at the first step that fails; those before it stay."""
        self._round.search.scores = None
        for operation in saved:
            operation.task.last = operation.last
            if operation.what == EVICT:
                self.evict(operation.task, operation.reason, claimant=operation.claimant)
            elif not self._place(
                Operation(
                    operation.what,
                    operation.task,
                    operation.row,
                    operation.task.status,
                    eviction_occurred=operation.eviction_occurred,
                )
            ):
                return False
        return True


def allocate_now(round: Round, task: Task, row: int) -> str | None:
    """Session.Allocate: place without a transaction. Once the job is ready, all its allocated tasks are bound, up to
    the first that cannot be; the refusal of that one is returned. Of several refusals the original may give any."""
    job = task.job
    assert job is not None
    job.move(task, TaskStatus.ALLOCATED)
    task.row = row
    round.resources.put(task, row)
    round.overlay.place(task.pod, row)
    round.tiers.allocated(task)
    round.witness.placed(task, pipelined=False)
    if round.tiers.job_ready(job):
        for allocated in round.choices.walk("allocated", list(job.in_status(TaskStatus.ALLOCATED))):
            refusal = bind(round, allocated)
            if refusal is not None:
                others = (other for other in job.in_status(TaskStatus.ALLOCATED) if other is not allocated)
                return one_of([refusal, *(said for other in others if (said := lack_of_room(round, other)))])
    return None


def evict_now(round: Round, task: Task, reason: str) -> None:
    """Session.Evict: evict without a transaction."""
    _set_status(task, TaskStatus.RELEASING)
    round.resources.update(task, task.row)
    round.overlay.remove(task.pod, task.row)
    round.tiers.deallocated(task)
    round.outcome.evictions.append((task, reason))
    round.witness.evicted(task, None)


def unpipeline(round: Round, task: Task) -> None:
    """Undo a pipelining that is not part of an open transaction."""
    _set_status(task, TaskStatus.PENDING)
    round.resources.take_off(task, task.row)
    round.overlay.remove(task.pod, task.row)
    round.tiers.deallocated(task)
    task.row = -1
    task.hyper_node = ""


def bind(round: Round, task: Task) -> str | None:
    """Commit an allocated task: it is to be bound. If its pod or its node has gone while the round went on, it is not,
    and the text says so."""
    cluster = round.cluster
    pod_state = cluster.pods.get(task.uid)
    if pod_state is None or pod_state.place is not PodPlace.PENDING or not cluster.table.alive[task.row]:
        return f"task <{task.key}> or its node has gone"
    refusal = lack_of_room(round, task) if round.quirks.shrunk_nodes_refuse_binds else None
    if refusal is None:
        _set_status(task, TaskStatus.BINDING)
        round.overlay.keep(task.pod)
        round.outcome.binds.append((task, task.row))
    return refusal


def lack_of_room(round: Round, task: Task) -> str | None:
    """Why a row does not have what a task requests, leaving aside what is only placed within the round; None if it has.
    A pod that requests nothing may be refused too, where a node has shrunk below what its pods request
    (`shrunk_nodes_refuse_binds`)."""
    node = round.cluster.table.nodes[task.row]
    assert node is not None
    lying = round.resources.tasks_on(task.row)
    idle = round.resources.at(round.resources.idle, task.row)
    for other in lying:
        if other.status is TaskStatus.ALLOCATED:
            idle.add(other.request)
    if task.request.less_equal(idle):
        return None
    lacking = " ".join(name for name, amount in task.request.items() if not within(amount, idle.get(name)))
    known = {*node.allocatable, *(name for other in lying for name in other.request.scalars)}
    idle.scalars = {name: amount for name, amount in idle.scalars.items() if name in known}
    return (
        f"node {node.name} resources [{lacking}] are not enough to put task <{task.key}>, "
        f"idle: {idle}, req: {task.request}"
    )


def _set_status(task: Task, status: TaskStatus) -> None:
    if task.job is not None:
        task.job.move(task, status)
    else:
        task.status = status
