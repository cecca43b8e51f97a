"""Queues of Volcano with limits on device classes: pods of a queue hold no more devices than it may have."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.testing.builders import nodes
from fairlead.volcano.kinds import VC_POD_GROUP
from tests.support.claims import claim, device_class, devices, gpus, held, pod, template
from tests.support.volcano import VolcanoHarness, conf


def queue(name: str, capability: dict[str, str], **spec: Any) -> dict[str, Any]:
    api = "scheduling.volcano.sh/v1beta1"
    spec = {"weight": 1, "capability": capability, **spec}
    return {"apiVersion": api, "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def claimant(name: str, **more: Any) -> dict[str, Any]:
    made = pod(name, schedulerName="volcano", **more)
    made["metadata"]["annotations"] = {"scheduling.volcano.sh/queue-name": "q"}
    made["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "100m"}
    return made


def cluster(tier: str, *queues: dict[str, Any]) -> VolcanoHarness:
    text = conf("enqueue, allocate, backfill", "priority; gang", f"predicates; capacity{tier}; nodeorder")
    world = VolcanoHarness(text, nodes(2, cpu="8", memory="8Gi", pods="110"))
    world.apply(device_class(), *[gpus(f"n{at}", 4) for at in range(2)], template("one", devices()))
    world.apply(*queues)
    return world


@pytest.mark.parametrize("capability", [{"deviceclass/gpu": "3"}, {"deviceclass/gpu": "3", "cpu": "6"}])
def test_a_queue_holds_no_more_devices_of_a_class_than_it_may(capability: dict[str, str]) -> None:
    world = cluster("", queue("q", capability))
    world.apply(*[claimant(f"p{at}", of="one") for at in range(6)])
    world.run(20)
    assert len(held(world)) == len(world.bindings()) == 3
    world.delete(kinds.POD, next(iter(world.bindings())))
    world.run(20)
    assert len(held(world)) == len(world.bindings()) == 3, "what is given back may be had by the next"


def test_the_limit_of_a_queue_above_counts_too() -> None:
    world = cluster(
        " enableHierarchy: true",
        queue("root", {}),
        queue("top", {"deviceclass/gpu": "2"}, parent="root"),
        queue("q", {}, parent="top"),
    )
    world.apply(*[claimant(f"p{at}", of="one") for at in range(6)])
    world.run(20)
    assert len(held(world)) == 2


def test_a_shared_claim_counts_once() -> None:
    world = cluster("", queue("q", {"deviceclass/gpu": "2"}))
    world.apply(claim("ours", devices(2)), *[claimant(f"p{at}", shared="ours") for at in range(3)])
    world.run(40)
    assert len(world.bindings()) == 3


def test_without_a_limit_nothing_is_counted() -> None:
    world = cluster("", queue("q", {"cpu": "8"}))
    world.apply(*[claimant(f"p{at}", of="one") for at in range(6)])
    world.run(20)
    assert len(held(world)) == 6


def group(name: str, members: int, **spec: Any) -> dict[str, Any]:
    spec = {"queue": "q", "minMember": members, "minResources": {"cpu": "100m"}, **spec}
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "spec": spec,
        "metadata": {"name": name, "namespace": "default"},
    }


def member(name: str, of_group: str, **more: Any) -> dict[str, Any]:
    made = claimant(name, **more)
    made["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": of_group}
    return made


def phases(world: VolcanoHarness) -> dict[str, str]:
    return {one["metadata"]["name"]: one["status"]["phase"] for one in world.list(VC_POD_GROUP)}


def test_a_group_whose_minimum_asks_for_too_many_devices_is_not_let_in() -> None:
    world = cluster("", queue("q", {"deviceclass/gpu": "3"}))
    world.apply(group("big", 4), *[member(f"b{at}", "big", of="one") for at in range(4)])
    world.apply(group("fits", 3), *[member(f"f{at}", "fits", of="one") for at in range(3)])
    world.run(20)
    assert phases(world) == {"big": "Pending", "fits": "Running"}
    said = [event["message"] for event in world.list(kinds.EVENT) if event["involvedObject"]["name"] == "big"]
    assert "queue resource quota insufficient: insufficient dra-resource-exceeded" in said


def test_what_was_promised_to_a_group_is_not_promised_to_the_next() -> None:
    """Neither of them can be placed, because no node has a thousand cores; one of them waits inside."""
    world = cluster("", queue("q", {"deviceclass/gpu": "3"}))
    for name in ("a", "b"):
        members = [member(f"{name}{at}", name, of="one") for at in range(2)]
        for one in members:
            one["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1000"}
        world.apply(group(name, 2), *members)
    world.run(20)
    assert sorted(phases(world).values()) == ["Inqueue", "Pending"]


def test_a_claim_that_a_group_shares_counts_once_for_its_minimum() -> None:
    world = cluster("", queue("q", {"deviceclass/gpu": "2"}))
    world.apply(claim("ours", devices(2)), group("g", 3), *[member(f"p{at}", "g", shared="ours") for at in range(3)])
    world.run(40)
    assert phases(world) == {"g": "Running"}


def test_the_minimum_of_each_role_counts() -> None:
    world = cluster("", queue("q", {"deviceclass/gpu": "3"}))
    world.apply(group("g", 2, minTaskMember={"worker": 4}))
    workers = [member(f"p{at}", "g", of="one") for at in range(2)]
    for one in workers:
        one["metadata"]["annotations"]["volcano.sh/task-spec"] = "worker"
    world.apply(*workers)
    world.run(20)
    assert phases(world) == {"g": "Pending"}
