"""Custom resources whose schemas are built in: the defaults of their schemas.

Few fields of a schema have a default. The way to them is found once for each type, so that a write looks at these
fields alone and shares the rest of the document.
"""

from __future__ import annotations

from copy import deepcopy
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from fairlead.cluster.store.typetable import TypeField, TypeStruct
    from fairlead.core.model.flow import Doc


class _Defaulted(NamedTuple):
    """A field with a default of its own or, in a type that it holds, of others."""

    name: str
    default: Any
    within: TypeStruct | None
    depth: int
    """How many lists are around the values of the type `within`."""


def default_custom(struct: TypeStruct, doc: Doc) -> Doc:
    """The document with the schema's defaults wherever a field is missing from an object that is there. A document
    that has them all is returned as it is."""
    added: Doc = {}
    for name, default, within, depth in _defaulted(struct):
        value = given = doc.get(name)
        if given is None and name not in doc:
            if default is None:
                continue
            value = deepcopy(default)
        if within is not None:
            value = _default_within(within, value, depth)
        if value is not given:
            added[name] = value
    return {**doc, **added} if added else doc


def _default_within(struct: TypeStruct, value: Any, depth: int) -> Any:
    if depth and isinstance(value, list):
        items = [_default_within(struct, item, depth - 1) for item in value]
        return items if any(new is not old for new, old in zip(items, value, strict=True)) else value
    return default_custom(struct, value) if not depth and isinstance(value, dict) else value


@cache
def _defaulted(struct: TypeStruct) -> tuple[_Defaulted, ...]:
    """The fields of a type that defaults are to be looked for in. Metadata and pod templates, which are types of
    Kubernetes, have no defaults of the schema's."""
    found = []
    for name, field in struct.fields.items():
        if field.struct is not None and (field.struct.borrowed or not field.struct.custom):
            continue
        within, depth = _innermost(field)
        if within is not None and (within.borrowed or not _has_defaults(within, frozenset())):
            within = None
        if within is not None or field.default is not None:
            found.append(_Defaulted(name, field.default, within, depth))
    return tuple(found)


def _innermost(field: TypeField) -> tuple[TypeStruct | None, int]:
    """The type of a field's values, or of the items of its lists, and how many lists are around it."""
    depth = 0
    while field.struct is None and field.item is not None:
        field, depth = field.item, depth + 1
    return field.struct, depth


def _has_defaults(struct: TypeStruct, seen: frozenset[TypeStruct]) -> bool:
    if struct in seen:
        return False
    for field in struct.fields.values():
        if field.struct is not None and (field.struct.borrowed or not field.struct.custom):
            continue
        within, _ = _innermost(field)
        if field.default is not None or (
            within is not None and not within.borrowed and _has_defaults(within, seen | {struct})
        ):
            return True
    return False
