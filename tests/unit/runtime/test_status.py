"""What a scheduler says of itself: its status, its traces, and pods that want to be told of."""

from __future__ import annotations

import logging
from concurrent.futures import Future
from typing import Any

import pytest
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from fairlead.assembly.schedulers import default_scheduler
from fairlead.cli.status.command import as_text, troubles_of
from fairlead.core.engine.explain.figures import VERBOSITY_ANNOTATION, figures_of, loud_decisions
from fairlead.core.model.figures import Figures, Sample
from fairlead.runtime.status import Rate, SchedulerStatus
from fairlead.runtime.tracing import CycleTracer
from fairlead.testing.builders import node, pod
from fairlead.testing.harness import Harness


def status_of(figures: Figures, **more: Any) -> SchedulerStatus:
    answer: Future[Figures] = Future()
    answer.set_result(figures)
    silences = more.pop("silences", {"pods": 3.0})
    return SchedulerStatus(
        lambda: answer,
        elector=None,
        bound=Rate(),
        unreachable=lambda: 0.0,
        silences=lambda now: silences,
        profiles=lambda: ["fairlead"],
        **more,
    )


async def test_a_healthy_scheduler_has_no_troubles() -> None:
    status = status_of(Figures(pending={"active": 2, "backoff": 0}, nodes=5, pods=7))
    with status.keeping_last_error():
        logging.getLogger("fairlead.scheduler").warning("binding pods %s failed", "default/web-0")
    document = await status.document()
    assert troubles_of(document) == []
    text = "\n".join(as_text(document, []))
    assert "5 nodes, 7 pods" in text
    assert "2 active, 0 backoff" in text
    assert "binding pods default/web-0 failed" in text


async def test_what_is_wrong_is_said() -> None:
    document = await status_of(Figures(drift=2, quarantined=1), silences={"nodes": 90.0}).document()
    assert troubles_of(document) == [
        "no news of nodes",
        "1 objects are quarantined",
        "the table differed from its pods 2 times, and was repaired",
    ]


def test_a_rate_forgets_what_is_older_than_a_minute() -> None:
    now = [100.0]
    rate = Rate(lambda: now[0])
    for _ in range(30):
        rate.add()
    now[0] = 110.0
    assert rate.per_second() == 3.0
    now[0] = 200.0
    assert rate.per_second() == 0.0


@pytest.mark.parametrize(("wish", "told", "explained"), [("2", True, False), ("4", True, True), ("loud", False, False)])
def test_a_pod_can_ask_to_be_logged(wish: str, told: bool, explained: bool) -> None:
    scheduler = default_scheduler()
    cluster = Harness(nodes=[node("n0")], schedulers=[lambda view: scheduler])
    reader = scheduler.decisions.reader()
    cluster.apply(pod("quiet"), pod("asked").annotated({VERBOSITY_ANNOTATION: wish}))
    cluster.run(2)
    found = loud_decisions(scheduler, reader.read())
    assert [loud.decision.pod for loud in found] == (["default/asked"] if told else [])
    assert [loud.explanation is not None for loud in found] == ([explained] if told else [])


def test_exceptions_and_drift_are_in_the_figures() -> None:
    scheduler = default_scheduler()
    scheduler.guard.do("rounds", lambda: 1 / 0)
    scheduler.guard.audit.found = 3
    figures = figures_of(scheduler)
    assert figures.raised == {"rounds": 1}
    assert figures.drift == 3


def test_a_cycle_is_a_span_with_one_for_each_call_of_a_plugin() -> None:
    exporter = InMemorySpanExporter()
    tracer = CycleTracer(exporter, offset=1000.0)
    tracer.take(
        [
            Sample(1, "fairlead", "NodeName", "filter", "Success", 0.5, "default/a", 10.0),
            Sample(1, "fairlead", "ImageLocality", "score", "Success", 0.25, "default/a", 11.0),
            Sample(2, "fairlead", "NodeName", "filter", "Success", 0.5, "default/b", 12.0),
        ]
    )
    tracer.close()
    spans = exporter.get_finished_spans()
    cycles = [span for span in spans if span.name == "scheduling cycle"]
    assert [span.attributes["fairlead.pod"] for span in cycles if span.attributes] == ["default/a", "default/b"]
    assert (cycles[0].start_time, cycles[0].end_time) == (1010 * 10**9, 1011_250_000_000)
    within = [span.name for span in spans if span.parent and span.parent.span_id == cycles[0].context.span_id]
    assert within == ["NodeName filter", "ImageLocality score"]
