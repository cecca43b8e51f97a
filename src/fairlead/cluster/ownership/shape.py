"""How an object's type divides into fields that different writers may own.

A granular object is owned member by member, a list with keys item by item, a set value by value; everything else is
owned as one piece. The schemas say which is which, and where there is none, objects are granular and lists are not.
"""

from __future__ import annotations

from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Any

from fairlead.cluster.store.schema import raw_schema, schema_data

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind


class Division(Enum):
    """What a value is divided into."""

    MEMBERS = "members"
    ITEMS = "items"
    VALUES = "values"
    NOTHING = "nothing"


class TypeShape:
    """One node of a type. `of(value)` also judges the value: only an object has members, only a list has items."""

    __slots__ = ("_items", "_members", "_others", "_schema", "atomic", "defaults", "keys", "list_type", "open")

    def __init__(self, schema: dict[str, Any]) -> None:
        self._schema = schema
        self._members: dict[str, TypeShape] = {}
        self._items: TypeShape | None = None
        self._others: TypeShape | None = None
        self.atomic = schema.get("x-kubernetes-map-type") == "atomic"
        self.list_type: str = schema.get("x-kubernetes-list-type", "atomic")
        self.keys: tuple[str, ...] = tuple(schema.get("x-kubernetes-list-map-keys", ()))
        self.open = not schema.get("properties") and not isinstance(schema.get("additionalProperties"), dict)
        properties = _resolved(schema.get("items") or {}).get("properties") or {}
        self.defaults = {key: properties[key]["default"] for key in self.keys if "default" in properties.get(key, {})}

    def divides(self, value: Any) -> Division:
        if isinstance(value, dict):
            return Division.NOTHING if self.atomic else Division.MEMBERS
        if isinstance(value, list):
            if self.list_type == "map" and all(isinstance(item, dict) for item in value):
                return Division.ITEMS
            return Division.VALUES if self.list_type == "set" else Division.NOTHING
        return Division.NOTHING

    def member(self, name: str) -> TypeShape:
        found = self._members.get(name)
        if found is None:
            schema = (self._schema.get("properties") or {}).get(name)
            if schema is None:
                return self._other()
            found = self._members[name] = shape_of_schema(schema)
        return found

    def item(self) -> TypeShape:
        if self._items is None:
            self._items = shape_of_schema(self._schema.get("items") or {})
        return self._items

    def declares(self, name: str) -> bool:
        return (
            self.open
            or name in (self._schema.get("properties") or {})
            or isinstance(self._schema.get("additionalProperties"), dict)
            or bool(self._schema.get("x-kubernetes-preserve-unknown-fields"))
        )

    def _other(self) -> TypeShape:
        if self._others is None:
            others = self._schema.get("additionalProperties")
            self._others = shape_of_schema(others) if isinstance(others, dict) else ANYTHING
        return self._others


_ANY_OBJECT = "io.k8s.apimachinery.pkg.runtime.RawExtension"
"""Whatever an object holds for somebody else: it has one owner as a whole."""


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with what it refers to; what it says itself wins."""
    reference = schema.get("$ref") or next((part.get("$ref") for part in schema.get("allOf", ())), None)
    if reference is None:
        return schema
    types: dict[str, dict[str, Any]] = schema_data()["types"]
    own = {key: value for key, value in schema.items() if key.startswith("x-kubernetes")}
    name = reference.rpartition("/")[2]
    if name == _ANY_OBJECT:
        own = {"x-kubernetes-map-type": "atomic", **own}
    return types[name] | own


def shape_of_schema(schema: dict[str, Any]) -> TypeShape:
    return TypeShape(_resolved(schema))


ANYTHING = TypeShape({})


@cache
def _built_in(kind: Kind) -> TypeShape:
    schema = raw_schema(kind)
    return ANYTHING if schema is None else TypeShape(schema)


def shape_of(kind: Kind) -> TypeShape:
    """The type of a kind's objects."""
    if kind.definition is None:
        return _built_in(kind)
    schema = kind.definition.schema
    return TypeShape({**schema, "properties": {**(schema.get("properties") or {}), **_OF_EVERY_OBJECT}})


_OF_EVERY_OBJECT = {
    "apiVersion": {"type": "string"}, "kind": {"type": "string"},
    "metadata": {"$ref": "#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"},
}  # fmt: skip
