"""A gang of which one bind failed, and a new scheduler that finds it half bound: it comes before pods that have not
begun, at once if there is room, else when room comes."""

from __future__ import annotations

import pytest

from fairlead.testing.builders import Builder, node, priority_class
from tests.faults.faulty_port import MANNERS, Faults, FaultyWorld, binds


def half_bound_world(manner: str) -> FaultyWorld:
    """Two nodes, each with room for one member of a gang of two, of which one is bound, and the other not until the
    faults stop."""
    faults = Faults()
    world = FaultyWorld(faults, 2)
    faults.refuse(binds("gang-"), times=100, after=1)
    world.gang("gang", 2, manner, cpu="5")
    while not faults.hit:
        world.run(0.1)
    assert len(world.waiting()) == 1
    return world


def pod_alone(world: FaultyWorld, manner: str) -> list[Builder]:
    """A pod that wants a member's room and evicts nobody: drf would let it evict, because its share is smaller."""
    return [priority_class("patient").never_preempting(), world.one("alone", manner, cpu="5").of_priority("patient")]


@pytest.mark.parametrize("manner", MANNERS)
def test_a_new_scheduler_completes_the_gang_before_it_places_a_pod_alone(manner: str) -> None:
    world = half_bound_world(manner)
    world.apply(*pod_alone(world, manner))
    world.run(3)
    world.faults.stop()
    world.restart()
    world.run(60)
    assert world.waiting() == ["alone"]
    world.check()


@pytest.mark.parametrize("manner", MANNERS)
def test_a_gang_that_lost_its_room_to_drains_gets_the_next_room(manner: str) -> None:
    world = half_bound_world(manner)
    world.apply(node("node-0").cordoned(), node("node-1").cordoned())
    world.apply(*pod_alone(world, manner))
    world.faults.stop()
    world.restart()
    world.run(400)
    assert len(world.waiting()) == 2
    world.apply(node("new"))
    world.run(60)
    assert world.waiting() == ["alone"]
    world.check()
