"""Finished Volcano Jobs that say how long they shall be kept: deleted when that time is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import delete, namespaced_name
from fairlead.core.model.flow import Change, Watch, Write
from fairlead.core.model.times import seconds_of
from fairlead.volcano.jobs.phases import FINISHED, phase_of
from fairlead.volcano.kinds import VC_JOB

Key = tuple[str, str]


class VolcanoJobGarbage(Reconciler[Key]):
    name = "volcano-gc-controller"
    watches: Sequence[Watch] = (Watch(VC_JOB),)

    def observe(self, change: Change) -> None:
        wanted = change.doc["spec"].get("ttlSecondsAfterFinished") is not None and phase_of(change.doc) in FINISHED
        if not change.gone and wanted:
            self.queue.add(namespaced_name(change.doc))

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        job = self.view.get(VC_JOB, *key)
        if job is None or job["metadata"].get("deletionTimestamp") or phase_of(job) not in FINISHED:
            return
        ttl = job["spec"].get("ttlSecondsAfterFinished")
        since = job["status"]["state"].get("lastTransitionTime")
        if ttl is None or since is None:
            return
        due = seconds_of(since) + ttl
        if now < due:
            self.queue.add_at(key, due)
        else:
            yield delete(VC_JOB, job, propagation="Foreground")
