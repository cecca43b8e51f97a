"""What the plugins of one attempt write on the pod: annotations that are collected and sent as one patch.

Each plugin notes its annotations in PreBind; DefaultPreBind, the last of them, sends what was noted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.plugin import Plugin
from fairlead.core.model import kinds
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.reasons import SUCCESS, Status, failed
from fairlead.koordinator.records.reservations import RESERVATION_NAME, is_reserve_pod

if TYPE_CHECKING:
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.flow import Reply
    from fairlead.core.model.kinds import Kind
    from fairlead.core.state.cluster import Cluster

_NOTE = "koordinator.annotations"
_LATER = "koordinator.annotations.later"


def write_annotation(cycle: Cycle, key: str, text: str) -> None:
    """Note an annotation that is to be on the pod before it is bound."""
    cycle.notes.setdefault(_NOTE, {})[key] = text


def write_later(cycle: Cycle, read: Callable[[], Mapping[str, str]]) -> None:
    """Note annotations that are known only when the pod has its permission."""
    cycle.notes.setdefault(_LATER, []).append(read)


def annotations_to_write(cycle: Cycle) -> Mapping[str, str]:
    """All that was noted."""
    noted: dict[str, str] = cycle.notes.get(_NOTE, {})
    for read in cycle.notes.get(_LATER, ()):
        noted = {**noted, **read()}
    return noted


class PatchAnnotations:
    """The Errand that writes the annotations of an attempt on an object and ends with the answer. What they are is read
    when the pod has its permission; if there are none, there is nothing to wait for."""

    def __init__(self, kind: Kind, namespace: str, name: str, cycle: Cycle) -> None:
        self._address = (kind, namespace, name)
        self._cycle = cycle
        self._write: Write | None = None

    def start(self, now: float) -> list[Write]:
        annotations = annotations_to_write(self._cycle)
        if not annotations:
            return []
        self._write = Write(Verb.PATCH, *self._address, {"metadata": {"annotations": dict(annotations)}})
        return [self._write]

    def progress(self, now: float, cluster: Cluster, replies: Sequence[Reply]) -> Status | list[Write] | None:
        if self._write is None:
            return SUCCESS
        for reply in replies:
            if reply.write is self._write:
                return SUCCESS if reply.error is None else failed(str(reply.error))
        return None

    def wake_at(self) -> float | None:
        return None


class DefaultPreBind(Plugin):
    """Sends what the plugins of the attempt have noted, as one patch of the pod or of the reservation."""

    name = "DefaultPreBind"

    def prebind(self, cycle: Cycle, row: int) -> PatchAnnotations | None:
        if _NOTE not in cycle.notes and _LATER not in cycle.notes:
            return None
        pod = cycle.pod
        if is_reserve_pod(pod):
            return PatchAnnotations(kinds.KOORD_RESERVATION, "", pod.annotations[RESERVATION_NAME], cycle)
        return PatchAnnotations(kinds.POD, pod.namespace, pod.name, cycle)
