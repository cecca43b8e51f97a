"""CronJobs of Volcano: the rules of batch/v1, with Volcano Jobs, their ends and the words of the original.

A completed run counts as a success and a failed one as a failure. A terminated run is over and counts as neither in the
original, so that it is never cleaned up; here it counts as a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Self

from fairlead.cluster.controllers.workloads.cron_job import CronJobs, CronRun
from fairlead.cluster.controllers.writes import namespaced_name
from fairlead.core.model.flow import Doc, DocView, Watch, Write
from fairlead.volcano.controller_settings import VolcanoSettings
from fairlead.volcano.jobs.phases import COMPLETED, FAILED, TERMINATED, phase_of
from fairlead.volcano.kinds import VC_CRON_JOB, VC_JOB
from fairlead.volcano.records.quirks import FIXED, Quirks

if TYPE_CHECKING:
    from fairlead.cluster.controllers.workqueue import ControllerContext
    from fairlead.core.model.kinds import Kind

_ENDINGS = {COMPLETED: "Complete", FAILED: "Failed", TERMINATED: "Failed"}


class VolcanoCronJobs(CronJobs):
    name = "volcano-cronjob-controller"
    component = "vc-controller-manager"
    watches: Sequence[Watch] = (Watch(VC_CRON_JOB), Watch(VC_JOB))
    kind: Kind = VC_CRON_JOB
    job_kind: Kind = VC_JOB
    scheduled_note = "volcano.sh/cronjob-scheduled-timestamp"
    emits_cleaning = True

    def __init__(self, view: DocView, *, announce: bool = True, quirks: Quirks = FIXED) -> None:
        super().__init__(view, announce=announce)
        self._quirks = quirks

    @classmethod
    def from_context(cls, context: ControllerContext) -> Self:
        return cls(context.view, announce=context.announce, quirks=context.of(VolcanoSettings).quirks)

    def run_of(self, job: Doc) -> CronRun:
        metadata, phase = job["metadata"], phase_of(job)
        ended_at = ((job.get("status") or {}).get("state") or {}).get("lastTransitionTime") or ""
        ending = _ENDINGS.get(phase, "")
        if phase == TERMINATED and self._quirks.cron_keeps_terminated_jobs:
            ending = TERMINATED
        return CronRun(
            *namespaced_name(job),
            uid=metadata["uid"],
            version=metadata.get("resourceVersion") or "",
            ending=ending,
            started=metadata.get("creationTimestamp") or "",
            completed=ended_at if phase == COMPLETED else "",
            scheduled=(metadata.get("annotations") or {}).get(self.scheduled_note) or "",
        )

    def emit_ended(self, doc: Doc, run: CronRun) -> Iterable[Write]:
        return self.event(self.kind, doc, "SawCompletedJob", f"Saw completed job: {run.name} in active, remove")

    def emit_created(self, doc: Doc, name: str) -> Iterable[Write]:
        whose = "/".join(namespaced_name(doc))
        return self.event(self.kind, doc, "SuccessfulCreate", f"Created job {name} for CronJob {whose}")

    def emit_deleted(self, doc: Doc, name: str) -> Iterable[Write]:
        return self.event(self.kind, doc, "SuccessfulDelete", f'Deleted job "{name}"')

    def emit_forbidden(self, doc: Doc) -> Iterable[Write]:
        text = "Skipping job creation because another job is already running"
        return self.event(self.kind, doc, "ForbidConcurrent", text, warning=True)

    def emit_replaced(self, doc: Doc) -> Iterable[Write]:
        return self.event(self.kind, doc, "ReplaceConcurrent", "Replacing active job for CronJob", warning=True)
