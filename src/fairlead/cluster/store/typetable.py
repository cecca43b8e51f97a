"""The generated schema turned into linked records: structs and their fields, ready for quick lookups.

Types refer to each other in circles, so a Struct is made empty, remembered under its name, and then filled. Only what
is requested is ever built: a process that never sees a CronJob never compiles one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

INT_RANGES = {"int32": (-(2**31), 2**31 - 1), "int64": (-(2**63), 2**63 - 1)}
QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
INT_OR_STRING = "io.k8s.apimachinery.pkg.util.intstr.IntOrString"
TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.Time"
OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
MICRO_TIME = "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime"


Decoder = Callable[["TypeField", Any, list[str]], Any]
"""Turns a JSON value into what is kept; names of unknown fields are appended to the list."""


class FieldKind(Enum):
    STRUCT = "struct"
    LIST = "list"
    MAP = "map"
    STRING = "string"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    QUANTITY = "quantity"
    INT_OR_STRING = "int-or-string"
    TIME = "time"
    MICRO_TIME = "micro-time"
    BYTES = "bytes"
    ANY = "any"

    __hash__ = object.__hash__  # members are singletons; the default hashes their names, which is slow


@dataclass(slots=True, eq=False)
class TypeStruct:
    """A type with named fields. `always` makes the values that are written even when nobody set them; `borrowed` says
    that a custom resource uses a built-in type."""

    name: str
    custom: bool = False
    borrowed: bool = False
    keeps_unknown: bool = False
    fields: dict[str, TypeField] = field(default_factory=dict)
    always: list[tuple[str, Callable[[], Any]]] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class TypeField:
    """One field: its type, how Go calls that type, and how two values of it merge in a strategic patch."""

    kind: FieldKind
    struct: TypeStruct | None = None
    item: TypeField | None = None
    go_type: str = ""
    embedded: str = ""
    omit_empty: bool = False
    nullable: bool = False
    low: int = -(2**63)
    high: int = 2**63 - 1
    merge_key: str = ""
    strategies: tuple[str, ...] = ()
    list_type: str = ""
    map_keys: tuple[str, ...] = ()
    default: Any = None
    decode: Decoder = field(default=lambda _field, value, _unknown: value)


class TypeTable:
    def __init__(self, data: dict[str, Any], decoders: Mapping[FieldKind, Decoder]) -> None:
        self._data, self._decoders = data, decoders
        self._custom = frozenset(data["custom"])
        self._structs: dict[tuple[str, bool], TypeStruct] = {}

    def of_kind(self, key: str) -> TypeStruct | None:
        name = self._data["kinds"].get(key)
        return None if name is None else self.struct(name)

    def struct(self, name: str, *, custom: bool = False) -> TypeStruct:
        """The struct of a definition such as `io.k8s.api.core.v1.PodSpec`; inside a custom resource a variant of it,
        because there values are kept as they were written."""
        custom = custom or name in self._custom
        known = self._structs.get((name, custom))
        if known is None:
            borrowed = custom and name not in self._custom
            known = TypeStruct(name.rpartition(".")[2], custom=custom, borrowed=borrowed)
            self._structs[name, custom] = known
            self._fill(known, self._data["types"][name], {} if custom else self._data["go"].get(name, {}))
        return known

    def _fill(self, struct: TypeStruct, schema: dict[str, Any], go: dict[str, str]) -> None:
        struct.keeps_unknown = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
        for name, property_schema in schema.get("properties", {}).items():
            made = self._field(property_schema, custom=struct.custom)
            _apply_go(made, go.get(name, ""))
            struct.fields[name] = made
            maker = None if struct.custom else _always(made, go.get(name, ""))
            if maker is not None:
                struct.always.append((name, maker))

    def _field(self, schema: dict[str, Any], *, custom: bool) -> TypeField:
        made = self._typed(schema, custom=custom)
        made.decode = self._decoders[made.kind]
        made.merge_key = schema.get("x-kubernetes-patch-merge-key", "")
        made.strategies = tuple(s for s in schema.get("x-kubernetes-patch-strategy", "").split(",") if s)
        made.list_type = schema.get("x-kubernetes-list-type", "")
        made.map_keys = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        made.nullable = bool(schema.get("nullable"))
        made.default = schema.get("default")
        return made

    def _typed(self, schema: dict[str, Any], *, custom: bool) -> TypeField:
        reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
        if reference:
            return self._referenced(reference.rpartition("/")[2], custom=custom)
        if schema.get("x-kubernetes-int-or-string"):
            return TypeField(FieldKind.INT_OR_STRING, go_type="int32")
        match schema.get("type"):
            case "object" if "properties" in schema:
                struct = TypeStruct("", custom=custom)
                self._fill(struct, schema, {})
                return TypeField(FieldKind.STRUCT, struct=struct)
            case "object" if isinstance(schema.get("additionalProperties"), dict):
                return TypeField(FieldKind.MAP, item=self._field(schema["additionalProperties"], custom=custom))
            case "array":
                return TypeField(FieldKind.LIST, item=self._field(schema.get("items", {}), custom=custom))
            case "string":
                return TypeField(_string_kind(schema.get("format", "")), go_type="string")
            case "integer":
                low, high = INT_RANGES[schema.get("format", "int64")]
                return TypeField(FieldKind.INTEGER, low=low, high=high, go_type=schema.get("format", "int64"))
            case "number":
                return TypeField(FieldKind.NUMBER, go_type="float64")
            case "boolean":
                return TypeField(FieldKind.BOOLEAN, go_type="bool")
        return TypeField(FieldKind.ANY)

    def _referenced(self, name: str, *, custom: bool) -> TypeField:
        if name == QUANTITY:
            return TypeField(FieldKind.INT_OR_STRING if custom else FieldKind.QUANTITY)
        if name == INT_OR_STRING:
            return TypeField(FieldKind.INT_OR_STRING, low=-(2**31), high=2**31 - 1, go_type="int32")
        if name in (TIME, MICRO_TIME):
            return TypeField(FieldKind.TIME if name == TIME else FieldKind.MICRO_TIME, go_type="string")
        if name == OBJECT_META:
            return TypeField(FieldKind.STRUCT, struct=self.struct(name))
        schema = self._data["types"][name]
        if "properties" not in schema:
            if schema.get("type") == "object" and name.endswith(("Policy", "Config")):
                return TypeField(FieldKind.STRUCT, struct=self.struct(name, custom=custom))
            return TypeField(FieldKind.ANY)
        return TypeField(FieldKind.STRUCT, struct=self.struct(name, custom=custom))


def _string_kind(wire_format: str) -> FieldKind:
    return {"date-time": FieldKind.TIME, "byte": FieldKind.BYTES}.get(wire_format, FieldKind.STRING)


def _apply_go(made: TypeField, text: str) -> None:
    """Take over what the Go declaration says: `ProbeHandler:*v1.HTTPGetAction?`."""
    if not text:
        return
    made.embedded, _, kind = text.rpartition(":")
    bare = kind.rstrip("?~")
    made.omit_empty = kind != bare and not bare.startswith("*") and made.kind is not FieldKind.STRUCT
    if made.kind in (FieldKind.STRING, FieldKind.STRUCT, FieldKind.LIST, FieldKind.MAP):
        made.go_type = bare.lstrip("*")
    element = made.item
    if element is not None and element.kind in (FieldKind.STRING, FieldKind.STRUCT):
        element.go_type = bare.removeprefix("[]").rpartition("]")[2] or element.go_type
    elif element is not None and element.kind is FieldKind.BYTES:
        element.go_type = "[]uint8"


_ZEROS: dict[FieldKind, Any] = {
    FieldKind.STRING: "", FieldKind.INTEGER: 0, FieldKind.BOOLEAN: False, FieldKind.NUMBER: 0,
}  # fmt: skip


def _always(made: TypeField, text: str) -> Callable[[], Any] | None:
    """What Go writes for a field that nobody set: the zero value of a plain type, and any struct that is no pointer."""
    kind = text.rpartition(":")[2]
    if not kind or kind.startswith("*") or kind.endswith("~"):
        return None
    if made.kind is FieldKind.STRUCT and made.struct is not None:
        inner = made.struct
        return lambda: {name: make() for name, make in inner.always}
    if kind.endswith("?") or made.kind not in _ZEROS:
        return None
    zero = _ZEROS[made.kind]
    return lambda: zero
