"""VictimCache: the victims on each row for preemptors of one signature, as columns.

The victims on a row depend on the node, the pods on it, the pods nominated to it and the disruption budgets of its
pods. Rows where none of that changed are not tried again, so that the thousandth of equal preemptors tries a row or
two, and walking the rows and comparing the candidates is a few operations on columns.

Invariant: a row that is not UNKNOWN has the answer that `select_victims` would give now.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, overload

import numpy as np

from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.results.cached_plugin import epoch_of
from fairlead.core.framework.sums import sums_alone
from fairlead.core.model import kinds
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Verdict
from fairlead.kube.preemption.victims import VictimNode, budgets_of, select_victims

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.plugin import Plugin
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.model.budgets import DisruptionBudget
    from fairlead.core.state.table import NodeTable
    from fairlead.core.state.touchlog import TouchLog

MayGo = Callable[[Pod], bool]
"""Whether a pod may be evicted, whatever its priority."""
UNKNOWN, IN_VAIN, NOBODY, PEACEFUL, VIOLATING = range(5)
"""The states of a row: not tried; no eviction helps; fits without victims; has victims; has victims and violates a
budget."""
_OFFSET = 1 << 31
"""Added to each priority before summing, as in the original, because priorities may be negative."""
_AT_ONCE = 64
"""Rows that are tried before looking whether enough candidates are found. More than one only if answers are kept."""


class VictimCache:
    def __init__(self, capacity: int) -> None:
        self._state: NDArray[np.int8] = np.zeros(capacity, dtype=np.int8)
        self._refusal: NDArray[np.int32] = np.zeros(capacity, dtype=np.int32)
        self._candidates: dict[int, VictimNode] = {}
        self._violations: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self._first_priority: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self._priority_sum: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self._count: NDArray[np.int64] = np.zeros(capacity, dtype=np.int64)
        self._started: NDArray[np.float64] = np.zeros(capacity, dtype=np.float64)
        self._unstarted: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self._guarded: NDArray[np.bool_] = np.zeros(capacity, dtype=np.bool_)
        self._marks: tuple[int, ...] = ()
        self._budgets = -1
        self._coverage: tuple[object, ...] = ()
        self._fleeting: list[int] = []

    # ---- keeping up ----

    def follow(self, logs: Sequence[TouchLog]) -> None:
        """Forget the rows that were touched, in any log, since the last time."""
        marks, self._marks = self._marks, tuple([log.mark for log in logs])
        for log, mark in zip(logs, marks, strict=True) if marks else ():
            if log.mark != mark:
                self._state[log.rows_since(mark)] = UNKNOWN
        self.forget(self._fleeting)
        self._fleeting = []

    def overlook(self, logs: Sequence[TouchLog]) -> None:
        """Skip what the logs say up to now: the rows were touched by trials, which have been rolled back."""
        self._marks = tuple([log.mark for log in logs])

    def follow_budgets(self, version: int, budgets: Sequence[DisruptionBudget]) -> None:
        """Forget the rows that a change of budgets may concern: those with a covered pod, or all if budgets cover other
        pods now."""
        if version == self._budgets:
            return
        self._budgets = version
        coverage = tuple([(budget.namespace, budget.selector) for budget in budgets])
        if coverage != self._coverage:
            self._state[:] = UNKNOWN
            self._coverage = coverage
        else:
            self._state[self._guarded] = UNKNOWN

    def forget(self, rows: Iterable[int]) -> None:
        for row in rows:
            self._state[row] = UNKNOWN

    def note(self, row: int, answer: VictimNode | Verdict, codes: VerdictCodes, *, guarded: bool, lasts: bool) -> None:
        """Keep an answer. One that does not last (`lasts`), because it depends on the clock, is dropped after this
        search."""
        self._guarded[row] = guarded
        if not lasts:
            self._fleeting.append(row)
        if isinstance(answer, Verdict):
            self._state[row] = IN_VAIN
            self._refusal[row] = codes.code(answer)
            return
        self._candidates[row] = answer
        if not answer.victims:
            self._state[row] = NOBODY
            return
        self._state[row] = VIOLATING if answer.violations else PEACEFUL
        self._violations[row] = answer.violations
        priorities = [victim.shape.priority for victim in answer.victims]
        self._first_priority[row] = priorities[0]
        self._priority_sum[row] = sum(priorities) + _OFFSET * len(priorities)
        self._count[row] = len(priorities)
        highest = max(priorities)
        starts = [victim.start_time for victim in answer.victims if victim.shape.priority == highest]
        self._started[row] = min([start for start in starts if start is not None], default=inf)
        self._unstarted[row] = None in starts

    # ---- searching ----

    def search(self, rows: NDArray[np.int32], wanted: int, ask: Callable[[int], None], at_once: int) -> VictimSearch:
        """Walk rows until enough candidates are found, one of them without violated budgets. `ask(row)` tries a row."""
        while True:
            states = self._state[rows]
            end = _end(states, wanted)
            unknown = rows[:end][states[:end] == UNKNOWN]
            if not len(unknown):
                return VictimSearch(self, rows[:end], states[:end], wanted)
            for row in unknown[:at_once].tolist():
                ask(row)

    def best(self, rows: NDArray[np.int32], now: float) -> NDArray[np.int32]:
        """The best of some rows, by the rules of `best_candidates`."""
        for column in (self._violations, self._first_priority, self._priority_sum, self._count):
            values = column[rows]
            rows = rows[values == values.min()]
        started = self._started[rows]
        started = np.where(self._unstarted[rows], np.minimum(started, now), started)
        latest: NDArray[np.int32] = rows[started == started.max()]
        return latest

    def candidate(self, row: int) -> VictimNode:
        return self._candidates[row]

    def refusal(self, row: int) -> int:
        """The code of the verdict on a row where no eviction helps."""
        return int(self._refusal[row])

    def refusals(self, rows: NDArray[np.int32]) -> Iterable[tuple[int, int]]:
        """The codes of the verdicts on rows where no eviction helps, and how often each occurs."""
        return [(code, int(n)) for code, n in enumerate(np.bincount(self._refusal[rows])) if n]


class VictimSearch:
    """The result of a search: the rows that were walked, and which of them are candidates."""

    def __init__(
        self, victim_cache: VictimCache, rows: NDArray[np.int32], states: NDArray[np.int8], wanted: int
    ) -> None:
        self._cache = victim_cache
        self._rows = rows
        self._states = states
        self.found: NDArray[np.int32] = np.concatenate(
            (rows[states == PEACEFUL][:wanted], rows[states == VIOLATING][:wanted])
        )
        """The candidates, those that violate no budget first."""

    def candidates(self) -> Sequence[VictimNode]:
        return Candidates(self._cache, self.found)

    def best(self, now: float) -> Sequence[VictimNode]:
        return Candidates(self._cache, self._cache.best(self.found, now))

    def in_vain(self, codes: VerdictCodes) -> list[tuple[Verdict, int]]:
        """Why evictions do not help, and on how many rows."""
        refused = self._rows[self._states == IN_VAIN]
        return [(codes.verdict(code), count) for code, count in self._cache.refusals(refused)]

    def errors(self, codes: VerdictCodes, table: NodeTable) -> Iterator[str]:
        """What went wrong on the rows: a plugin failed in the trial, or the row refused the pod and yet would take it
        without evictions."""
        for row, state in zip(self._rows.tolist(), self._states.tolist(), strict=True):
            if state == NOBODY:
                yield f'expected at least one victim pod on node "{table.name(row)}"'
            elif state == IN_VAIN and codes.errors and (verdict := codes.verdict(self._cache.refusal(row))).error:
                yield ", ".join(verdict.reasons)


class Candidates(Sequence[VictimNode]):
    """The candidates of some rows, looked up on access: of five hundred equally good ones a single one is used."""

    def __init__(self, victim_cache: VictimCache, rows: NDArray[np.int32]) -> None:
        self._cache = victim_cache
        self._rows = rows

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, at: int) -> VictimNode: ...
    @overload
    def __getitem__(self, at: slice) -> Sequence[VictimNode]: ...
    def __getitem__(self, at: int | slice) -> VictimNode | Sequence[VictimNode]:
        if isinstance(at, slice):
            return Candidates(self._cache, self._rows[at])
        return self._cache.candidate(int(self._rows[at]))


def search_victims(
    cycle: Cycle, refusals: Refusals, rows: NDArray[np.int32], wanted: int, may_go: MayGo | None = None
) -> VictimSearch:
    """Try rows in the order given until enough candidates are found. Pods that `may_go` refuses are no victims; it
    depends on the pod alone."""
    budgets, sums, codes = budgets_of(cycle.cluster), sums_alone(cycle), refusals.evaluator.codes
    filters = [plugin for plugin in cycle.profile.at("filter") if plugin.name not in cycle.no_filter]
    lasting = all(plugin.scope is not Scope.CLUSTER for plugin in filters)
    table, now = cycle.cluster.table, cycle.now
    assert cycle.results is not None
    cycle.results.catch_up(cycle)
    promises = () if refusals.promises is None else (refusals.promises,)
    logs = (table.static, table.counted, table.seen, *promises)
    victim_cache = VictimCache(table.capacity)
    if lasting:
        victim_cache = _remembered(cycle, refusals, filters, may_go)
        victim_cache.follow(logs)
        victim_cache.follow_budgets(cycle.cluster.object_index.of(kinds.POD_DISRUPTION_BUDGET).version, budgets)
        victim_cache.forget(_not_to_be_kept(cycle, refusals))

    def ask(row: int) -> None:
        answer = select_victims(cycle, refusals, row, budgets, sums, may_go)
        pods = table.pods[row]
        guarded = any(budget.covers(pod.namespace, pod.labels) for budget in budgets for pod in pods)
        lasts = not any(pod.start_time is not None and pod.start_time > now for pod in pods)
        victim_cache.note(row, answer, codes, guarded=guarded, lasts=lasts)

    found = victim_cache.search(rows, wanted, ask, at_once=_AT_ONCE if lasting else 1)
    if lasting:
        victim_cache.forget(_not_to_be_kept(cycle, refusals))
        victim_cache.overlook(logs)
    return found


def _remembered(cycle: Cycle, refusals: Refusals, filters: Sequence[Plugin], may_go: MayGo | None) -> VictimCache:
    """The VictimCache of the pod's signature; another one if changes of nominations are not logged, and one for those
    who ask which pods may go."""
    assert cycle.results is not None
    capacity = cycle.cluster.table.capacity
    question = "victims" if refusals.promises is not None else "victims while many are in flight"
    question += "" if may_go is None else " that may go"
    premises = (capacity, may_go, tuple([epoch_of(plugin, cycle) for plugin in filters]))
    return cycle.results.what_if(question, -1, premises, lambda: VictimCache(capacity))


def _not_to_be_kept(cycle: Cycle, refusals: Refusals) -> Iterable[int]:
    """Rows whose answers are not valid for other pods or later: the row that this pod is nominated to and, if changes
    of nominations are not logged, all rows with nominated pods."""
    if refusals.promises is None:
        return refusals.nominated
    name = cycle.pod.nominated_node
    own = cycle.cluster.table.row_of.get(name) if name else None
    return () if own is None else (own,)


def _end(states: NDArray[np.int8], wanted: int) -> int:
    """How many rows a walk looks at, judging by the rows that have been tried."""
    peaceful = states == PEACEFUL
    first = int(peaceful.argmax()) if len(states) else 0
    if not len(states) or not peaceful[first]:
        return len(states)
    hits = np.flatnonzero(states >= PEACEFUL)
    return max(first, int(hits[wanted - 1])) + 1 if len(hits) >= wanted else len(states)
