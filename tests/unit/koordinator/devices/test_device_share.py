"""DeviceShare: gives pods GPUs, RDMA cards and FPGAs, whole or in shares, and writes down which."""

from __future__ import annotations

import json

from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Happened
from fairlead.core.state.cluster import Cluster
from fairlead.koordinator.devices.plugin import DeviceSettings, DeviceSharePlugin
from fairlead.koordinator.devices.rows import GivenDevice
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


def test_a_plugin_with_new_settings_knows_what_pods_were_given_before_they_are_bound() -> None:
    cluster = Cluster()
    cluster.apply(Change(Happened.ADDED, kinds.NODE, gpu_node("n0", cpu=8, gpus=1)[0]))
    doc = koord_pod("a")
    cluster.apply(Change(Happened.ADDED, kinds.POD, {**doc, "spec": {**doc["spec"], "nodeName": "n0"}}))
    (state,) = cluster.pods.values()
    before, after = (DeviceSharePlugin(DeviceSettings(most=most)) for most in (False, True))
    before.rows_of(cluster).give(state.pod, state.row, {"gpu": (GivenDevice(0, {GPU + "-core": 100}),)})
    assert after.rows_of(cluster).holdings(state.row).amounts == {"gpu": {0: {GPU + "-core": 100}}}
