"""From a pod template to pods: names, labels, owner, and the hash that distinguishes templates."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fairlead.cluster.controllers.writes import owner_reference
from fairlead.core.model.hashes import safe_hash

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

HASH_LABEL = "pod-template-hash"
# No vowels and no digits that look like letters: nobody wants to read words in generated names.


def pod_from_template(kind: Kind, owner: Doc, template: Doc) -> Doc:
    """A pod that `owner` controls; the server completes its name."""
    metadata = template.get("metadata") or {}
    made: dict[str, Any] = {
        "namespace": owner["metadata"]["namespace"],
        "generateName": name_prefix(owner["metadata"]["name"]),
        "ownerReferences": [owner_reference(kind, owner)],
    }
    for field in ("labels", "annotations"):
        if metadata.get(field):
            made[field] = dict(metadata[field])
    if metadata.get("finalizers"):
        made["finalizers"] = list(metadata["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": made, "spec": template.get("spec") or {}}


def name_prefix(owner_name: str) -> str:
    """What generated names begin with; the server cuts it if it is too long."""
    return f"{owner_name}-"


def template_hash(template: Doc, collisions: int | None) -> str:
    """A short name for a template, the same in every process: FNV-1a over its canonical JSON."""
    text = json.dumps(template, sort_keys=True, separators=(",", ":"))
    if collisions is not None:
        text += str(collisions)
    return safe_hash(text)


def same_template(one: Doc, other: Doc) -> bool:
    """Equal but for the hash label that a Deployment adds."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Doc) -> Doc:
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != HASH_LABEL}
    rest = {key: value for key, value in metadata.items() if key not in ("labels", "creationTimestamp")}
    return {**template, "metadata": {**rest, "labels": labels}}
