"""DeviceShare: gives pods GPUs, RDMA cards and FPGAs, whole or in shares, and writes down which."""

from __future__ import annotations

import json

from tests.support.documents import asking, node
from tests.support.koordinator import (
    GPU,
    SCHEDULING,
    KoordScenario,
    gpu_devices,
    gpu_node,
    koord_pod,
)


def test_a_pod_gets_a_gpu_and_has_it_written_before_it_is_bound() -> None:
    scenario = KoordScenario()
    scenario.tell(
        node("n0", **{GPU: "200", "koordinator.sh/gpu-core": "200", "koordinator.sh/gpu-memory-ratio": "200"})
    )
    scenario.tell(gpu_devices("n0", count=2))
    for name in "ab":
        scenario.tell(koord_pod(name, containers=[asking({GPU: "100"})]))
        scenario.settle()
    given = [
        json.loads(scenario.doc("pods", name, "default")["metadata"]["annotations"][SCHEDULING + "device-allocated"])
        for name in "ab"
    ]
    assert sorted(one["gpu"][0]["minor"] for one in given) == [0, 1]
    scenario.tell(koord_pod("c", containers=[asking({GPU: "100"})]))
    scenario.settle()
    assert "c" not in scenario.placed()


def test_what_a_scheduler_that_died_wrote_before_its_bind_holds_nothing() -> None:
    """The annotation is there, the binding is not: the pod is given a card like any other."""
    first = KoordScenario()
    first.tell(*gpu_node("n0", cpu=8, gpus=1), koord_pod("a", containers=[asking({GPU: "60"})]))
    first.settle()
    unbound = first.doc("pods", "a", "default")
    del unbound["spec"]["nodeName"]
    assert SCHEDULING + "device-allocated" in unbound["metadata"]["annotations"]
    second = KoordScenario()
    second.tell(*gpu_node("n0", cpu=8, gpus=1), unbound)
    second.settle()
    assert "a" in second.placed()
    second.tell(koord_pod("b", containers=[asking({GPU: "60"})]))
    second.settle()
    assert "b" not in second.placed()
