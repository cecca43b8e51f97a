"""Unattended: an Event on every pod and object that nobody in this cluster will act on.

`kubectl describe` is where people look when nothing happens. One Event is written per object; a pod that gets a node
from somebody else after all keeps it, as Events say what was true when they were written.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.core.model.attendance import DEFAULT_SCHEDULER, NOBODY_ACTS, Attendance
from fairlead.core.model.flow import Change, DocView, Watch, Write
from fairlead.core.model.kinds import POD, Kind

Key = tuple[Kind, str, str]


class Unattended(Reconciler[Key]):
    name = "unattended-objects"

    def __init__(self, view: DocView, attendance: Attendance) -> None:
        super().__init__(view)
        self.watches: Sequence[Watch] = tuple(map(Watch, (POD, *NOBODY_ACTS, *attendance.unattended)))
        self._attendance = attendance
        self._warned: dict[Key, str] = {}  # object -> uid

    @property
    def sees_plain_pods(self) -> bool:
        """Plain pods name the default scheduler."""
        served = self._attendance.scheduler_names
        return served is not None and DEFAULT_SCHEDULER not in served

    def observe(self, change: Change) -> None:
        if not change.gone and change.kind is POD and change.doc["spec"].get("nodeName"):
            return  # somebody has attended to it
        metadata = change.doc["metadata"]
        key = (change.kind, metadata.get("namespace", ""), metadata["name"])
        if change.gone:
            self._warned.pop(key, None)
        elif self._warned.get(key) != metadata["uid"] and any(self._attendance.complaints(change.kind, change.doc)):
            self.queue.add(key)

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        kind, namespace, name = key
        doc = self.view.get(kind, namespace, name)
        if doc is None or self._warned.get(key) == doc["metadata"]["uid"]:
            return
        self._warned[key] = doc["metadata"]["uid"]
        reason = "NoScheduler" if kind is POD else "NobodyActs"
        for complaint in self._attendance.complaints(kind, doc):
            yield from self.event(kind, doc, reason, complaint, warning=True)
