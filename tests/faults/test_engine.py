"""Faults of the API as the engine sees them, in both scheduling modes: nothing is lost or bound twice, no room
leaks."""

from __future__ import annotations

import logging
from random import Random

import pytest

from fairlead.cli.dumping import Told, compare
from fairlead.core.model import kinds
from fairlead.core.state.preemptions import preemptions_of
from fairlead.errors import Conflict, Forbidden, InternalError, Unreachable
from fairlead.testing.builders import node, priority_class
from tests.support.faulty_port import MODES, Faults, FaultyWorld, binds, deletes, statuses

HUGE = {"cpu": "9223372036854775807", "pods": "9223372036854775807", "memory": "8191Pi"}
HOST = "kubernetes.io/hostname"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("watch_delay", [0.0, 0.5, 3.0])
def test_a_lost_answer_to_the_bind_of_a_gang_member_leaks_no_room(mode: str, watch_delay: float) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 1, watch_delay=watch_delay)
    faults.lose_answer(binds("m-1"))
    world.gang("m", 3, mode, cpu="2")
    world.run(60)
    assert not world.waiting()
    world.check()
    for at in range(3):
        world.delete(kinds.POD, f"m-{at}")
    world.run(60)
    world.apply(world.one("whole-node", mode, cpu="8"))
    world.run(30)
    assert world.bindings() == {"whole-node": "node-0"}
    world.check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("watch_delay", [0.5, 5.0])
def test_a_place_is_not_given_up_while_nobody_knows_whether_the_bind_arrived(mode: str, watch_delay: float) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 1, watch_delay=watch_delay)
    faults.lose_answer(binds("first"), times=3)
    world.apply(world.one("first", mode, cpu="6"), world.one("second", mode, cpu="6"))
    world.run(60)
    assert world.overcommitted() == {}
    assert len(world.waiting()) == 1
    world.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_bind_that_never_arrived_is_sent_again(mode: str) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 1)
    faults.refuse(binds(), times=2, error=InternalError("etcdserver: request timed out"))
    world.apply(world.one("a", mode))
    world.run(60)
    assert world.waiting() == []
    world.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_bind_that_is_refused_twice_for_the_same_reason_strands_nobody(mode: str) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 1)
    faults.refuse(binds("g-"), times=4, error=Forbidden("not now"))
    world.gang("g", 4, mode)
    world.run(120)
    assert world.waiting() == []
    world.check()


@pytest.mark.parametrize("mode", MODES)
def test_the_place_of_a_gang_member_is_kept_while_the_api_fails_to_bind_it(mode: str) -> None:
    faults = Faults()
    faults.refuse(binds("g-1"), times=3)
    world = FaultyWorld(faults, nodes=1)
    world.gang("g", 2, mode, cpu="4")
    world.run(1)
    world.apply(world.one("p", cpu="4"))
    world.run(60)
    assert world.waiting() == ["p"]
    world.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_failure_of_the_api_after_a_lost_answer_does_not_give_the_place_away(mode: str) -> None:
    faults = Faults()
    faults.lose_answer(binds("a"), times=1)
    faults.refuse(binds("a"), times=4)
    world = FaultyWorld(faults, 1, watch_delay=5.0)
    world.apply(world.one("a", mode, cpu="6"))
    world.run(1)
    world.apply(world.one("b", mode, cpu="6"))
    for _ in range(60):
        world.run(1)
        world.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_pod_that_somebody_else_has_bound_meanwhile_is_left_where_it_is(mode: str) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 2, watch_delay=2.0)
    faults.refuse(binds("a"), times=1, error=Conflict('pod a is already assigned to node "node-1"'))
    world.apply(world.one("a", mode, cpu="8"))
    world.bind("a", "node-1")
    world.run(30)
    assert world.bindings() == {"a": "node-1"}
    world.apply(world.one("b", mode, cpu="8"))
    world.run(30)
    assert world.bindings() == {"a": "node-1", "b": "node-0"}
    world.check()


@pytest.mark.parametrize("mode", MODES)
def test_one_node_of_absurd_size_stops_nobody(mode: str) -> None:
    world = FaultyWorld(Faults(), [node("a"), node("b"), node("huge").offers(HUGE)])
    world.gang("g", 3, mode)
    world.apply(world.one("probe", mode), world.one("large", mode, cpu="4000"))
    world.run(20)
    assert world.waiting() == []
    assert world.bindings()["large"] == "huge"
    world.check()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("asked", ["9223372036854775807", "9223372036854775807m", "1e18"])
def test_pods_of_absurd_size_stop_nobody_wherever_they_are(mode: str, asked: str) -> None:
    """Some were put on a node by hand, so that no sum of what is taken there fits into 64 bits."""
    world = FaultyWorld(Faults(), [node("a"), node("b").offers(HUGE), node("huge").offers(HUGE)])
    world.apply(*(world.one(f"by-hand-{at}", cpu=asked).having(nodeName="b") for at in range(5)))
    world.apply(world.one("small", mode, cpu="1m").having(nodeSelector={HOST: "huge"}))
    world.run(5)
    world.gang("absurd", 1, mode, cpu=asked, members=3)
    world.run(5)
    for at in range(3):
        world.gang(f"probe-{at}", 2, mode, cpu="10m")
        world.apply(world.one(f"alone-{at}", mode, cpu="10m"))
    world.run(20)
    assert [name for name in world.waiting() if not name.startswith("absurd")] == []
    assert not world.scheduler.guard.quarantine.raised
    assert not world.scheduler.guard.audit.found
    world.scheduler.cluster.check()


@pytest.mark.parametrize("mode", MODES)
def test_lost_and_refused_deletions_make_room_in_the_end_and_are_not_repeated_while_under_way(mode: str) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 1, watch_delay=0.5)
    world.apply(priority_class("high", 1000))
    world.gang("low", 1, mode, cpu="2", members=4)
    world.run(10)
    faults.refuse(deletes(), times=1)
    faults.lose_answer(deletes(), times=1)
    faults.lose_answer(statuses(), times=2)
    world.gang("urgent", 1, mode, cpu="2", members=0)
    world.delete(kinds.POD, "urgent-0")
    world.apply(world.one("u", mode, cpu="2").of_priority("high").in_group("urgent"))
    world.run(120)
    assert "u" in world.bindings()
    assert max(faults.count(deletes()).values()) <= 3
    world.check()


@pytest.mark.parametrize("watch_delay", [0.0, 0.3])
@pytest.mark.parametrize("seed", [0, 2, 7])
def test_no_more_victims_go_than_preemptors_come_whatever_answers_are_lost(seed: int, watch_delay: float) -> None:
    """Lost: answers to deletions, nominations, and the conditions by which a victim would be known."""
    faults = Faults()
    world = FaultyWorld(faults, 5, watch_delay=watch_delay, seed=seed)
    world.apply(priority_class("high", 1000), *(world.one(f"low-{at}", cpu="2") for at in range(20)))
    world.run(20)
    faults.at_random(Random(seed), 0.25)
    world.apply(*(world.one(f"high-{at}", cpu="2").of_priority("high") for at in range(10)))
    world.run(20)
    faults.stop()
    world.run(60)
    assert world.waiting() == []
    assert sum(name.startswith("low") for name in world.bindings()) == 10
    world.check()


def test_a_deletion_whose_answer_was_lost_is_not_repeated_for_a_preemptor_that_is_gone() -> None:
    faults = Faults()
    world = FaultyWorld(faults, 1)
    world.apply(priority_class("high", 1000), world.one("low", cpu="8"))
    world.run(5)
    faults.refuse(deletes(), times=1, error=Unreachable("lost on its way"))
    world.apply(world.one("high", cpu="8").of_priority("high"))
    world.run(0.2)
    world.delete(kinds.POD, "high")
    world.run(60)
    assert faults.count(deletes()) == {"low": 1}
    assert world.bindings() == {"low": "node-0"}
    assert not world.scheduler.pods.evictions.unanswered()
    assert not preemptions_of(world.scheduler.cluster).any_under_way


def test_victims_of_two_preemptors_are_deleted_once() -> None:
    faults = Faults()
    world = FaultyWorld(faults, 1, watch_delay=2.0)
    world.apply(priority_class("high", 1000))
    world.apply(*(world.one(f"low-{at}", cpu="4") for at in range(2)))
    world.run(10)
    world.apply(*(world.one(f"high-{at}", cpu="4").of_priority("high") for at in range(4)))
    world.run(300)
    assert set(faults.count(deletes()).values()) == {1}
    assert sorted(world.bindings()) == sorted(name for name in world.bindings() if name.startswith("high"))
    world.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_scheduler_that_is_killed_with_binds_in_flight_leaves_no_half_gang(mode: str) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 2, watch_delay=0.2)
    faults.refuse(binds("g-"), times=2, after=2)
    world.gang("g", 4, mode, cpu="2")
    world.run(0.3)
    world.restart()
    world.run(60)
    assert world.waiting() == []
    world.check()


def test_pods_that_have_ended_are_no_difference_between_memory_and_api(caplog: pytest.LogCaptureFixture) -> None:
    world = FaultyWorld(Faults(), 1)
    world.apply(world.one("short").running_for("5s").restarting("Never"), world.one("long"))
    world.gang("g", 1, "volcano")
    world.run(30)
    assert world.phases()["short"] == "Succeeded"
    with caplog.at_level(logging.WARNING):
        assert compare(world.scheduler, Told.by(world.store))
    assert "mismatch" not in caplog.text
