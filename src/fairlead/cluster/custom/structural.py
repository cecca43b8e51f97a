"""What a structural schema makes of a document: fields it does not know go, defaults come.

    decode    metadata is decoded as everywhere; unknown fields are dropped and named
    default   what is missing and has a default appears; a null where none is allowed counts as missing

Schemas are those of CustomResourceDefinitions, as JSON, and are looked at anew for every document: objects of defined
kinds are few compared to pods.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.schema import decode_metadata

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind

Schema = Mapping[str, Any]
OF_EVERY_OBJECT = ("apiVersion", "kind", "metadata")
_KEEPS = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"


def decode_defined(kind: Kind, doc: Doc) -> tuple[Doc, list[str]]:
    """The document without what its kind's schema does not know, and the paths of that."""
    assert kind.definition is not None
    metadata, unknown = decode_metadata(kind, doc)
    kept = {key: value for key, value in doc.items() if key in OF_EVERY_OBJECT}
    rest = {key: value for key, value in doc.items() if key not in OF_EVERY_OBJECT}
    return {**kept, "metadata": metadata, **_pruned(kind.definition.schema, rest, "", unknown)}, unknown


def _pruned(schema: Schema, value: Any, path: str, unknown: list[str]) -> Any:
    if isinstance(value, list):
        items = schema.get("items") or {}
        return [_pruned(items, item, f"{path}[{index}]", unknown) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    out: Doc = {}
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        inner = properties.get(key, others)
        if isinstance(inner, dict):
            out[key] = _pruned(inner, item, here, unknown)
        elif inner or schema.get(_KEEPS) or (schema.get(_EMBEDDED) and key in OF_EVERY_OBJECT):
            out[key] = item
        else:
            unknown.append(here)
    return out


def default_defined(kind: Kind, doc: Doc) -> Doc:
    assert kind.definition is not None
    out: Doc = defaulted(kind.definition.schema, doc, skip=OF_EVERY_OBJECT)
    return out


def defaulted(schema: Schema, value: Any, *, skip: tuple[str, ...] = ()) -> Any:
    """The value with the schema's defaults wherever a field is missing from an object that is there."""
    if isinstance(value, list):
        items = schema.get("items")
        return [defaulted(items, item) for item in value] if isinstance(items, dict) else value
    if not isinstance(value, dict):
        return value
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    out = dict(value)
    for name, inner in properties.items():
        if name in skip:
            continue
        missing = name not in out or (out[name] is None and not inner.get("nullable"))
        if missing and "default" in inner:
            out[name] = deepcopy(inner["default"])
    for name, item in out.items():
        inner = properties.get(name, others)
        if isinstance(inner, dict) and name not in skip:
            out[name] = defaulted(inner, item)
    return out


def conformed(kind: Kind, doc: Doc) -> Doc:
    """A stored document as this version of its kind shows it."""
    pruned, _ = decode_defined(kind, {**doc, "apiVersion": kind.api_version, "kind": kind.kind})
    return default_defined(kind, pruned)
