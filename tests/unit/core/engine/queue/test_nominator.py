"""Nominations (core specification, 2.8)."""

from __future__ import annotations

from tests.support.waiting import NODE_ADD, T0, QueueScenario


def test_a_pod_is_nominated_to_one_node_at_a_time() -> None:
    room = QueueScenario()
    pod = room.add("a")
    nominator = room.backlog.nominator
    nominator.nominate(pod, "node-1")
    nominator.nominate(pod, "node-2")
    assert nominator.on_node("node-1") == []
    assert nominator.on_node("node-2") == [pod]
    assert nominator.node_of(pod.uid) == "node-2"
    assert list(nominator.nodes) == ["node-2"]


def test_nominated_pods_come_in_the_order_of_their_nomination() -> None:
    room = QueueScenario()
    pods = [room.add(name) for name in "abc"]
    for pod in (*pods, pods[0]):
        room.backlog.nominator.nominate(pod, "node-1")
    assert [pod.name for pod in room.backlog.nominator.on_node("node-1")] == ["b", "c", "a"]


def test_the_status_of_a_pod_counts_that_nobody_nominated_here() -> None:
    room = QueueScenario()
    nominator = room.backlog.nominator
    pod = room.pod("a", nominated="node-1")
    nominator.observe(pod)
    assert nominator.node_of(pod.uid) == "node-1"


def test_a_status_that_names_what_the_pod_was_given_before_is_old() -> None:
    room = QueueScenario()
    nominator = room.backlog.nominator
    first = room.add("a")
    nominator.nominate(first, "node-1")
    nominator.nominate(first, "node-2")
    for status in ("", "node-1", "node-1", "node-2", "node-1"):
        nominator.observe(room.pod("a", uid=first.uid, nominated=status))
        assert nominator.node_of(first.uid) == "node-2"


def test_a_nomination_that_was_cleared_here_does_not_come_back_with_an_old_status() -> None:
    room = QueueScenario()
    nominator = room.backlog.nominator
    first = room.add("a", nominated="node-1")
    nominator.nominate(first, "")
    nominator.observe(room.pod("a", uid=first.uid, nominated="node-1"))
    assert nominator.node_of(first.uid) == ""


def test_a_status_that_names_a_place_which_the_pod_gave_back_promises_nothing() -> None:
    room = QueueScenario()
    nominator = room.backlog.nominator
    first = room.add("a")
    nominator.nominate(first, "", place="node-1")
    late = room.pod("a", uid=first.uid, nominated="node-1")
    nominator.observe(late)
    assert nominator.node_of(first.uid) == ""
    assert nominator.had_place(late)
    nominator.nominate(first, "node-1")
    assert not nominator.had_place(late)


def test_what_somebody_else_decides_after_our_decision_was_shown_counts() -> None:
    room = QueueScenario()
    nominator = room.backlog.nominator
    first = room.add("a")
    for theirs in ("node-3", ""):
        nominator.nominate(first, "node-1")
        nominator.observe(room.pod("a", uid=first.uid, nominated="node-1"))
        nominator.observe(room.pod("a", uid=first.uid, nominated=theirs))
        assert nominator.node_of(first.uid) == theirs


def test_a_pod_is_tried_as_nominated_in_memory_whatever_its_status_says() -> None:
    room = QueueScenario()
    nominator = room.backlog.nominator
    pod = room.add("a", nominated="node-1")
    assert nominator.as_nominated(pod) is pod
    nominator.nominate(pod, "node-2")
    assert nominator.as_nominated(pod).nominated_node == "node-2"
    nominator.nominate(pod, "")
    assert nominator.as_nominated(pod).nominated_node == ""


def test_the_empty_name_takes_a_nomination_back() -> None:
    room = QueueScenario()
    pod = room.add("a", nominated="node-1")
    nominator = room.backlog.nominator
    nominator.nominate(pod, "")
    assert nominator.node_of(pod.uid) == ""
    assert nominator.on_node("") == nominator.on_node("node-1") == []
    assert len(nominator) == 0


def test_a_pod_that_is_gone_or_has_a_node_is_not_nominated() -> None:
    room = QueueScenario()
    nominator = room.backlog.nominator
    gone = room.pod("a")
    room.gone(gone)
    nominator.nominate(gone, "node-1")
    waiting = room.pod("b")
    room.pod("b", uid=waiting.uid, node="node-2")
    nominator.nominate(waiting, "node-1")
    assert len(nominator) == 0


def test_a_nomination_in_memory_outlives_updates_that_do_not_know_of_it() -> None:
    room = QueueScenario()
    old = room.add("a")
    room.backlog.nominator.nominate(old, "node-1")
    new = room.pod("a", uid=old.uid, labels={"x": "y"})
    room.backlog.update(old, new, T0)
    assert room.backlog.nominator.on_node("node-1") == [new]


def test_an_update_that_names_another_node_or_none_any_more_is_followed() -> None:
    room = QueueScenario()
    first = room.add("a", nominated="node-1")
    second = room.pod("a", uid=first.uid, nominated="node-2")
    room.backlog.update(first, second, T0)
    assert room.backlog.nominator.node_of(first.uid) == "node-2"
    third = room.pod("a", uid=first.uid)
    room.backlog.update(second, third, T0)
    assert room.backlog.nominator.node_of(first.uid) == ""


def test_a_nominated_pod_is_shown_as_it_waits_now_in_whichever_queue() -> None:
    room = QueueScenario()
    pod = room.park("a", "Fit", priority=7)
    room.backlog.nominator.nominate(pod, "node-1")
    for moment in (T0, T0 + 60):
        assert room.backlog.nominator.on_node("node-1")[0].priority == 7
        room.backlog.move(NODE_ADD, None, None, moment)


def test_a_nominated_pod_in_flight_is_a_stub_of_priority_0_that_asks_for_nothing() -> None:
    room = QueueScenario()
    containers = [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]
    pod = room.add("a", nominated="node-1", priority=7, containers=containers)
    entry = room.pop()
    stub = room.backlog.nominator.on_node("node-1")[0]
    assert (stub.key, stub.uid, stub.priority) == (pod.key, pod.uid, 0)
    assert not any(stub.shape.fit_request.values())
    room.fail(entry, "Fit")
    assert room.backlog.nominator.on_node("node-1")[0].priority == 7


def test_a_gated_pod_is_not_nominated_by_its_status_until_it_is_active() -> None:
    room = QueueScenario()
    room.gate.shut = {"a"}
    pod = room.add("a", nominated="node-1")
    assert room.backlog.nominator.node_of(pod.uid) == ""
