"""StepOutput: what one step of the Scheduler writes, and what it reports about pods: events, conditions, decisions.

The attempt, the bindings and the gangs all add to it, so that the writes of a step are in the order in which they were
decided. It knows what time it is in this step; nobody below the Scheduler asks a clock.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.events import EventText
from fairlead.core.engine.cycle.outcome import Failure, status_patch
from fairlead.core.model.figures import Decision

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.events import EventRecorder
    from fairlead.core.engine.explain.decisions import DecisionLog
    from fairlead.core.engine.explain.pod import Explanations
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.engine.queue.nominator import Nominator
    from fairlead.core.framework.meter import Meter
    from fairlead.core.model.flow import Write
    from fairlead.core.model.pod import Pod


class StepOutput:
    def __init__(
        self, recorder: EventRecorder, explanations: Explanations, decisions: DecisionLog, nominator: Nominator
    ) -> None:
        self._recorder, self._nominator = recorder, nominator
        self.explanations, self.decisions = explanations, decisions
        self.meter: Meter | None = None
        """Set to enable timing metrics."""
        self.writes: list[Write] = []
        self.now = 0.0

    def begin(self, now: float) -> None:
        """A step begins: nothing is written yet."""
        self.now, self.writes = now, []

    def measure(self, meter: Meter | None) -> None:
        """Measure times by this meter from now on."""
        self.meter = meter

    def add(self, writes: Iterable[Write]) -> None:
        """Write this after what was written so far."""
        self.writes.extend(writes)

    def event(self, pod: Pod, *, kind: str, reason: str, action: str, note: str) -> None:
        """Write an Event about a pod."""
        self.writes += self._recorder.record(
            pod,
            EventText(kind=kind, reason=reason, action=action, note=note),
            now=self.now,
            controller=pod.scheduler_name,
        )

    def condition(
        self, pod: Pod, *, reason: str = "", message: str = "", nominated: str | None = None, announced: str = ""
    ) -> str:
        """Write the condition PodScheduled and the nominated node, unless the pod says so already or it was
        `announced`. Returns the node that is written, if any."""
        patch = status_patch(
            pod, now=self.now, reason=reason, message=message, nominated=nominated, announced=announced
        )
        if patch is None:
            return ""
        self.writes.append(patch)
        return nominated or ""

    def refused(self, entry: Entry, pod: Pod, failure: Failure) -> None:
        """Say everywhere why a pod has no node: on itself, in an event, in its explanation."""
        if failure.nominated is None:
            self._nominator.observe(pod)
        else:
            self._nominator.nominate(pod, failure.nominated, place=failure.announced)
        self.event(pod, kind="Warning", reason="FailedScheduling", action="Scheduling", note=failure.message)
        said = (failure.reason, failure.message)
        self.condition(pod, reason=said[0], message=said[1], nominated=failure.nominated, announced=failure.announced)
        rejected = failure.status.code.rejected
        nominated = self._nominator.node_of(pod.uid)
        self.explanations.refused(entry, pod, failure, now=self.now, nominated=nominated)
        self.decided(entry, pod, "unschedulable" if rejected else "error", message=failure.message)

    def decided(self, entry: Entry, pod: Pod, result: str, *, node: str = "", message: str = "") -> None:
        """Add a decision for telemetry and other readers."""
        waited = self.now - (entry.first_attempt if entry.first_attempt is not None else self.now)
        decision = Decision(
            self.now,
            pod.scheduler_name,
            pod.key,
            pod.uid,
            result,
            node=node,
            message=message,
            attempts=entry.attempts,
            waited=waited,
            took=None if self.meter is None else self.meter.clock() - entry.began,
        )
        self.decisions.append(decision)
