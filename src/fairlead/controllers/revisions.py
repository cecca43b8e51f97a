"""ControllerRevisions: what the template of a StatefulSet or DaemonSet was, and is.

A revision is named after its owner and a hash of its data; going back to an old template gives the old revision a new
number instead of a new name. Kept per owner are the few documents there are. Invariant: `plan` is a pure function of
what was observed; whoever calls it performs the writes it returns.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

from fairlead.controllers.pod_templates import template_hash
from fairlead.controllers.writes import controller_of, create, delete, owner_reference, patch
from fairlead.model.flow import Change, Doc, DocView, Happened, Write
from fairlead.model.kinds import CONTROLLER_REVISION

if TYPE_CHECKING:
    from fairlead.model.kinds import Kind

HASH_LABEL = "controller-revision-hash"


class Plan(NamedTuple):
    """The revision of the present template, and what has to be written for it to exist."""

    update: Doc
    collisions: int
    writes: list[Write]


class History:
    """The revisions that owners of one kind control. `label` is where a revision itself carries its hash."""

    def __init__(self, kind: Kind, *, label: str) -> None:
        self._kind, self._label = kind, label
        self._by_owner: dict[str, dict[str, Doc]] = {}

    def observe(self, change: Change) -> str:
        """Take in a change; returns the uid of the owner it concerns, empty if it is none of ours."""
        owner = controller_of(change.doc) or {}
        if owner.get("kind") != self._kind.kind:
            return ""
        known = self._by_owner.setdefault(owner["uid"], {})
        known.pop(change.doc["metadata"]["name"], None)
        if change.happened is not Happened.DELETED:
            known[change.doc["metadata"]["name"]] = change.doc
        elif not known:
            del self._by_owner[owner["uid"]]
        return str(owner["uid"])

    def of(self, uid: str) -> list[Doc]:
        """Oldest number first."""
        known = self._by_owner.get(uid, {}).values()
        return sorted(known, key=lambda one: (one["revision"], one["metadata"]["name"]))

    def named(self, uid: str, name: str) -> Doc | None:
        return self._by_owner.get(uid, {}).get(name)

    def plan(self, view: DocView, owner: Doc, collisions: int) -> Plan:
        revisions = self.of(owner["metadata"]["uid"])
        data = _data(owner["spec"]["template"])
        number = revisions[-1]["revision"] + 1 if revisions else 1
        same = next((one for one in reversed(revisions) if one["data"] == data), None)
        if same is None:
            revision, collisions = self._new(view, owner, data, number, collisions)
            return Plan(revision, collisions, [create(CONTROLLER_REVISION, revision)])
        if same is revisions[-1]:
            return Plan(same, collisions, [])
        return Plan(same, collisions, [patch(CONTROLLER_REVISION, same, {"revision": number})])

    def surplus(self, owner: Doc, alive: Collection[str]) -> list[Write]:
        """Deletions of the oldest revisions that nobody uses, beyond the limit."""
        limit = owner["spec"].get("revisionHistoryLimit")
        idle = [one for one in self.of(owner["metadata"]["uid"]) if one["metadata"]["name"] not in alive]
        goes = len(idle) - (10 if limit is None else int(limit))
        return [delete(CONTROLLER_REVISION, one) for one in idle[: max(0, goes)]]

    def _new(self, view: DocView, owner: Doc, data: Doc, number: int, collisions: int) -> tuple[Doc, int]:
        metadata, namespace = owner["metadata"], owner["metadata"]["namespace"]
        while True:
            hash_ = template_hash(data, collisions or None)
            name = f"{metadata['name']}-{hash_}"
            if view.get(CONTROLLER_REVISION, namespace, name) is None:
                break
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
            "apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": made, "data": data, "revision": number,
        }  # fmt: skip
        return revision, collisions


def template_of(revision: Doc) -> Doc:
    """The pod template that a revision keeps."""
    template = revision["data"]["spec"]["template"]
    return {key: value for key, value in template.items() if key != "$patch"}


def _data(template: Doc) -> Doc:
    return {"spec": {"template": {**template, "$patch": "replace"}}}
