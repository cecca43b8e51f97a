"""The victims of a whole gang: place it with all pods of lower priority evicted, then give back those not in the way.

The gang stays where it was placed in that trial while the others are given back one by one, the most important first
and those whose budget would be violated before the others. A group that may only be disrupted as a whole is evicted and
given back as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.gang import Considered, PodGroupPostFilterResult, Unit
from fairlead.core.model import kinds
from fairlead.core.model.pod import NATIVE_GROUP_API
from fairlead.core.model.reasons import SUCCESS, Status, unresolvable, unschedulable
from fairlead.core.state.statement import Statement
from fairlead.kube.preemption.victims import NEVER_PREEMPTS, budgets_of, split_by_budget

if TYPE_CHECKING:
    from fairlead.core.framework.gang import GangCase, TrialFollower
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.gangs import Gang

NO_VICTIMS = "No preemption victims found for incoming preemptor"
_NAMED = 100


def pod_group_post_filter(case: GangCase) -> PodGroupPostFilterResult:
    """The victims of a gang, or why evictions do not help."""
    if any(pod.shape.preemption_policy == "Never" for pod in case.pods):
        return PodGroupPostFilterResult(unschedulable(NEVER_PREEMPTS))
    priority = gang_priority(case.gang, case.pods, case.cluster)
    units = _units(case.cluster, case.gang)
    potential = [unit for unit in units if unit.priority < priority]
    protected = _protected(units, priority)
    if not potential:
        return PodGroupPostFilterResult(unresolvable(NO_VICTIMS), considered=protected)
    followers = [follower for plugin in case.profile.plugins() if (follower := plugin.gang_trial(case)) is not None]
    statement = _followed(case.cluster, followers)
    try:
        return _select(case, potential, protected, statement)
    finally:
        statement.rollback()
        for follower in reversed(followers):
            follower.end()


def _followed(cluster: Cluster, followers: Sequence[TrialFollower]) -> Statement:
    """A Statement that notifies its followers of each step of the trial."""
    if not followers:
        return Statement(cluster)

    def added(pod: Pod, row: int) -> None:
        for follower in followers:
            follower.added(pod, row)

    def removed(pod: Pod, row: int) -> None:
        for follower in followers:
            follower.removed(pod, row)

    return Statement(cluster, added=added, removed=removed)


def _select(
    case: GangCase, potential: list[Unit], protected: tuple[Considered, ...], statement: Statement
) -> PodGroupPostFilterResult:
    for unit in potential:
        _take_away(unit, statement)
    where = case.fits()
    if isinstance(where, Status):
        in_vain = tuple(_considered(unit, "its eviction would not make enough room") for unit in potential[:_NAMED])
        return PodGroupPostFilterResult(where, considered=in_vain + protected)
    for pod, row in where:
        statement.assign(pod, row)
    ordered = by_importance(potential, case.now)
    violating, others = _split(ordered, case.cluster)
    victims: list[Unit] = []
    said: list[Considered] = []
    for unit, in_budget in [*((unit, False) for unit in violating), *((unit, True) for unit in others)]:
        if _comes_back(case, unit, where, statement):
            said.append(_considered(unit, "the gang fits without its eviction"))
        else:
            victims.append(unit)
            said.append(_considered(unit, "evicted" if in_budget else "evicted although it violates a budget"))
    pods = [pod for unit in ordered if unit in victims for pod, _ in unit.pods]
    return PodGroupPostFilterResult(SUCCESS, tuple(pods), tuple(where), tuple(said[:_NAMED]) + protected)


def _comes_back(case: GangCase, unit: Unit, where: Sequence[tuple[Pod, int]], statement: Statement) -> bool:
    """Give a unit back if the members of the gang still fit on their rows beside it; returns whether they do."""
    rows = {row for _, row in unit.pods}
    claims = any(pod.shape.claims for pod, _ in unit.pods)  # their devices may be of use on any row
    neighbours = [
        (pod, row) for pod, row in where if row in rows or _looks_further(pod) or (claims and pod.shape.claims)
    ]
    before = statement.checkpoint()
    for pod, row in neighbours:
        statement.evict(pod, row)
    for pod, row in unit.pods:
        statement.assign(pod, row)
    if case.still_fits(neighbours, statement):
        return True
    statement.rollback(before)
    return False


def _looks_further(pod: Pod) -> bool:
    """Whether pods on other nodes matter to a pod: it has pod affinity or spread constraints."""
    shape = pod.shape
    return bool(shape.pod_affinity or shape.pod_anti_affinity or shape.spread)


def _take_away(unit: Unit, statement: Statement) -> None:
    for pod, row in unit.pods:
        statement.evict(pod, row)


def gang_priority(gang: Gang, pods: Sequence[Pod], cluster: Cluster) -> int:
    """A native group's own priority; else that of its class, or its most important member's."""
    group = gang.group
    if group is not None and group.api == NATIVE_GROUP_API:
        return group.priority
    known = cluster.object_index.of(kinds.PRIORITY_CLASS).get(group.priority_class) if group is not None else None
    return known.value if known is not None else max((pod.priority for pod in pods), default=0)


# ---- units ----


def _units(cluster: Cluster, claimant: Gang) -> list[Unit]:
    """All pods on nodes but the gang's own, as the units in which they would be evicted, in the original's order: node
    by node, a group where its first pod is met."""
    table = cluster.table
    found: dict[str, tuple[Gang | None, list[tuple[Pod, int]]]] = {}
    for row in table.order().tolist():
        for pod in table.pods[row]:
            gang = cluster.gangs.of(pod)
            if gang is None or gang.group is None or not gang.group.whole_disruption:
                if gang is not claimant:
                    found[pod.uid] = None, [(pod, row)]
            elif gang is not claimant:
                found.setdefault(gang.key, (gang, []))[1].append((pod, row))
    return [_unit(cluster, gang, tuple(pods)) for gang, pods in found.values()]


def _unit(cluster: Cluster, gang: Gang | None, pods: tuple[tuple[Pod, int], ...]) -> Unit:
    if gang is None:
        return Unit(pods, pods[0][0].priority)
    return Unit(pods, gang_priority(gang, [pod for pod, _ in pods], cluster), f"{gang.namespace}/{gang.name}")


def by_importance(units: Iterable[Unit], now: float) -> list[Unit]:
    """Order units: higher priority first; groups before pods; older pods; larger, then older groups. A pod of a group
    that is evicted alone counts as a group of one. A pod that has not started counts as starting when it is met, and a
    group is as old as its first pod. Other equals have no order in the original; here they keep theirs."""

    def importance(unit: Unit) -> tuple[int, bool, int, float]:
        first = unit.pods[0][0]
        grouped = first.group_ref is not None and first.group_ref.api == NATIVE_GROUP_API
        size = len(unit.pods) if grouped else 0
        return -unit.priority, not grouped, -size, now if first.start_time is None else first.start_time

    return sorted(units, key=importance)


def _split(units: Sequence[Unit], cluster: Cluster) -> tuple[list[Unit], list[Unit]]:
    """Units of which a pod's eviction would violate a budget, and the others."""
    violating, _ = split_by_budget([pod for unit in units for pod, _ in unit.pods], budgets_of(cluster))
    marked = {pod.uid for pod in violating}
    hurt = [unit for unit in units if any(pod.uid in marked for pod, _ in unit.pods)]
    return hurt, [unit for unit in units if unit not in hurt] if hurt else list(units)


# ---- explaining ----


def _protected(units: Sequence[Unit], priority: int) -> tuple[Considered, ...]:
    others = [unit for unit in units if unit.priority >= priority]
    return tuple(_considered(unit, f"its priority is not lower than {priority}") for unit in others[:_NAMED])


def _considered(unit: Unit, rule: str) -> Considered:
    return Considered(unit.group or unit.pods[0][0].key, unit.priority, rule)
