"""ResourceClaims: claims made from templates for pods, and claims given back when their pods are done.

A pod whose spec names a template gets a claim of its own for each such entry, and its status says which. When a pod has
ended, is gone, or is deleted before it had a node, its reservations are dropped; a claim that nobody has reserved any
more loses its allocation, one that was made for the pod is deleted. An allocation that nobody ever reserved stays.

Invariant: of each entry of a pod there is at most one claim, because the watch shows a created claim (or its Reply
does) before the pod is visited again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from fairlead.cluster.controllers.workqueue import Reconciler
from fairlead.cluster.controllers.writes import controller_of, create, delete, namespaced_name, patch, patch_status
from fairlead.core.model.device_claims import FINALIZER, POD_CLAIM_ANNOTATION
from fairlead.core.model.flow import Change, Doc, DocView, Watch, Write
from fairlead.core.model.kinds import POD, RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE


class ClaimKey(NamedTuple):
    """What to visit: a pod or a claim."""

    is_pod: bool
    namespace: str
    name: str


class ResourceClaims(Reconciler[ClaimKey]):
    name = "resourceclaim-controller"
    component = "resource_claim"
    watches: Sequence[Watch] = (Watch(POD), Watch(RESOURCE_CLAIM), Watch(RESOURCE_CLAIM_TEMPLATE))

    def __init__(self, view: DocView, *, announce: bool = True) -> None:
        super().__init__(view, announce=announce)
        self._made: dict[str, dict[str, str]] = {}
        """Of each pod (by uid) the claims that were made for it, by entry."""
        self._used: dict[str, set[tuple[str, str]]] = {}
        """The claims that each pod (by uid) has reserved or owns."""
        self._waiting: dict[tuple[str, str], set[str]] = {}
        """Pods that wait for a template, by its namespace and name."""

    # ---- what happens ----

    @property
    def sees_plain_pods(self) -> bool:
        """Whether any claim is in use: by a pod without claims of its own, too."""
        return bool(self._used)

    def observe(self, change: Change) -> None:
        if change.kind is POD:
            self._observe_pod(change)
        elif change.kind is RESOURCE_CLAIM:
            self._observe_claim(change)
        else:
            for name in self._waiting.pop(namespaced_name(change.doc), ()):
                self.queue.add(ClaimKey(True, change.doc["metadata"]["namespace"], name))

    def _observe_pod(self, change: Change) -> None:
        pod = change.doc
        gone = change.gone
        if not gone and pod["spec"].get("resourceClaims"):
            self.queue.add(ClaimKey(True, *namespaced_name(pod)))
        if self._used and (gone or _is_done(pod)):
            for claim in self._used.get(pod["metadata"].get("uid", ""), ()):
                self.queue.add(ClaimKey(False, *claim))

    def _observe_claim(self, change: Change) -> None:
        claim, key = change.doc, namespaced_name(change.doc)
        owner = controller_of(claim)
        entry = (claim["metadata"].get("annotations") or {}).get(POD_CLAIM_ANNOTATION)
        of_pod = owner["uid"] if owner is not None and owner.get("kind") == "Pod" else ""
        if change.gone:
            if of_pod and entry is not None and self._made.get(of_pod, {}).get(entry) == key[1]:
                del self._made[of_pod][entry]
            for uid in (of_pod, *_users(claim)):
                self._forget(uid, key)
            if of_pod and owner is not None:
                self.queue.add(ClaimKey(True, key[0], owner["name"]))
            return
        if of_pod and entry is not None:
            self._made.setdefault(of_pod, {})[entry] = key[1]
        for uid in (of_pod, *_users(claim)):
            if uid:
                self._used.setdefault(uid, set()).add(key)
        self.queue.add(ClaimKey(False, *key))
        if of_pod and owner is not None:
            self.queue.add(ClaimKey(True, key[0], owner["name"]))

    def _forget(self, uid: str, key: tuple[str, str]) -> None:
        used = self._used.get(uid)
        if used is not None:
            used.discard(key)
            if not used:
                del self._used[uid]
                self._made.pop(uid, None)

    # ---- what is to be done ----

    def visit(self, key: ClaimKey, now: float) -> Iterable[Write]:
        kind = POD if key.is_pod else RESOURCE_CLAIM
        doc = self.view.get(kind, key.namespace, key.name)
        if doc is None:
            return ()
        return self._visit_pod(doc) if key.is_pod else self._visit_claim(doc)

    def _visit_pod(self, pod: Doc) -> Iterator[Write]:
        if pod["metadata"].get("deletionTimestamp") or _is_done(pod):
            return
        made = self._made.get(pod["metadata"]["uid"], {})
        entries = [entry for entry in pod["spec"].get("resourceClaims") or () if entry.get("resourceClaimTemplateName")]
        for entry in entries:
            if entry["name"] not in made:
                yield from self._make(pod, entry)
        listed = (pod.get("status") or {}).get("resourceClaimStatuses") or []
        said = {status["name"] for status in listed}
        new = [
            {"name": entry["name"], "resourceClaimName": made[entry["name"]]}
            for entry in entries
            if entry["name"] in made and entry["name"] not in said
        ]
        if new and len(listed) + len(new) == len(entries):
            yield patch_status(POD, pod, {"resourceClaimStatuses": [*listed, *new]})

    def _make(self, pod: Doc, entry: Doc) -> Iterator[Write]:
        namespace, name = namespaced_name(pod)
        template_name = entry["resourceClaimTemplateName"]
        template = self.view.get(RESOURCE_CLAIM_TEMPLATE, namespace, template_name)
        if template is None:
            self._waiting.setdefault((namespace, template_name), set()).add(name)
            text = f'PodResourceClaim {entry["name"]}: resource claim template "{template_name}" not found'
            yield from self.event(POD, pod, "FailedResourceClaimCreation", text, warning=True)
            return
        given = template["spec"].get("metadata") or {}
        owner = {
            "apiVersion": POD.api_version,
            "kind": POD.kind,
            "name": name,
            "uid": pod["metadata"]["uid"],
            "controller": True,
        }
        metadata: Doc = {
            "namespace": namespace,
            "generateName": f"{name}-{entry['name']}-",
            "annotations": {**(given.get("annotations") or {}), POD_CLAIM_ANNOTATION: entry["name"]},
            "ownerReferences": [owner],
        }
        if given.get("labels"):
            metadata["labels"] = given["labels"]
        yield create(
            RESOURCE_CLAIM,
            {
                "apiVersion": RESOURCE_CLAIM.api_version,
                "kind": RESOURCE_CLAIM.kind,
                "metadata": metadata,
                "spec": template["spec"]["spec"],
            },
        )

    def _visit_claim(self, claim: Doc) -> Iterator[Write]:
        status = claim.get("status") or {}
        reserved = status.get("reservedFor") or []
        left = [user for user in reserved if not self._is_over(claim, user)]
        if len(left) != len(reserved):
            changes: Doc = {"reservedFor": left or None}
            if not left:
                changes |= {"allocation": None, "devices": None}
            yield patch_status(RESOURCE_CLAIM, claim, changes)
            return
        free = not left and not status.get("allocation")
        finalizers = claim["metadata"].get("finalizers") or []
        if claim["metadata"].get("deletionTimestamp"):
            if free and FINALIZER in finalizers:
                kept = [name for name in finalizers if name != FINALIZER]
                yield patch(RESOURCE_CLAIM, claim, {"metadata": {"finalizers": kept or None}})
            elif not left and status.get("allocation"):
                yield patch_status(RESOURCE_CLAIM, claim, {"allocation": None, "devices": None})
            return
        owner = controller_of(claim)
        if not left and owner is not None and owner.get("kind") == "Pod":
            pod = self.view.get(POD, claim["metadata"]["namespace"], owner["name"])
            if pod is not None and pod["metadata"]["uid"] == owner.get("uid") and _is_done(pod):
                yield delete(RESOURCE_CLAIM, claim)

    def _is_over(self, claim: Doc, user: Doc) -> bool:
        """Whether one who has reserved a claim is done with it."""
        if user.get("apiGroup") or user.get("resource") != "pods":
            return False
        pod = self.view.get(POD, claim["metadata"]["namespace"], user.get("name", ""))
        return pod is None or pod["metadata"]["uid"] != user.get("uid") or _is_done(pod)


def _users(claim: Doc) -> list[str]:
    return [user.get("uid", "") for user in (claim.get("status") or {}).get("reservedFor") or ()]


def _is_done(pod: Doc) -> bool:
    """Whether a pod has ended, or will never start: deleted before it had a node."""
    ended = (pod.get("status") or {}).get("phase") in ("Succeeded", "Failed")
    return ended or bool(pod["metadata"].get("deletionTimestamp") and not pod["spec"].get("nodeName"))
