"""The claims of a Volcano Job: made if it describes them, looked for if it only names them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.kinds import PERSISTENT_VOLUME_CLAIM
from fairlead.errors import FairleadError
from fairlead.volcano.jobs.job_plugins.job_plugin import Beside, owned_by
from fairlead.volcano.jobs.job_pod_builder import random_word

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, DocView

CONTROLLED = "volume-pvc-"


class ClaimIsMissing(FairleadError):
    """A Job names a claim that does not exist."""


def with_claim_names(job: Doc) -> list[Doc] | None:
    """The Job's volumes with a name for every claim that is described without one; None if all have names."""
    volumes = job["spec"].get("volumes")
    if not volumes or all(volume.get("volumeClaimName") for volume in volumes):
        return None
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    return [
        volume
        if volume.get("volumeClaimName")
        else {**volume, "volumeClaimName": f"{name}-pvc-{random_word(uid, 'claim', str(index))}"}
        for index, volume in enumerate(volumes)
    ]


def wanted_claims(view: DocView, job: Doc, controlled: Mapping[str, str]) -> Iterator[tuple[str, Beside | None]]:
    """The claims that `controlled` does not note: the name, and what is to be created if it is not there.
    Raises ClaimIsMissing."""
    namespace = job["metadata"]["namespace"]
    for volume in job["spec"].get("volumes") or ():
        name = volume.get("volumeClaimName") or ""
        if CONTROLLED + name in controlled:
            continue
        if view.get(PERSISTENT_VOLUME_CLAIM, namespace, name) is not None:
            yield name, None
        elif volume.get("volumeClaim"):
            yield name, owned_by(job, PERSISTENT_VOLUME_CLAIM, name, spec=volume["volumeClaim"])
        else:
            raise ClaimIsMissing(
                f"pvc {name} is not found, the job will be in the Pending state until the PVC is created"
            )
