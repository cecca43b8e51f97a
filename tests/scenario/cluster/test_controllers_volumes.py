"""Volumes from end to end: claims, the binder, the provisioner and the default scheduler."""

from __future__ import annotations

import pytest

from fairlead.core.model.flow import Doc
from fairlead.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, POD
from fairlead.testing.builders import node
from fairlead.testing.harness import Harness
from fairlead.testing.storage_builders import (
    NO_PROVISIONER,
    claim,
    pod_using,
    pod_with_ephemeral,
    storage_class,
    volume,
)

ZONE = "topology.kubernetes.io/zone"


@pytest.fixture
def cluster() -> Harness:
    return Harness(nodes=[node("left").in_zone("a"), node("right").in_zone("b")])


def the_claim(cluster: Harness, name: str) -> Doc:
    found = cluster.get(PERSISTENT_VOLUME_CLAIM, name)
    assert found is not None
    return found


def volumes(cluster: Harness) -> dict[str, str]:
    return {one["metadata"]["name"]: one["status"]["phase"] for one in cluster.list(PERSISTENT_VOLUME)}


def test_a_claim_gets_the_smallest_volume_that_is_large_enough(cluster: Harness) -> None:
    cluster.apply(storage_class("static", NO_PROVISIONER))
    for name, size in (("small", "1Gi"), ("right", "5Gi"), ("large", "50Gi")):
        cluster.apply(volume(name, size).of_class("static"))
    cluster.apply(claim("data", "2Gi").of_class("static"))
    cluster.settle()
    bound = the_claim(cluster, "data")
    assert bound["spec"]["volumeName"] == "right"
    assert bound["status"] == {"phase": "Bound", "accessModes": ["ReadWriteOnce"], "capacity": {"storage": "5Gi"}}
    assert bound["metadata"]["annotations"] == {
        "pv.kubernetes.io/bind-completed": "yes",
        "pv.kubernetes.io/bound-by-controller": "yes",
    }
    assert volumes(cluster) == {"small": "Available", "right": "Bound", "large": "Available"}


def test_a_volume_reserved_for_a_claim_goes_to_no_other(cluster: Harness) -> None:
    cluster.apply(storage_class("static", NO_PROVISIONER))
    cluster.apply(volume("reserved", "1Gi").of_class("static").having(claimRef={"namespace": "default", "name": "vip"}))
    cluster.apply(claim("data").of_class("static"))
    cluster.settle()
    assert the_claim(cluster, "data")["status"]["phase"] == "Pending"
    cluster.apply(claim("vip").of_class("static"))
    cluster.settle()
    assert the_claim(cluster, "vip")["spec"]["volumeName"] == "reserved"
    found = cluster.get(PERSISTENT_VOLUME, "reserved")
    assert found is not None
    assert "annotations" not in found["metadata"]  # the administrator chose, not the controller


def test_two_claims_never_get_the_same_volume(cluster: Harness) -> None:
    cluster.apply(storage_class("static", NO_PROVISIONER))
    cluster.apply(claim("one").of_class("static"), claim("two").of_class("static"))
    cluster.settle()
    cluster.apply(volume("only").of_class("static"))
    cluster.settle()
    phases = sorted(the_claim(cluster, name)["status"]["phase"] for name in ("one", "two"))
    assert phases == ["Bound", "Pending"]


@pytest.mark.parametrize(("policy", "left"), [("Retain", {"disk": "Released"}), ("Delete", {})])
def test_a_released_volume_stays_or_goes_as_its_policy_says(
    cluster: Harness, policy: str, left: dict[str, str]
) -> None:
    cluster.apply(storage_class("static", NO_PROVISIONER))
    cluster.apply(volume("disk").of_class("static").having(persistentVolumeReclaimPolicy=policy))
    cluster.apply(claim("data").of_class("static"))
    cluster.settle()
    cluster.delete(PERSISTENT_VOLUME_CLAIM, "data")
    cluster.settle()
    assert volumes(cluster) == left
    cluster.apply(claim("data").of_class("static"))
    cluster.settle()
    assert the_claim(cluster, "data")["status"]["phase"] == "Pending"


def test_a_claim_that_loses_its_volume_says_so(cluster: Harness) -> None:
    cluster.apply(storage_class("static", NO_PROVISIONER), volume("disk").of_class("static"))
    cluster.apply(claim("data").of_class("static"))
    cluster.settle()
    cluster.delete(PERSISTENT_VOLUME, "disk")
    cluster.settle()
    assert the_claim(cluster, "data")["status"]["phase"] == "Lost"
    text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    assert ("ClaimLost", text) in cluster.events("data")


def test_a_claim_without_a_class_gets_the_default_one_also_if_that_comes_later(cluster: Harness) -> None:
    cluster.apply(claim("early"))
    cluster.settle()
    assert "storageClassName" not in the_claim(cluster, "early")["spec"]
    cluster.apply(storage_class("fast").by_default())
    cluster.apply(claim("late"))
    cluster.settle()
    for name in ("early", "late"):
        assert the_claim(cluster, name)["spec"]["storageClassName"] == "fast"
        assert the_claim(cluster, name)["status"]["phase"] == "Bound"


def test_a_volume_is_made_for_a_claim_and_goes_with_it(cluster: Harness) -> None:
    cluster.apply(storage_class("fast"), claim("data", "3Gi").of_class("fast"))
    cluster.settle()
    (made,) = cluster.list(PERSISTENT_VOLUME)
    assert made["metadata"]["name"] == f"pvc-{the_claim(cluster, 'data')['metadata']['uid']}"
    assert made["metadata"]["annotations"]["pv.kubernetes.io/provisioned-by"] == "disks.example.com"
    assert (made["spec"]["capacity"], made["status"]["phase"]) == ({"storage": "3Gi"}, "Bound")
    annotations = the_claim(cluster, "data")["metadata"]["annotations"]
    assert annotations["volume.kubernetes.io/storage-provisioner"] == "disks.example.com"
    cluster.delete(PERSISTENT_VOLUME_CLAIM, "data")
    cluster.settle()
    assert volumes(cluster) == {}


def test_a_made_volume_stays_if_its_class_keeps_volumes(cluster: Harness) -> None:
    cluster.apply(storage_class("kept").keeping(), claim("data").of_class("kept"))
    cluster.settle()
    cluster.delete(PERSISTENT_VOLUME_CLAIM, "data")
    cluster.settle()
    assert list(volumes(cluster).values()) == ["Released"]


def test_nothing_is_made_for_a_class_without_a_provisioner(cluster: Harness) -> None:
    cluster.apply(storage_class("static", NO_PROVISIONER), claim("data").of_class("static"))
    cluster.settle()
    assert volumes(cluster) == {}
    text = "no volume plugin matched name: kubernetes.io/no-provisioner"
    assert ("ProvisioningFailed", text) in cluster.events("data")


def test_a_waiting_claim_gets_a_volume_in_the_zone_of_the_pod_that_uses_it(cluster: Harness) -> None:
    cluster.apply(storage_class("local").waiting(), claim("data").of_class("local"))
    cluster.run(5)
    assert the_claim(cluster, "data")["status"]["phase"] == "Pending"
    text = "waiting for first consumer to be created before binding"
    assert ("WaitForFirstConsumer", text) in cluster.events("data")
    cluster.apply(pod_using("db", "data").selects({ZONE: "b"}))
    cluster.run(5)
    assert cluster.bindings() == {"db": "right"}
    assert the_claim(cluster, "data")["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == "right"
    (made,) = cluster.list(PERSISTENT_VOLUME)
    (term,) = made["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    assert term == {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}


def test_a_pod_comes_back_to_the_zone_of_its_volume(cluster: Harness) -> None:
    cluster.apply(storage_class("local").waiting(), claim("data").of_class("local"))
    cluster.apply(pod_using("first", "data").selects({ZONE: "a"}))
    cluster.run(5)
    cluster.delete(POD, "first")
    cluster.run(60)
    cluster.apply(*(pod_using(f"later-{number}", "data") for number in range(5)))
    cluster.run(5)
    assert set(cluster.bindings().values()) == {"left"}


def test_an_ephemeral_volume_comes_and_goes_with_its_pod(cluster: Harness) -> None:
    cluster.apply(storage_class("local").waiting())
    cluster.apply(pod_with_ephemeral("work", "1Gi", storage_class="local"))
    cluster.run(5)
    assert cluster.phases() == {"work": "Running"}
    mine = the_claim(cluster, "work-scratch")
    assert mine["metadata"]["ownerReferences"][0]["name"] == "work"
    cluster.delete(POD, "work")
    cluster.run(60)
    assert list(cluster.list(PERSISTENT_VOLUME_CLAIM)) == []
    assert volumes(cluster) == {}


def test_a_claim_of_the_right_name_that_is_not_the_pods_is_left_alone(cluster: Harness) -> None:
    cluster.apply(storage_class("local"), claim("work-scratch").of_class("local"))
    cluster.apply(pod_with_ephemeral("work", "1Gi", storage_class="local"))
    cluster.run(5)
    assert cluster.phases() == {"work": "Pending"}
    assert "FailedBinding" in {reason for reason, _ in cluster.events("work")}
