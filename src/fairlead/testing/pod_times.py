"""PodTimes: when things happened to a pod, to the fraction of a second.

Kubernetes writes times in whole seconds, so a wait computed from a pod's own fields is off by up to a second. PodWatch
notes the cluster's time at the moment of each write instead.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.core.model import kinds

if TYPE_CHECKING:
    from fairlead.cluster.store.store import Store

_STARTED = ("Running", "Succeeded", "Failed")


@dataclass(slots=True)
class PodTimes:
    """Seconds since the epoch; None for what has not happened."""

    created: float
    scheduled: float | None = None
    """When it got its node."""
    started: float | None = None
    """When its containers ran for the first time."""
    ended: float | None = None
    """When it succeeded, failed or was gone."""

    @property
    def waited(self) -> float | None:
        """Seconds from its creation until it got its node; None while it has none."""
        return None if self.scheduled is None else self.scheduled - self.created


class PodWatch:
    """Notes the times of all pods of a Store, also of those that are gone. Of two pods of one name the later counts."""

    def __init__(self, store: Store, now: Callable[[], float]) -> None:
        self._now = now
        self._uids: dict[tuple[str, str], str] = {}
        self._times: dict[tuple[str, str], PodTimes] = {}
        self._feed = store.feed([kinds.POD])
        self._feed.wake = self._take
        self._take()

    def of(self, namespace: str, name: str) -> PodTimes | None:
        return self._times.get((namespace, name))

    def _take(self) -> None:
        now = self._now()
        for change in self._feed.drain():
            metadata, phase = change.doc["metadata"], change.doc["status"].get("phase")
            key, uid = (metadata["namespace"], metadata["name"]), metadata["uid"]
            if self._uids.get(key) != uid:
                self._uids[key], self._times[key] = uid, PodTimes(now)
            times = self._times[key]
            if times.scheduled is None and change.doc["spec"].get("nodeName"):
                times.scheduled = now
            if times.started is None and phase in _STARTED:
                times.started = now
            if times.ended is None and (phase in _STARTED[1:] or change.gone):
                times.ended = now
