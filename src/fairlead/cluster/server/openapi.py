"""OpenAPI v2 and v3 of the kinds we serve: as much as kubectl reads of it.

kubectl validates manifests, finds merge keys for `apply`, asks whether the server checks fields by itself, and explains
fields. For that it needs the component schemas with their extensions, and for each kind the operations with their
group, version, kind and query parameters. Both documents are made from the generated table, with our own descriptions
of what scheduling reads, and from the schemas of defined kinds. They are kept until the set of kinds changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from hashlib import sha512
from typing import TYPE_CHECKING, Any

import orjson

from fairlead import __version__
from fairlead.cluster.server.descriptions import described
from fairlead.cluster.store.patch import accepted_patch_types
from fairlead.cluster.store.schema import schema_data
from fairlead.core.model.flow import PatchType

if TYPE_CHECKING:
    from fairlead.core.model.kinds import Kind, Registry

Json = dict[str, Any]

PROTOBUF_V2 = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf"
V2_IN_PROTOBUF = b"\n\x032.0\x12\x12\n\nKubernetes\x12\x041.36"
"""Swagger's version, a title and its version, and no kinds. kubectl requests this form only about a kind that v3 does
not have, to say in the end that there is no such kind; JSON in its place would be an error about bytes."""

_V3_PREFIX, _V2_PREFIX = "#/components/schemas/", "#/definitions/"
_TITLE = {"title": "Kubernetes"}
_WRITE_PARAMETERS = ("dryRun", "fieldManager", "fieldValidation")
_LIST_PARAMETERS = (
    "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
    "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
)  # fmt: skip
_TYPES = {"allowWatchBookmarks": "boolean", "limit": "integer", "sendInitialEvents": "boolean",
          "timeoutSeconds": "integer", "watch": "boolean", "force": "boolean"}  # fmt: skip


class OpenApi:
    """The documents of a Registry, made when first requested."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._generation = registry.generation
        self._made: dict[str, bytes | None] = {}

    def v2(self) -> bytes:
        return self._kept("v2", lambda: openapi_v2(self._registry)) or b""

    def v3_index(self) -> bytes:
        return self._kept("v3", lambda: openapi_v3_index(self._registry)) or b""

    def v3(self, group_version: str) -> bytes | None:
        if group_version not in _by_path(self._registry):
            return None
        return self._kept("v3/" + group_version, lambda: openapi_v3(self._registry, group_version))

    def _kept(self, name: str, make: Callable[[], bytes | None]) -> bytes | None:
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._made.clear()
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]


def openapi_v3_index(registry: Registry) -> bytes:
    """The list of documents, one per group and version, each with a hash that changes with its content."""
    paths = {}
    for group_version, kinds in _by_path(registry).items():
        content = [schema_data()["version"], __version__]
        content += [[kind.kind, kind.definition and kind.definition.schema] for kind in kinds]
        digest = sha512(orjson.dumps(content)).hexdigest().upper()
        paths[group_version] = {"serverRelativeURL": f"/openapi/v3/{group_version}?hash={digest}"}
    return orjson.dumps({"paths": paths})


def openapi_v3(registry: Registry, group_version: str) -> bytes | None:
    """The document of `api/v1` or `apis/apps/v1`; None when that is not served."""
    kinds = _by_path(registry).get(group_version)
    if kinds is None:
        return None
    schemas = _schemas(kinds)
    document = {
        "openapi": "3.0.0",
        "info": {**_TITLE, "version": schema_data()["version"]},
        "paths": {path: item for kind in kinds for path, item in _paths_v3(kind).items()},
        "components": {"schemas": schemas},
    }
    return orjson.dumps(document)


def openapi_v2(registry: Registry) -> bytes:
    """The one document of all kinds, in the older dialect."""
    kinds = list(registry)
    definitions = _reachable({_definition(kind) for kind in kinds}) | {
        _definition(k): _open(k) for k in _unknown(kinds)
    }
    document = {
        "swagger": "2.0",
        "info": {**_TITLE, "version": schema_data()["version"]},
        "paths": {path: item for kind in kinds for path, item in _paths_v2(kind).items()},
        "definitions": {name: _as_v2(schema) for name, schema in definitions.items()},
    }
    return orjson.dumps(document)


def _by_path(registry: Registry) -> dict[str, list[Kind]]:
    served: dict[str, list[Kind]] = defaultdict(list)
    for kind in registry:
        served[("apis/" if kind.group else "api/") + kind.api_version].append(kind)
    return dict(served)


# -- schemas ----------------------------------------------------------------------------------------------------------


def _definition(kind: Kind) -> str:
    """The name of a kind's schema; for kinds outside the table as custom resources are named."""
    known = schema_data()["kinds"].get(f"{kind.api_version}/{kind.kind}")
    return known or ".".join([*reversed(kind.group.split(".")), kind.version, kind.kind])


def _schemas(kinds: list[Kind]) -> dict[str, Json]:
    return _reachable({_definition(kind) for kind in kinds}) | {
        _definition(kind): _open(kind) for kind in _unknown(kinds)
    }


def _unknown(kinds: list[Kind]) -> list[Kind]:
    return [kind for kind in kinds if _definition(kind) not in schema_data()["types"]]


def _open(kind: Kind) -> Json:
    """The schema of a kind that the table does not have: as its definition has it, or anything."""
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    if kind.definition is not None:
        schema = dict(kind.definition.schema)
        own = schema.get("properties") or {}
        common = {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"allOf": [{"$ref": _V3_PREFIX + _OBJECT_META}]},
        }
        return {**schema, "properties": {**own, **common}, "x-kubernetes-group-version-kind": [gvk]}
    return {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
        "x-kubernetes-group-version-kind": [gvk],
    }


def _reachable(names: set[str]) -> dict[str, Json]:
    types = schema_data()["types"]
    found: dict[str, Json] = {}
    todo = {name for name in names if name in types} | {_status_name(), _DELETE_OPTIONS, _OBJECT_META}
    while todo:
        name = todo.pop()
        found[name] = described(name, types[name])
        todo |= _references(types[name]) - found.keys()
    return dict(sorted(found.items()))


_OBJECT_META = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_DELETE_OPTIONS = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"


def _status_name() -> str:
    return "io.k8s.apimachinery.pkg.apis.meta.v1.Status"


def _references(node: Any) -> set[str]:
    if isinstance(node, dict):
        reference = node.get("$ref")
        own = {reference.removeprefix(_V3_PREFIX)} if isinstance(reference, str) else set()
        return own.union(*map(_references, node.values()))
    return set().union(*map(_references, node)) if isinstance(node, list) else set()


_NOT_IN_V2 = ("default", "nullable", "anyOf", "not", "oneOf", "x-kubernetes-validations")


def _as_v2(schema: Json) -> Json:
    """The older dialect: references elsewhere, no `allOf` around them, no alternatives, no defaults."""
    if parts := schema.get("allOf"):
        rest = {key: value for key, value in schema.items() if key not in ("allOf", "default")}
        return _as_v2(rest | parts[0]) if len(parts) == 1 else {}
    if "oneOf" in schema:
        return {"type": "string"} | {key: value for key, value in schema.items() if key == "format"}
    if schema.get("x-kubernetes-preserve-unknown-fields") and "x-kubernetes-group-version-kind" not in schema:
        return {key: value for key, value in schema.items() if key in ("type", "description")}
    out = {key: value for key, value in schema.items() if key not in _NOT_IN_V2}
    if isinstance(out.get("$ref"), str):
        out["$ref"] = out["$ref"].replace(_V3_PREFIX, _V2_PREFIX)
    if isinstance(out.get("properties"), dict):
        out["properties"] = {name: _as_v2(inner) for name, inner in out["properties"].items()}
    for inside in ("items", "additionalProperties"):
        if isinstance(out.get(inside), dict):
            out[inside] = _as_v2(out[inside])
    return out


# -- paths ------------------------------------------------------------------------------------------------------------


def _operation(kind: Kind, verb: str, action: str) -> Json:
    gvk = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    tag = f"{(kind.group or 'core').split('.')[0]}_{kind.version}"
    return {
        "operationId": f"{action}{kind.kind}{kind.version}{(kind.group or 'core').replace('.', '')}{verb}",
        "tags": [tag],
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": gvk,
    }


def _patches(kind: Kind) -> list[str]:
    """The dialects of PATCH. kubectl apply chooses by this: strategic merging where it is served."""
    return [*accepted_patch_types(kind), PatchType.APPLY.value]


def _urls(kind: Kind) -> tuple[str, str, list[str]]:
    """Collection, object, and the parameters in the path of the collection."""
    if not kind.namespaced:
        return kind.path(), kind.path(name="{name}"), []
    return kind.path("{namespace}"), kind.path("{namespace}", "{name}"), ["namespace"]


def _paths_v3(kind: Kind) -> dict[str, Json]:
    collection, single, names = _urls(kind)
    reference = {"$ref": _V3_PREFIX + _definition(kind)}
    answer = {"200": {"description": "OK", "content": {"application/json": {"schema": reference}}}}

    def operation(verb: str, action: str, parameters: tuple[str, ...], body: Json | None = None) -> Json:
        made = _operation(kind, verb, action) | {"responses": answer}
        made["parameters"] = [_parameter_v3(name) for name in parameters]
        if body is not None:
            made["requestBody"] = {"required": True, "content": body}
        return made

    whole = {"*/*": {"schema": reference}}
    patch = {one: {"schema": {"type": "object"}} for one in _patches(kind)}
    paths: dict[str, Json] = {
        collection: {
            "parameters": [_path_parameter_v3(name) for name in names],
            "get": operation("list", "list", _LIST_PARAMETERS),
            "post": operation("create", "post", _WRITE_PARAMETERS, whole),
        },
        single: {
            "parameters": [_path_parameter_v3(name) for name in (*names, "name")],
            "get": operation("read", "get", ()),
            "put": operation("replace", "put", _WRITE_PARAMETERS, whole),
            "patch": operation("patch", "patch", (*_WRITE_PARAMETERS, "force"), patch),
            "delete": operation("delete", "delete", ("dryRun", "gracePeriodSeconds", "propagationPolicy")),
        },
    }
    if kind.namespaced:
        paths[kind.path()] = {"get": operation("listAll", "list", _LIST_PARAMETERS)}
    return paths


def _parameter_v3(name: str) -> Json:
    return {"name": name, "in": "query", "schema": {"type": _TYPES.get(name, "string"), "uniqueItems": True}}


def _path_parameter_v3(name: str) -> Json:
    return {"name": name, "in": "path", "required": True, "schema": {"type": "string", "uniqueItems": True}}


def _paths_v2(kind: Kind) -> dict[str, Json]:
    out: dict[str, Json] = {}
    for path, item in _paths_v3(kind).items():
        out[path] = {
            key: _parameters_v2(value) if key == "parameters" else _operation_v2(kind, value)
            for key, value in item.items()
        }
    return out


def _parameters_v2(parameters: list[Json]) -> list[Json]:
    return [{**{k: v for k, v in one.items() if k != "schema"}, **one["schema"]} for one in parameters]


def _operation_v2(kind: Kind, operation: Json) -> Json:
    reference = {"$ref": _V2_PREFIX + _definition(kind)}
    out = {key: value for key, value in operation.items() if key not in ("requestBody", "responses", "parameters")}
    out["parameters"] = _parameters_v2(operation["parameters"])
    if "requestBody" in operation:
        schema = {"type": "object"} if operation["x-kubernetes-action"] == "patch" else reference
        out["parameters"].append({"name": "body", "in": "body", "required": True, "schema": schema})
    if operation["x-kubernetes-action"] == "patch":
        out["consumes"] = _patches(kind)
    return out | {"responses": {"200": {"description": "OK", "schema": reference}}}
