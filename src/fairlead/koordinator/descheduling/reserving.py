"""The Reservation that a PodMigrationJob makes: room for a copy of the pod anywhere but on its node."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from fairlead.cluster.controllers.writes import condition, controller_of
from fairlead.koordinator.kinds import KOORD_RESERVATION
from fairlead.koordinator.records.reservations import ORDER_LABEL

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_CREATED_BY = "app.kubernetes.io/created-by"


def reservation_for(job: Doc, pod: Doc, now: float) -> Doc:
    """What the job's own template leaves open is filled in. It is used once; the label says that among several the
    oldest is used first."""
    given = copy.deepcopy((job["spec"].get("reservationOptions") or {}).get("template") or {})
    metadata, spec = dict(given.get("metadata") or {}), dict(given.get("spec") or {})
    metadata["name"] = metadata.get("name") or job["metadata"]["uid"]
    made = {_CREATED_BY: "koord-descheduler", ORDER_LABEL: str(int(now * 1000))}
    metadata["labels"] = {**(metadata.get("labels") or {}), **made}
    kept = ("labels", "annotations", "namespace")
    inner = {key: pod["metadata"][key] for key in kept if key in pod["metadata"]}
    spec.setdefault("template", {"metadata": inner, "spec": copy.deepcopy(pod["spec"])})
    spec["owners"] = spec.get("owners") or owners_of(pod)
    spec["allocateOnce"] = True
    if "ttl" not in spec and "expires" not in spec and job["spec"].get("ttl"):
        spec["ttl"] = job["spec"]["ttl"]
    wanted = spec["template"]["spec"]
    wanted.pop("nodeName", None)
    if pod["spec"].get("nodeName"):
        _avoid(wanted, pod["spec"]["nodeName"])
    head = {"apiVersion": KOORD_RESERVATION.api_version, "kind": KOORD_RESERVATION.kind}
    return {**head, "metadata": metadata, "spec": spec}


def _avoid(spec: Doc, node: str) -> None:
    elsewhere = {"key": "metadata.name", "operator": "NotIn", "values": [node]}
    affinity = spec["affinity"] = spec.get("affinity") or {}
    nodes = affinity["nodeAffinity"] = affinity.get("nodeAffinity") or {}
    required = nodes.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
    terms = required["nodeSelectorTerms"] = required.get("nodeSelectorTerms") or [{}]
    for term in terms:
        term["matchFields"] = [*(term.get("matchFields") or ()), elsewhere]


def owners_of(pod: Doc) -> list[Doc]:
    """The pod itself while no node takes it; else the pods of the same controller; nobody without a controller."""
    metadata = pod["metadata"]
    scheduled = condition(pod, "PodScheduled") or {}
    if (pod.get("status") or {}).get("phase") == "Pending" and scheduled.get("status") == "False":
        named = {"uid": metadata["uid"], "kind": "Pod", "name": metadata["name"], "namespace": metadata["namespace"]}
        return [{"object": named}]
    owner = controller_of(pod)
    return [] if owner is None else [{"controller": {**owner, "namespace": metadata["namespace"]}}]


def waits_for_pod(reservation: Doc) -> bool:
    """Whether the Reservation is for a pod that has no node yet, and nothing has to be evicted."""
    owners = (reservation.get("spec") or {}).get("owners") or ()
    return any(one.get("object") and not one.get("controller") and not one.get("labelSelector") for one in owners)
