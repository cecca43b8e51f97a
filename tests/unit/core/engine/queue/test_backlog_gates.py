"""PreEnqueue and gated pods (core specification, 2.6)."""

from __future__ import annotations

from fairlead.core.model.events import UNSCHEDULABLE_TIMEOUT, ActionType, ClusterEvent
from fairlead.core.model.reasons import failed
from tests.support.waiting import NODE_ADD, PROFILE, T0, GatePlugin, QueueScenario, on

GATES_GONE = ClusterEvent("UnschedulablePod", ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)


def gated(room: QueueScenario, name: str = "a", now: float = T0):
    room.gate.shut.add(name)
    pod = room.add(name, now, gates=["wait"])
    assert room.queue(pod) == "gated"
    return pod


def test_a_gated_pod_does_not_enter_the_queue_and_blames_its_gate() -> None:
    room = QueueScenario()
    pod = gated(room)
    waiting = room.backlog.where(pod.uid)
    assert waiting is not None
    assert (waiting.plugins, waiting.gated_by, waiting.message) == (("Gate",), "Gate", "Gate is shut")
    assert room.backlog.pop(T0) is None
    assert room.backlog.counts() == {"active": 0, "backoff": 0, "unschedulable": 0, "gated": 1}
    assert room.backlog.tallies.blamed == {("Gate", PROFILE): 1}


def test_the_first_gate_that_is_shut_ends_the_round_and_is_asked_first_next_time() -> None:
    second, third = GatePlugin("Second"), GatePlugin("Third")
    room = QueueScenario(second, third)
    second.shut = {"a"}
    pod = room.add("a")
    assert (room.gate.asked, second.asked, third.asked) == (["a"], ["a"], [])
    room.backlog.activate([pod], T0)
    assert (room.gate.asked, second.asked, third.asked) == (["a"], ["a", "a"], [])
    second.shut = set()
    room.backlog.activate([pod], T0)
    assert (room.gate.asked, second.asked, third.asked) == (["a", "a"], ["a"] * 3, ["a"])
    assert room.queue(pod) == "active"


def test_an_error_shuts_the_gate_and_is_reported() -> None:
    room = QueueScenario()
    room.gate.answer = failed("cannot tell")
    gated(room)
    assert "cannot tell" in room.backlog.complaints[0]


def test_a_gate_that_raises_shuts_itself_for_that_pod_only() -> None:
    class Broken(GatePlugin):
        def pre_enqueue(self, pod, cluster):
            if pod.name in self.shut:
                raise LookupError("oops")

    broken = Broken("Broken")
    broken.shut = {"a"}
    room = QueueScenario(broken)
    first, second = room.add("a"), room.add("b")
    assert (room.queue(first), room.queue(second)) == ("gated", "active")
    assert "oops" in room.backlog.complaints[0]


def test_gates_are_asked_when_a_pod_goes_to_backoff_and_not_again_when_it_leaves_it() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.pop()
    room.gate.asked.clear()
    room.fail(entry)
    assert room.gate.asked == ["a"]
    room.gate.shut = {"a"}
    room.backlog.flush(T0 + 2)
    assert room.gate.asked == ["a"]
    assert room.queue(entry.pod) == "active"


def test_a_pod_may_be_gated_on_its_way_to_backoff() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.pop()
    room.gate.shut = {"a"}
    room.fail(entry)
    assert room.queue(entry.pod) == "gated"


def test_a_pod_leaves_the_backoff_early_without_being_asked_again() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit")
    room.backlog.move(NODE_ADD, None, None, T0)
    room.gate.shut = {"a"}
    assert room.pop(T0).pod is pod


def test_the_pod_becomes_active_when_its_gates_are_gone() -> None:
    room = QueueScenario()
    old = gated(room)
    room.gate.shut.clear()
    new = room.pod("a", uid=old.uid)
    room.backlog.update(old, new, T0 + 1)
    assert room.queue(new) == "active"
    assert room.backlog.tallies.incoming["active", "UnschedulablePodUpdatePodSchedulingGatesEliminated"] == 1
    assert room.backlog.counts()["gated"] == 0


def test_a_gated_pod_sees_only_what_its_gate_listens_to() -> None:
    room = QueueScenario()
    pod = gated(room)
    room.gate.asked.clear()
    room.backlog.move(NODE_ADD, None, None, T0)
    room.backlog.flush(T0)
    assert room.gate.asked == []
    room.backlog.move(GATES_GONE, None, None, T0)
    assert room.queue(pod) == "gated"
    assert room.gate.asked == ["a"]


def test_a_gate_is_asked_once_however_much_happens_before_the_queue_is_looked_at() -> None:
    room = QueueScenario()
    pod = gated(room)
    room.gate.asked.clear()
    for _ in range(100):
        room.backlog.move(GATES_GONE, None, None, T0)
    assert room.queue(pod) == "gated"
    assert room.gate.asked == ["a"]
    room.gate.shut = set()
    room.backlog.move(GATES_GONE, None, None, T0)
    assert room.pop().pod is pod


def test_a_gated_pod_that_another_plugin_refused_before_ignores_that_plugins_events() -> None:
    room = QueueScenario()
    room.add("a")
    entry = room.pop()
    room.gate.shut = {"a"}
    room.backlog.move(NODE_ADD, None, None, T0)
    room.fail(entry, "Fit")
    assert (room.queue(entry.pod), entry.blamed) == ("gated", {"Fit", "Gate"})
    room.gate.shut = set()
    room.backlog.move(NODE_ADD, None, None, T0 + 60)
    assert room.queue(entry.pod) == "gated"
    assert room.backlog.move(UNSCHEDULABLE_TIMEOUT, None, None, T0 + 60) == 1


def test_the_events_of_a_gate_are_those_it_registered_in_any_profile() -> None:
    room = QueueScenario(GatePlugin("Second", (on("Node", ActionType.ADD),)))
    second = room.plugins[-1]
    assert isinstance(second, GatePlugin)
    second.shut = {"a"}
    pod = room.add("a")
    second.shut = set()
    room.backlog.move(NODE_ADD, None, None, T0)
    assert room.queue(pod) == "active"


def test_taking_away_one_of_several_gates_is_a_generic_update_that_wakes_nobody() -> None:
    room = QueueScenario()
    old = room.pod("a", gates=["one", "two"])
    room.gate.shut = {"a"}
    room.backlog.add(old, T0)
    room.gate.asked.clear()
    new = room.pod("a", uid=old.uid, gates=["two"])
    room.backlog.update(old, new, T0 + 1)
    assert room.gate.asked == []
    assert room.queue(new) == "gated"
    assert room.backlog.tallies.incoming["unschedulable", "UnschedulablePodUpdate"] == 0


def test_the_plugin_that_gated_is_not_counted_twice() -> None:
    room = QueueScenario()
    pod = gated(room)
    for _ in range(3):
        room.backlog.activate([pod], T0)
    assert room.backlog.tallies.blamed == {("Gate", PROFILE): 1}
    room.backlog.check()
