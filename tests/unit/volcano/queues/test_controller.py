"""Queues of Volcano: counts, the state machine as a table, Commands, parents that hold their children closed."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.testing.builders import podgroup, queue
from fairlead.testing.harness import Harness
from fairlead.volcano.kinds import VC_COMMAND, VC_POD_GROUP, VC_QUEUE
from fairlead.volcano.queues.controller import CLOSED_BY_PARENT, FirstQueues, VolcanoQueues, next_state


def cluster() -> Harness:
    return Harness(
        schedulers=[],
        controllers=[VolcanoQueues, FirstQueues],
        housekeeping="none",
    )


def status(cluster: Harness, name: str) -> Doc:
    found = cluster.get(VC_QUEUE, name)
    assert found is not None
    return dict(found.get("status") or {})


def command(cluster: Harness, action: str, name: str) -> None:
    target = {"apiVersion": VC_QUEUE.api_version, "kind": "Queue", "name": name, "uid": "any"}
    body = {
        "apiVersion": VC_COMMAND.api_version,
        "kind": "Command",
        "metadata": {"generateName": f"{name}-{action.lower()}-", "namespace": "default"},
        "action": action,
        "target": target,
    }
    cluster.perform(Write(Verb.CREATE, VC_COMMAND, "default", "", body))
    cluster.run(1)


def group_in(cluster: Harness, name: str, queue_name: str, phase: str) -> None:
    cluster.apply({**podgroup(name).in_queue(queue_name).doc(), "status": {"phase": phase}})


@pytest.mark.parametrize(
    ("state", "action", "groups", "becomes"),
    [
        ("", "", 0, "Open"),
        ("Open", "", 3, "Open"),
        ("Open", "CloseQueue", 0, "Closed"),
        ("Open", "CloseQueue", 1, "Closing"),
        ("Closing", "", 1, "Closing"),
        ("Closing", "", 0, "Closed"),
        ("Closing", "OpenQueue", 1, "Open"),
        ("Closing", "CloseQueue", 0, "Closed"),
        ("Closed", "", 5, "Closed"),
        ("Closed", "CloseQueue", 5, "Closed"),
        ("Closed", "OpenQueue", 0, "Open"),
        ("Unknown", "", 0, "Unknown"),
        ("Unknown", "OpenQueue", 0, "Open"),
        ("Unknown", "CloseQueue", 2, "Closing"),
    ],
)
def test_actions_change_the_state_of_a_queue(state: str, action: str, groups: int, becomes: str) -> None:
    assert next_state(state, action, groups=groups) == becomes


def test_root_and_default_are_made_and_opened() -> None:
    world = cluster()
    world.run(1)
    assert {name: status(world, name)["state"] for name in ("root", "default")} == {"root": "Open", "default": "Open"}
    root, default = world.get(VC_QUEUE, "root"), world.get(VC_QUEUE, "default")
    assert root is not None
    assert default is not None
    assert (root["spec"]["reclaimable"], default["spec"]["reclaimable"]) == (False, True)
    assert (root["spec"].get("parent"), default["spec"]["parent"]) == (None, "root")


def test_groups_that_come_and_go_change_nothing_of_an_open_queue() -> None:
    """As in the original, whose controller writes the state alone: a write per phase of every group would be many."""
    world = cluster()
    world.apply(queue("q"))
    world.run(1)
    before = world.get(VC_QUEUE, "q")
    for at, phase in enumerate(("Pending", "Inqueue", "Running", "Running", "Completed", "Unknown")):
        group_in(world, f"g{at}", "q", phase)
    world.run(1)
    world.delete(VC_POD_GROUP, "g2")
    world.run(1)
    assert status(world, "q")["state"] == "Open"
    assert world.get(VC_QUEUE, "q") == before


def test_a_command_closes_a_queue_and_is_gone() -> None:
    world = cluster()
    world.apply(queue("q"))
    group_in(world, "g", "q", "Running")
    world.run(1)
    command(world, "CloseQueue", "q")
    assert status(world, "q")["state"] == "Closing"
    assert not world.list(VC_COMMAND)
    assert world.events("q") == [("CloseQueue", "Close queue succeed")]
    world.delete(VC_POD_GROUP, "g")
    world.run(1)
    assert status(world, "q")["state"] == "Closed"
    command(world, "OpenQueue", "q")
    assert status(world, "q")["state"] == "Open"


def test_root_cannot_be_closed() -> None:
    world = cluster()
    world.run(1)
    command(world, "CloseQueue", "root")
    assert status(world, "root")["state"] == "Open"


def test_a_parent_takes_its_children_along_and_only_those_it_closed() -> None:
    world = cluster()
    world.apply(queue("p"), queue("a").having(parent="p"), queue("b").having(parent="p"), queue("c").having(parent="a"))
    world.run(1)
    command(world, "CloseQueue", "b")
    command(world, "CloseQueue", "p")
    assert {name: status(world, name)["state"] for name in "pabc"} == dict.fromkeys("pabc", "Closed")
    marked = world.get(VC_QUEUE, "a")
    assert marked is not None
    assert marked["metadata"]["annotations"][CLOSED_BY_PARENT] == "true"
    command(world, "OpenQueue", "p")
    assert {name: status(world, name)["state"] for name in "pabc"} == {
        "p": "Open",
        "a": "Open",
        "b": "Closed",
        "c": "Open",
    }


def test_a_child_does_not_open_under_a_closed_parent_and_the_request_is_given_up_in_the_end() -> None:
    world = cluster()
    world.apply(queue("p"), queue("a").having(parent="p"))
    world.run(1)
    command(world, "CloseQueue", "p")
    command(world, "OpenQueue", "a")
    assert status(world, "a")["state"] == "Closed"
    world.run(3600)
    assert status(world, "a")["state"] == "Closed"


def test_a_queue_that_moves_under_a_closed_parent_is_closed() -> None:
    world = cluster()
    world.apply(queue("p"), queue("a"))
    world.run(1)
    command(world, "CloseQueue", "p")
    world.patch(VC_QUEUE, "a", {"spec": {"parent": "p"}})
    world.run(1)
    assert status(world, "a")["state"] == "Closed"
    world.patch(VC_QUEUE, "a", {"spec": {"parent": "root"}})
    world.run(1)
    assert status(world, "a")["state"] == "Open"
