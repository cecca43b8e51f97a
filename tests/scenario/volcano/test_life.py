"""Gangs with the Volcano profile from their objects to their binds: one life, two rivals, both modes at once."""

from __future__ import annotations

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened, Verb, Write
from fairlead.testing.builders import nodes, pod, podgroup, replica_set
from fairlead.volcano.config.presets import PRESETS
from fairlead.volcano.kinds import VC_NUMATOPOLOGY, VC_POD_GROUP, VC_QUEUE
from tests.support.volcano import VolcanoHarness, round_drivers


def test_a_job_is_let_in_placed_run_and_completed() -> None:
    """Created, let in before it has pods, placed as a whole, finished; and queued again when its pods disappear."""
    world = VolcanoHarness(PRESETS["shipped"], nodes(2))
    world.apply(podgroup("train", 3).having(minResources={"cpu": "6"}))
    assert world.phase("train") == ""
    world.run(3)
    assert world.phase("train") == "Inqueue", "let in while it has no pods yet"

    world.apply(*(world.member("train", at, {"cpu": "2"}) for at in range(2)))
    world.run(3)
    assert world.running("train") == {}, "two of three pods are there: nothing starts"
    assert world.phase("train") == "Inqueue"

    world.apply(*(world.member("train", at, {"cpu": "2"}) for at in (2, 3)))
    world.run(5)
    assert world.running("train") == {"train": 4}, "the minimum together, and what is beyond it too"
    assert world.phase("train") == "Running"
    assert world.group("train")["status"]["running"] == 4
    assert [c["type"] for c in world.group("train")["status"]["conditions"] if c["status"] == "True"][-1] == "Scheduled"

    for at in range(2):
        world.delete(kinds.POD, f"train-w-{at}")
    world.run(60)
    assert world.phase("train") != "Running", "below its minimum it has to be let in again"

    world.apply(*(world.member("train", at, {"cpu": "2"}) for at in range(2)))
    world.run(5)
    assert world.phase("train") == "Running"
    for at in range(4):
        done = {"status": {"phase": "Succeeded"}}
        world.perform(Write(Verb.PATCH, kinds.POD, "default", f"train-w-{at}", done, subresource="status"))
    world.run(5)
    assert world.phase("train") == "Completed"


@pytest.mark.parametrize("preset", ["default", "shipped", "kube-batch"])
def test_two_jobs_that_each_need_all_their_pods_cannot_deadlock(preset: str) -> None:
    """Room for one of them; their pods arrive in turn, so that each could get half."""
    world = VolcanoHarness(PRESETS[preset], nodes(2))
    asks = {"cpu": "2"}
    world.apply(podgroup("a", 4), podgroup("b", 4))
    for at in range(4):
        world.apply(world.member("a", at, asks, run_time="60s"), world.member("b", at, asks, run_time="60s"))
        world.run(0.3)
    world.run(20)
    assert sorted(world.running().values()) == [4], "one whole gang runs, the other holds nothing"
    world.run(120)
    assert {world.phase("a"), world.phase("b")} == {"Completed"}, "and then the other had its turn"


def test_a_gang_is_never_seen_in_part() -> None:
    """At no moment has a gang with more than none fewer pods on nodes than its minimum."""
    world = VolcanoHarness(PRESETS["default"], nodes(3))
    for name in "abcde":
        world.gang(name, 3, asks={"cpu": "2"}, run_time="30s")
    for _ in range(200):
        world.run(1)
        for name, count in world.running().items():
            assert count >= 3, f"{name} has {count}"
    assert {world.phase(name) for name in "abcde"} == {"Completed"}


def test_plain_pods_of_a_replica_set_are_scheduled_in_a_group_of_their_own() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(2))
    template = pod("t").labelled(app="web").scheduled_by("volcano").asks(cpu="1")
    world.apply(replica_set("web").replicas(3).of(template))
    world.run(5)
    (group,) = world.list(VC_POD_GROUP)
    assert world.running() == {group["metadata"]["name"]: 3}


def test_a_closed_queue_lets_nobody_in_and_keeps_what_runs() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(2))
    world.gang("first", 1, asks={"cpu": "1"})
    world.run(3)
    closed = {"status": {"state": "Closed"}}
    world.perform(Write(Verb.PATCH, VC_QUEUE, "", "default", closed, subresource="status"))
    world.gang("second", 1, asks={"cpu": "1"}, needs={"cpu": "1"})
    world.run(10)
    assert world.running() == {"first": 1}
    assert world.phase("second") == "Pending"


# ---- both modes at once ----


def test_services_and_gangs_share_the_nodes_and_never_the_cores() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(4))
    world.apply(replica_set("web").replicas(6).of(pod("t").labelled(app="web").asks(cpu="1")))
    for name in ("a", "b", "c"):
        world.gang(name, 4, asks={"cpu": "1"})
    world.run(10)
    world.scheduler.cluster.check()
    services = [one for one in world.list(kinds.POD) if one["metadata"]["name"].startswith("web")]
    assert all(one["spec"].get("nodeName") for one in services)
    assert sorted(world.running().values()) == [4, 4], "six cores are the service's, two gangs fit into ten"


def test_a_long_round_never_delays_a_service_beyond_one_slice() -> None:
    """Sixty jobs wait for room that only a few of them find; in the midst of the round a service pod arrives."""
    world = VolcanoHarness(PRESETS["default"], nodes(2), slice=5)
    driver = round_drivers(world.scheduler)[0]
    docs = []
    for at in range(60):
        world.apply(podgroup(f"j{at}", 1))
        docs.append(world.member(f"j{at}", 0, {"cpu": "3"}))
    world.run(2)
    world.apply(*docs)
    scheduler, now = world.scheduler, world.now
    changes = [Change(Happened.ADDED, kinds.POD, one) for one in world.list(kinds.POD)]
    scheduler.step(now, changes, [])
    while driver.round is None:
        now += 1.0
        scheduler.step(now, [], [])
    service = {
        **pod("service").asks(cpu="100m").doc(),
        "metadata": {"name": "service", "namespace": "default", "uid": "service-uid"},
    }
    service["spec"].setdefault("schedulerName", "default-scheduler")
    writes = scheduler.step(now, [Change(Happened.ADDED, kinds.POD, service)], [])
    bound = [write.name for write in writes if write.subresource == "binding"]
    assert "service" in bound, "in the very next step"
    assert driver.round is not None, "while the round is still under way"


@pytest.mark.parametrize("compatible", [False, True])
def test_a_job_runs_while_a_pod_of_it_takes_its_time_to_end(compatible: bool) -> None:
    """In the original the job falls back at once, and is told that it cannot be scheduled."""
    world = VolcanoHarness(PRESETS["default"], nodes(2), compatible=compatible)
    world.apply(podgroup("train", 2))
    world.apply(*(world.member("train", at, {"cpu": "1"}).ending_after("20s") for at in range(2)))
    world.run(3)
    assert world.phase("train") == "Running"
    world.delete(kinds.POD, "train-w-0")
    world.run(5)
    unschedulable = [c for c in world.group("train")["status"]["conditions"] if c["type"] == "Unschedulable"]
    assert (world.phase("train"), bool(unschedulable)) == (("Unknown", True) if compatible else ("Running", False))
    world.run(60)
    assert world.phase("train") != "Running", "once it is gone, the other one alone is not enough"


def test_a_waiting_pod_is_reported_while_another_of_its_job_is_ending() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(1))
    world.apply(podgroup("train", 2))
    world.apply(*(world.member("train", at, {"cpu": "2"}).ending_after("20s") for at in range(2)))
    world.run(3)
    world.delete(kinds.POD, "train-w-0")
    world.run(1)
    world.apply(world.member("train", 2, {"cpu": "2"}))
    world.run(3)
    assert "Unschedulable" in [c["type"] for c in world.group("train")["status"]["conditions"]]


def test_the_numa_layout_of_a_node_goes_with_the_node() -> None:
    world = VolcanoHarness(PRESETS["default"], nodes(2))
    kind = VC_NUMATOPOLOGY
    for name in ("n0", "n1"):
        world.apply({"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": name}, "spec": {}})
    world.run(2)
    world.delete(kinds.NODE, "n0")
    world.run(5)
    assert [layout["metadata"]["name"] for layout in world.list(kind)] == ["n1"]
