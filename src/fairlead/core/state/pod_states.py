"""PodState: a pod and where it is: pending, assumed or bound. The Cluster and each Gang keep one per pod."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import EMPTY
from fairlead.core.state.object_index import COUNTING_GROUPS

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.gangs import Gang


class PodPlace(Enum):
    __hash__ = object.__hash__
    """Members are counted by place all the time, and an Enum's own hash is slow."""
    PENDING = "pending"
    ASSUMED = "assumed"
    BOUND = "bound"
    RELEASING = "releasing"


@dataclass(slots=True)
class PodState:
    """A pod and where it is. `row` is -1 while it is pending. `pod` is the copy that the table counts, `seen` the
    newest that the API showed; they differ only while a pod is assumed and changes meanwhile. `gang` is the group it
    belongs to, if any."""

    pod: Pod
    seen: Pod
    place: PodPlace
    row: int = -1
    gang: Gang | None = None


class PodLog:
    """Which pods came, changed, moved or went, by uid, for those who count pods wherever they are. Only so many of the
    latest entries are kept, and none before somebody has requested the first mark: few profiles have a reader."""

    __slots__ = ("_base", "_uids", "is_read")
    _KEPT = 1 << 15

    def __init__(self) -> None:
        self._base = 0
        self._uids: list[str] = []
        self.is_read = False

    @property
    def mark(self) -> int:
        """How far the log is. The caller will want what comes after it, so it is kept from now on."""
        self.is_read = True
        return self._base + len(self._uids)

    def touch(self, uid: str) -> None:
        self._uids.append(uid)
        if len(self._uids) > self._KEPT:
            dropped = self._KEPT // 2
            del self._uids[:dropped]
            self._base += dropped

    def since(self, mark: int) -> list[str] | None:
        """Pods touched after a mark, possibly with repetitions; None if that is too long ago."""
        start = mark - self._base
        return self._uids[start:] if start >= 0 else None


def is_noted(pod: Pod) -> bool:
    """Whether a pod is remembered after it has ended, because its group counts it."""
    return bool(pod.group) or (pod.group_ref is not None and pod.group_ref.api in COUNTING_GROUPS)


def ends_unnoticed(pod: Pod, document: Mapping[str, Any]) -> bool:
    """Whether a newer document of a pod says that it has ended, and nothing else that is asked of such a document:
    whether it is noted depends on its labels and annotations."""
    status = document.get("status")
    if not isinstance(status, dict) or status.get("phase") not in ("Succeeded", "Failed") or is_noted(pod):
        return False
    metadata = document["metadata"]
    return (metadata.get("labels") or EMPTY) == pod.labels and (metadata.get("annotations") or EMPTY) == pod.annotations


def ended_by_itself(document: Mapping[str, Any]) -> bool:
    """Whether a document says that a pod ran on a node and ended before anybody deleted it."""
    if (document.get("status") or EMPTY).get("phase") not in ("Succeeded", "Failed"):
        return False
    return bool((document.get("spec") or EMPTY).get("nodeName")) and not document["metadata"].get("deletionTimestamp")


def counts_the_same(old: Pod, new: Pod) -> bool:
    """Whether all sums of a row stay as they were when a pod on it is seen again. What volumes come to depends on their
    claims, and a port that two pods share is free when the first of them goes, and taken when the other is seen again.
    """
    shape = new.shape
    return old.shape is shape and not (shape.volumes or shape.host_ports) and old.terminating == new.terminating


def reads_the_same(old: Pod, new: Pod, *, thoroughly: bool) -> bool:
    """Whether a plugin that reads the pods on a node finds the same in both copies of a pod; this is so when a binding
    is confirmed. Unless somebody reads `thoroughly`, phase, start time and annotations do not count: then it is also so
    when a pod starts."""
    if thoroughly and not (
        old.phase == new.phase
        and old.start_time == new.start_time
        and (old.annotations is new.annotations or old.annotations == new.annotations)
    ):
        return False
    return (
        (old.labels is new.labels or old.labels == new.labels)
        and old.owner == new.owner
        and old.disruption_target == new.disruption_target
        and old.claim_statuses == new.claim_statuses
    )
