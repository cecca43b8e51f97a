"""What `fairlead queue explain` and `fairlead explain job|podgroup|pod` say of trees of queues, of queues that may have
nothing or have too much, of groups that were made for a plain Job, and of work that is over."""

from __future__ import annotations

from typing import Any

from fairlead.core.model import kinds
from fairlead.testing.builders import job, nodes, podgroup, queue
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.kinds import VC_POD_GROUP, VC_QUEUE
from tests.support.volcano import VolcanoHarness, conf

TREE = conf(
    "enqueue, allocate, backfill", "priority; gang", "predicates; capacity enableHierarchy: true; nodeorder; overcommit"
)


def world_of_trees(**specs: dict[str, Any]) -> VolcanoHarness:
    """Eight cores. `a` and `b` are below `team`, which may have six; `other` stands beside it."""
    queues = [
        queue("team").capped_at(cpu="6").having(**specs.get("team", {})),
        queue("a").having(**{"parent": "team", **specs.get("a", {})}),
        queue("b").having(**{"parent": "team", **specs.get("b", {})}),
        queue("other"),
    ]
    return VolcanoHarness(TREE, nodes(2), queues=queues)


def queue_document(world: VolcanoHarness, name: str) -> dict[str, Any]:
    explained = world.scheduler.explain_queue(name)
    assert explained is not None
    return explained.to_document()


def group_document(world: VolcanoHarness, name: str) -> dict[str, Any]:
    explained = world.scheduler.explain_group("default", name)
    assert explained is not None
    return explained.to_document()


def checks(world: VolcanoHarness, name: str) -> dict[str, Any]:
    return {check["check"]: check for check in group_document(world, name)["checks"]}


def test_a_queue_has_no_more_left_than_the_queue_above_it() -> None:
    world = world_of_trees()
    world.gang("first", 4, queue="b", asks={"cpu": "1"}, needs={"cpu": "4"})
    world.gang("second", 4, queue="a", asks={"cpu": "1"}, needs={"cpu": "4"})
    world.run(3)
    late, tight = ("second", "a") if world.running()["first"] else ("first", "b")
    document = queue_document(world, tight)
    assert (document["sums"]["cpu"]["leftForPods"], document["sums"]["cpu"]["leftForEntry"]) == ("2", "2")
    assert "queue team above it is what limits it: it has 4 of 6 cpu" in document["why"]
    assert checks(world, late)["quota"]["text"] == "asks for 4 cpu, and queue team has 4 of 6"


def test_a_group_in_a_queue_with_children_stops_nobody_else() -> None:
    """The API lets no such group in; its queue may have got children since."""
    world = world_of_trees()
    world.gang("lost", 1, queue="a", asks={"cpu": "1"}, needs={"cpu": "1"})
    lost = world.get(VC_POD_GROUP, "lost") or {}
    world.store.restore(VC_POD_GROUP, {**lost, "spec": {**lost["spec"], "queue": "team"}})
    world.gang("fine", 1, queue="a", asks={"cpu": "1"})
    world.run(3)
    assert world.running() == {"fine": 1}
    because = "it has queues below it, and only queues without take groups"
    assert group_document(world, "lost")["message"] == f"queue: team can have nothing: {because}"
    assert f"the queue can have nothing: {because}" in queue_document(world, "team")["why"]
    assert f"queue team can have nothing: {because}" in checks(world, "lost")["enqueue"]["text"]


def test_a_queue_without_its_parent_stops_nobody_else() -> None:
    """The API lets no such queue in; one may have been there before, or come from a snapshot."""
    world = world_of_trees()
    orphan = world.get(VC_QUEUE, "b") or {}
    world.store.restore(VC_QUEUE, {**orphan, "spec": {**orphan["spec"], "parent": "nowhere"}})
    world.gang("lost", 1, queue="b", asks={"cpu": "1"}, needs={"cpu": "1"})
    world.gang("fine", 1, queue="a", asks={"cpu": "1"})
    world.run(3)
    assert world.running() == {"fine": 1}
    assert "the queue can have nothing: its parent nowhere does not exist" in queue_document(world, "b")["why"]
    assert checks(world, "lost")["queue"]["passed"] is False


def test_a_closed_queue_and_one_that_gives_nothing_back_say_so() -> None:
    world = world_of_trees(a={"deserved": {"cpu": "2"}, "reclaimable": False}, team={"deserved": {"cpu": "2"}})
    world.gang("runs", 4, queue="a", asks={"cpu": "1"})
    world.run(3)
    assert (
        "it has more than it deserves: 4 of 2 cpu, and keeps it: reclaimable is off"
        in queue_document(world, "a")["why"]
    )
    world.patch(VC_QUEUE, "a", {"spec": {"reclaimable": True}})
    world.run(3)
    assert "it has more than it deserves: 4 of 2 cpu, which others may reclaim" in queue_document(world, "a")["why"]
    world.patch(VC_QUEUE, "a", {"spec": {"capability": {"cpu": "3"}}})
    world.run(3)
    over = "it has more than its limit: 4 of 3 cpu; nothing is placed until it has less"
    assert over in queue_document(world, "a")["why"]


def test_the_group_of_a_plain_job_is_found_by_the_jobs_name() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(1))
    owner = world.apply(job("plain").having(parallelism=0))
    name = f"podgroup-{owner['metadata']['uid']}"
    world.apply(podgroup(name, 1).in_queue("default").owned_by(owner))
    world.run(3)
    document = group_document(world, "plain")
    assert (document["podGroup"]["name"], document["podGroup"]["owner"]) == (name, "plain")
    assert document["summary"] == "it has no pods, 1 is needed"
    assert checks(world, "plain")["quota"]["passed"] is None
    assert queue_document(world, "default")["owners"] == {f"default/{name}": "plain"}


def test_a_gang_that_has_ended_is_over() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(1))
    world.gang("done", 2, asks={"cpu": "1"}, run_time="2s")
    world.run(10)
    document = group_document(world, "done")
    assert document["verdict"] == "Completed"
    assert document["summary"] == "all its pods have ended, 2 succeeded and 0 failed"
    assert [check["check"] for check in document["checks"]] == ["queue", "gang"]
    for at in range(2):
        world.delete(kinds.POD, f"done-w-{at}")
    world.run(3)
    assert group_document(world, "done")["summary"] == "it has no pods, 2 are needed"


def test_a_pod_that_a_round_placed_says_how_many_nodes_would_have_done() -> None:
    world = VolcanoHarness(PRESETS["default"], [*nodes(3)])
    world.gang("one", 1, asks={"cpu": "1"})
    world.run(3)
    explained = world.scheduler.explain("default", "one-w-0")
    assert explained is not None
    assert (explained.feasible_nodes, explained.total_nodes, explained.chosen) == (3, 3, None)
