"""SchedulerObservation: the metrics of a scheduler that runs in a live runtime, for `up` and `scheduler` alike.

After each of its steps the scheduler hands over what the step left behind, on its own thread; the event loop adds it
up, and a scrape asks the scheduler for its figures between two steps.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

from fairlead.core.engine.explain.figures import figures_of, take
from fairlead.core.framework.meter import EVERY, Meter
from fairlead.core.model.figures import Figures

if TYPE_CHECKING:
    from fairlead.cluster.kubelets.refused_pods import RefusedPods
    from fairlead.core.engine.scheduler import Scheduler
    from fairlead.core.model.flow import Controller
    from fairlead.runtime.live import LiveRuntime
    from fairlead.runtime.telemetry import Telemetry
    from fairlead.runtime.tracing import CycleTracer


class SchedulerObservation:
    """`scheduler` is None where somebody outside schedules: then there are figures of the process only."""

    def __init__(
        self,
        scheduler: Scheduler | None,
        telemetry: Telemetry,
        *,
        refused: RefusedPods | None = None,
        tracer: CycleTracer | None = None,
    ) -> None:
        """`refused` watches pods that kubelets turned away; `tracer` gets every cycle, which is then measured."""
        self._scheduler, self._telemetry, self._refused = scheduler, telemetry, refused
        if tracer is not None:
            telemetry.traced = tracer.take
        if scheduler is not None:
            scheduler.measure(Meter(time.monotonic, every=EVERY if tracer is None else 1))
            self._reader = scheduler.decisions.reader()

    def after_turn(self, controller: Controller) -> None:
        """On the thread of a controller, after its step."""
        if self._scheduler is not None and controller is self._scheduler:
            self._telemetry.hand_over(take(self._scheduler, self._reader))
        elif self._refused is not None and controller is self._refused and self._refused.complaints:
            self._telemetry.refused(dict(self._refused.counts), tuple(self._refused.complaints))
            self._refused.complaints.clear()

    def after_step(self, stepped: object) -> None:
        """On the event loop, some time after that."""
        self._telemetry.after_step()

    async def exposition(self, runtime: LiveRuntime) -> bytes:
        """All metrics in Prometheus' text format."""
        if self._scheduler is None:
            return self._telemetry.exposition(Figures())
        return self._telemetry.exposition(await asyncio.wrap_future(runtime.ask(self._scheduler, figures_of)))
