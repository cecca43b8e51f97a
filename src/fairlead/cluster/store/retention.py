"""What must go by itself: events after an hour (or when there are too many), ended pods beyond a limit.

Retention gets every committed change and keeps just enough to answer `due(now)`: events in the order in which
they were last written, ended pods with the time they were created. The Store deletes what is due.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model import kinds

if TYPE_CHECKING:
    from fairlead.cluster.store.objects import Key, Record
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_PHASES = ("Succeeded", "Failed")
_SUCCEEDED, _FAILED = b'"phase":"Succeeded"', b'"phase":"Failed"'


@dataclass(frozen=True, slots=True)
class RetentionLimits:
    """Growth is bounded by these."""

    event_seconds: float = 3600.0
    events: int = 50_000
    ended_pods: int = 12_500


class Retention:
    def __init__(self, limits: RetentionLimits) -> None:
        self._limits = limits
        self._events: OrderedDict[Key, float] = OrderedDict()
        self._ended: dict[Key, str] = {}

    def notice(self, kind: Kind, key: Key, record: Record | None, now: float) -> None:
        """An object was written, or (None) went away."""
        if kind is kinds.EVENT:
            self._events.pop(key, None)
            if record is not None:
                self._events[key] = now + self._limits.event_seconds
        elif kind is kinds.POD:
            if record is not None and (doc := record.decoded or _maybe_ended(record)) is not None:
                status = doc.get("status")
                if status and status.get("phase") in _PHASES:
                    self._ended[key] = doc["metadata"]["creationTimestamp"]
                    return
            if key in self._ended:
                del self._ended[key]

    def due(self, now: float) -> Iterator[tuple[Kind, Key]]:
        """What has outlived its time, oldest first."""
        surplus = len(self._events) - self._limits.events
        for number, (key, expiry) in enumerate(list(self._events.items())):
            if expiry > now and number >= surplus:
                break
            yield kinds.EVENT, key
        surplus = len(self._ended) - self._limits.ended_pods
        if surplus > 0:
            for _, key in sorted((created, key) for key, created in self._ended.items())[:surplus]:
                yield kinds.POD, key


def _maybe_ended(record: Record) -> Doc | None:
    """The document of a pod whose bytes look as if it had ended; those of most pods do not, and are not decoded."""
    raw = record.raw
    return record.doc if _SUCCEEDED in raw or _FAILED in raw else None
