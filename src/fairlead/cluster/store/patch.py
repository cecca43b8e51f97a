"""The three dialects of PATCH: JSON patch, merge patch and strategic merge patch.

A patch never changes the document it is given; the result is a new one that shares what was left alone. Errors have
the API server's words and codes, odd as some of them are. Strategic merging follows the merge keys and strategies of
the schema, and is refused for kinds that would be custom resources on a real cluster.

Invariant: `apply_patch` answers with a document whose values have the types that its kind requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jsonpatch
import jsonpointer
import orjson

from fairlead.cluster.store.objects import private_copy
from fairlead.cluster.store.schema import WrongType, check_types, is_custom, merged, struct_of
from fairlead.cluster.store.strategic import go_text, merge_strategically
from fairlead.core.model.flow import PatchType
from fairlead.core.model.kinds import POD
from fairlead.errors import BadRequest, Invalid, TooLarge, UnsupportedMedia

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc, Write
    from fairlead.core.model.kinds import Kind

MOST_OPERATIONS = 10_000
MOST_COPIED = 3 * 1024 * 1024
"""Bytes that the `copy` operations of one JSON patch may add together, as in kube-apiserver."""
_REJECTED = "the server rejected our request due to an error in our request"
_UNKNOWN_FORMAT = "the body of the request was in an unknown format - accepted media types include: "
_JSON_NAMES = {str: "string", int: "number", float: "number", bool: "bool", list: "array", dict: "object"}


def apply_patch(kind: Kind, doc: Doc, patch: Any, patch_type: PatchType) -> Doc:
    """The document after the patch. Raises BadRequest, Invalid, UnsupportedMedia or InternalError."""
    match patch_type:
        case PatchType.JSON:
            return _checked(kind, json_patch(doc, patch))
        case PatchType.MERGE:
            return _checked(kind, merge_patch(doc, _an_object(patch, "error decoding patch: ")), patch)
        case PatchType.STRATEGIC:
            return _strategic(kind, doc, patch)
    raise UnsupportedMedia(_UNKNOWN_FORMAT + ", ".join(accepted_patch_types(kind)))


_WITH_STATUS = frozenset({"apiVersion", "kind", "metadata", "status"})
_ONLY_STATUS = frozenset({"metadata", "status"})


def with_status_set(write: Write, shown: Doc) -> Doc | None:
    """The document after a merge patch that sets fields of its status and metadata, decoded, as controllers write by
    the thousand; None if it is another patch, which then goes the long way."""
    kind, patch = write.kind, write.body
    if write.patch_type is not PatchType.MERGE or kind.stored_as is not None or kind.definition is not None:
        return None
    if not isinstance(patch, dict) or "status" not in patch or not _ONLY_STATUS.issuperset(patch):
        return None
    doc: Doc | None = merge_patch(shown, patch) if write.conforms else merged(kind, shown, private_copy(patch))
    if doc is not None and "metadata" not in patch:
        doc["metadata"] = dict(doc["metadata"])
    return doc


_MERGE = PatchType.MERGE
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""
_NOT_QUICK = frozenset({"managedFields", "deletionTimestamp"})
_LAST = ("ownerReferences", "generation")


def pod_status_set(write: Write, shown: Doc) -> Doc | None:
    """A pod after a conforming merge patch of its status that names the pod by its uid and changes nothing else, as
    kubelets write by the thousand: what all rules of an update would come to. None if it is another patch, or one that
    those rules have to look at."""
    patch, metadata = write.body, shown["metadata"]
    if write.kind is not POD or write.subresource != "status" or write.patch_type is not _MERGE:
        return None
    if patch.keys() != _ONLY_STATUS or patch["metadata"] != {"uid": metadata["uid"]}:
        return None
    if "qosClass" in patch["status"] or not _NOT_QUICK.isdisjoint(metadata):
        return None
    doc, metadata = dict(shown), dict(metadata)
    for name in _LAST:  # in the order of fields, too, as all rules would leave it
        if name in metadata:
            metadata[name] = metadata.pop(name)
    doc["metadata"], doc["status"] = metadata, merge_patch(doc.pop("status", None), patch["status"])
    return doc


def status_part(write: Write, patched: Doc) -> Doc | None:
    """Of a document after a patch of nothing but its status and metadata, what the patch can have changed; None if it
    was another patch. The rest was decoded when it was stored."""
    kind, patch = write.kind, write.body
    if write.patch_type is PatchType.JSON or kind.stored_as is not None or kind.definition is not None:
        return None
    if "status" not in patch or not _WITH_STATUS.issuperset(patch):
        return None
    return {key: value for key, value in patched.items() if key in _WITH_STATUS}


def with_the_rest(part: Doc, patched: Doc) -> Doc:
    """The whole document of a decoded `status_part`, its fields in their old order."""
    return {key: value for key, value in patched.items() if key in part or key not in _WITH_STATUS} | part


def accepted_patch_types(kind: Kind) -> list[str]:
    """The media types that PATCH takes for this kind."""
    types = [PatchType.JSON, PatchType.MERGE]
    return [one.value for one in (types if is_custom(kind) else [*types, PatchType.STRATEGIC])]


def _strategic(kind: Kind, doc: Doc, patch: Any) -> Doc:
    struct = struct_of(kind)
    if struct is None or struct.custom:
        raise UnsupportedMedia(_UNKNOWN_FORMAT + ", ".join(accepted_patch_types(kind)))
    patched = merge_strategically(struct, doc, _an_object(patch, ""))
    try:
        check_types(kind, patch)
    except WrongType as wrong:
        raise _invalid_patch(go_text(patch), wrong.restored) from wrong
    return patched


def _checked(kind: Kind, patched: Doc, patch: Doc | None = None) -> Doc:
    """The document was good before, so after a merge only what the patch brought can be of a wrong type."""
    try:
        check_types(kind, patched if patch is None else patch)
    except WrongType as wrong:
        raise _invalid_patch(_compact(patched), wrong.problem) from wrong
    return patched


def _compact(doc: Doc) -> str:
    return orjson.dumps(doc, option=orjson.OPT_SORT_KEYS).decode()


def _invalid_patch(value: str, problem: str) -> Invalid:
    message = f"Invalid value: {orjson.dumps(value).decode()}: {problem}"
    cause = {"reason": "FieldValueInvalid", "message": message, "field": "patch"}
    return Invalid(f' "" is invalid: patch: {message}', details={"causes": [cause]})


def _an_object(patch: Any, prefix: str) -> Doc:
    if isinstance(patch, dict):
        return patch
    found = _JSON_NAMES.get(type(patch), "null")
    raise BadRequest(f"{prefix}json: cannot unmarshal {found} into Go value of type map[string]interface {{}}")


# -- JSON patch -------------------------------------------------------------------------------------------------------


def json_patch(doc: Doc, patch: Any) -> Doc:
    """RFC 6902, with the server's one leniency: replacing a member that is not there adds it."""
    if not isinstance(patch, list):
        found = _JSON_NAMES.get(type(patch), "null")
        raise BadRequest(
            f"error decoding patch: json: cannot unmarshal {found} into Go value of type []handlers.jsonPatchOp"
        )
    if len(patch) > MOST_OPERATIONS:
        allowed = f"The allowed maximum operations in a JSON patch is {MOST_OPERATIONS}"
        raise TooLarge(f"Request entity too large: {allowed}, got {len(patch)}")
    patched, copied = _own(doc), 0
    for operation in _own(patch):
        copied += _copied_size(patched, operation)
        if copied > MOST_COPIED:
            raise Invalid(_REJECTED)
        patched = _apply_operation(patched, operation)
    if not isinstance(patched, dict):
        raise Invalid(_REJECTED)
    return patched


def _own(value: Any) -> Any:
    """A copy that operations may change in place: one for the patch, not one for each of its operations."""
    try:
        return orjson.loads(orjson.dumps(value))
    except (TypeError, RecursionError, orjson.JSONDecodeError) as error:
        raise BadRequest(f"error decoding patch: {error}") from error


def _copied_size(doc: Any, operation: Any) -> int:
    """The bytes by which a `copy` makes the document grow. A copy of a copy doubles it each time."""
    if not isinstance(operation, dict) or operation.get("op") != "copy" or not isinstance(operation.get("from"), str):
        return 0
    try:
        return len(orjson.dumps(jsonpointer.resolve_pointer(doc, operation["from"])))
    except (jsonpointer.JsonPointerException, TypeError, KeyError, IndexError):
        return 0


def _apply_operation(doc: Any, operation: Any) -> Any:
    """The document after one operation, which may be the same, changed in place."""
    if not isinstance(operation, dict):
        raise BadRequest(
            "error decoding patch: json: cannot unmarshal "
            f"{_JSON_NAMES.get(type(operation), 'null')} into Go value of type handlers.jsonPatchOp"
        )
    try:
        if operation.get("op") == "replace" and _misses_member(doc, operation.get("path")):
            operation = operation | {"op": "add"}
        return jsonpatch.JsonPatch([operation]).apply(doc, in_place=True)
    except (jsonpatch.JsonPatchException, jsonpointer.JsonPointerException, TypeError, KeyError, IndexError) as error:
        raise Invalid(_REJECTED) from error


def _misses_member(doc: Any, path: Any) -> bool:
    if not isinstance(path, str) or not path.startswith("/"):
        return False
    parent, member = jsonpointer.JsonPointer(path).to_last(doc)
    return isinstance(parent, dict) and member not in parent


# -- merge patch ------------------------------------------------------------------------------------------------------


def merge_patch(doc: Any, patch: Any) -> Any:
    """RFC 7396: null removes, objects merge, everything else replaces."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(doc) if isinstance(doc, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            merged[key] = merge_patch(merged.get(key), value)
        else:
            merged[key] = value
    return merged
