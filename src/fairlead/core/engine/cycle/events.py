"""EventRecorder: Kubernetes Events about decisions, as writes, with series as in client-go.

The first event is created; a second equal one turns it into a series; further ones are only counted, and the count is
written every half hour while the series lives. Events are equal if all but their notes is, and they are about the
same version of an object.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.model import kinds
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.group import PodGroup
from fairlead.core.model.reasons import truncated
from fairlead.core.model.times import micro_timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.pod import Pod

_SERIES_ENDS_AFTER = 6 * 60.0
_SERIES_WRITTEN_EVERY = 30 * 60.0
_SWEEP_EVERY = 60.0
_EMITTED_ONCE = ("Normal", "Scheduled")
"""Of a pod this is emitted once, so that no series is kept of it: at 100 pods a second they would be tens of
thousands."""

Key = tuple[str, ...]


@dataclass(slots=True)
class Series:
    """A series of equal events: the object that was created, how many came, and when the last did."""

    namespace: str
    name: str
    count: int
    last_seen: float
    last_written: float


class EventText(NamedTuple):
    """What an event says; `kind` is Normal or Warning."""

    kind: str
    reason: str
    action: str
    note: str


class EventRecorder:
    def __init__(self, instance: str, *, announces: bool = True) -> None:
        """Who does not announce writes no Event, and counts in `unwritten` what it would have said, by reasons."""
        self._instance = instance
        self._announces = announces
        self.unwritten: dict[str, int] = {}
        self._series: dict[Key, Series] = {}
        self._next_sweep = 0.0
        self._serial = 0

    def record(
        self,
        pod: Pod | PodGroup,
        event: EventText,
        *,
        now: float,
        controller: str,
        related: Pod | PodGroup | None = None,
    ) -> list[Write]:
        """The writes of an event about a pod or a group."""
        kind, reason, action, note = event
        if not self._announces:
            self.unwritten[reason] = self.unwritten.get(reason, 0) + 1
            return []
        self._sweep(now)
        key = (kind, action, reason, controller, pod.uid, pod.resource_version, related.uid if related else "")
        series = self._series.get(key)
        if series is None:
            return [self._create(key, pod, now, controller=controller, note=note, related=related)]
        series.count += 1
        series.last_seen = now
        if series.count > 2 and now - series.last_written < _SERIES_WRITTEN_EVERY:
            return []
        series.last_written = now
        body = {"series": {"count": series.count, "lastObservedTime": micro_timestamp(now)}}
        where = (series.namespace, series.name)
        return [Write(Verb.PATCH, kinds.EVENT_V1, *where, body, patch_type=PatchType.STRATEGIC)]

    def _create(
        self, key: Key, pod: Pod | PodGroup, now: float, *, controller: str, note: str, related: Pod | PodGroup | None
    ) -> Write:
        kind, action, reason = key[:3]
        self._serial += 1
        name = f"{pod.name}.{int(now * 1e9) + self._serial:x}"
        namespace = pod.namespace or "default"
        if (kind, reason) != _EMITTED_ONCE or isinstance(pod, PodGroup):
            self._series[key] = Series(namespace, name, 1, now, now)
        body: Doc = {
            "apiVersion": kinds.EVENT_V1.api_version,
            "kind": "Event",
            "metadata": {"name": name, "namespace": namespace},
            "eventTime": micro_timestamp(now),
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._instance}",
            "action": action,
            "reason": reason,
            "regarding": _reference(pod),
            "note": truncated(note),
            "type": kind,
        }
        if related is not None:
            body["related"] = _reference(related)
        full = pod.namespace and pod.uid and pod.resource_version and note and related is None
        return Write(Verb.CREATE, kinds.EVENT_V1, namespace, name, body, conforms=bool(full))

    def _sweep(self, now: float) -> None:
        """Drop the series for which no equal event has come for a while."""
        if now < self._next_sweep:
            return
        self._next_sweep = now + _SWEEP_EVERY
        ended = [key for key, series in self._series.items() if now - series.last_seen > _SERIES_ENDS_AFTER]
        for key in ended:
            del self._series[key]


def _reference(pod: Pod | PodGroup) -> Doc:
    version, kind, namespace, name = "v1", "Pod", pod.namespace, pod.name
    if isinstance(pod, PodGroup):
        version, kind = f"{pod.api}/{pod.version}", "PodGroup"
    elif pod.reported_as is not None:
        shown, namespace, name = pod.reported_as
        version, kind = shown.api_version, shown.kind
    return {
        "apiVersion": version,
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "uid": pod.uid,
        "resourceVersion": pod.resource_version,
    }
