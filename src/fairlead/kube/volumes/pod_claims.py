"""The PersistentVolumeClaims of a pod: by name in its spec, or made for it from an ephemeral volume.

A claim that was made for a pod is called after pod and volume, and must be controlled by that pod: somebody else's
claim that happens to have the name is not to be touched. The texts are those that users and tools match on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from fairlead.core.model.pod_volumes import VolumeSource

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.storage import Claim


class ClaimUse(NamedTuple):
    """One volume of a pod that is a claim: the claim's name and key, and whether it is made for the pod."""

    name: str
    key: str
    ephemeral: bool


def claim_uses(pod: Pod) -> Iterator[ClaimUse]:
    """The claims of a pod in the order of its volumes; one claim may be used by several volumes."""
    for volume in pod.shape.volumes:
        if volume.source is VolumeSource.CLAIM:
            yield ClaimUse(volume.name, f"{pod.namespace}/{volume.name}", ephemeral=False)
        elif volume.source is VolumeSource.EPHEMERAL:
            name = f"{pod.name}-{volume.name}"
            yield ClaimUse(name, f"{pod.namespace}/{name}", ephemeral=True)


def uses_claims(pod: Pod, *, ephemeral: bool = True) -> bool:
    """Whether a pod has any claim; without `ephemeral`, any that is named in its spec."""
    volumes = pod.shape.volumes
    if not volumes:
        return False
    wanted = (VolumeSource.CLAIM, VolumeSource.EPHEMERAL) if ephemeral else (VolumeSource.CLAIM,)
    return any(volume.source in wanted for volume in volumes)


def not_owned(pod: Pod, claim: Claim) -> str:
    """What is wrong with the claim of an ephemeral volume that is not this pod's; empty if it is."""
    if claim.owner_uid == pod.uid:
        return ""
    return f"PVC {claim.key} was not created for pod {pod.key} (pod is not owner)"


def claim_not_found(name: str) -> str:
    return f'persistentvolumeclaim "{name}" not found'


def volume_not_found(name: str) -> str:
    return f'persistentvolume "{name}" not found'


def class_not_found(name: str) -> str:
    return f'storageclass.storage.k8s.io "{name}" not found'


def mode_not_set(name: str) -> str:
    return f'VolumeBindingMode not set for StorageClass "{name}"'
