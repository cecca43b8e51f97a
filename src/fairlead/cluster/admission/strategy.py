"""Which part of an object a request may write: the API server's strategies per kind, as a table.

A create loses its status, except for kinds whose creators set it (nodes); an update keeps the old status; an update of
`/status` keeps everything but the status.
`metadata.generation` counts changes of what users request, where the original counts them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.schema import is_custom, struct_of
from fairlead.core.model import kinds as k

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

_STATUS_FROM_CREATOR = frozenset({k.NODE})
_COUNTED = frozenset({
    k.POD, k.DEPLOYMENT, k.REPLICA_SET, k.STATEFUL_SET, k.DAEMON_SET, k.JOB, k.CRON_JOB, k.REPLICATION_CONTROLLER,
    k.POD_DISRUPTION_BUDGET, k.POD_TEMPLATE, k.CUSTOM_RESOURCE_DEFINITION, k.INGRESS, k.NETWORK_POLICY,
    k.INGRESS_CLASS, k.PRIORITY_CLASS, k.ENDPOINT_SLICE, k.RESOURCE_SLICE, k.DEVICE_CLASS,
})  # fmt: skip
_NEVER_RAISED = frozenset({k.PRIORITY_CLASS})
_COUNTS_ANNOTATIONS = frozenset({k.DEPLOYMENT})
_STATUS_KEEPS_LABELS = frozenset({k.DEPLOYMENT})
_STATUS_ALONE = frozenset({k.POD_GROUP_BETA})
"""Kinds of which an update of the status changes nothing else."""


def prepare_create(kind: Kind, doc: Doc) -> Doc:
    """The new object with what its creator may not say taken out, and its generation."""
    metadata = {key: value for key, value in doc["metadata"].items() if key != "generation"}
    if kind in _COUNTED or is_custom(kind):
        metadata["generation"] = 1
    prepared = {**doc, "metadata": metadata}
    if "status" in kind.subresources and kind not in _STATUS_FROM_CREATOR:
        prepared.pop("status", None)
        prepared |= _empty_status(kind)
    return prepared


def _empty_status(kind: Kind) -> Doc:
    """What the server writes for a status that nobody has set yet."""
    struct = None if is_custom(kind) else struct_of(kind)
    return {name: make() for name, make in struct.always if name == "status"} if struct else {}


def prepare_update(kind: Kind, new: Doc, old: Doc) -> Doc:
    """The update with the old status, and the generation that follows from what changed."""
    prepared = dict(new)
    if "status" in kind.subresources:
        _replace(prepared, "status", old)
    return {**prepared, "metadata": _with_generation(kind, prepared, old)}


def prepare_status(kind: Kind, new: Doc, old: Doc) -> Doc:
    """The old object with the new status and, where the original takes them, new labels and annotations."""
    prepared = {**old}
    _replace(prepared, "status", new)
    if is_custom(kind) or kind in _STATUS_ALONE:
        prepared["metadata"] = {
            **old["metadata"],
            **{key: value for key, value in new["metadata"].items() if key in ("resourceVersion", "managedFields")},
        }
        return prepared
    metadata = {**new["metadata"]}
    for key in ("ownerReferences", "generation", *(("labels",) if kind in _STATUS_KEEPS_LABELS else ())):
        _replace(metadata, key, old["metadata"])
    if kind is k.POD and "qosClass" in (old.get("status") or {}):
        # Decided when the pod was made; nobody changes it afterwards, not even by leaving it out.
        prepared["status"] = {**(prepared.get("status") or {}), "qosClass": old["status"]["qosClass"]}
    return {**prepared, "metadata": metadata}


def _replace(doc: Doc, key: str, source: Doc) -> None:
    doc.pop(key, None)
    if key in source:
        doc[key] = source[key]


def _with_generation(kind: Kind, new: Doc, old: Doc) -> Doc:
    metadata: Doc = {**new["metadata"]}
    _replace(metadata, "generation", old["metadata"])
    if "generation" in metadata and kind not in _NEVER_RAISED and _desired(kind, new) != _desired(kind, old):
        metadata["generation"] += 1
    return metadata


def _desired(kind: Kind, doc: Doc) -> Any:
    """The part of an object whose changes are counted."""
    if is_custom(kind):
        apart = ("metadata", "status") if "status" in kind.subresources else ("metadata",)
        return {key: value for key, value in doc.items() if key not in apart}
    annotations = doc["metadata"].get("annotations") if kind in _COUNTS_ANNOTATIONS else None
    return {key: value for key, value in doc.items() if key not in ("metadata", "status")} | {"": annotations}
