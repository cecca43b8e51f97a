"""The pods of a StatefulSet, each with a name, an index and claims of its own that outlive it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.controllers.workloads.pod_templates import pod_from_template
from fairlead.cluster.controllers.workloads.revisions import HASH_LABEL
from fairlead.cluster.controllers.writes import owner_reference
from fairlead.core.model.kinds import STATEFUL_SET

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

NAME_LABEL = "statefulset.kubernetes.io/pod-name"
INDEX_LABEL = "apps.kubernetes.io/pod-index"


def first_ordinal(owner: Doc) -> int:
    return int((owner["spec"].get("ordinals") or {}).get("start") or 0)


def ordinals(owner: Doc) -> range:
    """The numbers of the pods that a StatefulSet shall have."""
    start, replicas = first_ordinal(owner), owner["spec"].get("replicas")
    return range(start, start + (1 if replicas is None else int(replicas)))


def pod_name(owner: Doc, ordinal: int) -> str:
    return f"{owner['metadata']['name']}-{ordinal}"


def ordinal_of(owner: Doc, name: str) -> int | None:
    """The number in a pod's name, if it is one of this owner's."""
    head, _, number = name.rpartition("-")
    return int(number) if head == owner["metadata"]["name"] and number.isdecimal() else None


def stateful_pod(owner: Doc, template: Doc, ordinal: int, revision: str) -> Doc:
    pod, name = pod_from_template(STATEFUL_SET, owner, template), pod_name(owner, ordinal)
    metadata, spec = pod["metadata"], dict(pod["spec"])
    metadata["name"] = name
    own = {NAME_LABEL: name, INDEX_LABEL: str(ordinal), HASH_LABEL: revision}
    metadata["labels"] = {**(metadata.get("labels") or {}), **own}
    spec["hostname"] = name
    if owner["spec"].get("serviceName"):
        spec["subdomain"] = owner["spec"]["serviceName"]
    claims = claim_names(owner, ordinal)
    if claims:
        own_volumes = [
            {"name": volume, "persistentVolumeClaim": {"claimName": claim}} for volume, claim in claims.items()
        ]
        spec["volumes"] = own_volumes + [one for one in spec.get("volumes") or () if one["name"] not in claims]
    return {**pod, "spec": spec}


def claim_names(owner: Doc, ordinal: int) -> dict[str, str]:
    """The claim for each volume of the pod with this number."""
    templates = owner["spec"].get("volumeClaimTemplates") or ()
    volumes = [one["metadata"]["name"] for one in templates]
    return {volume: f"{volume}-{pod_name(owner, ordinal)}" for volume in volumes}


def stateful_claims(owner: Doc, ordinal: int) -> list[Doc]:
    """The claims themselves; those that shall go with the StatefulSet belong to it."""
    names = claim_names(owner, ordinal)
    selected = (owner["spec"].get("selector") or {}).get("matchLabels") or {}
    claims = []
    for template in owner["spec"].get("volumeClaimTemplates") or ():
        given = template["metadata"]
        metadata: dict[str, Any] = {"namespace": owner["metadata"]["namespace"], "name": names[given["name"]]}
        if labels := {**(given.get("labels") or {}), **selected}:
            metadata["labels"] = labels
        if given.get("annotations"):
            metadata["annotations"] = given["annotations"]
        if retention(owner, "whenDeleted") == "Delete":
            metadata["ownerReferences"] = [owner_reference(STATEFUL_SET, owner)]
        claims.append(
            {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": template["spec"]}
        )
    return claims


def retention(owner: Doc, when: str) -> str:
    policy = owner["spec"].get("persistentVolumeClaimRetentionPolicy") or {}
    return str(policy.get(when) or "Retain")
