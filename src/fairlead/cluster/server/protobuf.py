"""Kubernetes' protobuf bodies as documents: stock clients send built-in kinds this way and take JSON for an answer.

The wire format has field numbers and no names; a generated table (data/wire.json.gz) supplies names and types. Types
with a JSON form of their own (times, quantities, int-or-string, raw extensions) are turned into it here. What comes out
is then decoded and checked like any JSON body; empty values that Go always writes are dropped there.
"""

from __future__ import annotations

import base64
import gzip
import struct
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import orjson

from fairlead.core.model.times import timestamp

if TYPE_CHECKING:
    from fairlead.core.model.flow import Doc

MAGIC = b"k8s\0"
MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
DEEPEST = 64
_META = "k8s.io.apimachinery.pkg.apis.meta.v1"

Fields = dict[int, tuple[str, str, str]]
Value = int | bytes


def decode_protobuf(raw: bytes) -> Doc:
    """The document in a protobuf body. Raises ValueError for anything that is none."""
    if not raw.startswith(MAGIC):
        raise ValueError("no protobuf envelope")
    envelope = dict(_wire(raw[len(MAGIC) :]))
    type_meta = {number: _bytes(value).decode() for number, value in _wire(_bytes(envelope.get(1, b"")))}
    api_version, kind = type_meta.get(1, ""), type_meta.get(2, "")
    message = _message_name(api_version, kind)
    if message not in _table():
        raise ValueError(f'no protobuf type is known for kind "{kind}" in version "{api_version}"')
    doc = _decoded(message, _bytes(envelope.get(2, b"")), 0)
    return {"apiVersion": api_version, "kind": kind, **doc}


@cache
def _table() -> dict[str, Fields]:
    packed = files("fairlead.cluster").joinpath("data/wire.json.gz").read_bytes()
    messages = orjson.loads(gzip.decompress(packed))["messages"]
    return {
        name: {int(number): (field[0], field[1], field[2]) for number, field in fields.items()}
        for name, fields in messages.items()
    }


def _message_name(api_version: str, kind: str) -> str:
    if kind == "DeleteOptions":
        return f"{_META}.DeleteOptions"
    group, _, version = api_version.rpartition("/")
    return f"k8s.io.api.{group.partition('.')[0] or 'core'}.{version}.{kind}"


def _decoded(message: str, raw: bytes, depth: int) -> Doc:
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    fields = _table()[message]
    doc: Doc = {}
    for number, value in _wire(raw):
        if number in fields:
            _add(doc, fields[number], value, depth)
    return doc


def _add(doc: Doc, field: tuple[str, str, str], value: Value, depth: int) -> None:
    name, type_, many = field
    if many == "inline":
        doc.update(_decoded(type_, _bytes(value), depth + 1))
    elif many == "map":
        entry = dict(_wire(_bytes(value)))
        empty: Value = 0 if type_ in ("bool", "int32", "int64") else b""
        doc.setdefault(name, {})[_bytes(entry.get(1, b"")).decode()] = _value(type_, entry.get(2, empty), depth)
    elif many == "many":
        doc.setdefault(name, []).append(_value(type_, value, depth))
    else:
        doc[name] = _value(type_, value, depth)


def _value(type_: str, value: Value, depth: int) -> Any:
    convert = _CONVERSIONS.get(type_)
    return _decoded(type_, _bytes(value), depth + 1) if convert is None else convert(value)


# -- values ------------------------------------------------------------------------------------------------------------


def _bytes(value: Value) -> bytes:
    if not isinstance(value, bytes):
        raise ValueError("a number where bytes were expected")
    return value


def _signed(value: Value) -> int:
    if isinstance(value, bytes):
        raise ValueError("bytes where a number was expected")
    return value - 2**64 if value >= 2**63 else value


def _text(value: Value) -> str:
    return _bytes(value).decode()


def _numbers(value: Value) -> dict[int, int]:
    return {number: _signed(part) for number, part in _wire(_bytes(value)) if isinstance(part, int)}


def _time(value: Value) -> str | None:
    parts = _numbers(value)
    return timestamp(parts.get(1, 0)) if parts else None


def _micro_time(value: Value) -> str | None:
    parts = _numbers(value)
    return f"{timestamp(parts.get(1, 0))[:-1]}.{parts.get(2, 0) // 1000:06d}Z" if parts else None


def _quantity(value: Value) -> str:
    return next((_text(part) for number, part in _wire(_bytes(value)) if number == 1), "0")


def _int_or_string(value: Value) -> int | str:
    parts = dict(_wire(_bytes(value)))
    return _text(parts.get(3, b"")) if parts.get(1) else _signed(parts.get(2, 0))


def _raw_json(value: Value) -> Any:
    raw = next((_bytes(part) for number, part in _wire(_bytes(value)) if number == 1), b"")
    return orjson.loads(raw) if raw else None


_CONVERSIONS: dict[str, Callable[[Value], Any]] = {
    "string": _text,
    "bool": lambda value: bool(_signed(value)),
    "int32": _signed,
    "int64": _signed,
    "bytes": lambda value: base64.b64encode(_bytes(value)).decode(),
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
    f"{_META}.FieldsV1": _raw_json,
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
}


# -- the wire ----------------------------------------------------------------------------------------------------------


def _wire(raw: bytes) -> Iterator[tuple[int, Value]]:
    """Field numbers and values of a message, in order."""
    position, end = 0, len(raw)
    while position < end:
        tag, position = _varint(raw, position)
        match tag & 7:
            case 0:
                value, position = _varint(raw, position)
                yield tag >> 3, value
            case 2:
                size, position = _varint(raw, position)
                if position + size > end:
                    raise ValueError("unexpected end of the message")
                yield tag >> 3, raw[position : position + size]
                position += size
            case 1 | 5 as width:
                size = 8 if width == 1 else 4
                if position + size > end:
                    raise ValueError("unexpected end of the message")
                (number,) = struct.unpack_from("<Q" if size == 8 else "<I", raw, position)
                yield tag >> 3, number
                position += size
            case other:
                raise ValueError(f"wire type {other} is not used by Kubernetes")


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    result = shift = 0
    while True:
        if position >= len(raw) or shift > 63:
            raise ValueError("unexpected end of a number")
        byte = raw[position]
        position += 1
        result |= (byte & 0x7F) << shift
        if byte < 0x80:
            return result & (2**64 - 1), position
        shift += 7
