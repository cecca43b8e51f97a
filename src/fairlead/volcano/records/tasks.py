"""TaskStatus: where a pod stands inside a Volcano round, and the classes of statuses that rules speak of."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod


class TaskStatus(IntEnum):
    """In the order of the original's bit flags; `label` is the original's word."""

    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def label(self) -> str:
        return self.name.capitalize()


ALLOCATED_CLASS = frozenset({TaskStatus.BOUND, TaskStatus.BINDING, TaskStatus.RUNNING, TaskStatus.ALLOCATED})
PREEMPTABLE_CLASS = frozenset({TaskStatus.BOUND, TaskStatus.RUNNING})
SCHEDULED_CLASS = frozenset({TaskStatus.RUNNING, TaskStatus.BOUND, TaskStatus.FAILED, TaskStatus.SUCCEEDED})
COMPLETED_CLASS = frozenset({TaskStatus.FAILED, TaskStatus.SUCCEEDED})

_BY_PHASE = {
    "Succeeded": TaskStatus.SUCCEEDED,
    "Failed": TaskStatus.FAILED,
    "Unknown": TaskStatus.UNKNOWN,
}


def status_of(pod: Pod) -> TaskStatus:
    """What a pod's phase, node and deletion come to."""
    if (ended := _BY_PHASE.get(pod.phase)) is not None:
        return ended
    if pod.terminating:
        return TaskStatus.RELEASING
    if pod.phase == "Running":
        return TaskStatus.RUNNING
    return TaskStatus.BOUND if pod.node_name else TaskStatus.PENDING
