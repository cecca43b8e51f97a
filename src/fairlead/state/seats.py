"""Seat: a pod and where it is. The cluster's books are kept in seats, and so are a gang's."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.model.pod import Pod
    from fairlead.state.gangs import Gang


class Place(Enum):
    __hash__ = object.__hash__
    """Members are counted by place all the time, and an Enum's own hash is slow."""
    PENDING = "pending"
    ASSUMED = "assumed"
    BOUND = "bound"
    RELEASING = "releasing"


@dataclass(slots=True)
class Seat:
    """A pod and where it is. `row` is -1 while it is pending. `pod` is the copy that the table counts, `seen` the
    newest that the API showed; they differ only while a pod is assumed and changes meanwhile. `gang` is the group it
    belongs to, if any."""

    pod: Pod
    seen: Pod
    place: Place
    row: int = -1
    gang: Gang | None = None
