"""Generic ephemeral volumes: a claim for each, made with its pod and owned by it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import controller_of, create, namespaced_name, owner_reference
from fairlead.core.model.flow import Change, Doc, Watch, Write
from fairlead.core.model.kinds import PERSISTENT_VOLUME_CLAIM, POD

Key = tuple[str, str]


class EphemeralVolumes(Reconciler[Key]):
    name = "ephemeral-volume-controller"
    component = "ephemeral_volume"
    watches: Sequence[Watch] = (Watch(POD), Watch(PERSISTENT_VOLUME_CLAIM))

    @property
    def sees_plain_pods(self) -> bool:
        """They have no volumes."""
        return False

    def observe(self, change: Change) -> None:
        if change.kind is POD:
            if not change.gone and any(_ephemeral(change.doc)):
                self.queue.add(namespaced_name(change.doc))
        elif change.gone:
            owner = controller_of(change.doc)
            if owner is not None and owner.get("kind") == "Pod":
                self.queue.add((change.doc["metadata"]["namespace"], owner["name"]))

    def visit(self, key: Key, now: float) -> Iterable[Write]:
        pod = self.view.get(POD, *key)
        if pod is None or pod["metadata"].get("deletionTimestamp"):
            return
        for volume in _ephemeral(pod):
            name = f"{key[1]}-{volume['name']}"
            claim = self.view.get(PERSISTENT_VOLUME_CLAIM, key[0], name)
            if claim is None:
                yield create(PERSISTENT_VOLUME_CLAIM, _claim(pod, name, volume["ephemeral"]["volumeClaimTemplate"]))
            elif (controller_of(claim) or {}).get("uid") != pod["metadata"]["uid"]:
                text = (
                    f"ephemeral volume {volume['name']}: PVC {key[0]}/{name} was not created for pod "
                    f"{key[0]}/{key[1]} (pod is not owner)"
                )
                yield from self.event(POD, pod, "FailedBinding", text, warning=True)


def _ephemeral(pod: Doc) -> Iterable[Doc]:
    return (volume for volume in (pod.get("spec") or {}).get("volumes") or () if volume.get("ephemeral"))


def _claim(pod: Doc, name: str, template: Doc) -> Doc:
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {
        "namespace": pod["metadata"]["namespace"],
        "name": name,
        "ownerReferences": [owner_reference(POD, pod)],
    }
    for field in ("labels", "annotations"):
        if given.get(field):
            metadata[field] = given[field]
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": metadata,
        "spec": template.get("spec") or {},
    }
