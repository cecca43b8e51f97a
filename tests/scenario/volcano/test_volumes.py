"""Volumes with the Volcano profile: as a resource of nodes and pods, and as a wish for one node rather than another."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model import kinds
from fairlead.core.model.flow import Doc
from fairlead.testing.builders import nodes, pod, podgroup
from fairlead.volcano.kinds import VC_QUEUE
from fairlead.volcano.rounds.attachable import attach_limit_name
from tests.support.volcano import VolcanoHarness, conf, round_drivers

DRIVER = "csi.example.com"
PLAIN = conf("enqueue, allocate, backfill", "priority; gang", "predicates; nodeorder")
SCALAR = f"attachable-volumes-csi-{DRIVER}"


class Storage(VolcanoHarness):
    """Two nodes; a class whose driver attaches volumes, and one of whose driver no node has heard."""

    def __init__(self, text: str = PLAIN, *, limits: dict[str, int | None], **more: Any) -> None:
        super().__init__(text, nodes(2), **more)
        for name, provisioner in (("attached", DRIVER), ("unserved", "nobody.example.com")):
            self.apply(_storage_class(name, provisioner))
        for name, count in limits.items():
            self.apply(_csi_node(name, count))
        self.run(1)

    def claim(self, name: str, of: str = "attached") -> None:
        spec = {"accessModes": ["ReadWriteMany"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": of}
        self.apply(
            {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "metadata": {"name": name, "namespace": "default"},
                "spec": spec,
            }
        )

    def consumer(self, name: str, *claims: str, cpu: str = "") -> None:
        """A gang of one that uses some claims."""
        self.apply(podgroup(name, 1))
        volumes = [{"name": f"v{at}", "persistentVolumeClaim": {"claimName": claim}} for at, claim in enumerate(claims)]
        member = self.member(name, 0, {"cpu": cpu} if cpu else None).having(volumes=volumes)
        self.apply(member)
        self.run(5)

    def node_of(self, name: str) -> str:
        return str(self.pod(f"{name}-w-0")["spec"].get("nodeName") or "")

    def said(self, name: str) -> str:
        conditions = self.pod(f"{name}-w-0")["status"]["conditions"]
        return str(next(c["message"] for c in conditions if c["type"] == "PodScheduled"))


def _storage_class(name: str, provisioner: str, **more: object) -> Doc:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": "Immediate",
        **more,
    }


def _csi_node(name: str, count: int | None) -> Doc:
    driver: Doc = {"name": DRIVER, "nodeID": name}
    if count is not None:
        driver["allocatable"] = {"count": count}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }


def test_a_node_takes_as_many_volumes_as_its_driver_can() -> None:
    world = Storage(limits={"n0": 1, "n1": 2})
    for name in ("a", "b", "c", "d"):
        world.claim(name)
        world.consumer(name, name)
    placed = [world.node_of(name) for name in ("a", "b", "c", "d")]
    assert sorted(placed) == ["", "n0", "n1", "n1"]
    assert world.said("d") == f"0/2 nodes are unavailable: 2 Insufficient {SCALAR}."


def test_a_claim_that_is_used_twice_counts_twice() -> None:
    """kube-scheduler would count one volume, and let it pass."""
    world = Storage(limits={"n0": 1, "n1": 1})
    world.claim("data")
    world.consumer("twice", "data", "data")
    assert world.node_of("twice") == ""
    assert world.said("twice") == f"0/2 nodes are unavailable: 2 Insufficient {SCALAR}."


def test_a_pod_that_asks_only_for_a_volume_is_not_best_effort() -> None:
    """So it is placed by allocate, and not by backfill."""
    world = Storage(PLAIN.replace(", backfill", ""), limits={"n0": None, "n1": None})
    world.claim("data")
    world.consumer("light", "data")
    world.consumer("nothing")
    assert world.node_of("light")
    assert not world.node_of("nothing")


def test_a_driver_without_a_limit_takes_any_number() -> None:
    world = Storage(limits={"n0": None})
    for name in ("a", "b", "c"):
        world.claim(name)
        world.consumer(name, name)
    assert {world.node_of(name) for name in ("a", "b", "c")} == {"n0"}, "where the driver is"


@pytest.mark.parametrize(("compatible", "expected"), [(False, True), (True, False)])
def test_volumes_of_a_driver_that_no_node_has_are_not_counted(compatible: bool, expected: bool) -> None:
    """The original counts them all the same, and places nobody until --ignored-provisioners names the driver."""
    world = Storage(limits={"n0": 1, "n1": 1}, compatible=compatible)
    world.claim("data", of="unserved")
    world.consumer("one", "data", cpu="1")
    assert bool(world.node_of("one")) is expected
    if not expected:
        assert "Insufficient attachable-volumes-csi-nobody.example.com" in world.said("one")


def test_ignored_provisioners_are_not_counted() -> None:
    world = Storage(limits={}, compatible=True)
    world.apply(_storage_class("local", "rancher.io/local-path"))
    world.claim("data", of="local")
    world.consumer("one", "data", cpu="1")
    assert world.node_of("one")


def test_a_class_may_name_a_driver_other_than_its_provisioner() -> None:
    world = Storage(limits={"n0": 0, "n1": 0})
    world.apply(_storage_class("renamed", "vendor/x", parameters={"csi.storage.k8s.io/csi-driver-name": DRIVER}))
    world.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "renamed",
                "volumeName": "not-there-yet",
            },
        }
    )
    world.apply(podgroup("one", 1))
    volume = {"name": "v", "persistentVolumeClaim": {"claimName": "data"}}
    world.apply(world.member("one", 0, {"cpu": "1"}).having(volumes=[volume]))
    world.run(3)
    latest = round_drivers(world.scheduler)[0].latest
    assert latest is not None
    (task,) = latest.jobs["default/one"].tasks.values()
    assert task.request.scalars == {"pods": 1.0, SCALAR: 1.0}


def test_a_claim_that_comes_later_is_counted_then() -> None:
    world = Storage(limits={"n0": 1, "n1": 1})
    world.consumer("early", "data")
    assert world.node_of("early") == ""
    world.claim("data")
    world.run(5)
    node = world.node_of("early")
    assert node
    queue = world.get(VC_QUEUE, "default")
    assert queue is not None
    assert queue["status"]["allocated"][SCALAR] == "1"


def test_volumes_of_ephemeral_claims_count_too() -> None:
    world = Storage(limits={"n0": 1, "n1": 0})
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "attached",
    }
    volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}
    for name in ("a", "b"):
        world.apply(podgroup(name, 1))
        world.apply(world.member(name, 0, {"cpu": "1"}).having(volumes=[volume]))
        world.run(8)
    assert [world.node_of(name) for name in ("a", "b")] == ["n0", ""]


def test_long_names_of_drivers_are_cut_and_hashed() -> None:
    short, long = "x" * 39, "driver-with-a-name.that-is-far-too-long.example.com"
    assert attach_limit_name(short) == f"attachable-volumes-csi-{short}"
    named = attach_limit_name(long)
    assert named.startswith("attachable-volumes-csi-driver-with-a-name.that")
    assert len(named) == 62


# ---- the score of volumes ----


def _disk(name: str, at: str, size: str) -> Doc:
    """A local disk of a node."""
    term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": [at]}]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteMany"],
            "storageClassName": "disks",
            "local": {"path": "/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
        },
    }


class Disks(Storage):
    """n0 has a disk of exactly the size, n1 one that is larger by far, and less of everything else."""

    def __init__(self, arguments: str = "", *, gates: frozenset[str] = frozenset()) -> None:
        text = conf("enqueue, allocate", "priority; gang", f"predicates {arguments}; nodeorder")
        super().__init__(text, limits={}, flags={"gates": gates})
        self.patch(kinds.NODE, "n0", {"metadata": {"labels": {"kubernetes.io/hostname": "n0"}}})
        self.patch(kinds.NODE, "n1", {"metadata": {"labels": {"kubernetes.io/hostname": "n1"}}})
        disks = _storage_class("disks", "kubernetes.io/no-provisioner")
        self.apply({**disks, "volumeBindingMode": "WaitForFirstConsumer"})
        self.apply(_disk("exact", "n0", "1Gi"), _disk("large", "n1", "10Gi"))
        self.apply(pod("busy").asks(cpu="3").on("n1"))
        self.claim("data", of="disks")
        self.run(2)
        self.consumer("one", "data", cpu="500m")


SCORED = frozenset({"StorageCapacityScoring"})


def test_volumes_are_not_scored_by_default() -> None:
    assert Disks().node_of("one") == "n0", "where there is more of everything else"


def test_with_the_gate_nodes_score_by_the_storage_they_would_have_left() -> None:
    assert Disks("arguments: {volumebinding.weight: 5}", gates=SCORED).node_of("one") == "n1"


def test_the_score_has_a_weight_and_a_shape() -> None:
    weightless = Disks("arguments: {volumebinding.weight: 0}", gates=SCORED)
    assert weightless.node_of("one") == "n0"
    shape = "volumebinding.shape: [{utilization: 0, score: 0}, {utilization: 100, score: 10}]"
    packing = Disks(f"arguments: {{volumebinding.weight: 5, {shape}}}", gates=SCORED)
    assert packing.node_of("one") == "n0"


@pytest.mark.parametrize(
    ("compatible", "asked", "placed"), [(False, None, False), (True, None, True), (True, True, False)]
)
def test_csi_storage_heeds_the_room_of_drivers(compatible: bool, asked: bool | None, placed: bool) -> None:
    """The driver says that it has no room anywhere."""
    world = Storage(limits={"n0": 5, "n1": 5}, compatible=compatible, flags={"csi_storage": asked})
    world.apply(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSIDriver",
            "metadata": {"name": DRIVER},
            "spec": {"storageCapacity": True},
        }
    )
    world.apply({**_storage_class("late", DRIVER), "volumeBindingMode": "WaitForFirstConsumer"})
    world.claim("data", of="late")
    world.run(2)
    world.consumer("one", "data", cpu="1")
    assert bool(world.node_of("one")) is placed
    if not placed:
        assert world.said("one") == "0/2 nodes are unavailable: 2 node(s) did not have enough free storage."
