"""The claims of a Volcano Job: made if it describes them, looked for if it only names them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.controllers.volcano.job_pod_builder import random_word
from fairlead.controllers.writes import create, owner_reference
from fairlead.errors import FairleadError
from fairlead.model.kinds import PERSISTENT_VOLUME_CLAIM, VC_JOB

if TYPE_CHECKING:
    from fairlead.model.flow import Doc, DocView, Write

CONTROLLED = "volume-pvc-"


class ClaimIsMissing(FairleadError):
    """A Job names a claim that does not exist."""


def with_claim_names(job: Doc) -> list[Doc] | None:
    """The Job's volumes with a name for every claim that is described without one; None if all have names."""
    volumes = job["spec"].get("volumes") or []
    if all(volume.get("volumeClaimName") for volume in volumes):
        return None
    name, uid = job["metadata"]["name"], job["metadata"]["uid"]
    return [
        volume
        if volume.get("volumeClaimName")
        else {**volume, "volumeClaimName": f"{name}-pvc-{random_word(uid, 'claim', str(index))}"}
        for index, volume in enumerate(volumes)
    ]


def claim_writes(view: DocView, job: Doc, controlled: dict[str, str]) -> list[Write]:
    """Creations of the claims that are missing; all claims are noted in `controlled`. Raises ClaimIsMissing."""
    writes, namespace = [], job["metadata"]["namespace"]
    for volume in job["spec"].get("volumes") or ():
        name = volume.get("volumeClaimName") or ""
        if CONTROLLED + name in controlled:
            continue
        if view.get(PERSISTENT_VOLUME_CLAIM, namespace, name) is None:
            if not volume.get("volumeClaim"):
                raise ClaimIsMissing(
                    f"pvc {name} is not found, the job will be in the Pending state until the PVC is created"
                )  # fmt: skip
            writes.append(create(PERSISTENT_VOLUME_CLAIM, _claim(job, name, volume["volumeClaim"])))
        controlled[CONTROLLED + name] = name
    return writes


def _claim(job: Doc, name: str, spec: Doc) -> Doc:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "namespace": job["metadata"]["namespace"],
            "name": name,
            "ownerReferences": [owner_reference(VC_JOB, job)],
        },
        "spec": spec,
    }
