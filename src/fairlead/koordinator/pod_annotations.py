"""What the plugins of one attempt write on the pod: annotations that are collected and sent as one patch.

Each plugin notes its annotations in PreBind; DefaultPreBind, the last of them, sends what was noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Plugin
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.reasons import SUCCESS, Status, failed
from fairlead.koordinator.kinds import KOORD_RESERVATION
from fairlead.koordinator.records.reservations import RESERVATION_NAME, is_reserve_pod

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.kinds import Kind
    from fairlead.core.state.cluster import Cluster

_NOTE = "koordinator.annotations"


def write_annotation(cycle: Cycle, key: str, text: str) -> None:
    """Note an annotation that is to be on the pod before it is bound."""
    cycle.notes.setdefault(_NOTE, {})[key] = text


def annotations_to_write(cycle: Cycle) -> Mapping[str, str]:
    """All that was noted."""
    noted: dict[str, str] = cycle.notes.get(_NOTE, {})
    return noted


class PatchAnnotations:
    """The Errand that writes the annotations of an attempt on an object and ends with the answer."""

    def __init__(self, kind: Kind, namespace: str, name: str, annotations: Mapping[str, str]) -> None:
        self._write = Write(Verb.PATCH, kind, namespace, name, {"metadata": {"annotations": dict(annotations)}})

    def start(self, now: float) -> list[Write]:
        return [self._write]

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | None:
        for reply in replies:
            if reply.write is self._write:
                return SUCCESS if reply.error is None else failed(str(reply.error))
        return None

    def wake_at(self) -> float | None:
        return None


class DefaultPreBind(Plugin):
    """Sends what the plugins of the attempt have noted, as one patch of the pod or of the reservation."""

    name = "DefaultPreBind"

    def pre_bind(self, cycle: Cycle, row: int) -> PatchAnnotations | None:
        if _NOTE not in cycle.notes:
            return None
        pod, annotations = cycle.pod, annotations_to_write(cycle)
        if is_reserve_pod(pod):
            return PatchAnnotations(KOORD_RESERVATION, "", pod.annotations[RESERVATION_NAME], annotations)
        return PatchAnnotations(kinds.POD, pod.namespace, pod.name, annotations)
