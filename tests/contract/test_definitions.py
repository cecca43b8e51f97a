"""Kinds that users define: schemas, defaults, pruning, rules, subresources, versions, and their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from copy import deepcopy
from typing import Any

import pytest

from fairlead.client.port import Query
from fairlead.cluster.store.store import StoreApi
from fairlead.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from fairlead.errors import AlreadyExists, ApiError, Invalid, NotFound
from tests.support.contract.api_under_test import ApiUnderTest

Doc = dict[str, Any]
SHARED = "shared.example.com"
SPEC: Doc = {
    "type": "object",
    "required": ["size"],
    "x-kubernetes-validations": [
        {"rule": "self.size <= self.limit", "message": "size may not exceed limit"},
        {"rule": "self.size < 100", "messageExpression": "'not for ' + self.color", "reason": "FieldValueForbidden",
         "fieldPath": ".size"},
        {"rule": "self.color == oldSelf.color", "message": "color is immutable"},
    ],
    "properties": {
        "size": {"type": "integer", "minimum": 1},
        "limit": {"type": "integer", "default": 500},
        "color": {"type": "string", "enum": ["red", "blue"], "default": "red", "maxLength": 10},
        "port": {"x-kubernetes-int-or-string": True},
        "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 9, "x-kubernetes-list-type": "set"},
        "parts": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "required": ["name"], "properties": {
                "name": {"type": "string"}, "weight": {"type": "number", "default": 1.5}}},
        },
        "maybe": {"type": "string", "nullable": True},
    },
}  # fmt: skip


def definition(group: str, *versions: Doc) -> Doc:
    names = {"plural": "things", "kind": "Thing", "shortNames": ["th"]}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": list(versions) or [version("v1")]}
    return {"metadata": {"name": f"things.{group}"}, "spec": spec}


def version(name: str, *, storage: bool = True, spec: Doc | None = None, served: bool = True) -> Doc:
    status = {"type": "object", "properties": {"size": {"type": "integer"}, "selector": {"type": "string"}}}
    schema = {"type": "object", "properties": {"spec": spec or SPEC, "status": status}}
    scale = {
        "specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size", "labelSelectorPath": ".status.selector",
    }  # fmt: skip
    return {
        "name": name,
        "served": served,
        "storage": storage,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}, "scale": scale},
        "selectableFields": [{"jsonPath": ".spec.color"}],
    }


def group_of(world: ApiUnderTest) -> str:
    return f"{world.namespace}.example.com"


async def served(world: ApiUnderTest, name: str = "v1", *, group: str = "") -> Kind:
    """The kind as this world knows it, once it is served."""
    group = group or group_of(world)
    async with asyncio.timeout(180):
        while True:
            if isinstance(world.api, StoreApi):
                found = world.api.store.registry.by_resource(group, name, "things")
                assert found is not None
                return found
            kind = Kind(group, name, "Thing", "things", subresources=frozenset({"status", "scale"}))
            try:
                await world.api.list(kind, Query(namespace=world.namespace))
            except NotFound:
                await asyncio.sleep(0.2)
                continue
            return kind


async def define(world: ApiUnderTest, *versions: Doc) -> Kind:
    await world.create(CUSTOM_RESOURCE_DEFINITION, definition(group_of(world), *versions))
    return await served(world)


async def shared(world: ApiUnderTest) -> Kind:
    """The kind of all tests that leave its definition alone: a real server takes seconds to serve a new one."""
    with suppress(AlreadyExists):
        await world.create(CUSTOM_RESOURCE_DEFINITION, definition(SHARED))
    return await served(world, group=SHARED)


async def until(holds: Callable[[], Awaitable[Any]]) -> None:
    """Wait for what controllers of the real server do a moment later."""
    async with asyncio.timeout(180):
        while not await holds():  # noqa: ASYNC110 (another process)
            await asyncio.sleep(0.2)


async def is_gone(world: ApiUnderTest, name: str) -> bool:
    try:
        await world.get(CUSTOM_RESOURCE_DEFINITION, name)
    except NotFound:
        return True
    return False


def thing(name: str = "t", **spec: Any) -> Doc:
    return {"metadata": {"name": name}, "spec": {"size": 1} | spec}


async def test_a_definition_gets_names_conditions_and_stored_versions(world: ApiUnderTest) -> None:
    await define(world)
    doc = await world.get(CUSTOM_RESOURCE_DEFINITION, f"things.{group_of(world)}")
    assert doc["spec"]["names"]["singular"] == "thing"
    assert doc["spec"]["names"]["listKind"] == "ThingList"
    assert doc["spec"]["conversion"] == {"strategy": "None"}
    conditions = {one["type"]: one["status"] for one in doc["status"]["conditions"]}
    assert conditions.items() >= {("NamesAccepted", "True"), ("Established", "True")}
    assert doc["status"]["storedVersions"] == ["v1"]
    assert doc["status"]["acceptedNames"]["kind"] == "Thing"


async def test_objects_get_defaults_and_lose_what_the_schema_does_not_know(world: ApiUnderTest) -> None:
    kind = await shared(world)
    doc = await world.create(
        kind, thing(unknown=1, free={"a": {"b": None}}, maybe=None, parts=[{"name": "x", "unknown": 1}], port="80%")
    )
    assert doc["spec"] == {
        "size": 1,
        "limit": 500,
        "color": "red",
        "free": {"a": {"b": None}},
        "maybe": None,
        "port": "80%",
        "parts": [{"name": "x", "weight": 1.5}],
    }
    assert doc["metadata"]["generation"] == 1


async def test_strict_validation_names_the_unknown_field(world: ApiUnderTest) -> None:
    kind = await shared(world)
    with pytest.raises(ApiError, match=r'strict decoding error: unknown field "spec\.unknown"'):
        await world.create(kind, thing(unknown=1), params={"fieldValidation": "Strict"})


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"size": "x"}, 'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"'),
        ({"size": 0}, "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1"),
        ({"color": "green"}, 'spec.color: Unsupported value: "green": supported values: "red", "blue"'),
        ({"port": 1.5}, 'spec.port in body must be of type integer,string: "number"'),
        ({"tags": ["a", "a"]}, 'spec.tags[1]: Duplicate value: "a"'),
        ({"tags": list("abcdefghij")}, "spec.tags: Too many: 10: must have at most 9 items"),
        ({"parts": [{"name": "a"}, {"name": "a"}]}, 'spec.parts[1]: Duplicate value: {"name":"a"}'),
        ({"parts": [{}]}, "spec.parts[0].name: Required value"),
        ({"maybe": 5}, 'spec.maybe: Invalid value: "integer": spec.maybe in body must be of type string: "integer"'),
        ({"size": 501}, "spec: Invalid value: size may not exceed limit"),
        ({"size": 101, "color": "blue"}, "spec.size: Forbidden: not for blue"),
    ],
)
async def test_rules_are_worded_as_in_the_original(world: ApiUnderTest, spec: Doc, words: str) -> None:
    kind = await shared(world)
    with pytest.raises(Invalid) as caught:
        await world.create(kind, thing(**spec))
    assert words in caught.value.message


async def test_a_rule_about_the_old_value_holds_for_updates_only(world: ApiUnderTest) -> None:
    kind = await shared(world)
    await world.create(kind, thing(color="blue"))
    with pytest.raises(Invalid, match="spec: Invalid value: color is immutable"):
        await world.patch(kind, "t", {"spec": {"color": "red"}})
    assert (await world.patch(kind, "t", {"spec": {"size": 2}}))["metadata"]["generation"] == 2


async def test_status_and_scale_are_apart_from_the_spec(world: ApiUnderTest) -> None:
    kind = await shared(world)
    doc = await world.create(kind, thing() | {"status": {"size": 9}})
    assert "status" not in doc
    change = {"status": {"size": 4, "selector": "a=b"}, "spec": {"size": 7}}
    doc = await world.patch(kind, "t", change, subresource="status")
    assert (doc["spec"]["size"], doc["status"]["size"]) == (1, 4)
    scale = await world.get(kind, "t", subresource="scale")
    assert (scale["spec"], scale["status"]) == ({"replicas": 1}, {"replicas": 4, "selector": "a=b"})
    await world.patch(kind, "t", {"spec": {"replicas": 6}}, subresource="scale")
    assert (await world.get(kind, "t"))["spec"]["size"] == 6


async def test_lists_choose_by_selectable_fields(world: ApiUnderTest) -> None:
    kind = await shared(world)
    await world.create(kind, thing("a", color="blue"))
    await world.create(kind, thing("b"))
    assert await world.names(kind, field_selector="spec.color=blue") == ["a"]
    with pytest.raises(ApiError, match=r"field label not supported: spec\.size"):
        await world.names(kind, field_selector="spec.size=1")


async def test_every_version_shows_the_same_objects(world: ApiUnderTest) -> None:
    await define(world, version("v1"), version("v1beta1", storage=False))
    first, second = await served(world), await served(world, "v1beta1")
    await world.create(second, thing("t"))
    assert (await world.get(first, "t"))["apiVersion"] == f"{group_of(world)}/v1"
    doc = await world.get(second, "t")
    assert doc["apiVersion"] == f"{group_of(world)}/v1beta1"
    doc["spec"]["size"] = 3
    await world.update(second, doc)
    assert (await world.get(first, "t"))["spec"]["size"] == 3


async def test_what_is_no_definition_is_refused(world: ApiUnderTest) -> None:
    group = group_of(world)
    for change, words in (
        ({"metadata": {"name": "wrong"}}, 'must be spec.names.plural+"."+spec.group'),
        ({"scope": "Everywhere"}, "spec.scope"),
        ({"versions": [version("v1"), version("v2")]}, "must have exactly one version marked as storage version"),
    ):
        doc = deepcopy(definition(group))
        doc["spec"] |= {key: value for key, value in change.items() if key != "metadata"}
        doc["metadata"] |= change.get("metadata", {})
        with pytest.raises(Invalid) as caught:
            await world.create(CUSTOM_RESOURCE_DEFINITION, doc)
        assert words in caught.value.message
    broken = definition(group, version("v1", spec={"type": "object", "x-kubernetes-validations": [{"rule": "self +"}]}))
    with pytest.raises(Invalid, match="compilation failed"):
        await world.create(CUSTOM_RESOURCE_DEFINITION, broken)


async def test_a_changed_definition_counts_at_once(world: ApiUnderTest) -> None:
    kind = await define(world)
    await world.create(kind, thing("a"))
    doc = await world.get(CUSTOM_RESOURCE_DEFINITION, f"things.{group_of(world)}")
    schema = doc["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["note"] = {"type": "string", "default": "new"}
    await world.update(CUSTOM_RESOURCE_DEFINITION, doc)

    async def shows_the_new_default() -> bool:
        return "note" in (await world.get(await served(world), "a"))["spec"]

    await until(shows_the_new_default)


async def test_a_definition_takes_its_objects_along(world: ApiUnderTest) -> None:
    kind = await define(world)
    await world.create(kind, thing("a"))
    name = f"things.{group_of(world)}"
    await world.delete(CUSTOM_RESOURCE_DEFINITION, name)
    await until(lambda: is_gone(world, name))
    await world.create(CUSTOM_RESOURCE_DEFINITION, definition(group_of(world)))
    kind = await served(world)

    async def is_empty() -> bool:
        return not await world.names(kind)

    await until(is_empty)


async def test_an_object_with_a_finalizer_holds_its_definition_back(world: ApiUnderTest) -> None:
    kind = await define(world)
    doc = thing("a")
    doc["metadata"]["finalizers"] = ["example.com/hold"]
    await world.create(kind, doc)
    name = f"things.{group_of(world)}"
    await world.delete(CUSTOM_RESOURCE_DEFINITION, name)
    left = await world.get(CUSTOM_RESOURCE_DEFINITION, name)
    assert left["metadata"]["finalizers"] == ["customresourcecleanup.apiextensions.k8s.io"]

    async def waits() -> bool:
        return "deletionTimestamp" in (await world.get(kind, "a"))["metadata"]

    await until(waits)
    await world.patch(kind, "a", {"metadata": {"finalizers": None}})
    await until(lambda: is_gone(world, name))
