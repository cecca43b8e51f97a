"""PersistentVolumes and the claims for them: who belongs to whom, and what becomes of a volume that is given back.

    claim   Pending ──volume found, or made──▶ Bound ──volume vanished──▶ Lost
    volume  Available ──promised to a claim──▶ Bound ──claim vanished──▶ Released ──policy Delete──▶ gone

Binding is written in two visits: first the volume is promised (over the version that was seen, so that nobody else gets
it), then both sides say that they are bound. Volumes are made by somebody else, who is asked by an annotation on the
claim: volume_provisioner.py here, a provisioner on a real cluster. Keys are ("", name) of volumes and (namespace,
name) of claims.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairlead.cluster.controllers.storage.volume_matches import (
    best_volume,
    class_of,
    refers_to,
    selected_node,
    waits_for_consumer,
)
from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import delete, namespaced_name, patch, patch_status
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import PERSISTENT_VOLUME, PERSISTENT_VOLUME_CLAIM, STORAGE_CLASS, Kind
from fairlead.core.model.storage import BIND_COMPLETED, BOUND_BY_CONTROLLER, default_storage_class
from fairlead.core.model.times import timestamp

Key = tuple[str, str]

PROVISIONER = "volume.kubernetes.io/storage-provisioner"
OLD_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
_WAITING = (
    "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
    "registered."
)


class VolumeBinder(Reconciler[Key]):
    name = "persistentvolume-binder-controller"
    component = "persistentvolume-controller"
    watches: Sequence[Watch] = (Watch(PERSISTENT_VOLUME), Watch(PERSISTENT_VOLUME_CLAIM), Watch(STORAGE_CLASS))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._volumes: dict[str, Doc] = {}
        self._unbound: dict[Key, None] = {}
        self._last_message: dict[Key, str] = {}  # the last thing said about a claim: not to be repeated

    def observe(self, change: Change) -> None:
        gone = change.gone
        if change.kind is PERSISTENT_VOLUME:
            self._observe_volume(change.doc, gone=gone)
        elif change.kind is PERSISTENT_VOLUME_CLAIM:
            self._observe_claim(change.doc, gone=gone)
        elif change.kind is STORAGE_CLASS and not gone:
            self._name_unbound()

    def _observe_volume(self, doc: Doc, *, gone: bool) -> None:
        name = doc["metadata"]["name"]
        last = self._volumes.pop(name, None) or doc
        if gone:
            reference = (last.get("spec") or {}).get("claimRef")
        else:
            self._volumes[name] = doc
            self.queue.add(("", name))
            reference = doc["spec"].get("claimRef")
            if reference is None:
                self._name_unbound()
        if reference:
            self.queue.add((reference["namespace"], reference["name"]))

    def _observe_claim(self, doc: Doc, *, gone: bool) -> None:
        key = namespaced_name(doc)
        self._unbound.pop(key, None)
        spec = doc.get("spec") or {}
        if gone:
            self._last_message.pop(key, None)
            for name, volume in self._volumes.items():
                reference = volume["spec"].get("claimRef") or {}
                if (reference.get("namespace"), reference.get("name")) == key:
                    self.queue.add(("", name))
            return
        if not spec.get("volumeName"):
            self._unbound[key] = None
        else:
            self.queue.add(("", spec["volumeName"]))
        self.queue.add(key)

    def _name_unbound(self) -> None:
        for key in self._unbound:
            self.queue.add(key)

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        return self._visit_claim(key, now) if key[0] else self._visit_volume(key[1], now)

    # Claims

    def _visit_claim(self, key: Key, now: float) -> Iterable[Write]:
        claim = self.view.get(PERSISTENT_VOLUME_CLAIM, *key)
        if claim is None or claim["metadata"].get("deletionTimestamp"):
            return
        if BIND_COMPLETED in (claim["metadata"].get("annotations") or {}):
            yield from self._check_bound(claim, now)
        elif claim["spec"].get("volumeName"):
            yield from self._take_named(claim, now)
        else:
            yield from self._find(claim, now)

    def _find(self, claim: Doc, now: float) -> Iterable[Write]:
        if claim["spec"].get("storageClassName") is None and not class_of(claim):
            default = default_storage_class(self.view.list(STORAGE_CLASS))
            if default:
                yield patch(PERSISTENT_VOLUME_CLAIM, claim, {"spec": {"storageClassName": default}})
                return
        name = class_of(claim)
        storage_class = self.view.get(STORAGE_CLASS, "", name) if name else None
        waits = waits_for_consumer(storage_class)
        volume = best_volume(claim, self._volumes.values(), only_promised=waits)
        if volume is not None:
            yield from self._bind(volume, claim, now)
        elif waits and not selected_node(claim):
            text = "waiting for first consumer to be created before binding"
            yield from self._event_once(claim, "WaitForFirstConsumer", text)
        elif name:
            yield from self._ask_for_volume(claim, name, storage_class, now)
        else:
            text = "no persistent volumes available for this claim and no storage class is set"
            yield from self._event_once(claim, "FailedBinding", text)

    def _ask_for_volume(self, claim: Doc, name: str, storage_class: Doc | None, now: float) -> Iterable[Write]:
        if storage_class is None:
            text = f'storageclass.storage.k8s.io "{name}" not found'
            yield from self._event_once(claim, "ProvisioningFailed", text, warning=True)
            return
        provisioner = storage_class["provisioner"]
        if provisioner == NO_PROVISIONER:
            text = f"no volume plugin matched name: {provisioner}"
            yield from self._event_once(claim, "ProvisioningFailed", text, warning=True)
            return
        if (claim["metadata"].get("annotations") or {}).get(PROVISIONER) != provisioner:
            marks = {PROVISIONER: provisioner, OLD_PROVISIONER: provisioner}
            yield patch(PERSISTENT_VOLUME_CLAIM, claim, {"metadata": {"annotations": marks}})
        yield from self._event_once(claim, "ExternalProvisioning", _WAITING.format(provisioner))

    def _take_named(self, claim: Doc, now: float) -> Iterable[Write]:
        """A claim that names its volume itself gets that one or waits for it."""
        volume = self._volumes.get(claim["spec"]["volumeName"])
        if volume is None:
            return
        reference = volume["spec"].get("claimRef")
        if not reference or refers_to(volume, claim):
            yield from self._bind(volume, claim, now)
        elif BOUND_BY_CONTROLLER not in (claim["metadata"].get("annotations") or {}):
            name = volume["metadata"]["name"]
            text = f'volume "{name}" already bound to a different claim.'
            yield from self._event_once(claim, "FailedBinding", text, warning=True)

    def _check_bound(self, claim: Doc, now: float) -> Iterable[Write]:
        name = claim["spec"].get("volumeName")
        volume = self._volumes.get(name or "")
        if not name:
            text = "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            yield from self._lose(claim, "ClaimLost", text, now)
        elif volume is None:
            text = "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            yield from self._lose(claim, "ClaimLost", text, now)
        elif not volume["spec"].get("claimRef") or refers_to(volume, claim):
            yield from self._bind(volume, claim, now)
        else:
            text = "Two claims are bound to the same volume, this one is bound incorrectly"
            yield from self._lose(claim, "ClaimMisbound", text, now)

    def _lose(self, claim: Doc, reason: str, message: str, now: float) -> Iterable[Write]:
        if (claim.get("status") or {}).get("phase") != "Lost":
            status = {"phase": "Lost", "accessModes": None, "capacity": None}
            yield patch_status(PERSISTENT_VOLUME_CLAIM, claim, status)
            yield from self._event_once(claim, reason, message, warning=True)

    # Binding

    def _bind(self, volume: Doc, claim: Doc, now: float) -> Iterable[Write]:
        reference = volume["spec"].get("claimRef") or {}
        if reference.get("uid") != claim["metadata"]["uid"]:
            yield _promise(volume, claim)
            return
        if (volume.get("status") or {}).get("phase") != "Bound":
            yield _phase(volume, "Bound", now)
        annotations = claim["metadata"].get("annotations") or {}
        if claim["spec"].get("volumeName") != volume["metadata"]["name"] or BIND_COMPLETED not in annotations:
            yield _bound_claim(volume, claim)
        status = {
            "phase": "Bound",
            "accessModes": volume["spec"].get("accessModes"),
            "capacity": volume["spec"].get("capacity"),
        }
        known = claim.get("status") or {}
        if any(known.get(name) != value for name, value in status.items()):
            yield patch_status(PERSISTENT_VOLUME_CLAIM, claim, status)

    # Volumes

    def _visit_volume(self, name: str, now: float) -> Iterable[Write]:
        volume = self._volumes.get(name)
        if volume is None or volume["metadata"].get("deletionTimestamp"):
            return
        reference = volume["spec"].get("claimRef")
        if not reference or not reference.get("uid"):
            yield from self._show(volume, "Available", now)
            return
        claim = self.view.get(PERSISTENT_VOLUME_CLAIM, reference["namespace"], reference["name"])
        if claim is None or claim["metadata"]["uid"] != reference["uid"]:
            yield from self._release(volume, now)
        elif not claim["spec"].get("volumeName"):
            self.queue.add(namespaced_name(claim))
        elif claim["spec"]["volumeName"] == name:
            yield from self._show(volume, "Bound", now)
        else:
            yield from self._unbind(volume, now)

    def _show(self, volume: Doc, phase: str, now: float) -> Iterable[Write]:
        if (volume.get("status") or {}).get("phase") != phase:
            yield _phase(volume, phase, now)

    def _release(self, volume: Doc, now: float) -> Iterable[Write]:
        yield from self._show(volume, "Released", now)
        made_to_order = PROVISIONED_BY in (volume["metadata"].get("annotations") or {})
        if volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete" and not made_to_order:
            yield delete(PERSISTENT_VOLUME, volume)

    def _unbind(self, volume: Doc, now: float) -> Iterable[Write]:
        """The claim took another volume: this one is free again, or, if made for the claim, of no use."""
        annotations = volume["metadata"].get("annotations") or {}
        if PROVISIONED_BY in annotations and volume["spec"].get("persistentVolumeReclaimPolicy") == "Delete":
            yield from self._release(volume, now)
        elif BOUND_BY_CONTROLLER in annotations:
            changes = {"metadata": {"annotations": {BOUND_BY_CONTROLLER: None}}, "spec": {"claimRef": None}}
            yield patch(PERSISTENT_VOLUME, volume, changes)
        else:
            yield patch(PERSISTENT_VOLUME, volume, {"spec": {"claimRef": {"uid": None, "resourceVersion": None}}})

    def _event_once(self, claim: Doc, reason: str, message: str, *, warning: bool = False) -> Iterable[Write]:
        """An Event about a claim, unless the last one about it said the same: a claim that waits is visited often."""
        if self._last_message.get(namespaced_name(claim)) == message:
            return
        self._last_message[namespaced_name(claim)] = message
        yield from self.event(PERSISTENT_VOLUME_CLAIM, claim, reason, message, warning=warning)


def claim_reference(kind: Kind, claim: Doc) -> dict[str, Any]:
    metadata = claim["metadata"]
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "namespace": metadata["namespace"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "resourceVersion": metadata["resourceVersion"],
    }


def _promise(volume: Doc, claim: Doc) -> Write:
    metadata: dict[str, Any] = {"resourceVersion": volume["metadata"]["resourceVersion"]}
    if not volume["spec"].get("claimRef"):
        metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
    reference = claim_reference(PERSISTENT_VOLUME_CLAIM, claim)
    return patch(PERSISTENT_VOLUME, volume, {"metadata": metadata, "spec": {"claimRef": reference}})


def _bound_claim(volume: Doc, claim: Doc) -> Write:
    name = volume["metadata"]["name"]
    annotations = {BIND_COMPLETED: "yes"}
    if claim["spec"].get("volumeName") != name:
        annotations[BOUND_BY_CONTROLLER] = "yes"
    changes = {"metadata": {"annotations": annotations}, "spec": {"volumeName": name}}
    return patch(PERSISTENT_VOLUME_CLAIM, claim, changes)


def _phase(volume: Doc, phase: str, now: float) -> Write:
    return patch_status(PERSISTENT_VOLUME, volume, {"phase": phase, "lastPhaseTransitionTime": timestamp(now)})
