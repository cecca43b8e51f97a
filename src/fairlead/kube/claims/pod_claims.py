"""The resource claims of a pod: named in its spec, or made for it from a template. The texts are the original's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.model.device_claims import claims_made_for

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import ResourceClaim
    from fairlead.core.model.pod import Pod
    from fairlead.kube.claims.devices import DeviceIndex


class ClaimMissing(Exception):
    """A claim of the pod is not there or not the pod's; the message says which."""


def claims_of(pod: Pod, devices: DeviceIndex) -> list[ResourceClaim]:
    """The claims of a pod in the order of its spec; raises ClaimMissing. An entry may need no claim."""
    if not pod.resource_claims:
        return []
    found: list[ResourceClaim] = []
    made = claims_made_for(pod)
    for entry in pod.resource_claims:
        name: str | None
        if entry.claim:
            name = entry.claim
        elif entry.template:
            if entry.name not in made:
                raise ClaimMissing(f'pod "{pod.key}": ResourceClaim not created yet')
            name = made[entry.name]
        else:
            raise ClaimMissing(
                f'pod "{pod.key}", spec.resourceClaim "{entry.name}": none of the supported fields are set'
            )
        if name is not None:
            found.append(_claim(pod, devices, name, from_template=not entry.claim))
    return found


def _claim(pod: Pod, devices: DeviceIndex, name: str, *, from_template: bool) -> ResourceClaim:
    claim = devices.claims.get(f"{pod.namespace}/{name}")
    if claim is None:
        raise ClaimMissing(f'could not find ResourceClaim "{pod.namespace}/{name}"')
    if claim.terminating:
        raise ClaimMissing(f'resourceclaim "{name}" is being deleted')
    if from_template and claim.owner_uid != pod.uid:
        raise ClaimMissing(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
    return claim


def same_claims(pod: Pod) -> bool:
    """Whether one claim stands under two entries of the pod."""
    names = [entry.claim for entry in pod.resource_claims if entry.claim]
    return len(set(names)) != len(names)
