"""GangStatusWriter writes the status of PodGroups: how many pods are scheduled, run and ended, and the phase from that.

The phase is worked out from the counts alone, so that one that was missed does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.times import timestamp
from fairlead.koordinator.kinds import KOORD_POD_GROUP
from fairlead.koordinator.records.gangs import gang_id
from fairlead.koordinator.sent_statuses import SentStatuses

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.gangs.index import GangIndex, GangState

_COUNTS = ("scheduled", "running", "succeeded", "failed")


class GangStatusWriter:
    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._sent = SentStatuses()

    def step(self, gang_index: GangIndex, now: float) -> Iterator[Write]:
        gang_index.touched.update(self._sent.overdue(now))
        ended: dict[str, list[str]] | None = None
        while gang_index.touched:
            key = gang_index.touched.pop()
            gang = gang_index.gangs.get(key)
            if gang is None or gang.spec is None or not gang.spec.by_object:
                self._sent.forget(key)
                continue
            if ended is None:
                ended = {}
                for pod in self._cluster.finished.values():
                    ended.setdefault(gang_id(pod), []).append(pod.phase)
            yield from self._keep(gang, ended.get(key, []), now)

    def wake_at(self) -> float | None:
        return self._sent.again_at()

    def _keep(self, gang: GangState, ended: list[str], now: float) -> Iterator[Write]:
        spec = gang.spec
        assert spec is not None, "asked before"
        running = sum(member.seen.phase == "Running" for member in gang.members.values())
        succeeded, failed = ended.count("Succeeded"), ended.count("Failed")
        scheduled = len(gang.bound) + len(ended)
        counts = dict(zip(_COUNTS, (scheduled, running, succeeded, failed), strict=True))
        phase = _phase(spec.least, len(gang.members) + len(ended), counts)
        wanted: Doc = {"phase": phase, **counts}
        shown = {"phase": spec.shown.get("phase"), **{name: spec.shown.get(name) or 0 for name in _COUNTS}}
        if self._sent.is_due(gang.id, wanted, shown, now):
            if not spec.shown.get("scheduleStartTime"):
                wanted = {**wanted, "scheduleStartTime": timestamp(now)}
            namespace, _, name = gang.id.partition("/")
            yield Write(Verb.PATCH, KOORD_POD_GROUP, namespace, name, {"status": wanted})


def _phase(least: int, pods: int, counts: dict[str, int]) -> str:
    if pods < least:
        return "Pending"
    running, succeeded, failed = counts["running"], counts["succeeded"], counts["failed"]
    if succeeded >= least:
        return "Finished"
    if failed and failed + running + succeeded >= least:
        return "Failed"
    if running + succeeded >= least:
        return "Running"
    if counts["scheduled"] >= least:
        return "Scheduled"
    return "Scheduling" if counts["scheduled"] else "PreScheduling"
