"""What rounds write, and what they do not write again while the watch has not caught up or numbers still change."""

from __future__ import annotations

from fairlead.core.engine.cycle.events import EventRecorder
from fairlead.core.model import kinds
from fairlead.core.model.flow import Write
from fairlead.testing.builders import Builder
from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.records.tasks import TaskStatus
from fairlead.volcano.rounds.action_table import run_actions
from fairlead.volcano.rounds.closing import close_round
from fairlead.volcano.rounds.round import Round
from fairlead.volcano.rounds.writes import RoundWriter
from tests.support.rounds import cluster_of, gang, round_over, small_node, task


class Rounds:
    """Rounds over clusters that one writer tells of."""

    def __init__(self) -> None:
        self.writer = RoundWriter("volcano", EventRecorder("test"))
        self.passed = 0.0

    def told(self, *objects: Builder, running: int = 0) -> list[str]:
        return [f"{write.kind.kind} {write.body.get('reason', 'status')}" for write in self.writes(*objects, n=running)]

    def writes(self, *objects: Builder, n: int = 0) -> list[Write]:
        round = round_over(cluster_of(small_node("a", "2"), *objects))
        for _ in run_actions(round):
            pass
        _start(round, n)
        self.passed += 1.0  # a second from one round to the next
        round.now += self.passed
        writes = self.writer.closing(round, close_round(round))
        return [write for write in writes if write.kind is not VC_QUEUE]


def _start(round: Round, running: int) -> None:
    """If any shall run: so many of the job's pods do, and the others are bound."""
    job = round.jobs["default/job"]
    for index in range(len(job.tasks) if running else 0):
        job.move(task(round, f"job-{index}"), TaskStatus.RUNNING if index < running else TaskStatus.BOUND)


def too_large() -> list[Builder]:
    return gang("job", 3, at_least=3, cpu="1")


def test_what_was_written_of_an_object_is_not_written_again_before_the_watch_shows_it() -> None:
    rounds = Rounds()
    first = rounds.told(*too_large())
    assert sorted(first) == sorted(
        ["PodGroup status", "Event Unschedulable"] + 3 * ["Pod status", "Event FailedScheduling"]
    )
    assert rounds.told(*too_large()) == []


def test_a_status_that_was_refused_is_written_again() -> None:
    rounds = Rounds()
    for write in rounds.writes(*too_large()):
        if write.name == "job-1":
            rounds.writer.written.failed(write)
    again, event = rounds.writes(*too_large())
    assert (again.kind, again.name) == (kinds.POD, "job-1")
    assert event.body["series"]["count"] == 2


def test_an_event_is_reported_again_after_half_an_hour() -> None:
    told = Rounds().writer.written
    assert [told.is_news("u", "Warning", "Unschedulable", "full", at) for at in (0.0, 60.0, 1800.0)] == [
        True,
        False,
        True,
    ]
    assert told.is_news("u", "Normal", "Scheduled", "ready", 1900.0)
    assert told.is_news("u", "Warning", "Unschedulable", "full", 1901.0)


def test_a_gang_gets_the_reason_that_it_is_too_small_when_no_more_pods_come() -> None:
    rounds = Rounds()
    for members in (1, 2, 2):
        assert rounds.told(*gang("job", members, at_least=4, cpu="1")) == []
        assert rounds.writer.written.holding
    said = rounds.told(*gang("job", 2, at_least=4, cpu="1"))
    assert said[:2] == ["PodGroup status", "Event Unschedulable"]
    assert said.count("Pod status") == 2
    assert not rounds.writer.written.holding


def test_a_gang_whose_pods_never_stop_coming_is_reported_after_half_a_minute() -> None:
    rounds = Rounds()
    told = [rounds.told(*gang("job", members, at_least=40, cpu="1")) for members in range(1, 34)]
    assert [bool(said) for said in told] == [False] * 30 + [True, False, False]


def test_numbers_of_running_pods_are_written_when_they_stand() -> None:
    members = gang("job", 2, at_least=2, status={"phase": "Running"}, cpu="1")
    conditions = [
        {"type": "Scheduled", "status": "True", "reason": "tasks in gang are ready to be scheduled", "message": ""}
    ]
    members[0] = members[0].showing(conditions=conditions)
    rounds = Rounds()
    assert rounds.told(*members, running=1) == []
    for _ in range(2):
        assert rounds.told(*members, running=2) == []
    assert rounds.told(*members, running=2) == ["PodGroup status", "Event Scheduled"]


def test_a_group_whose_pods_are_being_bound_waits_for_its_phase_and_gets_no_warning() -> None:
    """It is Running a moment later, which is one status; one whose binds take long says what it waits for."""
    rounds = Rounds()
    for _ in range(2):
        assert rounds.told(*gang("job", 2, at_least=2, cpu="1")) == []
        assert rounds.writer.written.holding
    assert rounds.told(*gang("job", 2, at_least=2, cpu="1")) == ["PodGroup status"]
    assert not rounds.writer.written.holding


def test_a_group_that_was_bound_at_once_is_written_once_with_phase_and_conditions() -> None:
    rounds, members = Rounds(), gang("job", 2, at_least=2, cpu="1")
    assert rounds.told(*members) == []
    status, event = rounds.writes(*members, n=1)
    assert (status.body["status"]["phase"], status.body["status"]["running"]) == ("Running", 1)
    assert [condition["type"] for condition in status.body["status"]["conditions"]] == ["Scheduled"]
    assert event.body["reason"] == "Scheduled"


def test_the_sums_of_a_queue_are_written_at_once_and_then_every_two_seconds() -> None:
    told = Rounds().writer.written
    said = [told.is_new_sum("q", version="1", said=number, now=number / 2) for number in range(8)]
    assert said == [True, False, False, False, True, False, False, False]
    assert told.holding, "a round has to come for the last of them"
    told.holding = False
    assert not told.is_new_sum("q", version="1", said=4, now=9.0), "this was written"
    assert not told.holding
