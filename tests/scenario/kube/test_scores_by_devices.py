"""NodeResourcesFit scores by an extended resource that a device class serves: devices of the class are the amount."""

from __future__ import annotations

from typing import Any

from fairlead.core.model import kinds as k
from fairlead.testing.harness import Harness
from tests.support.claims import device_class, gpus, held

CARD = "example.com/card"


def config(strategy: str) -> dict[str, Any]:
    arguments = {"scoringStrategy": {"type": strategy, "resources": [{"name": CARD, "weight": 1}]}}
    others = [
        {"name": name}
        for name in (
            "NodeResourcesBalancedAllocation",
            "ImageLocality",
            "TaintToleration",
            "NodeAffinity",
            "PodTopologySpread",
            "InterPodAffinity",
            "DynamicResources",
        )
    ]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"score": {"disabled": others}},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": arguments}],
            }
        ],
    }


def pod(name: str, cards: int) -> dict[str, Any]:
    container = {"name": "c", "image": "x", "resources": {"limits": {CARD: str(cards)}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def cluster(strategy: str) -> Harness:
    """Nodes of 2, 4 and 8 devices, and one with four devices of another kind that the class does not accept."""
    made = Harness(nodes=4, config=config(strategy))
    made.apply(device_class("cards", extendedResourceName=CARD))
    made.apply(*[gpus(f"node-{at}", count) for at, count in enumerate((2, 4, 8))])
    other = gpus("node-3", 4)
    made.apply({**other, "spec": {**other["spec"], "driver": "nic.example.com"}})
    return made


def test_pods_are_packed_by_devices() -> None:
    where = cluster("MostAllocated")
    for at in range(3):
        where.apply(pod(f"p{at}", 1))
        where.run(20)
    # 1 of 2, then 2 of 2; then node-0 is full and 1 of 4 is more than 1 of 8.
    assert where.bindings() == {"p0": "node-0", "p1": "node-0", "p2": "node-1"}


def test_pods_are_spread_by_devices_and_devices_given_back_count_as_free() -> None:
    where = cluster("LeastAllocated")
    for at in range(5):
        where.apply(pod(f"p{at}", 1))
        where.run(20)
    # Free shares with the pod in percent: node-2 has 87, 75, 62 and 50, node-1 75 and 50; ties of equal scores aside.
    placed = sorted(where.bindings().values())
    assert placed.count("node-2") >= 3
    assert "node-0" not in placed
    assert "node-3" not in placed
    for name in list(where.bindings()):
        where.delete(k.POD, name)
    where.run(60)
    assert held(where) == []
    where.apply(pod("last", 1))
    where.run(20)
    assert where.bindings()["last"] == "node-2"
