"""The queue with the gate SchedulerPopFromBackoffQ off: nobody is tried before its backoff ends."""

from __future__ import annotations

from tests.support.waiting import NODE_ADD, T0, QueueScenario


def patient() -> QueueScenario:
    return QueueScenario(pops_early=False)


def test_a_refused_pod_is_not_popped_before_its_backoff_ends() -> None:
    room = patient()
    pod = room.park("a", "Fit", now=T0 + 0.3)
    room.backlog.move(NODE_ADD, None, None, T0 + 0.4)
    assert room.queue(pod) == "backoff"
    assert not room.backlog.has_active()
    assert room.backlog.pop(T0 + 0.5) is None


def test_expiry_is_not_cut_to_the_second_and_is_looked_at_once_in_a_second() -> None:
    room = patient()
    pod = room.park("a", "Fit", now=T0 + 0.3)
    room.backlog.move(NODE_ADD, None, None, T0 + 0.4)
    waiting = room.backlog.where(pod.uid)
    assert waiting is not None
    assert (waiting.backoff_until, waiting.retried_at) == (T0 + 1.3, T0 + 2)
    assert room.backlog.wake_at(T0 + 0.4) == T0 + 2
    room.backlog.flush(T0 + 1.9)
    assert room.queue(pod) == "backoff"
    room.backlog.flush(T0 + 2)
    assert room.queue(pod) == "active"


def test_an_event_after_the_backoff_and_within_its_second_makes_a_pod_active_at_once() -> None:
    room = patient()
    pod = room.park("a", "Fit", now=T0 + 0.3)
    room.backlog.move(NODE_ADD, None, None, T0 + 1.31)
    assert room.queue(pod) == "active"


def test_gates_are_passed_after_the_backoff_and_not_before_it() -> None:
    room = patient()
    pod = room.park("a", "Fit")
    room.gate.asked.clear()
    room.gate.shut = {"a"}
    room.backlog.move(NODE_ADD, None, None, T0 + 0.1)
    assert (room.queue(pod), room.gate.asked) == ("backoff", [])
    room.backlog.flush(T0 + 2)
    assert (room.queue(pod), room.gate.asked) == ("gated", ["a"])
    room.backlog.check()


def test_activation_asks_the_gates_of_a_pod_that_backs_off() -> None:
    room = patient()
    pod = room.park("a", "Fit")
    room.backlog.move(NODE_ADD, None, None, T0 + 0.1)
    room.gate.shut = {"a"}
    room.backlog.activate([pod], T0 + 0.2)
    assert room.queue(pod) == "gated"
