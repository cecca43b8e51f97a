"""task-topology: tasks of a job go to nodes in buckets, together or apart as annotations of the group say of roles.

A node is as good as much of the task's bucket is there or still fits there, less what it should keep away from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.amounts import EPSILON
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.tiers import TierPlugin
from fairlead.volcano.topology.buckets import Bucket, JobBuckets, rules_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.state.nodes import Nodes
    from fairlead.volcano.records.amounts import Amounts
    from fairlead.volcano.rounds.arguments import Arguments
    from fairlead.volcano.rounds.round import Round, Task

_BEST = 100.0


class TaskTopology(TierPlugin):
    name = "task-topology"

    def __init__(self, *, weight: int = 1) -> None:
        self._weight = weight

    @classmethod
    def of(cls, arguments: Arguments) -> TaskTopology:
        return cls(weight=arguments.whole("task-topology.weight", 1))

    def open(self, round: Round) -> None:
        self._round = round
        self._jobs: dict[str, JobBuckets] = {}
        names = {int(row): round.cluster.table.name(int(row)) for row in round.rows}
        for job in round.jobs.values():
            rules = rules_of(job) if job.counts.of(TaskStatus.PENDING) else None
            if rules is not None:
                self._jobs[job.uid] = JobBuckets(rules, job.tasks.values(), names)

    # ---- order ----

    def task_order(self, left: Task, right: Task) -> float:
        """Who is in a bucket first; of one job, larger buckets before smaller and older before younger."""
        one, other = self._buckets_of(left), self._buckets_of(right)
        if one is None or other is None:
            return 0
        mine, theirs = one.of.get(left.uid), other.of.get(right.uid)
        if (mine is None) != (theirs is None):
            return -1 if mine is not None else 1
        if mine is None or theirs is None or one is not other:
            return 0
        if mine is theirs:
            return _compare(one.rules.rank(right.role), one.rules.rank(left.role))
        return len(theirs.waiting) - len(mine.waiting) or mine.place - theirs.place

    def _buckets_of(self, task: Task) -> JobBuckets | None:
        return self._jobs.get(task.job.uid) if task.job is not None else None

    # ---- nodes ----

    def node_order(self, task: Task, nodes: Nodes) -> NDArray[np.float64]:
        rows = nodes.row_numbers()
        buckets = self._buckets_of(task)
        bucket = buckets.of.get(task.uid) if buckets is not None else None
        if buckets is None or bucket is None:
            return np.zeros(len(rows), dtype=np.float64)
        score = self._over(bucket.bound, rows)
        away = {row: min(0, buckets.rules.pull(task.role, on, only_away=True)) for row, on in buckets.on_row.items()}
        score += self._over(away, rows)
        score += len(bucket.waiting) - self._left_out(task, bucket, rows)
        score[~self._fits(task.request, rows)] = 0.0
        return score * (self._weight * (_BEST / buckets.largest if buckets.largest else 1.0))

    def _over(self, counts: Mapping[int, int], rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """Counts of a few rows, gathered by the rows asked about."""
        column = np.zeros(self._round.cluster.table.capacity, dtype=np.float64)
        for row, count in counts.items():
            column[row] = count
        return column[rows]

    def _left_out(self, task: Task, bucket: Bucket, rows: NDArray[np.int32]) -> NDArray[np.float64]:
        """How many other tasks of a bucket must stay away for the rest of it to fit."""
        left_out = np.zeros(len(rows), dtype=np.float64)
        remains = bucket.request.copy()
        fitting = self._fits(remains, rows, tolerance=EPSILON)
        for other in bucket.waiting.values():
            if fitting.all():
                break
            if other.uid != task.uid:
                remains.subtract(other.request)
                left_out[~fitting] += 1
                fitting |= self._fits(remains, rows, tolerance=EPSILON)
        return left_out

    def _fits(self, request: Amounts, rows: NDArray[np.int32], tolerance: float = 0.0) -> NDArray[np.bool_]:
        """Where a request fits what is idle or about to be."""
        resources = self._round.resources
        fitting = np.ones(len(rows), dtype=np.bool_)
        for name, amount in request.items():
            room = resources.column(resources.idle, name)[rows] + resources.column(resources.releasing, name)[rows]
            fitting &= (amount <= room) | (np.abs(amount - room) < tolerance)
        return fitting

    # ---- what happens ----

    def allocated(self, task: Task) -> None:
        buckets = self._buckets_of(task)
        if buckets is None:
            return
        buckets.on_row.setdefault(task.row, Counter())[task.role] += 1
        bucket = buckets.of.get(task.uid)
        if bucket is not None:
            bucket.bound[task.row] += 1
            if task.uid in bucket.waiting or self._round.quirks.task_topology_keeps_undone:
                bucket.no_longer_waits(task)

    def deallocated(self, task: Task) -> None:
        """Stop counting a task; the original goes on counting one that was only tried
        (`task_topology_keeps_undone`)."""
        buckets = self._buckets_of(task)
        if buckets is None or self._round.quirks.task_topology_keeps_undone:
            return
        buckets.on_row.setdefault(task.row, Counter())[task.role] -= 1
        bucket = buckets.of.get(task.uid)
        if bucket is not None:
            bucket.bound[task.row] -= 1
            if task.status is TaskStatus.PENDING:
                bucket.wait(task)


def _compare(left: tuple[int, int], right: tuple[int, int]) -> int:
    return (left > right) - (left < right)
