"""PATCH in three dialects: JSON, merge, strategic merge."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.core.model.flow import PatchType
from fairlead.core.model.kinds import CONFIG_MAP, DEPLOYMENT, NODE, POD
from fairlead.errors import ApiError, BadRequest, Conflict, Invalid, NotFound
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import config, deployment, node, pod

JSON, MERGE, STRATEGIC = PatchType.JSON, PatchType.MERGE, PatchType.STRATEGIC


async def test_a_json_patch_is_a_list_of_operations(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a", {"one": "1", "two": "2"}))
    patch = [
        {"op": "test", "path": "/data/one", "value": "1"},
        {"op": "replace", "path": "/data/one", "value": "uno"},
        {"op": "remove", "path": "/data/two"},
        {"op": "add", "path": "/metadata/labels", "value": {"example.com/x": "y"}},
        {"op": "copy", "from": "/data/one", "path": "/data/copy"},
    ]
    doc = await world.patch(CONFIG_MAP, "a", patch, JSON)
    assert doc["data"] == {"one": "uno", "copy": "uno"}
    assert doc["metadata"]["labels"] == {"example.com/x": "y"}


async def test_a_json_patch_whose_test_fails_changes_nothing(world: ApiUnderTest) -> None:
    before = await world.create(CONFIG_MAP, config("a", {"one": "1"}))
    patch = [{"op": "replace", "path": "/data/one", "value": "2"}, {"op": "test", "path": "/data/one", "value": "x"}]
    with pytest.raises(Invalid):
        await world.patch(CONFIG_MAP, "a", patch, JSON)
    assert await world.get(CONFIG_MAP, "a") == before


async def test_a_json_patch_to_nowhere_is_invalid(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a"))
    with pytest.raises(Invalid):
        await world.patch(CONFIG_MAP, "a", [{"op": "remove", "path": "/data/nothing"}], JSON)
    with pytest.raises(BadRequest):
        await world.patch(CONFIG_MAP, "a", {"not": "a list"}, JSON)


async def test_a_merge_patch_merges_maps_removes_nulls_and_replaces_lists(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a", {"keep": "1", "drop": "2"}, finalizers=["example.com/a"]))
    doc = await world.patch(
        CONFIG_MAP, "a", {"data": {"drop": None, "new": "3"}, "metadata": {"finalizers": ["example.com/b"]}}
    )
    assert doc["data"] == {"keep": "1", "new": "3"}
    assert doc["metadata"]["finalizers"] == ["example.com/b"]


async def test_a_patch_may_insist_on_a_version(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a"))
    stale = doc["metadata"]["resourceVersion"]
    await world.patch(CONFIG_MAP, "a", {"data": {"x": "1"}, "metadata": {"resourceVersion": stale}})
    with pytest.raises(Conflict, match="the object has been modified"):
        await world.patch(CONFIG_MAP, "a", {"data": {"x": "2"}, "metadata": {"resourceVersion": stale}})


async def test_a_patch_of_a_missing_object_is_not_found(world: ApiUnderTest) -> None:
    for type_ in (MERGE, STRATEGIC):
        with pytest.raises(NotFound):
            await world.patch(CONFIG_MAP, "nobody", {"data": {"a": "b"}}, type_)


async def test_a_patch_that_changes_nothing_keeps_the_version(world: ApiUnderTest) -> None:
    doc = await world.create(CONFIG_MAP, config("a", {"x": "1"}))
    same = await world.patch(CONFIG_MAP, "a", {"data": {"x": "1"}})
    assert same["metadata"]["resourceVersion"] == doc["metadata"]["resourceVersion"]


async def test_a_patch_is_validated_like_an_update(world: ApiUnderTest) -> None:
    await world.create(DEPLOYMENT, deployment("d"))
    with pytest.raises(Invalid) as caught:
        await world.patch(DEPLOYMENT, "d", {"spec": {"replicas": -1}})
    assert caught.value.details["causes"][0]["field"] == "spec.replicas"
    with pytest.raises(ApiError) as wrong:
        await world.patch(DEPLOYMENT, "d", {"spec": {"replicas": "many"}})
    assert wrong.value.code in (400, 422)


# strategic


async def test_containers_are_merged_by_name(world: ApiUnderTest) -> None:
    await world.create(DEPLOYMENT, deployment("d"))
    containers = [{"name": "side", "image": "side:1"}, {"name": "main", "env": [{"name": "A", "value": "1"}]}]
    doc = await world.patch(DEPLOYMENT, "d", {"spec": {"template": {"spec": {"containers": containers}}}}, STRATEGIC)
    merged = doc["spec"]["template"]["spec"]["containers"]
    assert [(c["name"], c["image"]) for c in merged] == [("side", "side:1"), ("main", "example.com/app:1")]
    assert merged[1]["env"] == [{"name": "A", "value": "1"}]
    change = [{"name": "side", "$patch": "delete"}, {"name": "main", "env": [{"name": "B", "value": "2"}]}]
    doc = await world.patch(DEPLOYMENT, "d", {"spec": {"template": {"spec": {"containers": change}}}}, STRATEGIC)
    (main,) = doc["spec"]["template"]["spec"]["containers"]
    assert main["env"] == [{"name": "B", "value": "2"}, {"name": "A", "value": "1"}]


async def test_a_merge_patch_replaces_all_containers(world: ApiUnderTest) -> None:
    await world.create(DEPLOYMENT, deployment("d"))
    containers = [{"name": "only", "image": "only:1"}]
    doc = await world.patch(DEPLOYMENT, "d", {"spec": {"template": {"spec": {"containers": containers}}}}, MERGE)
    assert [c["name"] for c in doc["spec"]["template"]["spec"]["containers"]] == ["only"]


async def test_tolerations_are_replaced_as_a_whole(world: ApiUnderTest) -> None:
    doc = await world.create(DEPLOYMENT, deployment("d"))
    one, two = ({"key": key, "operator": "Exists"} for key in ("one", "two"))
    for toleration in (one, two):
        doc = await world.patch(
            DEPLOYMENT, "d", {"spec": {"template": {"spec": {"tolerations": [toleration]}}}}, STRATEGIC
        )
    assert doc["spec"]["template"]["spec"]["tolerations"] == [two]


async def test_taints_are_replaced_as_a_whole(world: ApiUnderTest) -> None:
    name = world.name("node")
    await world.create(NODE, node(name, taints=[{"key": "a", "effect": "NoSchedule"}]))
    doc = await world.patch(NODE, name, {"spec": {"taints": [{"key": "b", "effect": "NoSchedule"}]}}, STRATEGIC)
    assert doc["spec"]["taints"] == [{"key": "b", "effect": "NoSchedule"}]


def condition(type_: str, status: str, **more: Any) -> dict[str, Any]:
    return {"type": type_, "status": status} | more


async def test_conditions_are_merged_by_type(world: ApiUnderTest) -> None:
    await world.create(POD, pod("p"))
    for patch in ([condition("Ready", "False")], [condition("PodScheduled", "True")], [condition("Ready", "True")]):
        doc = await world.patch(POD, "p", {"status": {"conditions": patch}}, STRATEGIC, subresource="status")
    found = {each["type"]: each["status"] for each in doc["status"]["conditions"]}
    assert found == {"Ready": "True", "PodScheduled": "True"}


async def test_the_order_of_a_merged_list_can_be_set(world: ApiUnderTest) -> None:
    name = world.name("node")
    await world.create(NODE, node(name))
    for type_ in ("A", "B"):
        await world.patch(
            NODE, name, {"status": {"conditions": [condition(type_, "True")]}}, STRATEGIC, subresource="status"
        )
    order = {"$setElementOrder/conditions": [{"type": "A"}, {"type": "B"}], "conditions": [condition("A", "False")]}
    doc = await world.patch(NODE, name, {"status": order}, STRATEGIC, subresource="status")
    assert [(each["type"], each["status"]) for each in doc["status"]["conditions"]] == [("A", "False"), ("B", "True")]


async def test_primitive_lists_can_be_merged_and_thinned(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a", finalizers=["example.com/a"]))
    doc = await world.patch(CONFIG_MAP, "a", {"metadata": {"finalizers": ["example.com/b"]}}, STRATEGIC)
    assert sorted(doc["metadata"]["finalizers"]) == ["example.com/a", "example.com/b"]
    thinner = {"metadata": {"$deleteFromPrimitiveList/finalizers": ["example.com/a"]}}
    doc = await world.patch(CONFIG_MAP, "a", thinner, STRATEGIC)
    assert doc["metadata"]["finalizers"] == ["example.com/b"]


async def test_a_map_can_be_replaced_whole(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a", {"one": "1", "two": "2"}))
    doc = await world.patch(CONFIG_MAP, "a", {"data": {"$patch": "replace", "three": "3"}}, STRATEGIC)
    assert doc["data"] == {"three": "3"}


async def test_ports_of_a_container_are_merged_by_number(world: ApiUnderTest) -> None:
    body = deployment("d")
    body["spec"]["template"]["spec"]["containers"][0]["ports"] = [{"containerPort": 80}]
    await world.create(DEPLOYMENT, body)
    ports = [{"containerPort": 80, "name": "web"}, {"containerPort": 81}]
    change = {"spec": {"template": {"spec": {"containers": [{"name": "main", "ports": ports}]}}}}
    doc = await world.patch(DEPLOYMENT, "d", change, STRATEGIC)
    assert doc["spec"]["template"]["spec"]["containers"][0]["ports"] == [
        {"name": "web", "containerPort": 80, "protocol": "TCP"},
        {"containerPort": 81, "protocol": "TCP"},
    ]


async def test_an_unknown_directive_is_refused(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("a"))
    with pytest.raises(ApiError, match="unknown patch type: explode in map"):
        await world.patch(CONFIG_MAP, "a", {"$patch": "explode"}, STRATEGIC)
