"""GangScheduling: members of a gang are gated until enough of them exist, and bind only when enough have places.

Groups of three APIs are treated alike (core/model/group.py). A group without a minimum ("basic") has no rule here. The
texts are kube-scheduler's. An attempt at a gang (core/engine/gangs/assembly.py) asks `permit` for every member that it
has assigned to a row; the gang is whole when a member need not wait.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.gang import GangRules
from fairlead.core.framework.plugin import Hint, Interest, Plugin, Wait
from fairlead.core.model.events import POD, POD_GROUP, ActionType, ClusterEvent
from fairlead.core.model.group import GroupPolicy, PodGroup
from fairlead.core.model.pod import Pod
from fairlead.core.model.reasons import Status, failed, unresolvable

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.state.cluster import Cluster

MISSING_GROUP = 'waiting for pods\'s pod group "{}" to appear in scheduling queue'
TOO_FEW = "waiting for minCount pods from a gang to appear in scheduling queue"
NOT_YET = "waiting for minCount pods from a gang to be scheduled"
TIMEOUT = 300.0


class GangScheduling(Plugin):
    name = "GangScheduling"

    def __init__(self, *, timeout: float = TIMEOUT, evicts: bool = False, rescues_whole: bool = True) -> None:
        self.gang_rules = GangRules(self.name, timeout, evicts, rescues_whole)

    def events(self) -> Sequence[Interest]:
        pods = ClusterEvent(POD, ActionType.ADD | ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
        groups = ClusterEvent(POD_GROUP, ActionType.ADD | ActionType.UPDATE)
        return Interest(pods, _after_member_came), Interest(groups, _after_group_change)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:
        if pod.group_ref is None:
            return None
        gang = cluster.gangs.of(pod)
        if gang is None or gang.group is None:
            return unresolvable(MISSING_GROUP.format(pod.group_ref.name))
        if gang.group.unknown:
            return unresolvable(gang.group.unknown)
        if gang.group.policy is GroupPolicy.GANG and len(gang) < gang.minimum:
            return unresolvable(TOO_FEW)
        return None

    def permit(self, cycle: Cycle, row: int) -> Status | Wait | None:
        pod = cycle.pod
        if pod.group_ref is None:
            return None
        gang = cycle.cluster.gangs.of(pod)
        if gang is None or gang.group is None:
            return failed(f"failed to get podGroup {pod.namespace}/{pod.group_ref.name}: not found")
        if gang.group.policy is GroupPolicy.GANG and not gang.is_whole:
            return Wait(gang.group.timeout or self.gang_rules.timeout if self.gang_rules else TIMEOUT, NOT_YET)
        return None


def _after_member_came(pod: Pod, old: object, new: object) -> Hint:
    same = isinstance(new, Pod) and new.namespace == pod.namespace and new.group_ref == pod.group_ref
    return Hint.QUEUE if same and pod.group_ref is not None else Hint.SKIP


def _after_group_change(pod: Pod, old: object, new: object) -> Hint:
    ref = pod.group_ref
    if ref is None or not isinstance(new, PodGroup):
        return Hint.SKIP
    return Hint.QUEUE if (new.api, new.namespace, new.name) == (ref.api, pod.namespace, ref.name) else Hint.SKIP
