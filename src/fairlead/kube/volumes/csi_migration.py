"""Disks of the old built-in volume plugins, as the CSI drivers that took over call them.

Two things follow from the takeover: the handle under which a disk is attached, which shows whether two volumes are the
same disk, and where a volume can be reached, because a driver has a zone label of its own. What cannot be translated
is a MigrationError with the original's text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.pod_volumes import VolumeSource
from fairlead.core.model.requirements import Op, Requirement, canonical
from fairlead.core.model.selectors import NodeSelector, NodeSelectorTerm
from fairlead.core.model.storage import CSI_DRIVER_OF_PLUGIN

if TYPE_CHECKING:
    from fairlead.core.model.pod_volumes import PodVolume
    from fairlead.core.model.storage import Volume

Identity = tuple[str, str]
"""Driver and handle of a volume: what is attached, and counted once however many pods use it."""

_EBS, _GCE, _CINDER = "kubernetes.io/aws-ebs", "kubernetes.io/gce-pd", "kubernetes.io/cinder"
_ZONE_OF_DRIVER = {
    _EBS: "topology.ebs.csi.aws.com/zone",
    _GCE: "topology.gke.io/zone",
    _CINDER: "topology.cinder.csi.openstack.org/zone",
}
_ZONE, _REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
_OLD_ZONE, _OLD_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
_UNKNOWN = "UNSPECIFIED"
_PLUGIN_OF_SOURCE = {
    VolumeSource.EBS: _EBS,
    VolumeSource.GCE: _GCE,
    VolumeSource.AZURE: "kubernetes.io/azure-disk",
    VolumeSource.CINDER: _CINDER,
    VolumeSource.PORTWORX: "kubernetes.io/portworx-volume",
}
INLINE_DISKS = frozenset(_PLUGIN_OF_SOURCE)
"""Disks named in a pod that a driver attaches nowadays."""
UNCOUNTED_PROVISIONERS = frozenset({"kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"})
"""Provisioners that have moved to a driver too, but whose volumes nobody counts."""


class MigrationError(ValueError):
    """A disk that has no name in its driver's words."""


def driver_of_inline(volume: PodVolume) -> str:
    """The driver that attaches a disk named in a pod; empty if none does."""
    plugin = _PLUGIN_OF_SOURCE.get(volume.source)
    return CSI_DRIVER_OF_PLUGIN[plugin] if plugin else ""


def identity_of_inline(volume: PodVolume) -> Identity:
    """Driver and handle of one of INLINE_DISKS."""
    plugin = _PLUGIN_OF_SOURCE[volume.source]
    return CSI_DRIVER_OF_PLUGIN[plugin], _handle(plugin, volume.name, {})


def identity_of_volume(volume: Volume) -> Identity | None:
    """Driver and handle of a PersistentVolume; None if no driver attaches it."""
    if volume.csi is not None or volume.in_tree is None:
        return volume.csi
    plugin, disk = volume.in_tree
    return CSI_DRIVER_OF_PLUGIN[plugin], _handle(plugin, disk, volume.labels)


def _handle(plugin: str, disk: str, labels: Mapping[str, str]) -> str:
    if plugin == _EBS:
        return _ebs_handle(disk)
    return _gce_handle(disk, labels) if plugin == _GCE else disk


def _ebs_handle(disk: str) -> str:
    """`aws://zone/vol-1` is `vol-1`; anything else is what it is."""
    if not disk.startswith("aws://"):
        return disk
    handle = disk.removeprefix("aws://").partition("/")[2].strip("/")
    if not handle.startswith("vol-") or "/" in handle:
        complaint = f"Invalid format for AWS volume ({disk})"
        raise MigrationError(f"failed to translate Kubernetes ID to EBS Volume ID {complaint}")
    return handle


def _gce_handle(disk: str, labels: Mapping[str, str]) -> str:
    zones = (labels.get(_OLD_ZONE) or labels.get(_ZONE) or "").split("__")
    if len(zones) > 1:
        return f"projects/{_UNKNOWN}/regions/{_gce_region(zones)}/disks/{disk}"
    return f"projects/{_UNKNOWN}/zones/{zones[0] or _UNKNOWN}/disks/{disk}"


def _gce_region(zones: Iterable[str]) -> str:
    regions = set()
    for zone in zones:
        parts = zone.split("-")
        if len(parts) != 3:
            expected = "zone in unexpected format, expected: {locale}-{region}-{zone}"
            raise MigrationError(f"failed to get region from zones: {expected}, got: {zone}")
        regions.add("-".join(parts[:2]))
    if len(regions) != 1:
        listed = " ".join(f"{region}:{{}}" for region in sorted(regions))
        raise MigrationError(
            f"failed to get region from zones: multiple or no regions gotten from zones, got: map[{listed}]"
        )
    return regions.pop()


# ---- where a volume can be reached ----


def affinity_after_migration(volume: Volume) -> NodeSelector | None:
    """The node affinity of an in-tree volume on a node whose plugin has moved to the driver."""
    assert volume.in_tree is not None
    plugin, disk = volume.in_tree
    _handle(plugin, disk, volume.labels)
    key = _ZONE_OF_DRIVER.get(plugin)
    return volume.node_affinity if key is None else _with_zone_key(volume, key)


def _with_zone_key(volume: Volume, key: str) -> NodeSelector | None:
    """Zones in the affinity get the driver's key; without any, those of the label are added to every alternative."""
    affinity, labels = volume.node_affinity, volume.labels
    terms = affinity.terms if affinity is not None else ()
    zone, region = _topology_labels(terms, labels)
    if _has_values(terms, zone):
        terms = _renamed(terms, zone, key)
    elif zones := [part.strip() for part in labels.get(zone, "").split("__") if part.strip()]:
        wanted = Requirement(key, Op.IN, tuple(sorted(set(zones))))
        terms = tuple(_extended(term, wanted) for term in terms or (NodeSelectorTerm(),))
    elif affinity is None:
        return None
    if region == _OLD_REGION and _has_values(terms, region):
        terms = _renamed(terms, region, _REGION)
    return NodeSelector(terms)


def _topology_labels(terms: tuple[NodeSelectorTerm, ...], labels: Mapping[str, str]) -> tuple[str, str]:
    """The zone and region labels that a volume speaks in: the new ones unless only the old ones are found."""
    keys = {requirement.key for term in terms for requirement in term.expressions}
    for known in (keys, labels):
        if _ZONE in known:
            return _ZONE, _REGION
        if _OLD_ZONE in known:
            return _OLD_ZONE, _OLD_REGION
    return _ZONE, _REGION


def _has_values(terms: tuple[NodeSelectorTerm, ...], key: str) -> bool:
    return any(requirement.values for term in terms for requirement in term.expressions if requirement.key == key)


def _renamed(terms: tuple[NodeSelectorTerm, ...], old: str, new: str) -> tuple[NodeSelectorTerm, ...]:
    return tuple(
        NodeSelectorTerm(
            canonical(r._replace(key=new) if r.key == old else r for r in term.expressions), term.fields, term.error
        )
        for term in terms
    )


def _extended(term: NodeSelectorTerm, requirement: Requirement) -> NodeSelectorTerm:
    return NodeSelectorTerm(canonical((*term.expressions, requirement)), term.fields, term.error)
