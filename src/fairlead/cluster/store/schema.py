"""What fields the kinds have, of which types, and how their lists merge; read from one generated table.

Decoding a document does what the API server's round trip through Go structs does to it: wrong types are refused with
the server's words, unknown fields are noticed and dropped, nulls and empty optional values vanish, structs that are
always written appear, quantities take their canonical form. One quick pass does this when all is well; only when it
meets something wrong does a second, slower one find the paths for the message.

A kind that is not in the table is open: anything goes. Loading is lazy and takes a few milliseconds.
Invariant: decoding never changes its argument, and decoding what was decoded changes nothing.
"""

from __future__ import annotations

import gzip
from calendar import monthrange
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from fairlead.cluster.store.quantities import QUANTITY_ERROR, NotAQuantity, canonical
from fairlead.cluster.store.typetable import OBJECT_META, Decoder, FieldKind, TypeField, TypeStruct, TypeTable
from fairlead.core.model.times import seconds_of
from fairlead.errors import BadRequest, Invalid

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc
    from fairlead.core.model.kinds import Kind


class WrongType(BadRequest):
    """A value has the wrong JSON type. `problem` is the bare complaint, `restored` how a strategic patch words it."""

    def __init__(self, kind: Kind, problem: str, restored: str) -> None:
        super().__init__(_handled_as(kind, problem))
        self.problem, self.restored = problem, restored


class Decoded(NamedTuple):
    """A document as the server would keep it, and the paths of the fields that it does not know."""

    doc: Doc
    unknown: list[str]


@cache
def schema_data() -> dict[str, Any]:
    """The generated table as it is in the file."""
    packed = files("fairlead.cluster").joinpath("data/schema.json.gz").read_bytes()
    table: dict[str, Any] = orjson.loads(gzip.decompress(packed))
    return table


@cache
def type_table() -> TypeTable:
    return TypeTable(schema_data(), _DECODERS)


def struct_of(kind: Kind) -> TypeStruct | None:
    """The fields of a kind, or None when the table does not have it."""
    return None if kind.definition is not None else _struct_of(kind)


@cache
def _struct_of(kind: Kind) -> TypeStruct | None:
    table, key = type_table(), f"{kind.api_version}/{kind.kind}"
    return table.struct(_BESIDES[key]) if key in _BESIDES else table.of_kind(key)


_BESIDES = {"autoscaling/v1/Scale": "io.k8s.api.autoscaling.v1.Scale"}
"""Documents that are patched like objects and stored nowhere."""


def raw_schema(kind: Kind) -> dict[str, Any] | None:
    """The schema of a built-in kind as it is in the table."""
    name = schema_data()["kinds"].get(f"{kind.api_version}/{kind.kind}")
    return None if name is None else schema_data()["types"][name]


def decode(kind: Kind, doc: Doc) -> Decoded:
    """The document with types checked, unknown fields dropped and values in canonical form."""
    if kind.definition is not None:
        from fairlead.cluster.custom.structural import decode_defined

        return Decoded(*decode_defined(kind, doc))
    struct = struct_of(kind)
    if struct is None:
        return Decoded(doc, [])
    unknown: list[str] = []
    try:
        decoded = _decode_struct(struct, doc, unknown)
    except _WrongType:
        _complain(kind, struct, doc)
        raise
    return Decoded(decoded, list(_unknown(struct, doc, "")) if unknown else unknown)


def completed(kind: Kind, doc: Doc) -> Doc:
    """A document that conforms (see Write), with what is always written at its top; its metadata is a copy."""
    struct = struct_of(kind)
    whole = {**doc, "metadata": {**doc["metadata"]}}
    if struct is not None:
        for key, make in struct.always:
            if key not in doc:
                whole[key] = make()
    return whole


def decode_as(definition: str, kind: Kind, doc: Doc) -> Doc:
    """A document of a type that is no kind of its own, DeleteOptions for instance; `kind` is for the words."""
    struct = type_table().struct(definition)
    try:
        return _decode_struct(struct, doc, [])
    except _WrongType:
        _complain(kind, struct, doc)
        raise


def decode_metadata(kind: Kind, doc: Doc) -> tuple[Doc, list[str]]:
    """The metadata of an object of a kind that the table does not have, and the paths of its unknown fields."""
    struct = type_table().struct(OBJECT_META)
    given, unknown = doc.get("metadata") or {}, list[str]()
    try:
        decoded = _decode_struct(struct, given, unknown)
    except _WrongType:
        for parent, path, field, value in _wrong(struct, given, ("metadata",)):
            raise WrongType(kind, _go_error(parent, path, field, value), _restore_error(field, value)) from None
        raise
    return decoded, list(_unknown(struct, given, "metadata")) if unknown else unknown


def merged(kind: Kind, doc: Doc, patch: Doc) -> Doc | None:
    """A stored document after a merge patch that only sets fields, decoded; what the patch does not name is not looked
    at, because it was decoded when it was stored. None if that is not so simple: the patch removes or empties a field,
    names one that the kind does not have, or has a value of the wrong type."""
    struct = struct_of(kind)
    try:
        return None if struct is None else _merged(struct, doc, patch)
    except _WrongType:
        return None


def check_types(kind: Kind, doc: Doc) -> None:
    """Refuse wrong JSON types in the server's words: BadRequest, for custom resources Invalid."""
    decode(kind, doc)


def strict_error(kind: Kind, unknown: list[str]) -> BadRequest:
    """What `fieldValidation=Strict` answers."""
    fields = ", ".join(f'unknown field "{path}"' for path in unknown)
    return BadRequest(_handled_as(kind, f"strict decoding error: {fields}"))


def is_custom(kind: Kind) -> bool:
    """Whether the kind would be a custom resource on a real cluster: no strategic merge patch, other messages."""
    struct = struct_of(kind)
    return struct is None or struct.custom


# -- the quick pass ---------------------------------------------------------------------------------------------------


# Looking them up on the Enum each time would cost more than the rest of the loop.
_STRING, _QUANTITY = FieldKind.STRING, FieldKind.QUANTITY
_DEEPLY_MERGED = frozenset({FieldKind.MAP, FieldKind.ANY})
"""Values of these kinds may hold objects that a merge patch merges key by key."""


class _WrongType(Exception):
    """Something has the wrong JSON type; the slow pass says what."""


def _decode_struct(struct: TypeStruct, value: Doc, unknown: list[str]) -> Doc:
    out: Doc = {}
    fields = struct.fields
    for key, item in value.items():
        field = fields.get(key)
        if field is None:
            if struct.keeps_unknown:
                out[key] = item
            else:
                unknown.append(key)
        elif field.kind is _STRING and type(item) is str:
            if item or not field.omit_empty:
                out[key] = item
        elif item is None:
            if struct.custom and field.nullable:
                out[key] = None
        elif field.struct is not None:
            if type(item) is not dict:
                raise _WrongType
            out[key] = _decode_struct(field.struct, item, unknown)
        else:
            found = field.decode(field, item, unknown)
            if found or not field.omit_empty:
                out[key] = found
    for key, make in struct.always:
        if key not in out:
            out[key] = make()
    return out


def _merged(struct: TypeStruct, before: Doc, patch: Doc) -> Doc:
    """Raises _WrongType also where only a whole document can be decoded."""
    out, unknown = dict(before), list[str]()
    for key, item in patch.items():
        field = struct.fields.get(key)
        if field is None or item is None or field.kind in _DEEPLY_MERGED:
            raise _WrongType
        if field.struct is not None:
            known = before.get(key)
            if known is None or type(item) is not dict:
                raise _WrongType
            out[key] = _merged(field.struct, known, item)
            continue
        found = field.decode(field, item, unknown)
        if unknown or not (found or not field.omit_empty):
            raise _WrongType
        out[key] = found
    return out


def _as_struct(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) is not dict or field.struct is None:
        raise _WrongType
    return _decode_struct(field.struct, value, unknown)


def _as_list(field: TypeField, value: Any, unknown: list[str]) -> Any:
    item = field.item
    if type(value) is not list or item is None:
        raise _WrongType
    if item.kind is _STRING:
        for element in value:
            if type(element) is not str:
                return [_string_or_empty(element) for element in value]
        return value
    decode_item = item.decode
    return [decode_item(item, element, unknown) for element in value if element is not None]


def _as_map(field: TypeField, value: Any, unknown: list[str]) -> Any:
    item = field.item
    if type(value) is not dict or item is None:
        raise _WrongType
    if item.kind is _STRING:
        for element in value.values():
            if type(element) is not str:
                return {key: _string_or_empty(element) for key, element in value.items()}
        return value
    if item.kind is _QUANTITY:
        try:
            return {key: canonical(element) for key, element in value.items() if element is not None}
        except NotAQuantity:
            raise _WrongType from None
    decode_item = item.decode
    return {key: decode_item(item, element, unknown) for key, element in value.items() if element is not None}


def _string_or_empty(value: Any) -> str:
    """A null inside a collection of strings is an empty string, as in Go."""
    if value is None:
        return ""
    if type(value) is not str:
        raise _WrongType
    return value


def _as_string(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) is not str:
        raise _WrongType
    return value


def _as_integer(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is not int or not field.low <= value <= field.high:
        raise _WrongType
    return value


def _as_number(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) not in (int, float):
        raise _WrongType
    return value


def _as_boolean(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) is not bool:
        raise _WrongType
    return value


def _as_quantity(field: TypeField, value: Any, unknown: list[str]) -> Any:
    try:
        return canonical(value)
    except NotAQuantity:
        raise _WrongType from None


def _as_int_or_string(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) is str:
        return value
    return _as_integer(field, value, unknown)


def _as_time(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) is not str or (value and not _is_time(value)):
        raise _WrongType
    return value


def _as_bytes(field: TypeField, value: Any, unknown: list[str]) -> Any:
    if type(value) is not str or _bad_base64(value) is not None:
        raise _WrongType
    return value


def _as_anything(field: TypeField, value: Any, unknown: list[str]) -> Any:
    return value


_DECODERS: dict[FieldKind, Decoder] = {
    FieldKind.STRUCT: _as_struct,
    FieldKind.LIST: _as_list,
    FieldKind.MAP: _as_map,
    FieldKind.STRING: _as_string,
    FieldKind.INTEGER: _as_integer,
    FieldKind.NUMBER: _as_number,
    FieldKind.BOOLEAN: _as_boolean,
    FieldKind.QUANTITY: _as_quantity,
    FieldKind.INT_OR_STRING: _as_int_or_string,
    FieldKind.TIME: _as_time,
    FieldKind.MICRO_TIME: _as_time,
    FieldKind.BYTES: _as_bytes,
    FieldKind.ANY: _as_anything,
}
_DIGITS = frozenset("0123456789")


@lru_cache(maxsize=4096)  # most of what is written at one time names that time
def _is_time(text: str) -> bool:
    """Whether a text names a moment, so that later readers need not check it."""
    if not _looks_like_time(text):
        return False
    try:
        seconds_of(text)
    except (ValueError, OverflowError):
        return False
    return True


def _looks_like_time(text: str) -> bool:
    return (
        len(text) >= 20
        and text[4] == text[7] == "-"
        and text[10] == "T"
        and text[13] == text[16] == ":"
        and _DIGITS.issuperset(text[:4] + text[5:7] + text[8:10] + text[11:13] + text[14:16] + text[17:19])
        and (text[-1] == "Z" or text[-6] in "+-")
    )


_BASE64 = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/\n\r")


def _bad_base64(text: str) -> int | None:
    """The offset of the first byte that is not base64, or None."""
    body = text.rstrip("=")
    for offset, char in enumerate(body):
        if char not in _BASE64:
            return offset
    return None if len(text) % 4 == 0 or "\n" in text or "\r" in text else len(text)


# -- the slow pass ----------------------------------------------------------------------------------------------------


def _unknown(struct: TypeStruct, value: Doc, path: str) -> Iterator[str]:
    for key, item in value.items():
        here = f"{path}.{key}" if path else key
        field = struct.fields.get(key)
        if field is None:
            if not struct.keeps_unknown:
                yield here
        else:
            yield from _unknown_in(field, item, here)


def _unknown_in(field: TypeField, value: Any, path: str) -> Iterator[str]:
    if field.struct is not None and isinstance(value, dict):
        yield from _unknown(field.struct, value, path)
    elif field.item is not None and isinstance(value, list):
        for index, element in enumerate(value):
            yield from _unknown_in(field.item, element, f"{path}[{index}]")
    elif field.item is not None and isinstance(value, dict):
        for key, element in value.items():
            yield from _unknown_in(field.item, element, f"{path}.{key}")


def _complain(kind: Kind, struct: TypeStruct, doc: Doc) -> None:
    for parent, path, field, value in _wrong(struct, doc, ()):
        if struct.custom:
            raise _custom_error(kind, doc, path, field, value)
        raise WrongType(kind, _go_error(parent, path, field, value), _restore_error(field, value))


def _handled_as(kind: Kind, problem: str) -> str:
    return f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {problem}'


Wrong = tuple[TypeStruct, tuple[str, ...], TypeField, Any]


def _wrong(struct: TypeStruct, value: Doc, path: tuple[str, ...]) -> Iterator[Wrong]:
    """Every value of the wrong type, with the struct that has the field and the path of its names."""
    for key, item in value.items():
        field = struct.fields.get(key)
        if field is None or item is None:
            continue
        names = (*path, field.embedded, key) if field.embedded else (*path, key)
        yield from _wrong_in(struct, field, item, names)


def _wrong_in(parent: TypeStruct, field: TypeField, value: Any, path: tuple[str, ...]) -> Iterator[Wrong]:
    if field.struct is not None and isinstance(value, dict):
        yield from _wrong(field.struct, value, path)
    elif field.item is not None and isinstance(value, list if field.kind is FieldKind.LIST else dict):
        for element in value if isinstance(value, list) else value.values():
            if element is not None:
                yield from _wrong_in(parent, field.item, element, path)
    else:
        try:
            field.decode(field, value, [])
        except _WrongType:
            yield parent, path, field, value


_JSON_NAMES = {str: "string", int: "number", float: "number", bool: "bool", list: "array", dict: "object"}


def _go_error(parent: TypeStruct, path: tuple[str, ...], field: TypeField, value: Any) -> str:
    where = f"Go struct field {parent.name}.{'.'.join(path)}"
    return _unreadable(field, value) or _cannot_unmarshal(field, value, where)


def _cannot_unmarshal(field: TypeField, value: Any, where: str) -> str:
    found = _JSON_NAMES[type(value)]
    if found == "number" and field.kind in (FieldKind.INTEGER, FieldKind.INT_OR_STRING):
        found += f" {value}"
    return f"json: cannot unmarshal {found} into {where} of type {field.go_type}"


def _unreadable(field: TypeField, value: Any) -> str:
    """The complaint of types that read their text themselves; empty for all others."""
    if field.kind is FieldKind.QUANTITY:
        return QUANTITY_ERROR
    if not isinstance(value, str):
        return ""
    if field.kind in (FieldKind.TIME, FieldKind.MICRO_TIME):
        layout = "2006-01-02T15:04:05" + (".000000" if field.kind is FieldKind.MICRO_TIME else "") + "Z07:00"
        if (part := _out_of_range(value)) is not None:
            return f'parsing time "{value}": {part} out of range'
        return f'parsing time "{value}" as "{layout}": cannot parse "{value}" as "2006"'
    return f"illegal base64 data at input byte {_bad_base64(value)}" if field.kind is FieldKind.BYTES else ""


def _out_of_range(text: str) -> str | None:
    """The first part of what looks like a time that no moment has."""
    if not _looks_like_time(text):
        return None
    year, month, day, hour, minute, second = (int(text[at : at + 2]) for at in (2, 5, 8, 11, 14, 17))
    if not 1 <= month <= 12:
        return "month"
    if not 1 <= day <= monthrange(100 * int(text[:2]) + year or 4, month)[1]:
        return "day"
    return next(
        (
            name
            for name, value, end in (("hour", hour, 24), ("minute", minute, 60), ("second", second, 60))
            if value >= end
        ),
        None,
    )


_GO_NAMES = {str: "string", int: "int64", float: "float64", bool: "bool", list: "slice", dict: "map"}


def _restore_error(field: TypeField, value: Any) -> str:
    """The same complaint from where the server turns a patched map back into a struct."""
    found = _GO_NAMES[type(value)]
    match field.kind:
        case FieldKind.STRUCT:
            return f"cannot restore struct from: {found}"
        case FieldKind.LIST | FieldKind.MAP:
            return f"cannot restore {'slice' if field.kind is FieldKind.LIST else 'map'} from {found}"
        case FieldKind.QUANTITY | FieldKind.TIME | FieldKind.MICRO_TIME | FieldKind.BYTES | FieldKind.INT_OR_STRING:
            return _unreadable(field, value) or _cannot_unmarshal(field, value, "Go value")
    if isinstance(value, str):
        return f"unrecognized type: {field.go_type}"
    return f"cannot convert {found} to {field.go_type}"


_SCHEMA_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array", dict: "object"}
_WANTED_NAMES = {
    FieldKind.STRUCT: "object", FieldKind.MAP: "object", FieldKind.LIST: "array", FieldKind.STRING: "string",
    FieldKind.INTEGER: "integer", FieldKind.NUMBER: "number", FieldKind.BOOLEAN: "boolean", FieldKind.TIME: "string",
}  # fmt: skip


def _custom_error(kind: Kind, doc: Doc, path: tuple[str, ...], field: TypeField, value: Any) -> Invalid:
    where, found, wanted = ".".join(path), _SCHEMA_NAMES[type(value)], _WANTED_NAMES.get(field.kind, "string")
    message = f'Invalid value: "{found}": {where} in body must be of type {wanted}: "{found}"'
    metadata = doc.get("metadata")
    name = metadata.get("name", "") if isinstance(metadata, dict) else ""
    details = {
        "name": name,
        "group": kind.group,
        "kind": kind.kind,
        "causes": [{"reason": "FieldValueTypeInvalid", "message": message, "field": where}],
    }
    return Invalid(f'{kind.kind}.{kind.group} "{name}" is invalid: {where}: {message}', details=details)
