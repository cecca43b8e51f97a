"""Following how a recorded round made room: which of several equal nodes it tried, and whom it was shown there first.

Volcano tries equal nodes in any order, and shows its plugins those who could be evicted in any order; gang and drf
take the first that they may, so who is evicted, and whether a node works at all, depends on it. A recorded round is
followed by looking for an order that gives what was recorded next; where none does, ours stands and the two part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.actions.making_room import suffice

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.flow import Doc
    from fairlead.volcano.rounds.round import Job, Round, Task

_TOLERANCE = 1e-6
_ORDERS = 1000
_FEW = 6
_FULL = 1.0


def as_tried(
    task: Task, rows: NDArray[np.int32], scores: NDArray[np.float64], ahead_now: Callable[[], Ahead]
) -> Iterator[int]:
    """Rows best first; among equals, each time the one that the next recorded step is on, and where that says nothing,
    one that no step for the task is on: a row that came to nothing before anybody was evicted leaves no name."""
    order = np.argsort(-scores, kind="stable")
    left = list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))
    while left:
        equal = [row for row, score in left if score >= left[0][1] - _TOLERANCE]
        ahead = ahead_now()
        next_row, named = ahead.row_for(task), ahead.rows_for(task)
        chosen = next_row if next_row in equal else next((row for row in equal if row not in named), equal[0])
        left = [(row, score) for row, score in left if row != chosen]
        yield chosen


def as_taken(
    jobs: Sequence[Job], ahead_now: Callable[[], Ahead], choose: Callable[[Sequence[str]], str]
) -> Iterator[Job]:
    """Jobs that evict within themselves: each time the one that the next recorded step is for. Where that says
    nothing, most likely one for which nothing is recorded: any of them, as one that would have got its place now may
    come to nothing once another has taken it. Or one that is named later: a node that came to nothing before anybody
    was evicted leaves no name."""
    left = list(jobs)
    while left:
        ahead = ahead_now()
        wanting = ahead.wanting()
        named = [job for name in wanting for job in left if name in _names(job)]
        if named and wanting[0] == ahead.next_wanting():
            chosen = named[0]
        else:
            unnamed = [job for job in left if not set(wanting) & _names(job)]
            by_name = {job.name: job for job in (*unnamed, *named)}
            chosen = by_name[choose(list(by_name))]
        left.remove(chosen)
        yield chosen


def as_shown(task: Task, row: int, tasks: Sequence[Task], ahead: Ahead) -> Sequence[Task]:
    """An order that makes the recorded ones go next, or, where none of this row did, that makes the row not work."""
    gone = ahead.gone_for(task, row)
    if not gone and ahead.row_for(task) == row:
        return tasks
    by_name = {other.name: other for other in tasks}
    if any(name not in by_name for name in gone):
        return tasks
    first = [by_name[name] for name in gone]
    rest = [other for other in tasks if other.name not in gone]
    order = [*first, *rest]
    found = _approach(order, lambda shown: ahead.agreement(task, row, shown, gone))
    return order if found is None else found


class Ahead:
    """What the recording does next."""

    def __init__(self, round: Round, steps: Sequence[Doc], at: int) -> None:
        self._round = round
        self._steps = steps
        self._at = at

    def _next(self) -> Doc:
        return self._steps[self._at] if self._at < len(self._steps) else {}

    def rows_for(self, task: Task) -> set[int]:
        """All rows that room is made on for a task before anybody else is named."""
        rows = set()
        for step in self._steps[self._at :]:
            if step.get("do") != "discard" and (step.get("for") or step.get("pod")) != task.name:
                break
            rows.add(self._row_in(step, task))
        return rows

    def node(self) -> str:
        """Where the next step takes place."""
        step = self._next()
        if step.get("do") != "evict":
            return str(step.get("node", ""))
        row = self._row_of(step.get("pod", ""))
        return self._round.cluster.table.name(row) if row >= 0 else ""

    def row_for(self, task: Task) -> int:
        """The row that room is made on next for a task; -1 if for none."""
        return self._row_in(self._next(), task)

    def _row_in(self, step: Doc, task: Task) -> int:
        if step.get("do") == "evict" and step.get("for") == task.name:
            return self._row_of(step.get("pod", ""))
        if step.get("do") == "pipeline" and step.get("pod") == task.name:
            return self._round.cluster.table.row_of.get(step.get("node", ""), -1)
        return -1

    def gone_for(self, task: Task, row: int) -> list[str]:
        """The task that is evicted next from a row to make room for a task."""
        gone = []
        for step in self._steps[self._at :]:
            if step.get("do") != "evict" or step.get("for") != task.name or self._row_of(step.get("pod", "")) != row:
                break
            gone.append(step["pod"])
        return gone

    def _row_of(self, name: str) -> int:
        rows = (task.row for job in self._round.jobs.values() for task in job.tasks.values() if task.name == name)
        return next(rows, -1)

    def next_wanting(self) -> str:
        step = self._next()
        return str(step.get("for") or step.get("pod") or "")

    def wanting(self) -> list[str]:
        """Who gets room, or is tried for, until the action ends, in order."""
        named: dict[str, None] = {}
        for step in self._steps[self._at :]:
            if step.get("action") != self._next().get("action"):
                break
            if name := str(step.get("for") or step.get("pod") or ""):
                named[name] = None
        return list(named)

    def agreement(self, task: Task, row: int, order: Sequence[Task], gone: Sequence[str]) -> float:
        """How far, shown in this order, those recorded are the first to go; or the row does not work if none are."""
        round = self._round
        ask = round.tiers.reclaimable if self._next().get("action") == "reclaim" else round.tiers.preemptable
        victims = ask(task, order)
        if suffice(round, task, row, victims) != bool(gone):
            return -1.0
        alike = 0
        for name, recorded in zip(self._first_to_go(task, victims, len(gone)), gone, strict=False):
            if name != recorded:
                break
            alike += 1
        return _FULL if alike == len(gone) else alike / len(gone)

    def _first_to_go(self, task: Task, victims: Sequence[Task], count: int) -> list[str]:
        """Each eviction changes what its job has, and with it the order of those who wait in the heap."""
        round = self._round
        heap = round.victims_heap(victims, task)
        popped: list[tuple[Task, TaskStatus]] = []
        while heap and len(popped) < count:
            victim = heap.pop()
            popped.append((victim, victim.status))
            _set(victim, TaskStatus.RELEASING)
            round.tiers.deallocated(victim)
        for victim, status in reversed(popped):
            _set(victim, status)
            round.tiers.allocated(victim)
        return [victim.name for victim, _ in popped]


def _set(task: Task, status: TaskStatus) -> None:
    assert task.job is not None
    task.job.move(task, status)


def _names(job: Job) -> set[str]:
    return {task.name for task in job.tasks.values()}


def _approach(tasks: Sequence[Task], agreement: Callable[[Sequence[Task]], float]) -> Sequence[Task] | None:
    """An order that agrees fully: of few, one of all; of many, one that changes lead to, of which those are kept that
    do not lead away."""
    if len(tasks) <= _FEW:
        return next((order for order in permutations(tasks) if agreement(order) == _FULL), None)
    rng = Random(0)
    order = list(tasks)
    reached = agreement(order)
    for _ in range(_ORDERS):
        if reached == _FULL:
            return order
        changed = order.copy()
        changed.insert(rng.randrange(len(order)), changed.pop(rng.randrange(len(order))))
        came_to = agreement(changed)
        if came_to >= reached:
            order, reached = changed, came_to
    return order if reached == _FULL else None
