"""VolcanoFigures: counts of Jobs, flows and PodGroups by phase, for the metrics of Volcano's controllers.

It only watches. A Job or flow counts when it is seen to come into a phase, so one that has ended before counts for
nothing, as in the original; a flow that fails counts whatever it did before.

Invariant: what a method returns is a copy, so that another thread may read it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import namespaced_name
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.volcano.jobs.phases import COMPLETED, FAILED, phase_of
from fairlead.volcano.kinds import VC_JOB, VC_JOB_FLOW, VC_POD_GROUP, VC_QUEUE

Labels = tuple[str, ...]
GROUP_PHASES = ("Inqueue", "Pending", "Running", "Unknown", "Completed")
_SUCCEED = "Succeed"


class VolcanoFigures(Reconciler[str]):
    name = "volcano-figures"
    watches: Sequence[Watch] = (Watch(VC_JOB), Watch(VC_JOB_FLOW), Watch(VC_POD_GROUP), Watch(VC_QUEUE))

    def __init__(self, view: DocView) -> None:
        super().__init__(view, announce=False)
        self._phases: dict[str, str] = {}  # uid of a Job or flow -> phase
        self._groups: dict[str, tuple[str, str]] = {}  # uid of a PodGroup -> queue and phase
        self._jobs: dict[str, Counter[Labels]] = {COMPLETED: Counter(), FAILED: Counter()}
        self._flows: dict[str, Counter[Labels]] = {_SUCCEED: Counter(), FAILED: Counter()}
        self._in_queue: Counter[Labels] = Counter()

    def observe(self, change: Change) -> None:
        doc, gone = change.doc, change.gone
        if change.kind is VC_POD_GROUP:
            self._observe_group(doc, gone=gone)
        elif change.kind is VC_QUEUE:
            for phase in GROUP_PHASES:
                self._in_queue.setdefault((doc["metadata"]["name"], phase), 0)
        elif gone:
            self._phases.pop(doc["metadata"]["uid"], None)
        else:
            self._observe_end(doc, is_flow=change.kind is VC_JOB_FLOW)

    def _observe_group(self, group: Doc, *, gone: bool) -> None:
        uid = group["metadata"]["uid"]
        if (before := self._groups.pop(uid, None)) is not None:
            self._in_queue[before] -= 1
        if not gone:
            phase = (group.get("status") or {}).get("phase") or "Pending"
            now = self._groups[uid] = ((group.get("spec") or {}).get("queue") or "", phase)
            self._in_queue[now] += 1

    def _observe_end(self, doc: Doc, *, is_flow: bool) -> None:
        uid, phase = doc["metadata"]["uid"], phase_of(doc)
        before = self._phases.get(uid)
        self._phases[uid] = phase
        if before is None or before == phase:
            return
        namespace, name = namespaced_name(doc)
        if is_flow and phase in self._flows:
            self._flows[phase][(namespace,)] += 1
        elif not is_flow and phase in self._jobs:
            self._jobs[phase][(f"{namespace}/{name}", doc["spec"].get("queue") or "")] += 1

    def visit(self, key: str, now: float) -> Iterable[Write]:
        return ()

    def jobs(self, *, failed: bool) -> Mapping[Labels, int]:
        """How often a Job (namespace/name, queue) has completed or failed."""
        return dict(self._jobs[FAILED if failed else COMPLETED])

    def flows(self, *, failed: bool) -> Mapping[Labels, int]:
        """How many flows of a namespace have succeeded or failed."""
        return dict(self._flows[FAILED if failed else _SUCCEED])

    def groups(self) -> Mapping[Labels, int]:
        """How many PodGroups of a queue are in a phase."""
        return dict(self._in_queue)
