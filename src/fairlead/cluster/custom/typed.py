"""Values of a schema as expressions see them: fields by escaped names, texts of some formats as times and bytes.

A Reader is made once for each schema. Parts that expressions see as they are written are handed on, not copied.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from fairlead.cel.text_functions import parse_duration
from fairlead.cel.values import CelError, Duration, KeyedList, ObjectValue, SetList
from fairlead.cluster.custom.declared import RESERVED, escaped, with_meta

Schema = Mapping[str, Any]
Reader = Callable[[Any], Any]
_LONG_UNITS = {"d": 24, "w": 7 * 24}
_LONG = re.compile(r"(\d+(?:\.\d*)?)([dw])")


def reader(schema: Schema, *, root: bool = False) -> Reader:
    """The function from a value of a schema to what expressions see; it raises CelError over what cannot be read."""
    read = _reader(with_meta(schema) if root or schema.get("x-kubernetes-embedded-resource") else schema)
    return _as_is if read is None else read


def _as_is(value: Any) -> Any:
    return value


def _reader(schema: Schema) -> Reader | None:
    """None for values that are seen as they are written."""
    if schema.get("x-kubernetes-int-or-string"):
        return None
    if schema.get("x-kubernetes-embedded-resource"):
        schema = with_meta(schema)
    match schema.get("type"):
        case "object":
            return _map(schema) if isinstance(schema.get("additionalProperties"), Mapping) else _record(schema)
        case "array":
            return _list(schema)
        case "string":
            return _TEXTS.get(schema.get("format") or "")
        case "number":
            return _number
        case "integer":
            return _integer
    return None


def _map(schema: Schema) -> Reader | None:
    inner = _reader(schema["additionalProperties"])
    if inner is None:
        return None
    return lambda value: {key: None if item is None else inner(item) for key, item in value.items()}


def _record(schema: Schema) -> Reader:
    properties = schema.get("properties") or {}
    parts = [(name, escaped(name) or f" {name}", _reader(inner)) for name, inner in properties.items()]

    def read(value: Any) -> ObjectValue:
        fields: dict[str, Any] = {}
        faults: dict[str, str] = {}
        for name, known, inner in parts:
            found = value.get(name)
            if found is None:
                continue
            if inner is not None:
                try:
                    found = inner(found)
                except CelError as error:
                    faults[known] = str(error)
                    continue
            fields[known] = found
            if name in RESERVED:  # as a field it may be written both ways
                fields[name] = found
        record = ObjectValue(fields, value, properties)
        record.faults = faults
        return record

    return read


def _list(schema: Schema) -> Reader | None:
    items = schema.get("items")
    inner = _reader(items) if isinstance(items, Mapping) else None
    how = schema.get("x-kubernetes-list-type")
    keys = tuple(escaped(key) or key for key in schema.get("x-kubernetes-list-map-keys") or ())

    def read(value: Any) -> list[Any]:
        found = value if inner is None else [None if item is None else inner(item) for item in value]
        if how == "map":
            return KeyedList(found, keys)
        return SetList(found) if how == "set" else found

    return None if inner is None and how not in ("map", "set") else read


def _number(value: Any) -> float:
    return float(value)


def _integer(value: Any) -> int:
    if isinstance(value, float):
        raise CelError("invalid data, expected int, got float64")
    return int(value)


def _duration(value: str) -> Duration:
    nanos = parse_duration(value)
    if nanos is None:
        parts = _LONG.findall(value)
        if "".join(number + unit for number, unit in parts) != value or not parts:
            raise CelError(f"Invalid duration {value}: unable to parse {value} into duration")
        nanos = round(sum(float(number) * _LONG_UNITS[unit] for number, unit in parts) * 3600 * 10**9)
    return Duration(nanos)


def _date(value: str) -> datetime:
    try:
        return datetime.strptime(value, "%Y-%m-%d").replace(tzinfo=UTC)
    except ValueError:
        raise CelError(
            f'Invalid date formatted string {value}: parsing time "{value}" as "2006-01-02": cannot parse "{value}"'
            ' as "2006"'
        ) from None


def _moment(value: str) -> datetime:
    try:
        found = datetime.fromisoformat(value.upper().replace(" ", "T"))
    except ValueError:
        raise CelError(f"Invalid date-time formatted string {value}: is not a valid date-time") from None
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _bytes(value: str) -> bytes:
    try:
        return base64.b64decode(value, validate=True)
    except (ValueError, binascii.Error):
        raise CelError(f"Invalid byte formatted string {value}: illegal base64 data at input byte 0") from None


_TEXTS: Mapping[str, Reader] = {"duration": _duration, "date": _date, "date-time": _moment, "byte": _bytes}
