"""Failure of an attempt, and the status patches that report it to pods and groups."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.group import SCHEDULED_CONDITIONS
from fairlead.core.model.records import record
from fairlead.core.model.times import timestamp
from fairlead.core.state.object_index import POD_LIKE

if TYPE_CHECKING:
    from fairlead.core.framework.extender import ExtenderAnswers
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.group import PodGroup
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Status


class RoomMade(Enum):
    """What PostFilter came to: whether evictions could make room for a pod that no node could take."""

    NOT_TRIED = "not tried"
    IN_VAIN = "does not help"
    VICTIMS = "makes room"


@record(frozen=True, slots=True)
class Failure:
    """Why a pod goes back to the queue. `nominated` is the node it is nominated to: None leaves an earlier nomination
    as it is, the empty string clears it. A failure without plugins to blame is an error, retried after a backoff."""

    status: Status
    message: str
    unschedulable_plugins: frozenset[str] = frozenset()
    pending_plugins: frozenset[str] = frozenset()
    nominated: str | None = ""
    refusals: Refusals | None = None
    room: RoomMade = RoomMade.NOT_TRIED
    victims: tuple[Pod, ...] = ()
    extended: tuple[ExtenderAnswers, ...] = ()
    announced: str = ""
    """The node to which the pod's status was made to say that it is nominated; the watch may not have shown it yet."""

    @property
    def reason(self) -> str:
        """The reason of the PodScheduled condition."""
        return "Unschedulable" if self.status.code.rejected else "SchedulerError"


def status_patch(
    pod: Pod, *, now: float, reason: str = "", message: str = "", nominated: str | None = None, announced: str = ""
) -> Write | None:
    """The patch of a pod's status with the PodScheduled condition (if there is a reason) and the nominated node; None
    if the status has both already; `announced` is the nominated node that it was sent last. For a pod that stands for
    another object, the patch of that object's status."""
    if pod.reported_as is not None:
        return POD_LIKE[pod.reported_as.kind].refused(pod, now, reason, message) if reason else None
    status: Doc = {}
    if reason and pod.scheduled_condition != ("False", reason, message):
        status["conditions"] = [_condition(pod, now, reason, message)]
    if nominated is not None and nominated != (announced or pod.nominated_node):
        status["nominatedNodeName"] = nominated or None
    if not status:
        return None
    body = {"metadata": {"uid": pod.uid}, "status": status}
    return Write(
        Verb.PATCH, kinds.POD, pod.namespace, pod.name, body, subresource="status", patch_type=PatchType.STRATEGIC
    )


def group_patch(group: PodGroup, refusal: Status | None, *, now: float) -> Write | None:
    """The patch of a group's status with the condition whether it was scheduled; None if it has that already. Once it
    is True, later attempts at further members do not change it."""
    if refusal is None:
        said = ("True", "Scheduled", "")
    elif refusal.code.rejected:
        said = ("False", "Unschedulable", refusal.message)
    else:
        said = ("False", "SchedulerError", refusal.message)
    before = group.scheduled_condition
    if before == said or (before is not None and before[0] == "True" and said[0] != "True"):
        return None
    condition: Doc = {
        "type": SCHEDULED_CONDITIONS[group.version],
        "status": said[0],
        "reason": said[1],
        "message": said[2],
        "observedGeneration": group.generation,
    }
    if before is None or before[0] != said[0]:
        condition["lastTransitionTime"] = timestamp(now)
    kind = kinds.POD_GROUP_BETA if group.version == "v1beta1" else kinds.POD_GROUP
    body = {"metadata": {"uid": group.uid}, "status": {"conditions": [condition]}}
    return Write(
        Verb.PATCH, kind, group.namespace, group.name, body, subresource="status", patch_type=PatchType.STRATEGIC
    )


def _condition(pod: Pod, now: float, reason: str, message: str) -> Doc:
    condition: Doc = {
        "type": "PodScheduled",
        "status": "False",
        "reason": reason,
        "message": message,
        "observedGeneration": pod.generation,
        "lastProbeTime": None,
    }
    if pod.scheduled_condition is None or pod.scheduled_condition[0] != "False":
        condition["lastTransitionTime"] = timestamp(now)
    return condition
