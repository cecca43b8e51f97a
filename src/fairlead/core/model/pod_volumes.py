"""The volumes of a pod that scheduling looks at: claims, disks named in the pod, and inline CSI drivers.

Everything else (config maps, secrets, projected tokens, empty directories, host paths) places a pod nowhere and is
left out, so that a token volume with a random name does not make every pod unlike the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class VolumeSource(Enum):
    """Where a volume comes from; values are the names of the fields."""

    CLAIM = "persistentVolumeClaim"
    EPHEMERAL = "ephemeral"
    GCE = "gcePersistentDisk"
    EBS = "awsElasticBlockStore"
    RBD = "rbd"
    ISCSI = "iscsi"
    AZURE = "azureDisk"
    CINDER = "cinder"
    PORTWORX = "portworxVolume"
    CSI = "csi"


_SOURCES = {source.value: source for source in VolumeSource}
RELEVANT_SOURCES = frozenset(_SOURCES) | {"image"}
_NAME_FIELDS = {
    VolumeSource.CLAIM: "claimName",
    VolumeSource.GCE: "pdName",
    VolumeSource.EBS: "volumeID",
    VolumeSource.RBD: "image",
    VolumeSource.ISCSI: "iqn",
    VolumeSource.AZURE: "diskURI",
    VolumeSource.CINDER: "volumeID",
    VolumeSource.PORTWORX: "volumeID",
    VolumeSource.CSI: "driver",
}


@dataclass(frozen=True, slots=True)
class PodVolume:
    """`name` is what identifies it: the claim, the disk, the iqn, the RBD image, the CSI driver, or for an ephemeral
    volume its own name in the pod."""

    source: VolumeSource
    name: str
    read_only: bool = False
    pool: str = ""
    monitors: tuple[str, ...] = ()


def parse_volumes(documents: Iterable[Mapping[str, Any]] | None) -> tuple[PodVolume, ...]:
    volumes = []
    for document in documents or ():
        for field, source in _SOURCES.items():
            if (details := document.get(field)) is not None:
                volumes.append(_parse_volume(source, document.get("name") or "", details))
                break
    return tuple(volumes)


def _parse_volume(source: VolumeSource, name: str, details: Mapping[str, Any]) -> PodVolume:
    if source is VolumeSource.EPHEMERAL:
        return PodVolume(source, name)
    identity, read_only = details.get(_NAME_FIELDS[source]) or "", bool(details.get("readOnly"))
    if source is VolumeSource.RBD:
        monitors = tuple(details.get("monitors") or ())
        return PodVolume(source, identity, read_only, details.get("pool") or "rbd", monitors)
    if source in (VolumeSource.GCE, VolumeSource.ISCSI):
        return PodVolume(source, identity, read_only)
    return PodVolume(source, identity)


def image_references(documents: Iterable[Mapping[str, Any]] | None) -> list[str]:
    """The images that are mounted as volumes."""
    return [document["image"].get("reference") or "" for document in documents or () if document.get("image")]
