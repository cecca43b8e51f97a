"""Which statuses of a Job are written later, and when."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc
from fairlead.volcano.jobs.job_holding import HeldStatuses
from fairlead.volcano.jobs.phases import JobState, PodCounts

KEY = ("default", "job")
NEW: Doc = {"metadata": {}, "spec": {}}
RUNNING: Doc = {**NEW, "status": {"state": {"phase": "Running"}, "running": 1}}


class Held:
    """Asks for the Job of one key whether a status is held back."""

    def __init__(self, job: Doc) -> None:
        self.statuses, self._job = HeldStatuses(), job

    def holds(
        self,
        now: float,
        *,
        phase: str = "Running",
        running: int = 0,
        note: str = "",
        busy: bool = False,
        retries: int = 0,
    ) -> bool:
        state = JobState(phase, 0, 0, retries, PodCounts(running=running))
        controlled = {"plugin-svc": note} if note else {}
        return self.statuses.holds(KEY, self._job, state, controlled, now, busy=busy)


def test_numbers_are_written_when_they_have_stood_for_a_second() -> None:
    held = Held(RUNNING)
    assert [held.holds(0.0, running=2), held.holds(0.9, running=3)] == [True, True]
    assert held.statuses.due(KEY) == 1.9
    assert not held.holds(1.9, running=3)
    assert held.statuses.due(KEY) is None


def test_numbers_that_never_stand_are_written_every_five_seconds() -> None:
    held = Held(RUNNING)
    told = [not held.holds(number / 2, running=2 + number) for number in range(22)]
    assert [number / 2 for number, written in enumerate(told) if written] == [5.0, 10.5]


@pytest.mark.parametrize(
    "said", [{"phase": "Completed"}, {"retries": 1}, {"note": "svc"}], ids=["a phase", "a retry", "a note"]
)  # fmt: skip
def test_what_is_not_a_number_is_written_at_once_with_the_numbers(said: dict[str, str | int]) -> None:
    held = Held(RUNNING)
    assert held.holds(0.0, running=2)
    assert not held.holds(0.1, running=3, **said)  # type: ignore[arg-type]
    assert held.statuses.due(KEY) is None


def test_the_first_status_of_a_job_is_written_at_once() -> None:
    assert not Held(NEW).holds(0.0, phase="Pending")
    assert not Held(NEW).holds(0.0, phase="Completed")


def test_a_status_waits_for_other_writes_but_not_for_ever() -> None:
    held = Held(RUNNING)
    assert held.holds(0.0, running=2)
    assert [held.statuses.due_state(KEY, at, busy=True) is None for at in (1.0, 2.0, 4.5, 5.0)] == [
        True,
        True,
        True,
        False,
    ]
    assert held.holds(10.0, running=2)
    assert held.statuses.due_state(KEY, 11.0, busy=False) is not None
