"""DefaultPreemption: when no node fits, nominates the node whose victims are the fewest and least important.

Only nodes whose refusal is not final are tried, and no pod is evicted unless the preemptor fits in the trial. The
evictions are carried out by core/engine/cycle/evictions.py; while they run, the preemptor is gated.

One rule is ours: a pod that has evicted pods of the same owner from the same node three times and is still not there
stops preempting and says so.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.extender import Victims, note_answers
from fairlead.core.framework.plugin import Hint, Interest, Plugin, PostFilterResult
from fairlead.core.model.events import POD, ActionType, ClusterEvent
from fairlead.core.model.reasons import SUCCESS, Status, failed, fit_message, unresolvable, unschedulable
from fairlead.core.state.gangs import gang_key
from fairlead.core.state.preemptions import preemptions_of
from fairlead.errors import ExtenderError
from fairlead.kube.preemption.gang_victims import pod_group_post_filter
from fairlead.kube.preemption.victim_cache import MayGo, VictimSearch, search_victims
from fairlead.kube.preemption.victims import NEVER_PREEMPTS, NOT_HELPFUL, VictimNode

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.gang import GangCase, PodGroupPostFilterResult
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster

_OFFSET = 1 << 31
"""Added to each priority before summing, as in the original, because priorities may be negative."""
_PATIENCE = 3
"""So often a pod may evict pods of one owner from one node without getting there."""
_REMEMBERED = 10_000
"""Counts of such evictions that are kept; beyond that all are dropped."""


_STILL_THERE = "not eligible due to a terminating pod on the nominated node."


class DefaultPreemption(Plugin):
    name = "DefaultPreemption"
    _may_go: MayGo | None = None
    """Which pods of lower priority may be evicted; None is all."""

    def __init__(self, *, min_candidates_percentage: int = 10, min_candidates_absolute: int = 100) -> None:
        self._percentage = min_candidates_percentage
        self._absolute = min_candidates_absolute
        self.attempts = 0

    def events(self) -> Sequence[Interest]:
        """Deletions of pods, which by themselves wake no pod (the hint skips): being registered for them makes the
        queue ask the gate of pods whose victims are leaving again."""
        return (Interest(ClusterEvent(POD, ActionType.DELETE), lambda pod, old, new: Hint.SKIP),)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        """Gate a pod while its victims are being evicted, until the last of them is terminating or gone."""
        preemptions = preemptions_of(cluster)
        if not preemptions.any_under_way:
            return None
        key, title = (pod.uid, "pod") if preemptions.is_under_way(pod.uid) else (gang_key(pod), "pod group")
        if not preemptions.gates(key):
            return None
        return unresolvable(f"waiting for the preemption for this {title} to be finished")

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        self.attempts += 1
        if not self._has_object(cycle.pod):
            return PostFilterResult(failed(f'preemption: pod "{cycle.pod.name}" not found'))
        ineligible = self._ineligible(cycle, refusals)
        if ineligible:
            return PostFilterResult(unschedulable(f"preemption: {ineligible}"))
        search = self._dry_run(cycle, refusals)
        if not len(search.found):
            return self._no_candidates(cycle, refusals, search)
        try:
            best = self._best(cycle, search)
        except ExtenderError as error:
            return PostFilterResult(unschedulable(f"preemption: {error}"))
        if not best:
            return PostFilterResult(unschedulable("preemption: no candidate node for preemption"), nominated="")
        chosen = best[cycle.rng.randrange(len(best)) if len(best) > 1 else 0]
        tired = self._loops(cycle, chosen)
        if tired:
            return PostFilterResult(unschedulable(f"preemption: {tired}"), nominated="")
        name = cycle.cluster.table.name
        return PostFilterResult(
            SUCCESS, name(chosen.row), chosen.victims, lambda: [(name(option.row), option.victims) for option in best]
        )

    def pod_group_post_filter(self, case: GangCase) -> PodGroupPostFilterResult:
        self.attempts += 1
        return pod_group_post_filter(case)

    # ---- eligibility ----

    def _has_object(self, pod: Pod) -> bool:
        """Whether the API has the pod. kube-scheduler looks it up before it evicts, and evicts nobody if it is not
        there."""
        return pod.reported_as is None

    def _ineligible(self, cycle: Cycle, refusals: Refusals) -> str:
        pod = cycle.pod
        rules = cycle.profile.gangs if pod.group_ref is not None else None
        if rules is not None:
            gang = cycle.cluster.gangs.of(pod)
            if gang is None or gang.group is None:
                return "pod group for pod not found"
            if gang.group.stays_together and not (rules.rescues_whole and gang.group.may_preempt):
                return "not eligible due to placement-based pod group scheduling limitation"
            if rules.rescues_whole:
                return "not eligible due to workload aware preemption enabled"
        if pod.shape.preemption_policy == "Never":
            return NEVER_PREEMPTS
        row = cycle.cluster.table.row_of.get(pod.nominated_node) if pod.nominated_node else None
        if row is not None and not refusals.is_final(row):
            leaving = any(
                other.priority < pod.priority and other.terminating and other.disruption_target
                for other in cycle.cluster.table.pods[row]
            )
            if leaving:
                return _STILL_THERE
        return _STILL_THERE if self._awaits_victims(cycle, refusals) else ""

    def _awaits_victims(self, cycle: Cycle, refusals: Refusals) -> bool:
        """Whether victims, this pod's or another's, are still on the node where room was made for this pod. Neither the
        pod nor they need show that yet, or ever: a patch may be late or lost."""
        table, preemptions = cycle.cluster.table, preemptions_of(cycle.cluster)
        node = cycle.pod.nominated_node or preemptions.node_of(cycle.pod.uid)
        row = table.row_of.get(node) if node else None
        if row is None or refusals.is_final(row):
            return False
        leaving = preemptions.victims_on(node)
        return any(other.uid in leaving for other in table.pods[row])

    # ---- candidates ----

    def _dry_run(self, cycle: Cycle, refusals: Refusals) -> VictimSearch:
        """Try nodes, starting at a random one, until enough candidates are found."""
        order = cycle.cluster.table.order()
        rows = order[refusals.where_room_could_help()[order]]
        offset = cycle.rng.randrange(len(rows)) if len(rows) else 0
        wanted = min(len(rows), max(len(rows) * self._percentage // 100, self._absolute))
        rows = np.concatenate((rows[offset:], rows[:offset]))
        return search_victims(cycle, refusals, rows, wanted, self._may_go)

    def _no_candidates(self, cycle: Cycle, refusals: Refusals, search: VictimSearch) -> PostFilterResult:
        table = cycle.cluster.table
        total = rest = len(table)
        errors = dict.fromkeys(search.errors(refusals.evaluator.codes, table))
        if errors:
            text = ", ".join(errors)
            return PostFilterResult(failed(f"preemption: {text if len(errors) == 1 else f'[{text}]'}"))
        histogram: Counter[str] = Counter()
        for verdict, count in search.in_vain(refusals.evaluator.codes):
            rest -= count
            for reason in verdict.reasons:
                histogram[reason] += count
        if rest:
            histogram[NOT_HELPFUL] += rest
        return PostFilterResult(unschedulable(f"preemption: {fit_message(total, histogram)}"), nominated="")

    def _best(self, cycle: Cycle, search: VictimSearch) -> Sequence[VictimNode]:
        """The best candidates, after extenders with a preempt verb have filtered them."""
        if not any(extender.preempts for extender in cycle.profile.extenders):
            return search.best(cycle.now)
        return best_candidates(self._ask_extenders(cycle, search.candidates()), cycle.now)

    def _ask_extenders(self, cycle: Cycle, candidates: Sequence[VictimNode]) -> Sequence[VictimNode]:
        table = cycle.cluster.table
        for extender in cycle.profile.extenders:
            if not candidates or not extender.preempts or not extender.interested(cycle.pod):
                continue
            offered = {table.name(c.row): Victims(c.victims, c.violations) for c in candidates}
            try:
                kept = extender.preempt(cycle, offered)
            except ExtenderError:
                if extender.ignorable:
                    continue
                raise
            candidates = [VictimNode(table.row_of[name], v.pods, v.violations) for name, v in kept.items()]
            said = {name: (tuple(pod.uid for pod in v.pods), v.violations) for name, v in kept.items()}
            note_answers(cycle, extender).victims = said
        return candidates

    # ---- the guard ----

    def _loops(self, cycle: Cycle, chosen: VictimNode) -> str:
        node = cycle.cluster.table.name(chosen.row)
        owners = {victim.owner.uid if victim.owner else victim.key for victim in chosen.victims}
        keys = [(cycle.pod.uid, node, owner) for owner in owners]
        evicted = cycle.cluster.index(OwnersEvicted, OwnersEvicted)
        if evicted.most(keys) >= _PATIENCE:
            return f"stopped after evicting pods of the same owner from {node} {_PATIENCE} times in vain"
        evicted.count(keys)
        return ""


class OwnersEvicted:
    """How often a pod (by uid) had pods of an owner evicted from a node. All plugins of a cluster count together."""

    def __init__(self, cluster: Cluster) -> None:
        self._counts: Counter[tuple[str, str, str]] = Counter()

    def most(self, keys: Iterable[tuple[str, str, str]]) -> int:
        return max((self._counts[key] for key in keys), default=0)

    def count(self, keys: Iterable[tuple[str, str, str]]) -> None:
        self._counts.update(keys)
        if len(self._counts) > _REMEMBERED:
            self._counts.clear()


def best_candidates(candidates: Sequence[VictimNode], now: float) -> list[VictimNode]:
    """The candidates that are left when each rule in turn keeps the best: fewest violated budgets, lowest priority of
    the first victim, lowest sum of priorities, fewest victims, latest start among the most important victims."""
    rules: tuple[Callable[[VictimNode], float], ...] = (
        lambda c: c.violations,
        lambda c: c.victims[0].priority,
        lambda c: sum(victim.priority + _OFFSET for victim in c.victims),
        lambda c: len(c.victims),
        lambda c: -earliest_start(c.victims, now),
    )
    left = [candidate for candidate in candidates if candidate.victims]
    for rule in rules:
        if len(left) < 2:
            break
        values = [rule(candidate) for candidate in left]
        least = min(values)
        left = [candidate for candidate, value in zip(left, values, strict=True) if value == least]
    return left


def earliest_start(victims: Sequence[Pod], now: float) -> float:
    """The earliest start among the most important victims; a pod that has not started counts as starting now."""
    highest = max(victim.priority for victim in victims)
    return min(
        victim.start_time if victim.start_time is not None else now for victim in victims if victim.priority == highest
    )
