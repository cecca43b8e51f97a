from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.pod_volumes import PodVolume, VolumeSource
from fairlead.core.model.storage import Volume, compile_volume
from fairlead.kube.volumes.csi_migration import (
    MigrationError,
    affinity_after_migration,
    driver_of_inline,
    identity_of_inline,
    identity_of_volume,
)

ZONE, OLD_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE = "topology.ebs.csi.aws.com/zone"
REGION = "topology.kubernetes.io/region"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
GCE = {"gcePersistentDisk": {"pdName": "d"}}
EBS = {"awsElasticBlockStore": {"volumeID": "aws://eu/vol-1"}}


def volume(labels: dict[str, str] | None = None, terms: list[Any] | None = None, **source: Any) -> Volume:
    spec = dict(source)
    if terms is not None:
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    return compile_volume({"metadata": {"name": "v", "labels": labels or {}}, "spec": spec})


def is_in(key: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


@pytest.mark.parametrize(
    ("labels", "source", "identity"),
    [
        ({}, {"csi": {"driver": "d", "volumeHandle": "h"}}, ("d", "h")),
        ({}, EBS, ("ebs.csi.aws.com", "vol-1")),
        ({}, {"awsElasticBlockStore": {"volumeID": "aws:///vol-1"}}, ("ebs.csi.aws.com", "vol-1")),
        ({}, {"awsElasticBlockStore": {"volumeID": "whatever"}}, ("ebs.csi.aws.com", "whatever")),
        ({}, GCE, ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d")),
        ({ZONE: "z"}, GCE, ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/zones/z/disks/d")),
        ({OLD_ZONE: "eu-w-a__eu-w-b"}, GCE, ("pd.csi.storage.gke.io", "projects/UNSPECIFIED/regions/eu-w/disks/d")),
        ({}, {"azureDisk": {"diskURI": "/x"}}, ("disk.csi.azure.com", "/x")),
        ({}, {"cinder": {"volumeID": "c"}}, ("cinder.csi.openstack.org", "c")),
        ({}, {"local": {"path": "/x"}}, None),
    ],
)  # fmt: skip
def test_a_volume_is_known_to_its_driver_by_a_handle(labels: Any, source: Any, identity: Any) -> None:
    assert identity_of_volume(volume(labels, **source)) == identity


def test_what_has_no_handle_is_an_error_in_the_words_of_the_original() -> None:
    with pytest.raises(MigrationError) as bad_id:
        identity_of_volume(volume(awsElasticBlockStore={"volumeID": "aws://eu/disk"}))
    complaint = "Invalid format for AWS volume (aws://eu/disk)"
    assert str(bad_id.value) == f"failed to translate Kubernetes ID to EBS Volume ID {complaint}"
    for label, text in (
        ("a__b", "zone in unexpected format, expected: {locale}-{region}-{zone}, got: a"),
        ("eu-w-a__us-w-a", "multiple or no regions gotten from zones, got: map[eu-w:{} us-w:{}]"),
    ):
        with pytest.raises(MigrationError) as bad_zones:
            identity_of_volume(volume({ZONE: label}, gcePersistentDisk={"pdName": "d"}))
        assert str(bad_zones.value) == f"failed to get region from zones: {text}"


def test_disks_named_in_a_pod_have_drivers_too() -> None:
    assert identity_of_inline(PodVolume(VolumeSource.EBS, "vol-1")) == ("ebs.csi.aws.com", "vol-1")
    assert driver_of_inline(PodVolume(VolumeSource.PORTWORX, "p")) == "pxd.portworx.com"
    assert driver_of_inline(PodVolume(VolumeSource.RBD, "i")) == ""


@pytest.mark.parametrize(
    ("labels", "terms", "node", "matches"),
    [
        ({}, None, {}, True),
        ({ZONE: "a__b"}, None, {EBS_ZONE: "b"}, True),
        ({ZONE: "a__b"}, None, {ZONE: "b"}, False),
        ({}, [is_in(ZONE, "a")], {EBS_ZONE: "a"}, True),
        ({ZONE: "b"}, [is_in(ZONE, "a")], {EBS_ZONE: "a"}, True),
        ({}, [is_in(OLD_ZONE, "a")], {EBS_ZONE: "a"}, True),
        ({OLD_ZONE: "a"}, [is_in("rack", "r")], {"rack": "r"}, False),
        ({OLD_ZONE: "a"}, [is_in("rack", "r")], {"rack": "r", EBS_ZONE: "a"}, True),
        ({OLD_ZONE: "a"}, [is_in(OLD_REGION, "r")], {REGION: "r", EBS_ZONE: "a"}, True),
    ],
)  # fmt: skip
def test_zones_of_a_volume_become_zones_of_its_driver(labels: Any, terms: Any, node: Any, matches: bool) -> None:
    affinity = affinity_after_migration(volume(labels, terms, **EBS))
    assert (affinity is None or affinity.matches(node, "")) == matches


def test_a_driver_without_zones_of_its_own_leaves_the_affinity_as_it_is() -> None:
    azure = volume({ZONE: "a"}, [is_in(ZONE, "a")], azureDisk={"diskURI": "/x"})
    assert affinity_after_migration(azure) == azure.node_affinity
