"""The few writes that controllers make, and the owner references that tie their objects together.

Status is written as a merge patch without a resourceVersion: every status field has one writer, so there is nothing
to conflict about, and a busy object does not make its controllers retry each other's writes.
"""

from __future__ import annotations

from typing import Any

from fairlead.core.model.flow import Doc, PatchType, Verb, Write
from fairlead.core.model.kinds import EVENT, Kind
from fairlead.core.model.times import timestamp

_PATCH, _MERGE = Verb.PATCH, PatchType.MERGE
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


def namespaced_name(doc: Doc) -> tuple[str, str]:
    """Namespace and name of an object: the key under which most controllers visit it."""
    metadata = doc["metadata"]
    return metadata.get("namespace", ""), metadata["name"]


def create(kind: Kind, doc: Doc) -> Write:
    metadata = doc["metadata"]
    return Write(Verb.CREATE, kind, metadata.get("namespace", ""), metadata.get("name", ""), body=doc)


def patch(kind: Kind, doc: Doc, changes: Doc, *, subresource: str = "", conforms: bool = False) -> Write:
    """Merge `changes` into an object, provided it is still the same one (by uid)."""
    old = doc["metadata"]
    metadata = {**(changes.get("metadata") or {}), "uid": old["uid"]}
    body = {**changes, "metadata": metadata}
    return Write(
        _PATCH,
        kind,
        old.get("namespace", ""),
        old["name"],
        body=body,
        subresource=subresource,
        patch_type=_MERGE,
        conforms=conforms,
    )


def patch_status(kind: Kind, doc: Doc, status: Doc, *, conforms: bool = False) -> Write:
    """Merge fields into the status of an object. `conforms` as in Write."""
    metadata = doc["metadata"]
    body = {"status": status, "metadata": {"uid": metadata["uid"]}}
    return Write(
        _PATCH, kind, metadata.get("namespace", ""), metadata["name"], body, "status", _MERGE, conforms=conforms
    )


def merge_patch(known: Doc, fresh: Doc) -> dict[str, Any]:
    """The merge patch that makes `fresh` of `known`: what is not in `fresh` any more is None."""
    changes: dict[str, Any] = {name: None for name in known if name not in fresh}
    for name, value in fresh.items():
        before = known.get(name)
        if isinstance(value, dict) and isinstance(before, dict):
            inner = merge_patch(before, value)
            if inner:
                changes[name] = inner
        elif value != before:
            changes[name] = value
    return changes


def delete(
    kind: Kind, doc: Doc, *, grace_seconds: int | None = None, propagation: str = "", version: bool = False
) -> Write:
    """Delete this very object (by uid, and by resourceVersion if `version`)."""
    namespace, name = namespaced_name(doc)
    preconditions = {"uid": doc["metadata"]["uid"]}
    if version:
        preconditions["resourceVersion"] = doc["metadata"]["resourceVersion"]
    options: dict[str, Any] = {"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": preconditions}
    if grace_seconds is not None:
        options["gracePeriodSeconds"] = grace_seconds
    if propagation:
        options["propagationPolicy"] = propagation
    return Write(Verb.DELETE, kind, namespace, name, body=options)


def owner_reference(kind: Kind, owner: Doc) -> Doc:
    """The reference by which `owner` controls another object."""
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def controller_of(doc: Doc) -> Doc | None:
    """The owner reference of the one that controls this object, if any does."""
    for reference in doc["metadata"].get("ownerReferences") or ():
        if reference.get("controller"):
            owner: Doc = reference
            return owner
    return None


def identity(doc: Doc) -> str:
    """The namespace and uid of an object, by which those that it owns find it. An object in another namespace owns
    nothing here, even if its uid is named."""
    metadata = doc["metadata"]
    return f"{metadata.get('namespace', '')}/{metadata['uid']}"


def identity_of_controller(doc: Doc) -> str:
    """The `identity` of the one that controls this object; empty if nobody does."""
    reference = controller_of(doc)
    return "" if reference is None else f"{doc['metadata'].get('namespace', '')}/{reference['uid']}"


def event_about(
    kind: Kind, doc: Doc, *, reason: str, message: str, now: float, component: str, warning: bool = False
) -> Write:
    """A core/v1 Event about an object, as `kubectl describe` shows it. Nobody waits for its Reply."""
    metadata = doc["metadata"]
    namespace = metadata.get("namespace") or "default"
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"namespace": namespace, "generateName": f"{metadata['name']}."},
        "involvedObject": {
            "kind": kind.kind,
            "namespace": metadata.get("namespace", ""),
            "name": metadata["name"],
            "uid": metadata.get("uid", ""),
            "apiVersion": kind.api_version,
            "resourceVersion": metadata.get("resourceVersion", ""),
        },
        "reason": reason,
        "message": message,
        "source": {"component": component},
        "firstTimestamp": timestamp(now),
        "lastTimestamp": timestamp(now),
        "count": 1,
        "type": "Warning" if warning else "Normal",
        "eventTime": None,
        "reportingComponent": component,
        "reportingInstance": "",
    }
    return Write(Verb.CREATE, EVENT, namespace, "", body=body)


def condition(doc: Doc, type_: str) -> Doc | None:
    """One of `status.conditions`."""
    for one in (doc.get("status") or {}).get("conditions") or ():
        if one.get("type") == type_:
            found: Doc = one
            return found
    return None


def with_condition(conditions: list[Doc], new: Doc) -> list[Doc]:
    """The list with `new` in place of its namesake; the transition time stays if the status did."""
    replaced = False
    result = []
    for old in conditions:
        if old.get("type") != new["type"]:
            result.append(old)
            continue
        if old.get("status") == new["status"] and "lastTransitionTime" in old:
            new = {**new, "lastTransitionTime": old["lastTransitionTime"]}
        result.append(new)
        replaced = True
    return result if replaced else [*result, new]
