"""ControllerRevisions: what the template of a StatefulSet or DaemonSet was, and is.

A revision is named after its owner and a hash of its data; going back to an old template gives the old revision a new
number instead of a new name. Kept per owner are the few documents there are. Invariant: `plan` is a pure function of
what was observed; the caller performs the writes it returns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.cluster.controllers.workloads.pod_templates import template_hash
from fairlead.cluster.controllers.writes import (
    controller_of,
    create,
    delete,
    identity,
    identity_of_controller,
    owner_reference,
    patch,
)
from fairlead.core.model.kinds import CONTROLLER_REVISION

if TYPE_CHECKING:
    from fairlead.core.model.flow import Change, Doc, DocView, Write
    from fairlead.core.model.kinds import Kind

HASH_LABEL = "controller-revision-hash"


class RevisionPlan(NamedTuple):
    """The revision of the present template, and what has to be written for it to exist."""

    update: Doc
    collisions: int
    writes: list[Write]


class RevisionHistory:
    """The revisions that owners of one kind control. `label` is where a revision itself carries its hash."""

    def __init__(self, kind: Kind, *, label: str) -> None:
        self._kind, self._label = kind, label
        self._by_owner: dict[str, dict[str, Doc]] = {}
        self._owners: dict[str, str] = {}  # uid of a revision -> identity of its owner

    def observe(self, change: Change) -> None:
        """Take in a change of a revision. (Of one that was deleted there may be no more than its name and uid.)"""
        uid, name = change.doc["metadata"]["uid"], change.doc["metadata"]["name"]
        before = self._owners.pop(uid, "")
        if before:
            self._by_owner[before].pop(name, None)
            if not self._by_owner[before]:
                del self._by_owner[before]
        reference = controller_of(change.doc) or {}
        if not change.gone and reference.get("kind") == self._kind.kind:
            owner = self._owners[uid] = identity_of_controller(change.doc)
            self._by_owner.setdefault(owner, {})[name] = change.doc

    def of(self, owner: str) -> list[Doc]:
        """Those of the owner with this `identity`, the oldest number first."""
        known = self._by_owner.get(owner, {}).values()
        return sorted(known, key=lambda one: (one["revision"], one["metadata"]["name"]))

    def named(self, owner: str, name: str) -> Doc | None:
        return self._by_owner.get(owner, {}).get(name)

    def plan(self, view: DocView, owner: Doc, collisions: int) -> RevisionPlan:
        revisions = self.of(identity(owner))
        data = _data(owner["spec"]["template"])
        number = revisions[-1]["revision"] + 1 if revisions else 1
        same = next((one for one in reversed(revisions) if one["data"] == data), None)
        if same is None:
            return self._new(view, owner, data, number, collisions)
        if same is revisions[-1]:
            return RevisionPlan(same, collisions, [])
        return RevisionPlan(same, collisions, [patch(CONTROLLER_REVISION, same, {"revision": number})])

    def surplus(self, owner: Doc, alive: Collection[str]) -> list[Write]:
        """Deletions of the oldest revisions that nobody uses, beyond the limit."""
        limit = owner["spec"].get("revisionHistoryLimit")
        idle = [one for one in self.of(identity(owner)) if one["metadata"]["name"] not in alive]
        goes = len(idle) - (10 if limit is None else int(limit))
        return [delete(CONTROLLER_REVISION, one) for one in idle[: max(0, goes)]]

    def _new(self, view: DocView, owner: Doc, data: Doc, number: int, collisions: int) -> RevisionPlan:
        """A revision nobody has yet; or an equal one that an owner of the same name left behind."""
        metadata, namespace = owner["metadata"], owner["metadata"]["namespace"]
        while True:
            hash_ = template_hash(data, collisions or None)
            name = f"{metadata['name']}-{hash_}"
            there = view.get(CONTROLLER_REVISION, namespace, name)
            if there is None:
                break
            if there["data"] == data and controller_of(there) is None:
                references = [owner_reference(self._kind, owner)]
                adoption = patch(CONTROLLER_REVISION, there, {"metadata": {"ownerReferences": references}})
                return RevisionPlan(there, collisions, [adoption])
            collisions += 1
        labels = {**((owner["spec"]["template"].get("metadata") or {}).get("labels") or {}), self._label: hash_}
        made: dict[str, Any] = {
            "namespace": namespace,
            "name": name,
            "labels": labels,
            "ownerReferences": [owner_reference(self._kind, owner)],
        }
        if metadata.get("annotations"):
            made["annotations"] = metadata["annotations"]
        revision = {
            "apiVersion": "apps/v1",
            "kind": "ControllerRevision",
            "metadata": made,
            "data": data,
            "revision": number,
        }
        return RevisionPlan(revision, collisions, [create(CONTROLLER_REVISION, revision)])


def template_of(revision: Doc) -> Doc:
    """The pod template that a revision keeps."""
    template = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def _data(template: Doc) -> Doc:
    return {"spec": {"template": {**template, "$patch": "replace"}}}
