"""Preemption by jobs: room for all pending pods of a gang group is made at once, or none.

All pods of lower priority that may be evicted leave their nodes in a trial. The job's pods are then placed one after
the other, each on the node whose victims are cheapest; a node costs as much as the ranks of its victims' priorities,
where victims of one job count once. On nodes that got pods of the job, victims come back, the most important first, as
long as the pods still fit beside them; on the others all come back. Every pod is judged as the one that triggered it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.framework.refusals import expected_on, judge_twice, trial_statement
from fairlead.core.framework.verdicts import FEASIBLE
from fairlead.core.model.reasons import fit_message
from fairlead.koordinator.records.quotas import PREEMPTIBLE_LABEL
from fairlead.koordinator.records.reservations import is_reserve_pod
from fairlead.kube.preemption.victims import NEVER_PREEMPTS, NOT_HELPFUL

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.statement import Statement

DISABLED_LABEL = "scheduling.koordinator.sh/disable-preemptible"
JOB_LABEL = "scheduling.koordinator.sh/questioned-object-key"
STILL_THERE = "not eligible due to terminating pod on the nominated node."
_NO_VICTIMS = "no potential victims"


@dataclass(frozen=True, slots=True)
class JobRoom:
    """The nodes of a job's pods by uid, and the pods that must go."""

    nodes: Mapping[str, str]
    victims: tuple[Pod, ...]


def is_evictable(pod: Pod, preemptor: Pod) -> bool:
    """Whether a pod may be evicted for another."""
    return (
        pod.priority < preemptor.priority
        and pod.labels.get(DISABLED_LABEL) != "true"
        and pod.labels.get(PREEMPTIBLE_LABEL) != "false"
        and not is_reserve_pod(pod)
    )


class JobVictims:
    """The search for the victims of a job. `pods` are its pending pods, the one that is being tried first."""

    def __init__(self, cycle: Cycle, refusals: Refusals, pods: Sequence[Pod], *, each_alone: bool) -> None:
        """`each_alone` is a slip of the original: KoordinatorQuirks.gang_preempts_for_each_alone."""
        self._cycle, self._refusals, self._pods = cycle, refusals, pods
        self._each_alone = each_alone
        self._own = frozenset(pod.uid for pod in pods)
        self._trial = cycle.copy()

    def ineligible(self) -> str:
        """Why the job may not evict anybody now; empty if it may."""
        if self._cycle.pod.shape.preemption_policy == "Never":
            return NEVER_PREEMPTS
        table = self._cycle.cluster.table
        for pod in self._pods:
            row = table.row_of.get(pod.nominated_node) if pod.nominated_node else None
            if row is None or (pod.uid == self._cycle.pod.uid and self._refusals.is_final(row)):
                continue
            if any(
                other.terminating and other.disruption_target and is_evictable(other, pod) for other in table.pods[row]
            ):
                return STILL_THERE
        return ""

    def search(self) -> JobRoom | str:
        """Room for all pods of the job, or why there is none."""
        table = self._cycle.cluster.table
        hopeful = self._refusals.where_room_could_help()
        rows = sorted((row for row, _ in table.alive_rows() if hopeful[row]), key=table.name)
        potential = {row: found for row in rows if (found := self._evictable_on(row))}
        if not potential:
            return self._not_helpful(rows, potential, {})
        statement = trial_statement(self._trial)
        try:
            for row, pods in potential.items():
                for pod in pods:
                    statement.evict(pod, row)
            placed, refused = self._place(statement, rows, _costs(potential, together=self._each_alone))
            if placed is None:
                return self._not_helpful(rows, potential, refused)
            victims = [pod for row, own in placed.items() for pod in self._victims_on(statement, row, own, potential)]
        finally:
            statement.rollback()
        nodes = {pod.uid: table.name(row) for row, own in placed.items() for pod in own}
        return JobRoom(nodes, tuple(sorted(victims, key=_importance)))

    def _evictable_on(self, row: int) -> list[Pod]:
        return [pod for pod in self._cycle.cluster.table.pods[row] if is_evictable(pod, self._cycle.pod)]

    def _place(
        self, statement: Statement, rows: Sequence[int], costs: Mapping[int, int]
    ) -> tuple[dict[int, list[Pod]] | None, dict[int, int]]:
        """The job's pods by row, None if there is no room for some; and the codes of the rows that refused one."""
        placed: dict[int, list[Pod]] = {}
        refused: dict[int, int] = {}
        for pod in self._pods:
            codes = {row: self._judged(row) for row in rows}
            refused.update({row: code for row, code in codes.items() if code != FEASIBLE})
            rows = [row for row in rows if codes[row] == FEASIBLE]
            if not rows:
                return None, refused
            row = min(rows, key=lambda row: costs.get(row, 0))
            placed.setdefault(row, []).append(pod)
            if not self._each_alone:
                statement.assign(pod, row)
        return placed, refused

    def _judged(self, row: int) -> int:
        expected = [
            pod for pod in expected_on(self._refusals.nominated, self._cycle.pod, row) if pod.uid not in self._own
        ]
        return judge_twice(self._trial, self._refusals.evaluator, row, expected)

    def _victims_on(
        self, statement: Statement, row: int, own: Sequence[Pod], potential: Mapping[int, Sequence[Pod]]
    ) -> list[Pod]:
        """The pods of a row that cannot come back beside those of the job."""
        for pod in () if self._each_alone else own:
            statement.evict(pod, row)
        victims = []
        for pod in sorted(potential.get(row, ()), key=_importance):
            before = statement.checkpoint()
            statement.assign(pod, row)
            if not self._all_fit(statement, row, own):
                statement.rollback(before)
                victims.append(pod)
        return victims

    def _all_fit(self, statement: Statement, row: int, own: Sequence[Pod]) -> bool:
        before = statement.checkpoint()
        try:
            for pod in own:
                if self._judged(row) != FEASIBLE:
                    return False
                statement.assign(pod, row)
            return True
        finally:
            statement.rollback(before)

    def _not_helpful(self, rows: Sequence[int], potential: Mapping[int, object], refused: Mapping[int, int]) -> str:
        codes = self._refusals.evaluator.codes
        total = len(self._cycle.cluster.table)
        if not potential and rows:  # nodes where no eviction could help are not spoken of then
            return fit_message(total, {_NO_VICTIMS: len(rows)})
        histogram: dict[str, int] = {NOT_HELPFUL: total - len(rows)} if total > len(rows) else {}
        for row in rows:
            reasons = codes.verdict(refused[row]).reasons if row in refused else (_NO_VICTIMS,)
            for reason in reasons if row in potential else (_NO_VICTIMS,):
                histogram[reason] = histogram.get(reason, 0) + 1
        return fit_message(total, histogram)


def _importance(pod: Pod) -> tuple[int, str, str]:
    """The order in which victims come back."""
    return -pod.priority, pod.labels.get(JOB_LABEL, ""), pod.name


def _costs(potential: Mapping[int, Sequence[Pod]], *, together: bool) -> dict[int, int]:
    """What the victims of each row cost; `together` if those that name no job count as one, by the first of them."""
    ranks = {
        priority: rank for rank, priority in enumerate(sorted({p.priority for ps in potential.values() for p in ps}))
    }
    costs = {}
    for row, pods in potential.items():
        jobs: dict[str, int] = {}
        for pod in pods:
            jobs.setdefault(pod.labels.get(JOB_LABEL) or ("" if together else pod.uid), ranks[pod.priority])
        costs[row] = sum(jobs.values())
    return costs
