"""Placing a job whose network or sub-groups matter: hypernode by hypernode, nearest tier first, by trial.

For each hypernode that the job could have, all its sub-jobs are placed and taken off again; among those of one gradient
that worked the best by score is placed for good. A sub-job is tried the same way within the job's hypernode.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.rounds.actions.placing import allocate_tasks
from fairlead.volcano.rounds.node_search import NodeSearch
from fairlead.volcano.rounds.tiers import Purpose
from fairlead.volcano.rounds.transaction import Transaction

if TYPE_CHECKING:
    from fairlead.volcano.rounds.actions.worksheet import Worksheet
    from fairlead.volcano.rounds.goheap import Heap
    from fairlead.volcano.rounds.round import Job, Round, SubJob, Task
    from fairlead.volcano.rounds.transaction import Operation


@dataclass(slots=True)
class _Solution:
    """A placement that worked: what to do again, what is left then, and where it is."""

    hyper_node: str
    operations: tuple[Operation, ...]
    score: float
    worksheet: Worksheet
    sub_jobs: dict[str, str]


def allocate_by_domain(round: Round, job: Job, worksheet: Worksheet, *, keep_errors: bool) -> bool:
    """Give a job its turn. Whether it wants another one."""
    solution, transaction = _place_job(round, job, worksheet, keep_errors=keep_errors)
    if solution is None or not round.tiers.job_ready(job):
        return False
    transaction.commit()
    network = round.topology
    job.dirty = True
    job.allocated_hyper_node = network.lowest_common(job.allocated_hyper_node, solution.hyper_node)
    for uid, hyper_node in solution.sub_jobs.items():
        sub_job = job.sub_jobs[uid]
        sub_job.nominated_hyper_node = ""
        sub_job.allocated_hyper_node = network.lowest_common(sub_job.allocated_hyper_node, hyper_node)
    return not worksheet.empty


def _place_job(
    round: Round, job: Job, worksheet: Worksheet, *, keep_errors: bool
) -> tuple[_Solution | None, Transaction]:
    root = round.topology.root
    transaction = Transaction(round)
    promised = _try_where_promised(round, job, worksheet, keep_errors=keep_errors)
    if promised is not None:
        transaction.recover(promised.operations)
        worksheet.adopt(promised.worksheet)
        return promised, transaction
    for gradient in round.tiers.gradient_for_job(job, root, Purpose.ALLOCATE):
        solutions = []
        for hyper_node in round.choices.hyper_nodes(job, gradient):
            found = _try_job(round, job, worksheet, hyper_node, keep_errors=keep_errors)
            if found is not None:
                solutions.append(found)
        if solutions:
            highest = max(solution.score for solution in solutions)
            best = [solution for solution in solutions if solution.score == highest]
            name = round.choices.hyper_node(next(iter(job.sub_jobs.values())), [s.hyper_node for s in best])
            chosen = next(solution for solution in best if solution.hyper_node == name)
            transaction.recover(chosen.operations)
            worksheet.adopt(chosen.worksheet)
            return chosen, transaction
    return None, transaction


def _try_where_promised(round: Round, job: Job, worksheet: Worksheet, *, keep_errors: bool) -> _Solution | None:
    """Place a job in the hypernodes in which room was made for it, even if it would score better elsewhere by now. The
    promise is kept until the job is placed, also if the room is not free yet. (In the original no promise outlives its
    round: `forgets_promised_hyper_nodes`.)"""
    promises = {uid: job.sub_jobs[uid].nominated_hyper_node for uid, heap in worksheet.tasks.items() if heap}
    if round.quirks.forgets_promised_hyper_nodes or not promises or not all(promises.values()):
        return None
    where = ""
    for hyper_node in promises.values():
        where = round.topology.lowest_common(where, hyper_node)
    found = _try_job(round, job, worksheet, where, keep_errors=keep_errors) if where in round.topology else None
    for uid, hyper_node in promises.items() if found is not None else ():
        job.sub_jobs[uid].nominated_hyper_node = hyper_node
    return found


def _try_job(round: Round, job: Job, worksheet: Worksheet, hyper_node: str, *, keep_errors: bool) -> _Solution | None:
    """Place the whole job within a hypernode, and take it off again."""
    before = {uid: sub_job.allocated_hyper_node for uid, sub_job in job.sub_jobs.items()}
    job.forget_errors()
    sheet = worksheet.copy()
    done: list[Transaction] = []
    score = 0.0
    while sheet.sub_jobs:
        sub_job = sheet.sub_jobs.pop()
        placed = _place_sub_job(round, sub_job, sheet, hyper_node, keep_errors=keep_errors)
        if placed is None or not len(placed[0]):
            continue
        done.append(placed[0])
        score += placed[1]
        if sheet.tasks[sub_job.uid]:
            sheet.sub_jobs.push(sub_job)
        if round.tiers.job_ready(job):
            break
    decided = {uid: sub_job.allocated_hyper_node for uid, sub_job in job.sub_jobs.items()}
    for uid, sub_job in job.sub_jobs.items():
        sub_job.allocated_hyper_node = before[uid]
    solution = None
    if done and (round.tiers.job_ready(job) or round.tiers.job_pipelined(job)):
        operations = tuple(operation for transaction in done for operation in transaction.save())
        solution = _Solution(hyper_node, operations, score, sheet, decided)
    for transaction in done:
        transaction.discard()
    return solution


def _place_sub_job(
    round: Round, sub_job: SubJob, sheet: Worksheet, within: str, *, keep_errors: bool
) -> tuple[Transaction, float] | None:
    """Place a sub-job in the best hypernode of the nearest tier that has room; the score is the hypernode's."""
    network = round.topology
    kept = _where_promised(round, sub_job, sheet, within)
    if kept is not None:
        return kept, 0.0
    for gradient in round.tiers.gradient_for_sub_job(sub_job, within, Purpose.ALLOCATE):
        found: dict[str, tuple[tuple[Operation, ...], Heap[Task]]] = {}
        for hyper_node in round.choices.hyper_nodes(sub_job.job, gradient):
            sub_job.job.forget_errors_of(sub_job)
            heap = sheet.tasks[sub_job.uid].copy()
            transaction = allocate_tasks(round, sub_job, heap, hyper_node, keep_errors=keep_errors)
            if transaction is not None and len(transaction):
                found[hyper_node] = transaction.save(), heap
                transaction.discard()
        if not found:
            continue
        scores = round.tiers.hyper_node_scores(sub_job, list(found))
        highest = max(scores[name] for name in found)
        chosen = round.choices.hyper_node(sub_job, [name for name in found if scores[name] == highest])
        operations, heap = found[chosen]
        transaction = Transaction(round)
        transaction.recover(operations)
        sub_job.allocated_hyper_node = network.lowest_common(sub_job.allocated_hyper_node, chosen)
        sheet.tasks[sub_job.uid] = heap
        return transaction, highest
    return None


def _where_promised(round: Round, sub_job: SubJob, sheet: Worksheet, within: str) -> Transaction | None:
    """Place a sub-job where room was made for it, each task on its nominated node. If a task cannot have its node, the
    promise is dropped."""
    hyper_node, sub_job.nominated_hyper_node = sub_job.nominated_hyper_node, ""
    if hyper_node not in round.topology or not round.topology.nodes_of(hyper_node) <= round.topology.nodes_of(within):
        return None
    heap = sheet.tasks[sub_job.uid].copy()
    transaction = Transaction(round)
    while heap:
        if not _place_as_promised(round, heap.pop(), hyper_node, transaction):
            if len(transaction):
                transaction.discard()
            return None
    sheet.tasks[sub_job.uid] = heap
    sub_job.allocated_hyper_node = round.topology.lowest_common(sub_job.allocated_hyper_node, hyper_node)
    return transaction


def _place_as_promised(round: Round, task: Task, hyper_node: str, transaction: Transaction) -> bool:
    row = round.cluster.table.row_of.get(task.pod.nominated_node, -1)
    if row < 0 or row not in round.rows_of(hyper_node) or task.gated or task.job is None:
        return False
    if not round.tiers.allocatable(round.queues[task.job.queue], task) or round.tiers.pre_predicate(task) is not None:
        return False
    rows, _ = NodeSearch(round, keep_errors=False).find(task, np.array([row], dtype=np.int32), fit=True)
    if not len(rows):
        return False
    round.search.scores = None
    if round.resources.fits_idle_at(task.request, row):
        return transaction.allocate(task, row)
    return transaction.pipeline(task, row, eviction_occurred=False)
