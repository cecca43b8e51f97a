"""Preemption by Reservation (`enablePreemption`): room is made for a reservation, or a pod, that finds none.

The search is DefaultPreemption's. Two things differ: a reserve pod may evict as well, although the API has no pod of
its name, and pods that are marked as not preemptible stay. Reservations themselves are never evicted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import PostFilterResult
from fairlead.core.model.reasons import unschedulable
from fairlead.koordinator.gangs.preemption import DISABLED_LABEL
from fairlead.koordinator.records.reservations import is_reserve_pod
from fairlead.kube.preemption.plugin import DefaultPreemption

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.pod import Pod

_QUOTAS = "ElasticQuota"


def is_preemptible(pod: Pod) -> bool:
    """Whether a pod does not forbid that it is evicted for a reservation."""
    return pod.labels.get(DISABLED_LABEL) != "true" and not is_reserve_pod(pod)


class ReservationPreemption(DefaultPreemption):
    """`ignores_quotas` is a slip of the original: KoordinatorQuirks.preemption_ignores_quotas."""

    name = "Reservation"
    _may_go = staticmethod(is_preemptible)

    def __init__(self, *, percentage: int, absolute: int, ignores_quotas: bool) -> None:
        super().__init__(min_candidates_percentage=percentage, min_candidates_absolute=absolute)
        self._ignores_quotas = ignores_quotas

    def post_filter(self, cycle: Cycle, refusals: Refusals) -> PostFilterResult:
        early = refusals.diagnosis.early
        if early is not None and early.plugin == _QUOTAS and not self._ignores_quotas:
            # No eviction outside of the quota can help a pod that its quota refuses; inside of it, ElasticQuota evicts.
            return PostFilterResult(unschedulable())
        return super().post_filter(cycle, refusals)

    def _has_object(self, pod: Pod) -> bool:
        return True
