"""Pods that lack devices evict less important pods that have them; kube-scheduler lets them wait."""

from __future__ import annotations

from typing import Any

from fairlead.assembly.schedulers import default_scheduler
from fairlead.core.model import kinds as k
from fairlead.kube.config.gates import KUBE_COMPATIBLE, OWN_GATES
from fairlead.testing.builders import priority_class
from fairlead.testing.harness import Harness
from tests.support.claims import claim, device_class, devices, gang, gpus, held, pod, template


def full_cluster(**options: Any) -> Harness:
    """Three nodes of two devices; every device is held by a pod of low priority."""
    cluster = Harness(nodes=3, **options)
    cluster.apply(device_class(), *[gpus(f"node-{at}") for at in range(3)])
    cluster.apply(
        priority_class("low", 1), priority_class("high", 100), template("one", devices()), template("two", devices(2))
    )
    cluster.apply(*[pod(f"low-{at}", of="one", priorityClassName="low") for at in range(6)])
    cluster.run(30)
    assert len(cluster.bindings()) == 6
    return cluster


def test_a_pod_gets_the_devices_of_less_important_pods() -> None:
    cluster = full_cluster()
    cluster.apply(pod("high", of="two", priorityClassName="high"))
    cluster.run(60)
    assert "high" in cluster.bindings()
    left = [name for name in cluster.bindings() if name.startswith("low")]
    assert len(left) == 4, "two devices of one node are two victims, not three"
    assert len(held(cluster)) == len(set(held(cluster))) == 6


def test_a_pod_of_equal_priority_waits() -> None:
    cluster = full_cluster()
    cluster.apply(pod("equal", of="one", priorityClassName="low"))
    cluster.run(60)
    assert "equal" not in cluster.bindings()
    explanation = cluster.explain("equal")
    assert explanation is not None
    assert "Preemption is not helpful for scheduling" in explanation.message


def test_what_is_freed_goes_to_the_pod_that_it_was_freed_for() -> None:
    """New pods of low priority come while the victim leaves; none of them gets the device."""
    cluster = full_cluster()
    cluster.apply(pod("high", of="one", priorityClassName="high"))
    cluster.apply(*[pod(f"next-{at}", of="one", priorityClassName="low") for at in range(3)])
    cluster.run(90)
    assert "high" in cluster.bindings()
    assert not [name for name in cluster.bindings() if name.startswith("next")]
    assert len(cluster.list(k.POD)) == 6 - 1 + 1 + 3


def test_a_shared_claim_is_free_only_if_all_its_pods_go() -> None:
    cluster = Harness(nodes=1)
    cluster.apply(device_class(), gpus("node-0", 1), priority_class("low", 1), priority_class("high", 100))
    cluster.apply(claim("ours", devices()), pod("a", shared="ours", priorityClassName="low"))
    cluster.apply(pod("b", shared="ours", priorityClassName="high"))
    cluster.run(30)
    assert set(cluster.bindings()) == {"a", "b"}
    cluster.apply(
        priority_class("middle", 50), template("one", devices()), pod("c", of="one", priorityClassName="middle")
    )
    cluster.run(60)
    assert set(cluster.bindings()) == {"a", "b"}, "the device stays with b, so evicting a would be for nothing"


def test_compatible_with_kube_scheduler_nobody_is_evicted_for_devices() -> None:
    gates = OWN_GATES | {KUBE_COMPATIBLE}
    cluster = full_cluster(schedulers=[lambda _: default_scheduler(gates=gates)])
    cluster.apply(pod("high", of="one", priorityClassName="high"))
    cluster.run(60)
    assert "high" not in cluster.bindings()


# ---- gangs ----


def team(cluster: Harness, name: str, members: int, **of: Any) -> None:
    cluster.apply(gang(name, members))
    label = {"scheduling.x-k8s.io/pod-group": name}
    cluster.apply(*[pod(f"{name}-{at}", labels=label, priorityClassName="high", **of) for at in range(members)])


def test_a_gang_gets_the_devices_of_as_few_less_important_pods_as_it_needs() -> None:
    cluster = full_cluster()
    team(cluster, "team", 3, of="one")
    cluster.run(120)
    assert len([name for name in cluster.bindings() if name.startswith("team")]) == 3
    assert len([name for name in cluster.bindings() if name.startswith("low")]) == 3
    assert len(held(cluster)) == len(set(held(cluster))) == 6


def test_a_gang_that_evictions_cannot_help_evicts_nobody() -> None:
    cluster = full_cluster()
    team(cluster, "team", 4, of="two")
    cluster.run(120)
    assert not [name for name in cluster.bindings() if name.startswith("team")]
    assert len([name for name in cluster.bindings() if name.startswith("low")]) == 6


def test_members_that_share_a_claim_evict_for_its_devices_once() -> None:
    cluster = full_cluster()
    cluster.apply(claim("ours", devices(2)))
    team(cluster, "team", 3, shared="ours")
    cluster.run(120)
    assert len([name for name in cluster.bindings() if name.startswith("team")]) == 3
    assert len([name for name in cluster.bindings() if name.startswith("low")]) == 4


def test_with_compatible_profiles_a_gang_evicts_nobody_for_devices() -> None:
    gates = OWN_GATES | {KUBE_COMPATIBLE}
    cluster = full_cluster(schedulers=[lambda _: default_scheduler(gates=gates)])
    team(cluster, "team", 3, of="one")
    cluster.run(120)
    assert len([name for name in cluster.bindings() if name.startswith("low")]) == 6
