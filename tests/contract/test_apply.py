"""Server-side apply: owners, conflicts, force, and what others' writes do to ownership."""

from __future__ import annotations

from typing import Any

import pytest

from fairlead.errors import ApiError, BadRequest, Conflict, Invalid
from fairlead.model.flow import PatchType
from fairlead.model.kinds import CONFIG_MAP, DEPLOYMENT, JOB, POD, Kind
from tests.contract.conftest import World
from tests.contract.documents import config, deployment, pod

Doc = dict[str, Any]


async def apply(world: World, kind: Kind, doc: Doc, who: str, *, force: bool = False, **more: Any) -> Doc:
    params = {"fieldManager": who} | ({"force": "true"} if force else {})
    body = {"apiVersion": kind.api_version, "kind": kind.kind} | doc
    return await world.patch(kind, doc["metadata"]["name"], body, PatchType.APPLY, params=params, **more)


def settings(**data: str) -> Doc:
    return {"metadata": {"name": "c"}, "data": data}


def owners(doc: Doc) -> dict[tuple[str, str, str], Doc]:
    return {
        (entry["manager"], entry["operation"], entry.get("subresource", "")): entry["fieldsV1"]
        for entry in doc["metadata"].get("managedFields", ())
    }


async def test_apply_creates_and_owns_what_it_states(world: World) -> None:
    doc = await apply(world, CONFIG_MAP, {"metadata": {"name": "c", "labels": {"l": "1"}}, "data": {"a": "1"}}, "one")
    assert doc["data"] == {"a": "1"}
    fields = {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}
    assert owners(doc) == {("one", "Apply", ""): fields}


async def test_two_appliers_own_their_own_fields_and_share_equal_values(world: World) -> None:
    await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    doc = await apply(world, CONFIG_MAP, settings(b="1", c="1"), "two")
    assert doc["data"] == {"a": "1", "b": "1", "c": "1"}
    doc = await apply(world, CONFIG_MAP, settings(a="1"), "one")
    assert doc["data"] == {"a": "1", "b": "1", "c": "1"}
    doc = await apply(world, CONFIG_MAP, settings(c="1"), "two")
    assert doc["data"] == {"a": "1", "c": "1"}


async def test_a_conflict_names_the_owner_and_every_field(world: World) -> None:
    await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    with pytest.raises(Conflict) as caught:
        await apply(world, CONFIG_MAP, settings(a="2"), "two")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "one": .data.a'
    with pytest.raises(Conflict) as caught:
        await apply(world, CONFIG_MAP, settings(a="2", b="2"), "two")
    assert caught.value.message == 'Apply failed with 2 conflicts: conflicts with "one":\n- .data.a\n- .data.b'
    assert caught.value.details["causes"] == [
        {"reason": "FieldManagerConflict", "message": 'conflict with "one"', "field": f".data.{key}"} for key in "ab"
    ]


async def test_force_takes_the_field_from_its_owner(world: World) -> None:
    await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    doc = await apply(world, CONFIG_MAP, settings(a="2"), "two", force=True)
    assert doc["data"] == {"a": "2", "b": "1"}
    assert owners(doc) == {("one", "Apply", ""): {"f:data": {"f:b": {}}}, ("two", "Apply", ""): {"f:data": {"f:a": {}}}}


async def test_other_writes_take_ownership_of_what_they_change(world: World) -> None:
    await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    doc = await world.patch(CONFIG_MAP, "c", {"data": {"a": "3"}}, params={"fieldManager": "patcher"})
    assert owners(doc)["patcher", "Update", ""] == {"f:data": {"f:a": {}}}
    with pytest.raises(Conflict) as caught:
        await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "patcher" using v1: .data.a'


async def test_applying_the_same_again_changes_nothing(world: World) -> None:
    first = await apply(world, CONFIG_MAP, settings(a="1"), "one")
    again = await apply(world, CONFIG_MAP, settings(a="1"), "one")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_items_of_a_keyed_list_have_owners_of_their_own(world: World) -> None:
    await apply(world, DEPLOYMENT, deployment("d"), "one")
    side = {"name": "side", "image": "example.com/side:1"}
    other: Doc = {
        "metadata": {"name": "d"},
        "spec": {
            "selector": {"matchLabels": {"app": "d"}},
            "template": {"spec": {"containers": [side]}},
        },
    }
    doc = await apply(world, DEPLOYMENT, other, "two")
    assert [each["name"] for each in doc["spec"]["template"]["spec"]["containers"]] == ["main", "side"]
    doc = await apply(world, DEPLOYMENT, deployment("d"), "one")
    assert [each["name"] for each in doc["spec"]["template"]["spec"]["containers"]] == ["main", "side"]
    other["spec"]["template"] = {}
    doc = await apply(world, DEPLOYMENT, other, "two")
    assert [each["name"] for each in doc["spec"]["template"]["spec"]["containers"]] == ["main"]


async def test_replicas_that_are_no_longer_stated_stay_with_whoever_set_them(world: World) -> None:
    await apply(world, DEPLOYMENT, deployment("d", replicas=2), "one")
    scaler = {"fieldManager": "scaler"}
    await world.patch(DEPLOYMENT, "d", {"spec": {"replicas": 5}}, subresource="scale", params=scaler)
    with pytest.raises(Conflict, match=r'with "scaler" with subresource "scale" using apps/v1: \.spec\.replicas'):
        await apply(world, DEPLOYMENT, deployment("d", replicas=2), "one")
    unsaid = deployment("d")
    del unsaid["spec"]["replicas"]
    assert (await apply(world, DEPLOYMENT, unsaid, "one"))["spec"]["replicas"] == 5


async def test_the_status_is_applied_through_its_own_door(world: World) -> None:
    await apply(world, DEPLOYMENT, deployment("d") | {"status": {"replicas": 9}}, "one")
    assert "replicas" not in (await world.get(DEPLOYMENT, "d"))["status"]
    body = {"metadata": {"name": "d"}, "status": {"replicas": 3, "observedGeneration": 1}}
    doc = await apply(world, DEPLOYMENT, body, "controller", subresource="status")
    assert doc["status"]["replicas"] == 3
    assert owners(doc)["controller", "Apply", "status"] == {"f:status": {"f:observedGeneration": {}, "f:replicas": {}}}


async def test_a_dry_run_applies_nothing(world: World) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap"} | settings(a="1")
    params = {"fieldManager": "one", "dryRun": "All"}
    doc = await world.patch(CONFIG_MAP, "c", body, PatchType.APPLY, params=params)
    assert doc["data"] == {"a": "1"}
    assert await world.names(CONFIG_MAP) in ([], ["kube-root-ca.crt"])


async def test_what_cannot_be_applied(world: World) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap"} | settings(a="1")
    with pytest.raises(Invalid, match="fieldManager: Required value: is required for apply patch"):
        await world.patch(CONFIG_MAP, "c", body, PatchType.APPLY)
    with pytest.raises(BadRequest, match="invalid object type: /v1, Kind=Secret"):
        await world.patch(CONFIG_MAP, "c", body | {"kind": "Secret"}, PatchType.APPLY, params={"fieldManager": "one"})
    owned = {"metadata": {"name": "c", "managedFields": [{}]}}
    with pytest.raises(BadRequest, match=r"metadata\.managedFields must be nil"):
        await apply(world, CONFIG_MAP, owned, "one")
    with pytest.raises(ApiError, match=r"\.dat: field not declared in schema") as caught:
        await apply(world, CONFIG_MAP, {"metadata": {"name": "c"}, "dat": {"a": "1"}}, "one")
    assert caught.value.code in (400, 500)  # ours, and the original's


async def test_an_object_that_nobody_applied_is_taken_over_with_force(world: World) -> None:
    await world.create(CONFIG_MAP, config("c", {"a": "1"}), params={"fieldManager": "maker"})
    with pytest.raises(Conflict, match=r'conflict with "[a-z-]+" using v1: \.data\.a'):
        await apply(world, CONFIG_MAP, settings(a="2"), "one")
    assert (await apply(world, CONFIG_MAP, settings(a="2"), "one", force=True))["data"] == {"a": "2"}


async def test_pods_can_be_applied_too(world: World) -> None:
    doc = await apply(world, POD, pod("p", labels={"a": "1"}), "one")
    assert doc["status"]["phase"] == "Pending"
    assert set(owners(doc)) == {("one", "Apply", "")}


async def test_what_the_server_fills_in_belongs_to_nobody(world: World) -> None:
    """A Job's selector and the labels of its pods: whoever made it and then applies its own words keeps them."""
    template = {"spec": {"containers": [{"name": "c", "image": "i"}], "restartPolicy": "Never"}}
    spec = {"template": template, "suspend": True}
    made = await world.create(JOB, {"metadata": {"name": "j"}, "spec": spec}, params={"fieldManager": "one"})
    (fields,) = owners(made).values()
    assert "f:selector" not in fields["f:spec"]
    assert "f:metadata" not in fields["f:spec"]["f:template"]
    assert {"f:backoffLimit", "f:suspend"} <= fields["f:spec"].keys(), "defaults are the maker's"
    after = await apply(world, JOB, {"metadata": {"name": "j"}, "spec": spec}, "one", force=True)
    assert after["spec"]["selector"] == made["spec"]["selector"]
    assert after["spec"]["template"]["metadata"] == made["spec"]["template"]["metadata"]
