"""The victims on one node: the pods to evict so that a pod fits there, found in a trial.

All pods of lower priority are evicted in the trial; if the pod fits then, they are given back one by one, the most
important first and those whose budget would be violated before the others. A pod beside which the preemptor does not
fit any more is a victim. The order among equals is kube-scheduler's, because it decides which pods are victims.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.framework.refusals import expected_on, judge_twice, trial_statement
from fairlead.core.framework.sums import Sums, room_on, sums_among
from fairlead.core.framework.verdicts import FEASIBLE
from fairlead.core.model import kinds
from fairlead.core.model.reasons import Verdict
from fairlead.core.model.records import record
from fairlead.errors import FairleadError
from fairlead.kube.gosort import INSERTION_SORT_UP_TO, go_sort

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.budgets import DisruptionBudget
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

NO_VICTIMS = "No preemption victims found for incoming pod"
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NEVER_PREEMPTS = "not eligible due to preemptionPolicy=Never."


@record(frozen=True, slots=True)
class VictimNode:
    """A candidate: a row, its victims with the most important first, and how many of them violate a budget."""

    row: int
    victims: tuple[Pod, ...]
    violations: int


def budgets_of(cluster: Cluster) -> tuple[DisruptionBudget, ...]:
    return tuple(cluster.object_index.of(kinds.POD_DISRUPTION_BUDGET).values())


def select_victims(
    cycle: Cycle,
    refusals: Refusals,
    row: int,
    budgets: Sequence[DisruptionBudget],
    sums: Sums | None = None,
    may_go: Callable[[Pod], bool] | None = None,
) -> VictimNode | Verdict:
    """The victims on a row, or why evictions do not help there. With `sums`, by arithmetic instead of a trial. A pod
    that `may_go` refuses is none."""
    preemptor = cycle.pod
    potential = [pod for pod in cycle.cluster.table.pods[row] if pod.priority < preemptor.priority]
    if may_go is not None:
        potential = [pod for pod in potential if may_go(pod)]
    if not potential:
        return Verdict("DefaultPreemption", (NO_VICTIMS,), final=True)
    expected = expected_on(refusals.nominated, preemptor, row)
    if sums is not None and _passes_by_itself(cycle, row):
        return _victims_by_sums(cycle, sums, row, potential, expected=expected, budgets=budgets)
    return _victims_by_trial(cycle, refusals.evaluator, row, potential, expected=expected, budgets=budgets)


def select_among(
    cycle: Cycle,
    refusals: Refusals,
    row: int,
    potential: list[Pod],
    budgets: Sequence[DisruptionBudget],
    may_stay: Callable[[Pod], bool],
) -> VictimNode | Verdict:
    """The victims on a row among some pods, of which each that is given back must also be let stay by `may_stay`."""
    expected = expected_on(refusals.nominated, cycle.pod, row)
    return _victims_by_trial(
        cycle, refusals.evaluator, row, potential, expected=expected, budgets=budgets, may_stay=may_stay
    )


def _victims_by_trial(
    cycle: Cycle,
    evaluator: Evaluator,
    row: int,
    potential: list[Pod],
    *,
    expected: Sequence[Pod],
    budgets: Sequence[DisruptionBudget],
    may_stay: Callable[[Pod], bool] | None = None,
) -> VictimNode | Verdict:
    """Evict all potential victims in a trial, then give back those beside which the pod still fits. A failure of a
    plugin is a verdict on this row alone; a failure while a pod is given back makes it a victim, as in the original."""
    trial = cycle.copy()
    statement = trial_statement(trial)
    try:
        for pod in potential:
            statement.evict(pod, row)
        code = judge_twice(trial, evaluator, row, expected)
        if code != FEASIBLE:
            return evaluator.codes.verdict(code)
        limits = sums_among(cycle)
        room = None if limits is None else _left_beside(cycle, limits, row, expected)

        def comes_back(pod: Pod) -> bool:
            if room is not None and not room.holds(pod):
                return False
            statement.assign(pod, row)
            if not _fits(trial, evaluator, row, expected) or (may_stay is not None and not may_stay(pod)):
                statement.evict(pod, row)
                return False
            if room is not None:
                room.take(pod)
            return True

        return _reprieved(cycle, row, potential, budgets, comes_back)
    except FairleadError as error:
        return Verdict("", (str(error),), final=True, error=True)
    finally:
        statement.rollback()


def _fits(trial: Cycle, evaluator: Evaluator, row: int, expected: Sequence[Pod]) -> bool:
    try:
        return judge_twice(trial, evaluator, row, expected) == FEASIBLE
    except FairleadError:
        return False


def _passes_by_itself(cycle: Cycle, row: int) -> bool:
    """Whether the filters that depend on the Node object alone pass the row, so that only the pods on it matter."""
    results = cycle.results
    assert results is not None
    return bool(results.static.codes[row] == FEASIBLE)


def _victims_by_sums(
    cycle: Cycle,
    sums: Sums,
    row: int,
    potential: list[Pod],
    *,
    expected: Sequence[Pod],
    budgets: Sequence[DisruptionBudget],
) -> VictimNode | Verdict:
    """The same steps as in a trial, by arithmetic. Nominated pods only reduce what is free, so a pod that fits with
    them also fits without them."""
    allocatable, free, slots = room_on(cycle.cluster.table, row, sums.asked)
    _give(free, potential, 1)
    _give(free, expected, -1)
    slots += len(potential) - len(expected)
    refusal = sums.shortage(allocatable, free, slots)
    if refusal is not None:
        return refusal
    room = _Room({resource: free[resource] - amount for resource, amount in sums.asked.items()}, slots - 1)

    def comes_back(pod: Pod) -> bool:
        if not room.holds(pod):
            return False
        room.take(pod)
        return True

    return _reprieved(cycle, row, potential, budgets, comes_back)


@dataclass(slots=True)
class _Room:
    """What a node has free beside the preemptor."""

    spare: dict[str, int]
    slots: int

    def holds(self, pod: Pod) -> bool:
        request = pod.shape.request
        return self.slots > 0 and all(request.get(resource, 0) <= left for resource, left in self.spare.items())

    def take(self, pod: Pod) -> None:
        self.slots -= 1
        _give(self.spare, (pod,), -1)


def _left_beside(cycle: Cycle, sums: Sums, row: int, expected: Sequence[Pod]) -> _Room:
    """What a row has free beside the preemptor and the pods nominated to it, as the table is in the trial."""
    _, spare, slots = room_on(cycle.cluster.table, row, sums.asked)
    _give(spare, expected, -1)
    return _Room(
        {resource: spare[resource] - amount for resource, amount in sums.asked.items()}, slots - len(expected) - 1
    )


def _give(amounts: dict[str, int], pods: Iterable[Pod], sign: int) -> None:
    """Add the requests of some pods to amounts (`sign` 1), or subtract them (-1)."""
    for pod in pods:
        request = pod.shape.request
        for resource in amounts:
            amounts[resource] += sign * request.get(resource, 0)


def _reprieved(
    cycle: Cycle,
    row: int,
    potential: Sequence[Pod],
    budgets: Sequence[DisruptionBudget],
    comes_back: Callable[[Pod], bool],
) -> VictimNode:
    """Try to give back each potential victim in turn (`comes_back`); those that cannot be are the victims."""
    violating, others = split_by_budget(by_importance(potential, cycle.now), budgets)
    victims = [pod for pod in violating if not comes_back(pod)]
    violations = len(victims)
    victims += [pod for pod in others if not comes_back(pod)]
    if violating and others:
        victims = by_importance(victims, cycle.now)
    return VictimNode(row, tuple(victims), violations)


def by_importance(pods: Sequence[Pod], now: float) -> list[Pod]:
    """Pods by importance: higher priority first, then the earlier start. A pod that has not started counts as starting
    now; of two such, the original takes the one it compares first for the older, which is no proper order. Up to 12
    pods Go uses insertion sort, which a key reproduces (such pods come out in reverse); beyond, its quicksort is
    emulated."""
    if len(pods) > INSERTION_SORT_UP_TO:
        return go_sort(list(pods), lambda one, other: more_important(one, other, now))
    last = len(pods)
    keyed = [
        (-pod.shape.priority, now, 1, last - at, pod)
        if pod.start_time is None
        else (-pod.shape.priority, pod.start_time, 0, at, pod)
        for at, pod in enumerate(pods)
    ]
    keyed.sort()
    return [pod for *_, pod in keyed]


def more_important(one: Pod, other: Pod, now: float) -> bool:
    """The original's comparison of two pods (MoreImportantPod)."""
    if one.priority != other.priority:
        return one.priority > other.priority
    if one.start_time is None:
        return other.start_time is None or now < other.start_time
    return one.start_time <= now if other.start_time is None else one.start_time < other.start_time


def split_by_budget(pods: Sequence[Pod], budgets: Sequence[DisruptionBudget]) -> tuple[list[Pod], list[Pod]]:
    """Pods whose eviction would violate a budget, and the others, each in the order given."""
    if not budgets:
        return [], list(pods)
    left = [budget.disruptions_allowed for budget in budgets]
    violating: list[Pod] = []
    others: list[Pod] = []
    for pod in pods:
        violates = False
        for at, budget in enumerate(budgets):
            if budget.covers(pod.namespace, pod.labels) and pod.name not in budget.disrupted_pods:
                left[at] -= 1
                violates |= left[at] < 0
        (violating if violates else others).append(pod)
    return violating, others
