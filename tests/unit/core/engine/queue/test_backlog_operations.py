"""The operations of the queue, one by one (core specification, 2.7)."""

from __future__ import annotations

import pytest

from fairlead.core.framework.plugin import Hint
from fairlead.core.framework.profile import profile_of
from fairlead.core.model.events import UNSCHEDULABLE_TIMEOUT, ActionType, ClusterEvent
from tests.support.waiting import NODE_ADD, POD_GONE, PROFILE, T0, ByPriority, FilterPlugin, QueueScenario, on, saying

NODE_LABEL = ClusterEvent("Node", ActionType.UPDATE_NODE_LABEL)


# ---- add, update, delete ----


def test_a_new_pod_is_active_and_counted() -> None:
    room = QueueScenario()
    pod = room.add("a")
    assert room.queue(pod) == "active"
    assert room.backlog.tallies.incoming == {("active", "UnschedulablePodAdd"): 1}


def test_a_new_pod_with_a_nominated_node_is_nominated() -> None:
    room = QueueScenario()
    pod = room.add("a", nominated="node-1")
    assert room.backlog.nominator.on_node("node-1") == [pod]


def test_an_update_in_flight_is_replayed_when_the_pod_comes_back() -> None:
    room = QueueScenario(FilterPlugin("Tolerant", (on("Pod", ActionType.UPDATE_POD_TOLERATION),)))
    old = room.add("a")
    entry = room.pop()
    new = room.pod("a", uid=old.uid, tolerations=[{"operator": "Exists"}])
    room.backlog.update(old, new, T0)
    assert room.queue(new) == "in flight"
    room.fail(entry, "Tolerant")
    assert room.queue(new) == "backoff"


def test_an_update_in_the_backoff_queue_replaces_the_pod_there() -> None:
    room = QueueScenario()
    old = room.park("a", "Fit")
    room.backlog.move(NODE_ADD, None, None, T0)
    new = room.pod("a", uid=old.uid, labels={"x": "y"})
    room.backlog.update(old, new, T0)
    assert room.queue(new) == "backoff"
    assert room.pop().pod is new


def test_an_update_asks_the_plugins_of_a_parked_pod() -> None:
    room = QueueScenario(FilterPlugin("Labels", (on("Pod", ActionType.UPDATE_POD_LABEL),)))
    old = room.park("a", "Labels")
    plain = room.pod("a", uid=old.uid, nominated="")
    room.backlog.update(old, plain, T0 + 60)
    assert room.queue(plain) == "unschedulable"
    labelled = room.pod("a", uid=old.uid, labels={"x": "y"})
    room.backlog.update(plain, labelled, T0 + 60)
    assert room.queue(labelled) == "active"
    assert room.pop().pod is labelled
    assert room.backlog.tallies.incoming["active", "UnschedulablePodUpdatePodLabel"] == 1


def test_an_update_with_several_changes_stops_at_the_first_that_helps() -> None:
    asked = []
    interests = [
        on("Pod", action, lambda pod, old, new, action=action: asked.append(action) or Hint.QUEUE)
        for action in (ActionType.UPDATE_POD_LABEL, ActionType.UPDATE_POD_TOLERATION)
    ]
    room = QueueScenario(FilterPlugin("Both", interests))
    old = room.park("a", "Both")
    new = room.pod("a", uid=old.uid, labels={"x": "y"}, tolerations=[{"operator": "Exists"}])
    room.backlog.update(old, new, T0 + 60)
    assert asked == [ActionType.UPDATE_POD_LABEL]


def test_an_update_that_helps_during_backoff_leads_to_the_backoff_queue() -> None:
    room = QueueScenario(FilterPlugin("Labels", (on("Pod", ActionType.UPDATE_POD_LABEL),)))
    old = room.park("a", "Labels")
    new = room.pod("a", uid=old.uid, labels={"x": "y"})
    room.backlog.update(old, new, T0 + 0.5)
    assert room.queue(new) == "backoff"


def test_an_update_of_an_unknown_pod_adds_it() -> None:
    room = QueueScenario()
    pod = room.pod("a")
    room.backlog.update(pod, pod, T0)
    assert room.queue(pod) == "active"
    assert room.backlog.tallies.incoming == {("active", "UnschedulablePodUpdate"): 1}


@pytest.mark.parametrize("queue", ["active", "backoff", "unschedulable", "gated"])
def test_a_deleted_pod_leaves_its_queue_its_nomination_and_the_gauges(queue: str) -> None:
    room = QueueScenario()
    if queue == "gated":
        room.gate.shut = {"a"}
    pod = room.add("a", nominated="node-1")
    if queue in ("backoff", "unschedulable"):
        room.fail(room.pop(), "Fit")
    if queue == "backoff":
        room.backlog.move(NODE_ADD, None, None, T0)
    assert room.queue(pod) == queue
    room.backlog.delete(pod, T0)
    assert room.queue(pod) == "gone"
    assert room.backlog.nominator.on_node("node-1") == []
    assert not room.backlog.tallies.blamed
    assert set(room.backlog.counts().values()) == {0}


def test_deleting_an_unknown_pod_does_nothing() -> None:
    room = QueueScenario()
    room.backlog.delete(room.pod("a"), T0)
    room.backlog.check()


# ---- worth another attempt? ----


def test_an_event_of_interest_leads_to_backoff_while_it_lasts_and_to_active_after() -> None:
    room = QueueScenario()
    first, second = room.park("a", "Fit", now=T0), room.park("b", "Fit", now=T0 + 10)
    assert room.backlog.move(NODE_ADD, None, None, T0 + 10.5) == 2
    assert (room.queue(first), room.queue(second)) == ("active", "backoff")
    incoming = room.backlog.tallies.incoming
    assert incoming["active", "NodeAdd"] == incoming["backoff", "NodeAdd"] == 1


def test_an_event_wakes_only_pods_whose_plugins_listen_to_it() -> None:
    room = QueueScenario()
    fit, ports = room.park("a", "Fit"), room.park("b", "Ports")
    assert room.backlog.move(POD_GONE, None, None, T0 + 60) == 1
    assert (room.queue(fit), room.queue(ports)) == ("unschedulable", "active")


def test_an_event_that_nobody_listens_to_is_not_even_kept_for_pods_in_flight() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.pop()
    assert room.backlog.move(NODE_LABEL, None, None, T0) == 0
    assert room.backlog.in_flight.events == 0
    room.fail(entry, "Fit")
    assert room.queue(entry.pod) == "unschedulable"


def test_one_plugin_that_says_queue_is_enough() -> None:
    skip, queue = (FilterPlugin(name, (on("Node", 1, saying(h)),)) for name, h in (("S", Hint.SKIP), ("Q", Hint.QUEUE)))
    room = QueueScenario(skip, queue)
    reluctant, both = room.park("a", "S"), room.park("b", "S", "Q")
    room.backlog.move(NODE_ADD, None, None, T0 + 60)
    assert (room.queue(reluctant), room.queue(both)) == ("unschedulable", "active")


def test_a_pending_plugin_that_says_queue_spares_the_backoff() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit", "Ports", pending=["Ports"])
    assert room.backlog.move(POD_GONE, None, None, T0) == 1
    assert room.queue(pod) == "active"


def test_another_plugin_does_not_spare_a_pod_the_backoff_that_is_pending_elsewhere() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit", "Ports", pending=["Ports"])
    assert room.backlog.move(NODE_ADD, None, None, T0) == 1
    assert room.queue(pod) == "backoff"


def test_all_plugins_are_asked_for_the_sake_of_a_pending_one_that_registered_later() -> None:
    room = QueueScenario(FilterPlugin("Late", (on("Node", ActionType.ADD | ActionType.DELETE),)))
    pod = room.park("a", "Fit", "Late", pending=["Late"])
    room.backlog.move(NODE_ADD, None, None, T0)
    assert room.queue(pod) == "active"


def test_a_wildcard_event_wakes_everybody_even_those_whose_plugins_listen_to_nothing() -> None:
    room = QueueScenario(FilterPlugin("Deaf"))
    pods = [room.park("a", "Fit"), room.park("b", "Deaf")]
    assert room.backlog.move(UNSCHEDULABLE_TIMEOUT, None, None, T0 + 60) == 2
    assert [room.queue(pod) for pod in pods] == ["active", "active"]


def test_a_wildcard_event_for_one_pod_leaves_the_others() -> None:
    room = QueueScenario()
    first, second = room.park("a", "Fit"), room.park("b", "Fit")
    assert room.backlog.move(UNSCHEDULABLE_TIMEOUT, None, second, T0 + 60) == 1
    assert (room.queue(first), room.queue(second)) == ("unschedulable", "active")


def test_a_move_can_be_restricted_to_some_pods() -> None:
    room = QueueScenario()
    low, high = room.park("a", "Fit", priority=1), room.park("b", "Fit", priority=5)
    assert room.backlog.move(NODE_ADD, None, None, T0 + 60, only=lambda entry: entry.pod.priority <= 1) == 1
    assert (room.queue(low), room.queue(high)) == ("active", "unschedulable")


# ---- pop, done, put back ----


def test_popping_registers_in_flight_counts_the_attempt_and_lowers_the_gauge() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit")
    assert room.backlog.tallies.blamed == {("Fit", PROFILE): 1}
    room.backlog.move(NODE_ADD, None, None, T0 + 60)
    assert room.backlog.tallies.blamed == {("Fit", PROFILE): 1}
    entry = room.pop()
    assert (room.queue(pod), entry.attempts, room.backlog.cycle) == ("in flight", 2, 2)
    assert not room.backlog.tallies.blamed
    assert room.backlog.in_flight.counts == {"PodPopped": 1}


def test_an_empty_queue_has_nothing_to_pop() -> None:
    assert QueueScenario().backlog.pop(T0) is None


def test_when_nobody_is_active_a_refused_pod_is_popped_before_its_backoff_ends() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit")
    room.backlog.move(NODE_ADD, None, None, T0)
    room.add("b")
    assert room.pop(T0).pod.name == "b"
    assert room.pop(T0).pod is pod
    assert room.backlog.tallies.incoming["active", "PopFromBackoffQ"] == 1


def test_a_pod_that_met_an_error_is_never_popped_early() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.fail(room.pop())
    assert room.queue(entry.pod) == "backoff"
    assert room.backlog.pop(T0 + 1.9) is None
    assert not room.backlog.has_active()


def test_a_pod_that_is_in_flight_already_is_discarded_and_the_next_one_popped() -> None:
    room = QueueScenario()
    pod = room.add("a")
    room.pop()
    room.backlog.add(pod, T0)
    room.add("b")
    assert room.pop().pod.name == "b"
    assert list(room.backlog.complaints) == [
        "the same pod is tracked in multiple places in the scheduler: default/a",
    ]


def test_a_pod_in_particular_can_be_popped_from_wherever_it_waits() -> None:
    room = QueueScenario()
    active, parked = room.add("active", priority=9), None
    room.add("first", priority=10)
    room.gate.shut = {"shut"}
    shut = room.add("shut")
    room.fail(room.pop(), "Fit")
    assert room.backlog.take(active, T0).pod is active
    parked = room.backlog.where(active.uid)
    assert parked is not None
    assert parked.queue == "in flight"
    assert room.backlog.take(shut, T0) is None
    assert room.backlog.take(room.pod("unknown"), T0) is None


def test_events_are_kept_only_while_a_pod_that_needs_them_is_in_flight() -> None:
    room = QueueScenario()
    room.backlog.move(NODE_ADD, None, None, T0)
    assert room.backlog.in_flight.events == 0
    room.add("a")
    room.add("b")
    first = room.pop()
    room.backlog.move(NODE_ADD, None, None, T0)
    second = room.pop()
    room.backlog.move(POD_GONE, None, None, T0)
    assert room.backlog.in_flight.counts == {"NodeAdd": 1, "AssignedPodDelete": 1, "PodPopped": 2}
    room.backlog.done(first.pod.uid)
    assert room.backlog.in_flight.counts == {"AssignedPodDelete": 1, "PodPopped": 1}
    room.backlog.done(second.pod.uid)
    room.backlog.done(second.pod.uid)
    assert not room.backlog.in_flight.counts
    assert (room.backlog.in_flight.events, len(room.backlog.in_flight)) == (0, 0)


def test_events_of_a_younger_pod_stay_for_an_older_one() -> None:
    room = QueueScenario()
    room.add("a")
    room.add("b")
    older, younger = room.pop(), room.pop()
    room.backlog.move(NODE_ADD, None, None, T0)
    room.backlog.done(younger.pod.uid)
    assert room.backlog.in_flight.events == 1
    room.fail(older, "Fit")
    assert room.queue(older.pod) == "backoff"


def test_a_refused_pod_is_parked_if_nothing_happened_meanwhile() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit")
    assert room.queue(pod) == "unschedulable"
    assert room.backlog.tallies.incoming["unschedulable", "ScheduleAttemptFailure"] == 1
    assert len(room.backlog.in_flight) == 0


def test_what_happened_before_the_pod_was_popped_does_not_count() -> None:
    room = QueueScenario()
    room.add("first")
    room.pop()
    room.add("a")
    room.backlog.move(NODE_ADD, None, None, T0)
    entry = room.fail(room.pop(), "Fit")
    assert room.queue(entry.pod) == "unschedulable"


def test_a_pending_plugin_that_saw_something_meanwhile_makes_the_pod_active_at_once() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.pop()
    room.backlog.move(NODE_ADD, None, None, T0)
    room.backlog.move(POD_GONE, None, None, T0)
    room.fail(entry, "Fit", "Ports", pending=["Ports"])
    assert room.queue(entry.pod) == "active"
    assert room.backlog.tallies.incoming["active", "ScheduleAttemptFailure"] == 1


def test_an_error_leads_to_backoff_without_looking_at_events() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.fail(room.pop())
    assert room.queue(entry.pod) == "backoff"
    assert room.backlog.tallies.incoming["backoff", "ScheduleAttemptFailure"] == 1


@pytest.mark.parametrize(
    ("queue", "text"),
    [
        ("unschedulable", "Pod default/a is already present in unschedulable queue"),
        ("active", "Pod default/a is already present in the active queue"),
        ("backoff", "Pod default/a is already present in the backoff queue"),
    ],
)
def test_an_entry_that_is_put_back_twice_is_reported_and_stays_where_it_is(queue: str, text: str) -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit")
    if queue != "unschedulable":
        room.backlog.move(NODE_ADD, None, None, T0 if queue == "backoff" else T0 + 60)
    entry = next(iter(room.backlog.queues))
    room.backlog.put_back(entry, T0)
    assert list(room.backlog.complaints) == [text]
    assert room.queue(pod) == queue
    room.backlog.check()


def test_a_pod_made_anew_under_the_name_of_one_in_flight_waits_on_its_own() -> None:
    room = QueueScenario()
    first = room.add("a")
    entry = room.pop()
    room.backlog.delete(first, T0)
    second = room.add("a")
    assert (room.queue(first), room.queue(second)) == ("in flight", "active")
    room.backlog.done(entry.pod.uid)
    assert (room.queue(first), room.queue(second)) == ("gone", "active")


def test_a_pod_that_replaced_its_namesake_unnoticed_takes_its_place_as_a_new_one() -> None:
    room = QueueScenario()
    first = room.park("a", "Fit", nominated="node-1")
    room.gone(first)
    second = room.pod("a")
    room.backlog.update(first, second, T0 + 1)
    assert (room.queue(first), room.queue(second)) == ("gone", "active")
    assert len(room.backlog.nominator) == 0
    room.backlog.check()


# ---- activate, flush, wake ----


def test_activation_brings_parked_and_backing_off_pods_to_the_active_queue() -> None:
    room = QueueScenario()
    parked, resting = room.park("a", "Fit"), room.park("b", "Ports")
    room.backlog.move(POD_GONE, None, None, T0)
    assert room.queue(resting) == "backoff"
    room.backlog.activate([parked, resting, room.pod("unknown")], T0)
    assert (room.queue(parked), room.queue(resting)) == ("active", "active")
    assert room.backlog.tallies.incoming["active", "ForceActivate"] == 2


def test_activation_does_not_ask_the_gates_again_about_a_pod_that_backs_off() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit")
    room.backlog.move(NODE_ADD, None, None, T0)
    room.gate.shut = {"a"}
    room.backlog.activate([pod], T0)
    assert room.queue(pod) == "active"


def test_activation_of_a_pod_in_flight_is_remembered_for_that_pod_alone() -> None:
    room = QueueScenario()
    first, second = room.add("a"), room.add("b")
    entries = [room.pop(), room.pop()]
    room.backlog.activate([second], T0)
    for entry in entries:
        room.fail(entry, "Fit")
    assert (room.queue(first), room.queue(second)) == ("unschedulable", "backoff")


def test_activation_does_not_open_gates_and_leaves_active_pods_alone() -> None:
    room = QueueScenario()
    room.gate.shut = {"a"}
    shut, active = room.add("a"), room.add("b")
    room.backlog.activate([shut, active], T0)
    assert (room.queue(shut), room.queue(active)) == ("gated", "active")
    assert room.backlog.tallies.incoming["active", "ForceActivate"] == 0


def test_the_flush_of_the_backoff_queue_takes_both_heaps() -> None:
    room = QueueScenario()
    refused = room.park("a", "Fit")
    room.backlog.move(NODE_ADD, None, None, T0)
    room.add("b")
    failed = room.fail(room.pop()).pod
    room.backlog.flush(T0 + 2)
    assert (room.queue(refused), room.queue(failed)) == ("active", "active")
    assert room.backlog.tallies.incoming["active", "BackoffComplete"] == 2


def test_pods_parked_for_more_than_five_minutes_are_tried_again_at_the_next_sweep() -> None:
    room = QueueScenario()
    room.backlog.flush(T0)
    pod = room.park("a", "Fit", now=T0)
    for moment in (T0 + 299, T0 + 300, T0 + 329):
        room.backlog.flush(moment)
        assert room.queue(pod) == "unschedulable"
    room.backlog.flush(T0 + 330)
    entry = room.pop()
    assert room.backlog.tallies.incoming["active", "UnschedulableTimeout"] == 1
    assert entry.flushed_at == T0 + 330
    room.fail(entry, "Fit", now=T0 + 331)
    assert entry.flushed_at is None


def test_a_gated_pod_that_is_flushed_is_asked_again_and_then_left_for_another_five_minutes() -> None:
    room = QueueScenario()
    room.backlog.flush(T0)
    room.gate.shut = {"a"}
    pod = room.add("a")
    room.gate.asked.clear()
    for moment in range(0, 661, 30):
        room.backlog.flush(T0 + moment)
    assert room.gate.asked == ["a", "a"]
    assert room.queue(pod) == "gated"


def test_a_flush_is_applied_to_pods_in_flight_as_well() -> None:
    room = QueueScenario()
    room.backlog.flush(T0)
    room.park("a", "Fit", now=T0)
    room.add("b", T0 + 300)
    entry = room.pop()
    room.backlog.flush(T0 + 330)
    room.fail(entry, "Fit", now=T0 + 330)
    assert room.queue(entry.pod) == "backoff"


def test_the_time_that_pods_may_be_parked_is_configurable() -> None:
    room = QueueScenario(unschedulable_limit=60.0)
    room.backlog.flush(T0)
    pod = room.park("a", "Fit", now=T0)
    room.backlog.flush(T0 + 60)
    assert room.queue(pod) == "unschedulable"
    room.backlog.flush(T0 + 90)
    assert room.queue(pod) == "active"


def test_the_next_moment_to_wake_is_now_or_when_a_flush_would_do_something() -> None:
    room = QueueScenario()
    room.backlog.flush(T0)
    assert room.backlog.wake_at(T0) is None
    room.add("a")
    assert room.backlog.wake_at(T0 + 0.5) == T0 + 0.5
    entry = room.pop()
    assert room.backlog.wake_at(T0) is None
    room.fail(entry, now=T0 + 0.5)
    assert room.backlog.wake_at(T0 + 0.5) == T0 + 2
    room.backlog.flush(T0 + 2)
    room.fail(room.pop(), "Fit", now=T0 + 2)
    assert room.backlog.wake_at(T0 + 2) == T0 + 330
    room.backlog.flush(T0 + 330)
    assert room.backlog.wake_at(T0 + 330) == T0 + 330


def test_every_waiting_pod_says_where_it_waits_since_when_for_whom_and_what_would_wake_it() -> None:
    room = QueueScenario()
    room.backlog.flush(T0)
    pod = room.park("a", "Fit", "Ports", now=T0 + 1)
    waiting = room.backlog.where(pod.uid)
    assert waiting is not None
    assert (waiting.queue, waiting.since, waiting.attempts) == ("unschedulable", T0 + 1, 1)
    assert waiting.plugins == ("Fit", "Ports")
    assert waiting.wakes_on == ("NodeAdd", "NodeUpdateNodeTaint", "PodDelete")
    assert (waiting.backoff_until, waiting.retried_at, waiting.message) == (T0 + 2, T0 + 330, "no")
    room.backlog.move(NODE_ADD, None, None, T0 + 1)
    waiting = room.backlog.where(pod.uid)
    assert waiting is not None
    assert (waiting.queue, waiting.backoff_until, waiting.retried_at) == ("backoff", T0 + 2, T0 + 3)
    assert waiting.wakes_on == ()
    assert room.backlog.where("nobody") is None


def test_the_summary_for_debugging_counts_the_three_queues() -> None:
    room = QueueScenario()
    room.park("a", "Fit")
    room.add("b")
    assert room.backlog.queues.summary() == "activeQ:1; backoffQ:0; unschedulablePods:1"
    assert sorted(entry.pod.name for entry in room.backlog.queues) == ["a", "b"]


def test_a_new_configuration_keeps_all_pods_and_gives_the_parked_another_chance() -> None:
    room = QueueScenario()
    parked, active = room.park("parked", "Fit"), room.add("active")
    flying = room.add("flying", priority=9)
    entry = room.pop()
    assert entry.pod is flying
    other = profile_of(PROFILE, [ByPriority(), FilterPlugin("Other")])
    room.backlog.reconfigure({PROFILE: other}, T0 + 60)
    assert [room.queue(pod) for pod in (parked, active, flying)] == ["active", "active", "in flight"]
    room.fail(entry, "Other", now=T0 + 60)
    assert room.queue(flying) == "backoff"
    room.backlog.check()


def test_a_new_configuration_may_order_and_gate_the_active_queue_differently() -> None:
    class Backwards(ByPriority):
        def queue_key(self, pod, since):
            return pod.priority, -since

    room = QueueScenario()
    for priority, name in enumerate(("low", "high", "shut")):
        room.add(name, priority=priority)
    room.gate.shut = {"shut"}
    room.backlog.reconfigure({PROFILE: profile_of(PROFILE, [Backwards(), room.gate])}, T0)
    assert room.drain() == ["low", "high"]
    assert room.backlog.counts()["gated"] == 1


def test_a_new_configuration_changes_the_backoff_only_if_it_says_so() -> None:
    room = QueueScenario(initial_backoff=4.0)
    profiles = {PROFILE: profile_of(PROFILE, room.plugins)}
    room.backlog.reconfigure(profiles, T0)
    room.add("a")
    assert room.fail(room.pop()).backoff_until == T0 + 4
    room.backlog.reconfigure(profiles, T0, initial_backoff=2.0)
    room.add("b")
    assert room.fail(room.pop()).backoff_until == T0 + 2
