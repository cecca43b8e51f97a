"""What `kubectl apply` of a document changes in an object that exists, and the document that one would write for it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from fairlead.core.model import kinds

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_OF_THE_SERVER = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "ownerReferences")
_OF_A_JOB = ("controller-uid", "batch.kubernetes.io/controller-uid", "job-name", "batch.kubernetes.io/job-name")


def as_written(live: Doc) -> Doc:
    """An object of the cluster as somebody would write it who creates the same: without what the server filled in."""
    metadata = {key: value for key, value in live["metadata"].items() if key not in _OF_THE_SERVER}
    if kept := {k: v for k, v in (metadata.pop("annotations", None) or {}).items() if k != _LAST_APPLIED}:
        metadata["annotations"] = kept
    doc = {key: value for key, value in live.items() if key != "status"} | {"metadata": metadata}
    if live["kind"] == "Job" and live["apiVersion"] == kinds.JOB.api_version and not live["spec"].get("manualSelector"):
        template = live["spec"]["template"]
        theirs = template.get("metadata") or {}
        labels = {key: value for key, value in (theirs.get("labels") or {}).items() if key not in _OF_A_JOB}
        spec = {key: value for key, value in live["spec"].items() if key != "selector"}
        doc["spec"] = {**spec, "template": {**template, "metadata": {**theirs, "labels": labels}}}
    if live["kind"] == "Pod":
        doc["spec"] = {key: value for key, value in live["spec"].items() if key != "nodeName"}
    return doc


def patch_of_apply(live: Doc, written: Doc) -> Doc:
    """What `kubectl apply` of a document sends for an object that exists: all that is written, and null for what was
    written the last time and is not any more."""
    last: Any = json.loads((live["metadata"].get("annotations") or {}).get(_LAST_APPLIED) or "{}")
    return _with_removals(as_written(written), last)


def holds_already(live: Any, written: Any) -> bool:
    """Whether everything that is written in a document is so in an object that exists; what the server filled in
    besides does not count."""
    if isinstance(written, dict):
        return isinstance(live, dict) and all(holds_already(live.get(key), value) for key, value in written.items())
    if isinstance(written, list):
        alike = isinstance(live, list) and len(live) == len(written)
        return alike and all(holds_already(*pair) for pair in zip(live, written, strict=True))
    return bool(live == written)


def _with_removals(written: Doc, last: Any) -> Doc:
    patch = dict(written)
    for key, before in last.items() if isinstance(last, dict) else ():
        if key not in written:
            patch[key] = None
        elif isinstance(before, dict) and isinstance(written[key], dict):
            patch[key] = _with_removals(written[key], before)
    return patch
