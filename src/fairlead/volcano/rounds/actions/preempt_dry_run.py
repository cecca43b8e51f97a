"""DryRun: topology-aware preemption. Evictions are simulated on several nodes, and the least harmful ones are chosen.

On each node victims are removed one by one until queue, room and predicates allow the task; then, most important first,
each victim is put back that can be. Of the nodes with victims the one is chosen whose victims matter least: by their
highest priority, the sum of priorities, their number, and how recently the most important of them started.

Nothing is evicted in a simulation: victims are taken out of the round's resources and off the table, and put back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from fairlead.volcano.rounds.actions.making_room import suffice
from fairlead.volcano.rounds.transaction import Transaction

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.volcano.rounds.round import Round, Task

_ACTION = "preempt"
_LIFT = 2**31
"""Added to each priority, as in the original, so that a node with fewer victims of negative priority is not worse."""


@dataclass(frozen=True, slots=True)
class _Candidate:
    """`victims` are the most important first."""

    row: int
    victims: tuple[Task, ...]


class DryRun:
    def __init__(self, round: Round) -> None:
        self._round = round
        self._percentage = round.argument(_ACTION, "minCandidateNodesPercentage", 10)
        self._least = round.argument(_ACTION, "minCandidateNodesAbsolute", 1)
        self._most = round.argument(_ACTION, "maxCandidateNodesAbsolute", 100)

    def preempt(self, task: Task, rows: NDArray[np.int32], may_go: Callable[[Task], bool]) -> Transaction | None:
        """Evictions and a promise for a task on the best of some rows; None if there is no such row."""
        round = self._round
        candidates = self._candidates(task, rows.tolist(), may_go)
        if not candidates:
            return None
        round.witness.preempting(sum(len(candidate.victims) for candidate in candidates))
        chosen = self._best(task, candidates)
        trial = Transaction(round)
        for victim in chosen.victims:
            trial.evict(victim, _ACTION, task)
        if not trial.pipeline(task, chosen.row, eviction_occurred=True):
            trial.discard()
            return None
        return trial

    def wanted(self, rows: int) -> int:
        """How many candidates are enough."""
        return min(max(rows * self._percentage // 100, self._least), self._most, rows)

    def _candidates(self, task: Task, rows: Sequence[int], may_go: Callable[[Task], bool]) -> list[_Candidate]:
        if not rows:
            return []
        start = self._round.rng.randrange(len(rows))
        wanted = self.wanted(len(rows))
        found: list[_Candidate] = []
        in_turn = np.array([*rows[start:], *rows[:start]], dtype=np.int32)
        for row in self._round.choices.ranked(task, in_turn, np.zeros(len(rows))):
            victims = _OneRow(self._round, task, row).victims(may_go)
            if victims:
                found.append(_Candidate(row, victims))
                if len(found) >= wanted:
                    break
        return found

    # ---- which ----

    def _best(self, task: Task, candidates: Sequence[_Candidate]) -> _Candidate:
        harms = [self._harm(candidate) for candidate in candidates]
        least = min(harms)
        best = {c.row: c for c, harm in zip(candidates, harms, strict=True) if harm == least}
        return best[self._round.choices.node(task, list(best))]

    def _harm(self, candidate: _Candidate) -> tuple[float, ...]:
        priorities = [victim.pod.priority for victim in candidate.victims]
        highest = max(priorities)
        starts = [
            self._round.now if victim.pod.start_time is None else victim.pod.start_time
            for victim, priority in zip(candidate.victims, priorities, strict=True)
            if priority == highest
        ]
        return priorities[0], sum(priority + _LIFT for priority in priorities), len(priorities), -min(starts)


class _OneRow:
    """The simulation on one row."""

    def __init__(self, round: Round, task: Task, row: int) -> None:
        self._round = round
        self._task = task
        self._row = row
        self._out: list[Task] = []

    def victims(self, may_go: Callable[[Task], bool]) -> tuple[Task, ...]:
        """The tasks that would have to go; none if that would not help, or is not needed."""
        round, task = self._round, self._task
        suspects = [other for other in round.resources.tasks_on(self._row) if may_go(other)]
        offered = round.tiers.preemptable(task, round.choices.suspects(task, self._row, suspects))
        if not offered or not suffice(round, task, self._row, offered):
            return ()
        try:
            return self._spared(self._enough(offered))
        finally:
            for victim in list(self._out):
                self._put_back(victim)

    def _enough(self, offered: Sequence[Task]) -> list[Task]:
        """As many as must go before the task fits, in the order in which they go; none if it never does."""
        heap = self._round.victims_heap(offered, self._task)
        gone: list[Task] = []
        while heap:
            victim = heap.pop()
            gone.append(victim)
            self._take_out(victim)
            if self._fits():
                break
        return gone if self._round.tiers.simulate_predicate(self._task, self._row) else []

    def _spared(self, gone: Sequence[Task]) -> tuple[Task, ...]:
        """The victims that cannot be put back, most important first."""
        victims = []
        for victim in reversed(gone):
            self._put_back(victim)
            if not self._fits():
                self._take_out(victim)
                victims.append(victim)
        return tuple(victims)

    def _fits(self) -> bool:
        round, task = self._round, self._task
        assert task.job is not None
        return (
            round.tiers.simulate_allocatable(round.queues[task.job.queue], task)
            and round.resources.fits_future_at(task.request, self._row)
            and round.tiers.simulate_predicate(task, self._row)
        )

    def _take_out(self, victim: Task) -> None:
        self._round.tiers.simulate_remove_task(self._task, victim, self._row)
        self._round.resources.take_off(victim, self._row)
        self._round.overlay.remove(victim.pod, self._row)
        self._out.append(victim)

    def _put_back(self, victim: Task) -> None:
        self._round.tiers.simulate_add_task(self._task, victim, self._row)
        self._round.resources.put(victim, self._row)
        self._round.overlay.place(victim.pod, self._row)
        self._out.remove(victim)
