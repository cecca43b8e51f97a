"""A gang is one entry of the queue, and its members are counted as the pods they are."""

from __future__ import annotations

import pytest

from fairlead.core.engine.queue.backoff import PodBackoff
from fairlead.core.engine.queue.entry import Entry
from fairlead.core.model.flow import Happened
from tests.support.documents import group, member, members, node, pod
from tests.support.scheduling import SchedulerScenario, gang_scenario


def _entry(stage: SchedulerScenario, name: str = "g") -> Entry:
    return next(entry for entry in stage.backlog.queues if entry.gang is not None and entry.gang.name == name)


def test_every_member_is_a_pending_pod() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("gated", 4), *members("gated", 3), group("large", 5), *members("large", 5), pod("alone", cpu="9"))
    assert stage.backlog.counts() == {"active": 0, "backoff": 0, "unschedulable": 6, "gated": 3}


def test_a_member_behind_gates_is_gated_while_its_gang_is_not() -> None:
    stage = gang_scenario(nodes=1)
    held = member("g-9", "g", schedulingGates=[{"name": "later"}])
    stage.tell(group("g", 5), *members("g", 5), held)
    assert stage.backlog.counts() == {"active": 0, "backoff": 0, "unschedulable": 5, "gated": 1}


def test_a_member_whose_gates_open_wakes_its_gang() -> None:
    stage = gang_scenario(nodes=1)
    held = member("g-2", "g", schedulingGates=[{"name": "later"}])
    stage.tell(group("g", 3), *members("g", 2), held)
    assert not stage.binds()
    stage.change(held, schedulingGates=[])
    stage.run(after=3.0)
    assert len(stage.binds()) == 3


def test_a_smaller_minimum_is_tried_at_once_and_a_written_condition_is_not() -> None:
    """minCount may be changed since 1.37. The group's status, which the scheduler writes itself, wakes nobody."""
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 5), *members("g", 5))
    attempts = _entry(stage).attempts
    told = {**group("g", 5), "status": {"conditions": []}}
    stage.tell(told, happened=Happened.MODIFIED)
    assert _entry(stage).attempts == attempts
    stage.tell(group("g", 4), happened=Happened.MODIFIED)
    assert len(stage.binds()) == 4


def test_members_that_leave_do_not_count() -> None:
    stage = gang_scenario(nodes=1)
    docs = members("g", 6)
    stage.tell(group("g", 5), *docs)
    stage.gone(docs[0])
    assert stage.backlog.counts()["unschedulable"] == 5


@pytest.mark.parametrize(("size", "most"), [(1, 10.0), (5, 50.0), (1000, 300.0)])
def test_a_refused_gang_is_put_off_the_longer_the_larger_it_is(size: int, most: float) -> None:
    stage = gang_scenario()
    stage.tell(node("n0", cpu="1"), group("g", size), *members("g", size, cpu="4"))
    entry = _entry(stage)
    entry.unschedulable_count = 60
    entry.backoff_until = None
    assert PodBackoff().until(entry) == entry.since + most


def test_the_first_times_are_as_short_as_a_pods() -> None:
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 50), *members("g", 50))
    entry = _entry(stage)
    durations = []
    for count in (1, 2, 3, 4, 5):
        entry.unschedulable_count, entry.backoff_until = count, None
        durations.append(PodBackoff().until(entry) - entry.since)
    assert durations == [1.0, 2.0, 4.0, 8.0, 16.0]


def test_neither_an_error_nor_a_gang_that_has_started_is_put_off_longer() -> None:
    stage = gang_scenario(nodes=1)
    docs = members("g", 5, cpu="2")
    docs[0]["spec"]["nodeName"] = "n0"
    stage.tell(group("g", 5), *docs)
    entry = _entry(stage)
    assert entry.gang is not None
    assert entry.gang.is_half_bound
    entry.unschedulable_count, entry.backoff_until = 60, None
    assert PodBackoff().until(entry) == entry.since + 10.0
    stage.tell(group("h", 5), *members("h", 5, cpu="2"))
    other = _entry(stage, "h")
    other.unschedulable_count, other.error_count, other.backoff_until = 60, 60, None
    assert PodBackoff().until(other) == other.since + 10.0


def test_a_gang_without_others_to_wait_for_is_tried_at_once() -> None:
    """However long its backoff: when nobody else is active, an event that may help is enough."""
    stage = gang_scenario(nodes=1)
    stage.tell(group("g", 6), *members("g", 6))
    _entry(stage).unschedulable_count = 60
    stage.tell(node("n1"))
    assert len(stage.binds()) == 6
