"""A provisioner for every storage class: volumes that exist only as objects, made when they are requested.

It stands in for all the drivers of a real cluster and follows their protocol: a claim that names a provisioner in its
annotation gets a volume made for it, in the zone of the node that was selected for its pod (or where the class allows);
a volume that is given back and may go is deleted. So it works with any binder of claims, also with a real
kube-controller-manager. `kubernetes.io/no-provisioner` makes nothing, as everywhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairlead.cluster.controllers.storage.volume_binder import (
    NO_PROVISIONER,
    PROVISIONED_BY,
    PROVISIONER,
    claim_reference,
)
from fairlead.cluster.controllers.storage.volume_matches import class_of, selected_node, waits_for_consumer
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import create, delete, namespaced_name
from fairlead.core.model.flow import Change, Doc, DocView, Reply, Verb, Watch, Write
from fairlead.core.model.kinds import NODE, PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS

Key = tuple[str, str]

_PLACES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


class VolumeProvisioner(Reconciler[Key]):
    name = "volume-provisioner"
    watches: Sequence[Watch] = (Watch(PERSISTENT_VOLUME), Watch(PERSISTENT_VOLUME_CLAIM))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)

    def observe(self, change: Change) -> None:
        if change.gone:
            return
        if change.kind is PERSISTENT_VOLUME_CLAIM:
            if PROVISIONER in (change.doc["metadata"].get("annotations") or {}):
                self.queue.add(namespaced_name(change.doc))
        elif change.kind is PERSISTENT_VOLUME and _is_given_back(change.doc):
            self.queue.add(("", change.doc["metadata"]["name"]))

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        return self._make(key) if key[0] else self._remove(key[1])

    def _make(self, key: Key) -> Iterable[Write]:
        claim = self.view.get(PERSISTENT_VOLUME_CLAIM, *key)
        if claim is None or claim["spec"].get("volumeName") or claim["metadata"].get("deletionTimestamp"):
            return
        storage_class = self.view.get(STORAGE_CLASS, "", class_of(claim))
        if storage_class is None or storage_class["provisioner"] == NO_PROVISIONER:
            return
        if waits_for_consumer(storage_class) and not selected_node(claim):
            return
        volume = self._volume(claim, storage_class)
        if self.view.get(PERSISTENT_VOLUME, "", volume["metadata"]["name"]) is None:
            yield create(PERSISTENT_VOLUME, volume)

    def _volume(self, claim: Doc, storage_class: Doc) -> Doc:
        name, provisioner = f"pvc-{claim['metadata']['uid']}", storage_class["provisioner"]
        spec: dict[str, Any] = {
            "accessModes": claim["spec"].get("accessModes"),
            "capacity": {"storage": claim["spec"]["resources"]["requests"]["storage"]},
            "claimRef": claim_reference(PERSISTENT_VOLUME_CLAIM, claim),
            "csi": {"driver": provisioner, "volumeHandle": name},
            "persistentVolumeReclaimPolicy": storage_class.get("reclaimPolicy") or "Delete",
            "storageClassName": storage_class["metadata"]["name"],
            "volumeMode": claim["spec"].get("volumeMode") or "Filesystem",
        }
        if storage_class.get("mountOptions"):
            spec["mountOptions"] = storage_class["mountOptions"]
        terms = self._terms(selected_node(claim), storage_class)
        if terms:
            spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
        metadata = {"name": name, "annotations": {PROVISIONED_BY: provisioner}}
        return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": spec}

    def _terms(self, node_name: str, storage_class: Doc) -> list[Doc]:
        """Where the volume can be reached from: the place of the selected node, or all that the class allows."""
        allowed = storage_class.get("allowedTopologies") or []
        if not node_name:
            return [_term((one["key"], one["values"]) for one in term["matchLabelExpressions"]) for term in allowed]
        labels = ((self.view.get(NODE, "", node_name) or {}).get("metadata") or {}).get("labels") or {}
        keys = {one["key"]: None for term in allowed for one in term["matchLabelExpressions"]} or dict.fromkeys(_PLACES)
        here = [(key, [labels[key]]) for key in keys if key in labels]
        return [_term(here)] if here else []

    def _remove(self, name: str) -> Iterable[Write]:
        volume = self.view.get(PERSISTENT_VOLUME, "", name)
        if volume is not None and _is_given_back(volume):
            yield delete(PERSISTENT_VOLUME, volume)

    def welcomed(self, key: Key, reply: Reply, now: float) -> Iterable[Write]:
        claim = self.view.get(PERSISTENT_VOLUME_CLAIM, *key) if reply.write.verb is Verb.CREATE else None
        if claim is not None:
            text = f"Successfully provisioned volume {reply.write.name}"
            yield from self.event(PERSISTENT_VOLUME_CLAIM, claim, "ProvisioningSucceeded", text)


def _term(requirements: Iterable[tuple[str, list[str]]]) -> Doc:
    return {
        "matchExpressions": [{"key": key, "operator": "In", "values": list(values)} for key, values in requirements]
    }


def _is_given_back(volume: Doc) -> bool:
    """Released, made here, and not to be kept."""
    return (
        (volume.get("status") or {}).get("phase") == "Released"
        and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete"
        and PROVISIONED_BY in (volume["metadata"].get("annotations") or {})
        and not volume["metadata"].get("deletionTimestamp")
    )
