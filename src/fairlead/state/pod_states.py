"""PodState: a pod and where it is: pending, assumed or bound. The Cluster and each Gang keep one per pod."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.model.pod import Pod
    from fairlead.state.gangs import Gang


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
