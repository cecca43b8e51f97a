"""Requests drawn by the OpenAPI documents that the server publishes: every kind, every field, mostly of the right type.

Bodies written by hand (requests.py) reach a few kinds well. Here each field of a document is drawn by its schema, so
that conversions and checks of rare fields are reached too, with a wrong type in some places.
"""

from __future__ import annotations

from typing import Any

import orjson

from fairlead.cluster.server.openapi import OpenApi
from fairlead.cluster.store.store import Store
from fairlead.core.model.kinds import Kind, served_kinds
from tests.support.fuzz.requests import Fuzz, strange

_DEEPEST = 9
_QUANTITIES = ("1", "100m", "1Gi", "0", "-1", "a", "", "1e400", "9" * 60, "1.5.5", "\uff10")
_TEXTS = (
    "a", "b", "app", "", "x" * 70, "Always", "None", "ä", "a/b", "1", "80%", "kubernetes.io/x", "127.0.0.1",
    "*/5 * * * *",
)  # fmt: skip
_TIMES = ("2024-01-01T00:00:00Z", "2024-01-01T00:00:00.000000Z", "", "x", "2024-02-31T00:00:00Z")
_NUMBERS = (0, 1, 2, 5, 80, -1, 2**31 - 1, 2**31, 2**63 - 1)


class DrawnFuzz(Fuzz):
    def __init__(self, seed: int, store: Store) -> None:
        super().__init__(seed)
        documents = OpenApi(store.registry)
        self._schemas: dict[str, Any] = {}
        for path in orjson.loads(documents.v3_index())["paths"]:
            found = orjson.loads(documents.v3(path) or b"{}")
            self._schemas |= (found.get("components") or {}).get("schemas") or {}
        self._of_kind: dict[tuple[str, str, str], Any] = {}
        for schema in self._schemas.values():
            for one in schema.get("x-kubernetes-group-version-kind") or ():
                self._of_kind[one["group"], one["version"], one["kind"]] = schema
        self._kinds = served_kinds()

    def kind(self) -> Kind:
        return self.rng.choice(self._kinds)

    def document(self, kind: Kind, name: str, namespace: str) -> dict[str, Any]:
        doc = super().document(kind, name, namespace)
        schema = self._of_kind.get((kind.group, kind.version, kind.kind))
        drawn = self._draw(schema, 0) if schema is not None else {}
        if not isinstance(drawn, dict):
            return doc
        for field in ("apiVersion", "kind", "metadata"):
            drawn.pop(field, None)
        merges = self.rng.random() < 0.5
        return doc | (_merged(doc, drawn) if merges else drawn)

    def _draw(self, schema: Any, depth: int) -> Any:
        rng = self.rng
        if rng.random() < 0.015:
            return strange(rng)
        schema, name = self._resolved(schema)
        if name.endswith("Quantity"):
            return rng.choice(_QUANTITIES[:3]) if rng.random() < 0.8 else rng.choice(_QUANTITIES)
        if schema.get("x-kubernetes-int-or-string") or name.endswith("IntOrString"):
            return rng.choice((1, "50%", "http", 0, -1, "x%"))
        if "enum" in schema:
            return rng.choice(schema["enum"])
        match schema.get("type"):
            case "object":
                return self._object(schema, depth)
            case "array":
                return [self._draw(schema.get("items") or {}, depth + 1) for _ in range(rng.choice((0, 1, 1, 2)))]
            case "integer" | "number":
                return rng.choice(_NUMBERS[:4]) if rng.random() < 0.7 else rng.choice(_NUMBERS)
            case "boolean":
                return rng.random() < 0.5
            case "string":
                return rng.choice(_TIMES) if "date-time" in str(schema.get("format")) else rng.choice(_TEXTS)
        return rng.choice(("a", 1, {}, [], {"a": "b"}))

    def _object(self, schema: Any, depth: int) -> dict[str, Any]:
        rng = self.rng
        made: dict[str, Any] = {}
        required = schema.get("required") or ()
        share = 0.9 if depth == 0 else 0.4 if depth < 4 else 0.2
        for field, below in (schema.get("properties") or {}).items():
            if depth < _DEEPEST and (rng.random() < share or (field in required and rng.random() < 0.97)):
                made[field] = self._draw(below, depth + 1)
        further = schema.get("additionalProperties")
        if isinstance(further, dict) and depth < _DEEPEST:
            for _ in range(rng.choice((0, 1, 2))):
                made[rng.choice(_TEXTS)] = self._draw(further, depth + 1)
        return made

    def _resolved(self, schema: Any) -> tuple[Any, str]:
        """A schema without references, and the name under which it was found last."""
        name = ""
        for _ in range(5):
            if "$ref" in schema:
                name = schema["$ref"].rpartition("/")[2]
                schema = self._schemas.get(name) or {}
            elif len(schema.get("allOf") or ()) == 1:
                schema = schema["allOf"][0]
            else:
                break
        return schema, name


def _merged(base: Any, more: Any) -> dict[str, Any]:
    made = dict(base)
    for key, value in more.items():
        known = made.get(key)
        made[key] = _merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return made
