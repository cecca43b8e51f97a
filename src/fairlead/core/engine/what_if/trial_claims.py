"""What becomes of claims for devices when a pod of a trial goes, as the controller of ResourceClaims would have it.

A claim that was made for the pod goes with it, and its devices are free; one that the pod only shared is given back
when nobody else uses it. A pod that comes in the place of another gets claims of its own.
"""

from __future__ import annotations

import marshal
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.core.model.device_claims import ResourceClaim, claims_made_for

if TYPE_CHECKING:
    from fairlead.core.engine.what_if.trial import Trial
    from fairlead.core.model.pod import Pod


def give_back(trial: Trial, pod: Pod) -> None:
    """Free what a pod that goes has of devices."""
    for claim in list(_claims_of(trial, pod)):
        users = tuple(one for one in claim.reserved_for if one.uid != pod.uid)
        if claim.owner_uid == pod.uid:
            trial.remove(kinds.RESOURCE_CLAIM, {"metadata": {"namespace": claim.namespace, "name": claim.name}})
        elif users != claim.reserved_for:
            allocation = claim.allocation if users else None
            freed = replace(claim, reserved_for=users, allocation=allocation)
            trial.put_record(kinds.RESOURCE_CLAIM, claim.key, freed)


def with_own_claims(trial: Trial, pod: Pod, heir: Pod) -> Pod:
    """The heir of a pod with claims like those that were made for the pod."""
    made = claims_made_for(pod)
    if not made:
        return heir
    for claim in list(_claims_of(trial, pod)):
        if claim.owner_uid == pod.uid:
            name = f"{claim.name}+"
            own = replace(
                claim,
                name=name,
                key=f"{claim.namespace}/{name}",
                uid=f"{claim.uid}+",
                owner_uid=heir.uid,
                allocation=None,
                reserved_for=(),
                conditions={},
            )
            trial.put_record(kinds.RESOURCE_CLAIM, own.key, own)
    listed = [{"name": entry, "resourceClaimName": f"{name}+" if name else None} for entry, name in made.items()]
    return replace(heir, claim_statuses=marshal.dumps((listed, None), 2))


def _claims_of(trial: Trial, pod: Pod) -> Iterator[ResourceClaim]:
    names = {*(entry.claim for entry in pod.resource_claims), *claims_made_for(pod).values()} - {"", None}
    shelf = trial.scheduler.cluster.object_index.of(kinds.RESOURCE_CLAIM)
    for name in sorted(map(str, names)):
        claim = shelf.get(f"{pod.namespace}/{name}")
        if isinstance(claim, ResourceClaim):
            yield claim
