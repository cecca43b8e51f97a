"""Equal events are one object with a count, except the one that is told of a pod once."""

from fairlead.core.engine.cycle.events import EventRecorder, EventText
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.pod import Shapes, compile_pod
from tests.support.documents import pod


def told(recorder: EventRecorder, kind: str, reason: str, now: float) -> list[Write]:
    one = compile_pod(pod("a"), Shapes())
    return recorder.record(
        one, EventText(kind=kind, reason=reason, action="Binding", note="said"), now=now, controller="default-scheduler"
    )


def test_a_failure_that_is_reported_again_is_counted_in_the_first_event() -> None:
    recorder = EventRecorder("host")
    verbs = [told(recorder, "Warning", "FailedScheduling", now)[0].verb for now in (1.0, 2.0)]
    assert verbs == [Verb.CREATE, Verb.PATCH]


def test_that_a_pod_was_scheduled_is_not_remembered() -> None:
    recorder = EventRecorder("host")
    verbs = [told(recorder, "Normal", "Scheduled", now)[0].verb for now in (1.0, 2.0)]
    assert verbs == [Verb.CREATE, Verb.CREATE]


def test_who_does_not_announce_counts_what_it_would_have_said() -> None:
    recorder = EventRecorder("host", announces=False)
    assert [told(recorder, "Normal", "Scheduled", now) for now in (1.0, 2.0)] == [[], []]
    assert recorder.unwritten == {"Scheduled": 2}
