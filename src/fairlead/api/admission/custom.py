"""Custom resources that are built in (Volcano's, Koordinator's, scheduler-plugins'): the defaults of their schemas."""

from __future__ import annotations

from copy import deepcopy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fairlead.api.store.typetable import TypeField, TypeStruct
    from fairlead.model.flow import Doc


def default_custom(struct: TypeStruct, doc: Doc) -> Doc:
    """The document with the schema's defaults wherever a field is missing from an object that is there."""
    out = dict(doc)
    for name, field in struct.fields.items():
        if field.struct is not None and (field.struct.borrowed or not field.struct.custom):
            continue  # metadata and pod templates have no defaults of the schema's
        if name not in out and field.default is not None:
            out[name] = deepcopy(field.default)
        if name in out:
            out[name] = _default_value(field, out[name])
    return out


def _default_value(field: TypeField, value: Any) -> Any:
    if field.struct is not None and not field.struct.borrowed and isinstance(value, dict):
        return default_custom(field.struct, value)
    if field.item is not None and isinstance(value, list):
        return [_default_value(field.item, item) for item in value]
    return value
