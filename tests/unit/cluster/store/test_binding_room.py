"""A Store that checks Bindings: what does not fit on a node any more is a conflict, and what ends makes room."""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cluster.store.journal import Journal
from fairlead.core.model.kinds import NODE, POD
from fairlead.errors import Conflict
from tests.support.store_scenario import StoreScenario


def cluster(**options: object) -> StoreScenario:
    world = StoreScenario(check_bindings=True, **options)
    world.create(NODE, "n1", status={"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "3"}})
    return world


def pending(world: StoreScenario, name: str, **requests: str) -> None:
    container = {"name": "c", "image": "x", "resources": {"requests": requests}}
    world.create(POD, name, spec={"containers": [container], "restartPolicy": "Never"})


def test_the_second_claim_on_the_last_room_is_a_conflict_that_names_what_is_short() -> None:
    world = cluster()
    pending(world, "one", cpu="1500m")
    pending(world, "two", cpu="1", memory="1Gi")
    world.bind("one")
    with pytest.raises(Conflict, match=r"node n1 has no room left for it: cpu$"):
        world.bind("two")
    assert "nodeName" not in world.store.read(POD, "default", "two")["spec"]


def test_two_bindings_of_one_batch_see_each_other() -> None:
    world = cluster()
    for name in ("one", "two"):
        pending(world, name, memory="3Gi")
    with world.store.batch():
        world.bind("one")
        with pytest.raises(Conflict, match="memory"):
            world.bind("two")


def test_pods_that_ended_or_are_gone_make_room() -> None:
    world = cluster()
    for name in ("one", "two", "three"):
        pending(world, name, cpu="2")
    world.bind("one")
    world.patch(POD, "one", {"status": {"phase": "Succeeded"}}, subresource="status")
    world.bind("two")
    world.delete(POD, "two", gracePeriodSeconds=0)
    world.bind("three")


def test_a_node_takes_as_many_pods_as_it_says() -> None:
    world = cluster()
    for number in range(4):
        pending(world, f"p{number}")
    for number in range(3):
        world.bind(f"p{number}")
    with pytest.raises(Conflict, match=r"pods$"):
        world.bind("p3")


def test_a_node_that_is_not_there_takes_nobody() -> None:
    world = cluster()
    pending(world, "one")
    with pytest.raises(Conflict, match="node gone is not there"):
        world.bind("one", "gone")


def test_what_the_journal_kept_counts(tmp_path: Path) -> None:
    world = cluster(journal=Journal(tmp_path))
    pending(world, "one", cpu="2")
    pending(world, "two", cpu="1")
    world.bind("one")
    world.store.close()
    again = StoreScenario(check_bindings=True, journal=Journal(tmp_path))
    with pytest.raises(Conflict, match="cpu"):
        again.bind("two")
    again.store.close()


def test_without_the_check_every_binding_is_taken() -> None:
    world = StoreScenario()
    pending(world, "one", cpu="64")
    world.bind("one")
    assert world.store.read(POD, "default", "one")["spec"]["nodeName"] == "n1"
