"""What a structural schema declares to expressions: types with fields, and the sizes that its limits allow.

A schema that declares no type (a value of unknown form) is not there for expressions. Sizes that no limit bounds are
what fits into a request.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fairlead.cel import types as t
from fairlead.cel.sizes import CostRange
from fairlead.cel.types import Type

Schema = Mapping[str, Any]
SELF = "selfType"
"""The name of the type of `self`. (The original appends a number that is another one each time.)"""
LARGEST_REQUEST = 3 * 1024 * 1024
RESERVED = frozenset({
    "true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if", "import", "let",
    "loop", "package", "namespace", "return", "var", "void", "while",
})  # fmt: skip
_NAME = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*")
_ESCAPED = re.compile(r"__|[-./]")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}
_TIMES = {"duration": (t.Type("duration"), 3, 32), "date": (t.Type("timestamp"), 12, 12),
          "date-time": (t.Type("timestamp"), 21, 32)}  # fmt: skip
"""Formats of texts that are no texts to expressions: type, least size as JSON, most characters."""


@dataclass(frozen=True, slots=True, eq=False)
class Declared:
    """A type with the sizes of its values."""

    type: Type
    least: int
    """Bytes of the smallest value as JSON."""
    most: int = 0
    """Characters, elements or entries of the largest."""
    fields: Mapping[str, Declared] = field(default_factory=dict)
    items: Declared | None = None

    def field_types(self) -> dict[str, dict[str, Type]]:
        """The fields of every object type in it, by the type's name."""
        found: dict[str, dict[str, Type]] = {}
        self._collect(found)
        return found

    def size_of(self, path: Sequence[str]) -> CostRange | None:
        """The size of what a path from `self` leads to."""
        if not path:
            return None
        part: Declared | None = self
        for step in path[1:]:
            assert part is not None
            if step == "@keys":
                part = _KEY if part.type.name == "map" else None
            else:
                part = part.items if step in ("@items", "@values") else part.fields.get(step)
            if part is None:
                return None
        assert part is not None
        return CostRange(0, part.most)

    def _collect(self, found: dict[str, dict[str, Type]]) -> None:
        if self.items is not None:
            self.items._collect(found)
        elif self.type.name.startswith(SELF):
            types = {name: one.type for name, one in self.fields.items()}
            plain = {name.removeprefix("__").removesuffix("__"): kind for name, kind in types.items()}
            found[self.type.name] = {**{name: plain[name] for name in plain.keys() & RESERVED}, **types}
            for one in self.fields.values():
                one._collect(found)


_KEY = Declared(t.STRING, 2)


def escaped(name: str) -> str | None:
    """A field's name as expressions write it; None if they cannot."""
    if name in RESERVED:
        return f"__{name}__"
    if not _NAME.fullmatch(name):
        return None
    return _ESCAPED.sub(lambda found: _ESCAPES[found[0]], name)


def with_meta(schema: Schema) -> Schema:
    """The schema of a resource, in which expressions see the kind and the name and no other metadata."""
    text = {"type": "string"}
    meta = {"type": "object", "properties": {"name": text, "generateName": text}}
    properties = {**(schema.get("properties") or {}), "kind": text, "apiVersion": text, "metadata": meta}
    return {**schema, "properties": properties}


def declared(schema: Schema, name: str = SELF, *, root: bool = False) -> Declared | None:
    """What a schema declares, None if nothing; `root` if it is the schema of a resource."""
    if schema.get("x-kubernetes-int-or-string"):
        return Declared(t.DYN, 1, _longest_text(schema, LARGEST_REQUEST - 2))
    if root:
        schema = with_meta(schema)
    match schema.get("type"):
        case "array":
            return _array(schema, name)
        case "object":
            return _object(schema, name)
        case "string":
            return _text(schema)
        case "boolean":
            return Declared(t.BOOL, 4)
        case "number":
            return Declared(t.DOUBLE, 1)
        case "integer":
            return Declared(t.INT, 1)
    return None


def _inner(schema: Any, name: str) -> Declared | None:
    if not isinstance(schema, Mapping):
        return None
    return declared(schema, name, root=bool(schema.get("x-kubernetes-embedded-resource")))


def _array(schema: Schema, name: str) -> Declared | None:
    items = _inner(schema.get("items"), f"{name}.@idx")
    if items is None:
        return None
    most = schema.get("maxItems")
    most = (LARGEST_REQUEST - 2) // (items.least + 1) if most is None else max(0, most)
    return Declared(t.list_of(items.type), 2, most, items=items)


def _object(schema: Schema, name: str) -> Declared | None:
    if isinstance(schema.get("additionalProperties"), Mapping):
        values = _inner(schema["additionalProperties"], f"{name}.@elem")
        if values is None:
            return None
        most = schema.get("maxProperties")
        most = (LARGEST_REQUEST - 2) // (values.least + 6) if most is None else max(0, most)
        return Declared(t.map_of(t.STRING, values.type), 2, most, items=values)
    fields: dict[str, Declared] = {}
    required, least = frozenset(schema.get("required") or ()), 2
    for key, inner in (schema.get("properties") or {}).items():
        known = escaped(key)
        found = _inner(inner, f"{name}.{known}")
        if found is None:
            continue
        if known is not None:
            fields[known] = found
        if key in required and inner.get("default") is None:
            least += len(key.encode()) + found.least + 4
    return Declared(Type(name), least, fields=fields)


def _text(schema: Schema) -> Declared:
    wire_format = schema.get("format")
    if wire_format in _TIMES:
        return Declared(*_TIMES[wire_format])
    if wire_format == "byte":
        longest = schema.get("maxLength")
        return Declared(t.BYTES, 2, LARGEST_REQUEST - 2 if longest is None else max(0, longest))
    otherwise = LARGEST_REQUEST - 2
    if schema.get("enum"):
        otherwise = max(len(value.encode()) if isinstance(value, str) else 0 for value in schema["enum"])
    return Declared(t.STRING, 2, _longest_text(schema, otherwise))


def _longest_text(schema: Schema, otherwise: int) -> int:
    """The bytes of the longest text: a character may have four."""
    longest = schema.get("maxLength")
    return otherwise if longest is None else 4 * max(0, longest)
