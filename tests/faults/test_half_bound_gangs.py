"""A gang of which one bind failed, and a new scheduler that finds it half bound: it comes before pods that have not
begun, at once if there is room, else when room comes."""

from __future__ import annotations

import pytest

from fairlead.core.model import kinds
from fairlead.testing.builders import Builder, node, podgroup, priority_class
from tests.support.documents import group
from tests.support.faulty_port import MODES, Faults, FaultyWorld, binds


def half_bound_world(mode: str) -> FaultyWorld:
    """Two nodes, each with room for one member of a gang of two, of which one is bound, and the other not until the
    faults stop."""
    faults = Faults()
    world = FaultyWorld(faults, 2)
    faults.refuse(binds("gang-"), times=100, after=1)
    world.gang("gang", 2, mode, cpu="5")
    while not faults.hit:
        world.run(0.1)
    assert len(world.waiting()) == 1
    return world


def pod_alone(world: FaultyWorld, mode: str) -> list[Builder]:
    """A pod that wants a member's room and evicts nobody: drf would let it evict, because its share is smaller."""
    return [priority_class("patient").never_preempting(), world.one("alone", mode, cpu="5").of_priority("patient")]


@pytest.mark.parametrize("mode", MODES)
def test_a_new_scheduler_completes_the_gang_before_it_places_a_pod_alone(mode: str) -> None:
    world = half_bound_world(mode)
    world.apply(*pod_alone(world, mode))
    world.run(3)
    world.faults.stop()
    world.restart()
    world.run(60)
    assert world.waiting() == ["alone"]
    world.check()


@pytest.mark.parametrize("mode", MODES)
def test_a_gang_that_lost_its_room_to_drains_gets_the_next_room(mode: str) -> None:
    world = half_bound_world(mode)
    world.apply(node("node-0").cordoned(), node("node-1").cordoned())
    world.apply(*pod_alone(world, mode))
    world.faults.stop()
    world.restart()
    world.run(400)
    assert len(world.waiting()) == 2
    world.apply(node("new"))
    world.run(60)
    assert world.waiting() == ["alone"]
    world.check()


@pytest.mark.parametrize("native", [True, False])
def test_a_member_is_placed_although_the_others_ended_while_its_bind_failed(native: bool) -> None:
    faults = Faults()
    world = FaultyWorld(faults, 3)
    faults.refuse(binds("gang-2"), times=100)
    if native:
        world.apply(group("gang", 3))
    else:
        world.apply(podgroup("gang", 3))
    for at in range(3):
        member = world.one(f"gang-{at}", cpu="5").running_for("4s").restarting("Never")
        world.apply(member.having(schedulingGroup={"podGroupName": "gang"}) if native else member.in_group("gang"))
    world.run(12)
    assert faults.hit > 2
    assert world.waiting() == ["gang-2"]
    faults.stop()
    world.run(60)
    assert world.waiting() == []
    world.check()


def test_a_member_that_loses_its_place_after_the_others_ended_gets_another() -> None:
    faults = Faults()
    world = FaultyWorld(faults, 3)
    faults.refuse(binds("gang-2"), times=100)
    world.apply(group("gang", 3))
    for at in range(3):
        member = world.one(f"gang-{at}", cpu="5").running_for("4s").restarting("Never")
        world.apply(member.having(schedulingGroup={"podGroupName": "gang"}))
    world.run(12)
    world.apply(*[node(f"node-{at}").cordoned() for at in range(3)])
    faults.stop()
    world.run(60)
    assert world.waiting() == ["gang-2"]
    world.apply(node("new"))
    world.run(60)
    assert world.waiting() == []
    world.check()


def test_a_member_waits_for_one_that_was_deleted_while_its_bind_failed() -> None:
    faults = Faults()
    world = FaultyWorld(faults, 3)
    faults.refuse(binds("gang-2"), times=100)
    world.gang("gang", 3, cpu="5")
    world.run(6)
    world.delete(kinds.POD, "gang-0")
    world.run(6)
    faults.stop()
    world.run(60)
    assert world.waiting() == ["gang-2"]
    world.apply(world.one("gang-3", cpu="5").in_group("gang"))
    world.run(60)
    assert world.waiting() == []
    world.check()
