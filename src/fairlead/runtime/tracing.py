"""Spans of OpenTelemetry: one for each measured cycle, and in it one for each call of a plugin.

They are made from the samples that the meter takes anyway, after the fact, on the event loop: a scheduler that is not
traced does nothing for it, and one that is measures every cycle instead of one in ten. The packages are the extra
`fairlead[tracing]`; without it requesting traces is an error that says so.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from fairlead import __version__
from fairlead.errors import ConfigError

if TYPE_CHECKING:
    from fairlead.core.model.figures import Sample

MISSING = 'tracing needs further packages: pip install "fairlead[tracing]"'


class CycleTracer:
    """Turns samples into spans. `exporter` is an OpenTelemetry SpanExporter; spans are sent in batches, in a thread of
    its own, and dropped when it cannot keep up."""

    def __init__(self, exporter: Any, *, offset: float | None = None) -> None:
        """`offset` is the difference between the time of day and the meter's clock, in seconds."""
        try:
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError as error:
            raise ConfigError(MISSING) from error
        self._offset = time.time() - time.monotonic() if offset is None else offset
        self._provider = TracerProvider(resource=Resource.create({"service.name": "fairlead"}), shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(exporter))
        self._tracer = self._provider.get_tracer("fairlead", __version__)

    def take(self, samples: Iterable[Sample]) -> None:
        for _, calls in groupby(samples, attrgetter("cycle")):
            self._cycle(list(calls))

    def _cycle(self, calls: list[Sample]) -> None:
        from opentelemetry.trace import set_span_in_context

        began = min(call.began for call in calls)
        ended = max(call.began + call.seconds for call in calls)
        about = {"fairlead.pod": calls[0].pod, "fairlead.profile": calls[0].profile}
        cycle = self._tracer.start_span("scheduling cycle", attributes=about, start_time=self._at(began))
        within = set_span_in_context(cycle)
        for call in calls:
            attributes = {"fairlead.plugin": call.plugin, "fairlead.point": call.point, "fairlead.status": call.status}
            name = f"{call.plugin} {call.point}"
            span = self._tracer.start_span(name, context=within, attributes=attributes, start_time=self._at(call.began))
            span.end(self._at(call.began + call.seconds))
        cycle.end(self._at(ended))

    def _at(self, moment: float) -> int:
        return int((moment + self._offset) * 1e9)

    def close(self) -> None:
        """Send what is left."""
        self._provider.shutdown()


def tracer_to(endpoint: str) -> CycleTracer:
    """A tracer that sends to a collector over OTLP and HTTP, for example http://localhost:4318/v1/traces."""
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    except ImportError as error:
        raise ConfigError(MISSING) from error
    return CycleTracer(OTLPSpanExporter(endpoint=endpoint))
