"""The entry, the order of the queues and the backoff (core specification, 2.3 to 2.5)."""

from __future__ import annotations

import pytest

from fairlead.core.engine.queue.backoff import PodBackoff
from tests.support.waiting import NODE_ADD, T0, QueueScenario


def test_an_entry_counts_attempts_and_remembers_when_it_first_became_active() -> None:
    room = QueueScenario()
    room.add("a", T0)
    entry = room.pop(T0 + 1)
    assert (entry.since, entry.attempts, entry.first_attempt) == (T0, 1, T0)
    room.fail(entry, "Fit", now=T0 + 2)
    room.backlog.move(NODE_ADD, None, None, T0 + 60)
    entry = room.pop(T0 + 61)
    assert (entry.since, entry.attempts, entry.first_attempt) == (T0 + 2, 2, T0)


def test_the_first_attempt_of_a_gated_pod_is_counted_from_when_it_entered_the_active_queue() -> None:
    room = QueueScenario()
    room.gate.shut = {"a"}
    old = room.add("a", T0, gates=["wait"])
    room.gate.shut = set()
    room.backlog.update(old, room.pod("a", uid=old.uid), T0 + 50)
    assert room.pop().first_attempt == T0 + 50


def test_an_update_swaps_the_pod_and_keeps_the_rest() -> None:
    room = QueueScenario()
    old = room.add("a", T0)
    new = room.pod("a", uid=old.uid, labels={"x": "y"})
    room.backlog.update(old, new, T0 + 5)
    entry = room.pop()
    assert entry.pod is new
    assert entry.since == T0


def test_the_active_queue_is_ordered_by_priority_then_by_time() -> None:
    room = QueueScenario()
    room.add("late", T0 + 2)
    room.add("early", T0 + 1)
    room.add("important", T0 + 3, priority=10)
    room.add("unimportant", T0, priority=-1)
    assert room.drain() == ["important", "early", "late", "unimportant"]


def test_equals_leave_in_the_order_they_came() -> None:
    room = QueueScenario()
    names = [f"pod-{number}" for number in range(20)]
    for name in names:
        room.add(name, T0)
    assert room.drain() == names


def test_an_update_that_changes_the_order_is_followed_at_once() -> None:
    room = QueueScenario()
    room.add("a", T0)
    old = room.add("b", T0 + 1)
    room.backlog.update(old, room.pod("b", uid=old.uid, priority=5), T0 + 2)
    assert room.drain() == ["b", "a"]


def test_pods_that_back_off_are_ordered_by_expiry_and_within_a_second_by_priority() -> None:
    room = QueueScenario()
    entries = {}
    for name, priority in (("low", 0), ("high", 9), ("later", 99)):
        room.add(name, T0, priority=priority)
        entries[name] = room.pop()
    for name, moment in (("low", T0 + 0.1), ("high", T0 + 0.9), ("later", T0 + 1.1)):
        room.fail(entries[name], "Fit", now=moment)
    room.backlog.move(NODE_ADD, None, None, T0 + 1.2)
    assert room.backlog.counts()["backoff"] == 3
    assert room.drain(T0 + 1.2) == ["high", "low", "later"]


def test_errors_and_refusals_wait_in_separate_heaps() -> None:
    room = QueueScenario()
    room.add("refused")
    room.add("failed")
    refused, failed = room.pop(), room.pop()
    room.fail(failed)
    room.fail(refused, "Fit")
    room.backlog.move(NODE_ADD, None, None, T0)
    assert room.backlog.counts()["backoff"] == 2
    assert room.pop(T0).pod.name == "refused"
    assert room.backlog.pop(T0) is None


@pytest.mark.parametrize(("failures", "seconds"), [(1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (2000, 10)])
def test_the_backoff_doubles_up_to_its_maximum(failures: int, seconds: float) -> None:
    assert PodBackoff(1.0, 10.0).duration(failures) == seconds


def test_a_doubling_that_meets_the_maximum_exactly_is_not_cut() -> None:
    assert [PodBackoff(2.0, 16.0).duration(n) for n in (1, 2, 3, 4, 5)] == [2, 4, 8, 16, 16]
    assert PodBackoff(20.0, 10.0).duration(1) == 10


def test_expiry_is_cut_to_the_second_and_that_second_still_backs_off() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.fail(room.pop(), now=T0 + 0.7)
    assert entry.backoff_until == T0 + 1
    for moment in (T0 + 1.0, T0 + 1.999):
        room.backlog.flush(moment)
        assert room.queue(entry.pod) == "backoff"
    room.backlog.flush(T0 + 2.0)
    assert room.queue(entry.pod) == "active"


def test_an_error_counts_by_itself_and_a_refusal_ends_the_count_of_errors() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.pop()
    counted = []
    for moment, plugins in ((T0, []), (T0 + 10, []), (T0 + 20, ["Fit"]), (T0 + 30, ["Fit"]), (T0 + 40, [])):
        room.fail(entry, *plugins, now=moment)
        room.backlog.move(NODE_ADD, None, None, moment + 9)
        room.backlog.flush(moment + 9)
        counted.append((entry.error_count, entry.unschedulable_count, entry.backoff_until))
        assert room.pop(moment + 9) is entry
    assert counted == [(1, 0, T0 + 1), (2, 0, T0 + 12), (0, 1, T0 + 21), (0, 2, T0 + 32), (1, 2, T0 + 41)]


def test_the_expiry_is_computed_anew_only_after_an_attempt() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit")
    first = room.backlog.where(pod.uid)
    room.backlog.move(NODE_ADD, None, None, T0 + 0.5)
    second = room.backlog.where(pod.uid)
    assert first is not None
    assert second is not None
    assert first.backoff_until == second.backoff_until == T0 + 1


def test_a_maximum_of_zero_disables_backoff() -> None:
    room = QueueScenario(max_backoff=0.0)
    room.add("a")
    entry = room.fail(room.pop())
    assert room.queue(entry.pod) == "active"


def test_initial_and_maximum_are_configurable() -> None:
    room = QueueScenario(initial_backoff=3.0, max_backoff=5.0)
    room.add("a")
    entry = room.fail(room.pop())
    assert entry.backoff_until == T0 + 3
    room.backlog.flush(T0 + 4)
    room.fail(room.pop(), now=T0 + 4)
    assert entry.backoff_until == T0 + 9
