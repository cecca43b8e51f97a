"""Storage as far as scheduling reads it."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.documents import ModelError
from fairlead.core.model.namespaces import compile_namespace
from fairlead.core.model.selectors import EVERYTHING, NOTHING
from fairlead.core.model.storage import (
    ClaimRef,
    compile_claim,
    compile_csi_driver,
    compile_csi_node,
    compile_storage_capacity,
    compile_storage_class,
    compile_volume,
    compile_volume_attachment,
    default_storage_class,
)


def test_a_class_says_when_to_bind_and_where_volumes_may_be() -> None:
    def allowing(*terms: list[tuple[str, list[str]]]) -> dict[str, object]:
        return {
            "metadata": {"name": "fast"},
            "provisioner": "p.io",
            "volumeBindingMode": "WaitForFirstConsumer",
            "allowedTopologies": [
                {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term]} for term in terms
            ],
        }

    fast = compile_storage_class(allowing([("zone", ["a", "b"]), ("disk", ["ssd"])], []))
    assert fast.waits
    assert fast.allows({"zone": "b", "disk": "ssd"})
    assert not fast.allows({"zone": "b"})
    assert compile_storage_class(allowing()).allows({})
    assert not compile_storage_class(allowing([])).allows({}), "an empty alternative allows nothing"
    assert compile_storage_class({"metadata": {"name": "x"}}).binding_mode == ""


def test_a_volume_is_read_with_its_class_claim_affinity_and_zones() -> None:
    zone_term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    volume = compile_volume(
        {
            "metadata": {
                "name": "pv",
                "annotations": {"volume.beta.kubernetes.io/storage-class": "old"},
                "labels": {"topology.kubernetes.io/zone": "a__ b", "topology.kubernetes.io/region": "r__"},
            },
            "spec": {
                "capacity": {"storage": "10Gi"},
                "storageClassName": "new",
                "accessModes": ["ReadWriteOnce"],
                "claimRef": {"namespace": "ns", "name": "c"},
                "csi": {"driver": "d.io", "volumeHandle": "h"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [zone_term]}},
            },
            "status": {"phase": "Bound"},
        }
    )
    assert (volume.storage_class, volume.capacity, volume.volume_mode) == ("old", 10 * 2**30, "Filesystem")
    assert (volume.claim, volume.csi, volume.in_tree) == (ClaimRef("ns", "c", ""), ("d.io", "h"), None)
    assert volume.zones == (("topology.kubernetes.io/zone", frozenset({"a", "b"})),)
    assert volume.node_affinity is not None
    assert volume.node_affinity.matches({"zone": "a"}, "")
    in_tree = compile_volume({"metadata": {"name": "x"}, "spec": {"gcePersistentDisk": {"pdName": "d"}}})
    assert (in_tree.in_tree, in_tree.claim, in_tree.node_affinity) == (("kubernetes.io/gce-pd", "d"), None, None)


def test_a_claim_is_bound_once_volume_and_annotation_say_so() -> None:
    document = {
        "metadata": {
            "name": "c",
            "namespace": "ns",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes", "volume.kubernetes.io/selected-node": "n1"},
            "ownerReferences": [{"uid": "p", "controller": True}],
        },
        "spec": {"volumeName": "pv", "resources": {"requests": {"storage": "1.5Gi"}}},
    }
    claim = compile_claim(document)
    assert claim.fully_bound
    assert (claim.key, claim.request, claim.has_request) == ("ns/c", 1610612736, True)
    assert (claim.selected_node, claim.owner_uid, claim.selector) == ("n1", "p", None)
    pending = compile_claim({"metadata": {"name": "c"}, "spec": {"volumeName": "pv", "selector": {}}})
    assert not pending.fully_bound
    assert (pending.selector, pending.selected_node, pending.has_request) == (EVERYTHING, None, False)


def test_drivers_capacities_attachments_and_namespaces() -> None:
    node = compile_csi_node(
        {
            "metadata": {
                "name": "n",
                "annotations": {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs,"},
            },
            "spec": {"drivers": [{"name": "a", "allocatable": {"count": 3}}, {"name": "b"}]},
        }
    )
    assert (node.drivers, node.migrated) == ({"a": 3, "b": None}, {"kubernetes.io/aws-ebs"})
    assert compile_csi_driver({"metadata": {"name": "d"}, "spec": {"storageCapacity": True}}).storage_capacity
    capacity = {"metadata": {"name": "x"}, "storageClassName": "c", "capacity": "10Gi", "nodeTopology": {}}
    assert compile_storage_capacity(capacity).largest_volume == 10 * 2**30
    assert compile_storage_capacity(capacity | {"maximumVolumeSize": "1Gi"}).largest_volume == 2**30
    assert compile_storage_capacity({"metadata": {"name": "x"}}).topology is NOTHING
    assert compile_storage_capacity({"metadata": {"name": "x"}}).largest_volume is None
    attachment = {
        "metadata": {"name": "a"},
        "spec": {"attacher": "d", "nodeName": "n", "source": {"persistentVolumeName": "pv"}},
    }
    assert compile_volume_attachment(attachment).volume_name == "pv"
    assert compile_namespace({"metadata": {"name": "ns", "labels": {"a": "b"}}}).labels == {"a": "b"}


def test_a_bad_size_is_an_error_that_names_object_and_field() -> None:
    with pytest.raises(ModelError, match=r"^PersistentVolume pv: spec\.capacity\[storage\]: "):
        compile_volume({"metadata": {"name": "pv"}, "spec": {"capacity": {"storage": "big"}}})
    with pytest.raises(ModelError, match=r"^CSIStorageCapacity x: capacity: "):
        compile_storage_capacity({"metadata": {"name": "x"}, "capacity": "big"})


def test_the_default_class_is_the_newest_and_then_the_first_by_name() -> None:
    def marked(name: str, made: str) -> dict[str, Any]:
        annotations = {"storageclass.kubernetes.io/is-default-class": "true"}
        return {"metadata": {"name": name, "creationTimestamp": made, "annotations": annotations}}

    old = marked("a", "2026-01-01T00:00:00Z")
    made, standard = (marked(name, "2026-01-02T00:00:00Z") for name in ("made", "standard"))
    assert default_storage_class([old, standard, made]) == "made"
    assert default_storage_class([{"metadata": {"name": "plain"}}]) == ""
