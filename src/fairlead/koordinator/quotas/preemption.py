"""Preemption within a quota: a pod takes the place, or the share, of less important pods of its own quota.

Every node that has such pods is tried. They are all evicted in a trial, and given back one by one, the most important
first, as long as the pod fits beside them and its quota has room for both.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import PostFilterResult
from fairlead.core.model.reasons import SUCCESS, fit_message, unschedulable
from fairlead.koordinator.quotas.usage import is_fixed, request_of
from fairlead.koordinator.records.quotas import DEFAULT
from fairlead.kube.preemption.plugin import best_candidates
from fairlead.kube.preemption.victims import NEVER_PREEMPTS, NOT_HELPFUL, VictimNode, budgets_of, select_among

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.quotas.accounts import QuotaAccountState
    from fairlead.koordinator.quotas.usage import QuotaUsage


class QuotaVictims:
    """The search for victims of one pod. `limit` is what its quota may use."""

    def __init__(
        self,
        cycle: Cycle,
        refusals: Refusals,
        usage: QuotaUsage,
        account: QuotaAccountState,
        limit: Mapping[str, int],
        *,
        protects_default: bool,
        names_nodes: bool,
    ) -> None:
        """`names_nodes` is a slip of the original: KoordinatorQuirks.quota_victims_by_node."""
        self._cycle, self._refusals, self._usage = cycle, refusals, usage
        self._account, self._limit = account, limit
        self._protects_default, self._names_nodes = protects_default, names_nodes

    def post_filter(self) -> PostFilterResult:
        ineligible = self._ineligible()
        if ineligible:
            return PostFilterResult(unschedulable(f"preemption: {ineligible}"))
        candidates = self._candidates()
        table = self._cycle.cluster.table
        if not candidates:
            return PostFilterResult(unschedulable(f"preemption: {self._no_victims()}"), nominated="")
        best = best_candidates(candidates, self._cycle.now)
        if not best:
            name = table.name(candidates[0].row)
            return PostFilterResult(unschedulable(f'preemption: expected at least one victim pod on node "{name}"'))
        chosen = best[self._cycle.rng.randrange(len(best)) if len(best) > 1 else 0]
        return PostFilterResult(
            SUCCESS,
            table.name(chosen.row),
            chosen.victims,
            lambda: [(table.name(option.row), option.victims) for option in best],
        )

    def _no_victims(self) -> str:
        table, hopeful = self._cycle.cluster.table, self._refusals.where_room_could_help()
        rows = [row for row, _ in table.alive_rows() if hopeful[row]]
        histogram = {NOT_HELPFUL: len(table) - len(rows)} if len(table) > len(rows) else {}
        whose = f"for preemptor pod {self._cycle.pod.name}"
        if self._names_nodes:
            histogram |= {f"No victims found on node {table.name(row)} {whose}": 1 for row in rows}
        elif rows:
            histogram[f"No victims found {whose}"] = len(rows)
        return fit_message(len(table), histogram)

    def _ineligible(self) -> str:
        pod, table = self._cycle.pod, self._cycle.cluster.table
        if pod.shape.preemption_policy == "Never":
            return NEVER_PREEMPTS
        row = table.row_of.get(pod.nominated_node) if pod.nominated_node else None
        if row is None or self._refusals.is_final(row):
            return ""
        own = self._usage.quota_of(pod)
        for other in table.pods[row]:
            if other.terminating and other.priority < pod.priority and self._usage.quota_of(other) == own:
                return "not eligible due to a terminating pod on the nominated node."
        return ""

    def _candidates(self) -> list[VictimNode]:
        cycle = self._cycle
        if self._protects_default and self._account.name == DEFAULT:
            return []
        hopeful = self._refusals.where_room_could_help()
        by_row: dict[int, list[Pod]] = {}
        for pod, row in self._usage.placed_in(self._usage.quota_of(cycle.pod)):
            if hopeful[row] and pod.priority < cycle.pod.priority and not is_fixed(pod):
                by_row.setdefault(row, []).append(pod)
        order = {int(row): at for at, row in enumerate(cycle.cluster.table.order())}
        found = []
        budgets = budgets_of(cycle.cluster)
        for row in sorted(by_row, key=lambda row: order.get(row, row)):
            listed = {pod.uid for pod in by_row[row]}
            potential = [pod for pod in cycle.cluster.table.pods[row] if pod.uid in listed]
            share = _Share(self._account, self._limit, cycle.pod, potential)
            answer = select_among(cycle, self._refusals, row, potential, budgets, share.comes_back)
            if isinstance(answer, VictimNode):
                found.append(answer)
        return found


class _Share:
    """What a quota would use while victims are given back."""

    def __init__(
        self, account: QuotaAccountState, limit: Mapping[str, int], preemptor: Pod, gone: Sequence[Pod]
    ) -> None:
        asked = request_of(preemptor)
        self._used = {name: account.used.get(name, 0) + asked[name] for name in asked if name in limit}
        self._limit = limit
        for pod in gone:
            self._add(pod, -1)

    def _add(self, pod: Pod, sign: int) -> None:
        for name, amount in request_of(pod).items():
            if name in self._used:
                self._used[name] += sign * amount

    def comes_back(self, pod: Pod) -> bool:
        """Whether the quota has room for a pod beside the preemptor; it is counted if so."""
        self._add(pod, 1)
        if all(amount <= self._limit[name] for name, amount in self._used.items()):
            return True
        self._add(pod, -1)
        return False
