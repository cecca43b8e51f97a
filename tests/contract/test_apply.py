"""Server-side apply: owners, conflicts, force, and what others' writes do to ownership."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from fairlead.core.model.flow import PatchType
from fairlead.core.model.kinds import (
    CONFIG_MAP,
    DEPLOYMENT,
    HORIZONTAL_POD_AUTOSCALER,
    HORIZONTAL_POD_AUTOSCALER_V1,
    JOB,
    POD,
    RESOURCE_QUOTA,
    STATEFUL_SET,
    Kind,
)
from fairlead.errors import ApiError, BadRequest, Conflict, Invalid
from tests.support.contract.api_under_test import ApiUnderTest
from tests.support.contract.documents import config, deployment, pod

Doc = dict[str, Any]


async def apply(world: ApiUnderTest, kind: Kind, doc: Doc, who: str, *, force: bool = False, **more: Any) -> Doc:
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


async def test_apply_creates_and_owns_what_it_states(world: ApiUnderTest) -> None:
    doc = await apply(world, CONFIG_MAP, {"metadata": {"name": "c", "labels": {"l": "1"}}, "data": {"a": "1"}}, "one")
    assert doc["data"] == {"a": "1"}
    fields = {"f:data": {"f:a": {}}, "f:metadata": {"f:labels": {"f:l": {}}}}
    assert owners(doc) == {("one", "Apply", ""): fields}


async def test_two_appliers_own_their_own_fields_and_share_equal_values(world: ApiUnderTest) -> None:
    await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    doc = await apply(world, CONFIG_MAP, settings(b="1", c="1"), "two")
    assert doc["data"] == {"a": "1", "b": "1", "c": "1"}
    doc = await apply(world, CONFIG_MAP, settings(a="1"), "one")
    assert doc["data"] == {"a": "1", "b": "1", "c": "1"}
    doc = await apply(world, CONFIG_MAP, settings(c="1"), "two")
    assert doc["data"] == {"a": "1", "c": "1"}


async def test_a_conflict_names_the_owner_and_every_field(world: ApiUnderTest) -> None:
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


async def test_force_takes_the_field_from_its_owner(world: ApiUnderTest) -> None:
    await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    doc = await apply(world, CONFIG_MAP, settings(a="2"), "two", force=True)
    assert doc["data"] == {"a": "2", "b": "1"}
    assert owners(doc) == {("one", "Apply", ""): {"f:data": {"f:b": {}}}, ("two", "Apply", ""): {"f:data": {"f:a": {}}}}


async def test_other_writes_take_ownership_of_what_they_change(world: ApiUnderTest) -> None:
    await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    doc = await world.patch(CONFIG_MAP, "c", {"data": {"a": "3"}}, params={"fieldManager": "patcher"})
    assert owners(doc)["patcher", "Update", ""] == {"f:data": {"f:a": {}}}
    with pytest.raises(Conflict) as caught:
        await apply(world, CONFIG_MAP, settings(a="1", b="1"), "one")
    assert caught.value.message == 'Apply failed with 1 conflict: conflict with "patcher" using v1: .data.a'


async def test_applying_the_same_again_changes_nothing(world: ApiUnderTest) -> None:
    first = await apply(world, CONFIG_MAP, settings(a="1"), "one")
    again = await apply(world, CONFIG_MAP, settings(a="1"), "one")
    assert again["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_items_of_a_keyed_list_have_owners_of_their_own(world: ApiUnderTest) -> None:
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


async def test_replicas_that_are_no_longer_stated_stay_with_the_manager_that_set_them(world: ApiUnderTest) -> None:
    await apply(world, DEPLOYMENT, deployment("d", replicas=2), "one")
    scaler = {"fieldManager": "scaler"}
    await world.patch(DEPLOYMENT, "d", {"spec": {"replicas": 5}}, subresource="scale", params=scaler)
    with pytest.raises(Conflict, match=r'with "scaler" with subresource "scale" using apps/v1: \.spec\.replicas'):
        await apply(world, DEPLOYMENT, deployment("d", replicas=2), "one")
    unsaid = deployment("d")
    del unsaid["spec"]["replicas"]
    assert (await apply(world, DEPLOYMENT, unsaid, "one"))["spec"]["replicas"] == 5


async def test_the_status_is_applied_through_its_own_door(world: ApiUnderTest) -> None:
    await apply(world, DEPLOYMENT, deployment("d") | {"status": {"replicas": 9}}, "one")
    assert "replicas" not in (await world.get(DEPLOYMENT, "d"))["status"]
    body = {"metadata": {"name": "d"}, "status": {"replicas": 3, "observedGeneration": 1}}
    doc = await apply(world, DEPLOYMENT, body, "controller", subresource="status")
    assert doc["status"]["replicas"] == 3
    assert owners(doc)["controller", "Apply", "status"] == {"f:status": {"f:observedGeneration": {}, "f:replicas": {}}}


async def test_a_dry_run_applies_nothing(world: ApiUnderTest) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap"} | settings(a="1")
    params = {"fieldManager": "one", "dryRun": "All"}
    doc = await world.patch(CONFIG_MAP, "c", body, PatchType.APPLY, params=params)
    assert doc["data"] == {"a": "1"}
    assert await world.names(CONFIG_MAP) in ([], ["kube-root-ca.crt"])


async def test_what_cannot_be_applied(world: ApiUnderTest) -> None:
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


async def test_an_object_that_nobody_applied_is_taken_over_with_force(world: ApiUnderTest) -> None:
    await world.create(CONFIG_MAP, config("c", {"a": "1"}), params={"fieldManager": "maker"})
    with pytest.raises(Conflict, match=r'conflict with "[a-z-]+" using v1: \.data\.a'):
        await apply(world, CONFIG_MAP, settings(a="2"), "one")
    assert (await apply(world, CONFIG_MAP, settings(a="2"), "one", force=True))["data"] == {"a": "2"}


async def test_pods_can_be_applied_too(world: ApiUnderTest) -> None:
    doc = await apply(world, POD, pod("p", labels={"a": "1"}), "one")
    assert doc["status"]["phase"] == "Pending"
    assert set(owners(doc)) == {("one", "Apply", "")}


async def test_what_the_server_fills_in_belongs_to_nobody(world: ApiUnderTest) -> None:
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


def owners_by_version(doc: Doc) -> dict[str, Doc]:
    """What each manager owns of the spec, by its name and version."""
    entries = doc["metadata"]["managedFields"]
    return {f"{one['manager']} {one['apiVersion']}": one["fieldsV1"]["f:spec"] for one in entries}


async def test_owners_keep_the_names_of_the_version_that_they_wrote_in(world: ApiUnderTest) -> None:
    """One applier speaks autoscaling/v1, another v2; each entry stays in its own version, and they meet where both
    mean the same thing."""
    v1, v2 = HORIZONTAL_POD_AUTOSCALER_V1, HORIZONTAL_POD_AUTOSCALER

    async def stated(who: str, kind: Kind, *, force: bool = False, **spec: Any) -> dict[str, Doc]:
        doc = {"metadata": {"name": "a"}, "spec": {"maxReplicas": 5, **spec}}
        return owners_by_version(await apply(world, kind, doc, who, force=force))

    reference = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}
    target = {"type": "Utilization", "averageUtilization": 70}
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    old = {"f:maxReplicas": {}, "f:scaleTargetRef": {}, "f:targetCPUUtilizationPercentage": {}}
    first = await stated("a", v1, scaleTargetRef=reference, targetCPUUtilizationPercentage=60)
    assert first == {"a autoscaling/v1": old}
    both = await stated("b", v2, minReplicas=2)
    assert both == {"a autoscaling/v1": old, "b autoscaling/v2": {"f:maxReplicas": {}, "f:minReplicas": {}}}
    with pytest.raises(Conflict, match=r'conflict with "a": \.spec\.targetCPUUtilizationPercentage'):
        await stated("b", v2, minReplicas=2, metrics=metrics)
    taken = await stated("b", v2, force=True, minReplicas=2, metrics=metrics)
    assert taken["a autoscaling/v1"] == {"f:maxReplicas": {}, "f:scaleTargetRef": {}}
    # An applier is one owner in whichever version: its entry moves to the version of its last apply.
    moved = await stated("a", v2, scaleTargetRef=reference)
    assert sorted(moved) == ["a autoscaling/v2", "b autoscaling/v2"]


async def test_an_apply_that_changes_nothing_makes_no_new_version(world: ApiUnderTest) -> None:
    """Not even where the server spells a value in another way than the configuration."""
    quota = {"metadata": {"name": "a"}, "spec": {"hard": {"cpu": "1000m", "pods": 3}}}
    first = await apply(world, RESOURCE_QUOTA, quota, "me")
    await asyncio.sleep(1.1)  # owners have times in whole seconds
    second = await apply(world, RESOURCE_QUOTA, quota, "me")
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]


async def test_applying_claim_templates_again_is_no_new_generation(world: ApiUnderTest) -> None:
    claim = {"metadata": {"name": "v"}, "spec": {"accessModes": ["ReadWriteOnce"],
             "resources": {"requests": {"storage": "1Gi"}}}}  # fmt: skip
    selector, labels = {"matchLabels": {"a": "b"}}, {"labels": {"a": "b"}}
    template = {"metadata": labels, "spec": {"containers": [{"name": "c", "image": "i"}]}}
    spec = {"selector": selector, "serviceName": "s", "template": template, "volumeClaimTemplates": [claim]}
    made = await world.create(STATEFUL_SET, {"metadata": {"name": "s"}, "spec": spec})
    # What kubectl sends: the whole list, because nothing says how its items are told apart.
    patch = {"spec": {"volumeClaimTemplates": [claim]}}
    patched = await world.patch(STATEFUL_SET, "s", patch, PatchType.STRATEGIC)
    assert patched["metadata"]["generation"] == made["metadata"]["generation"] == 1
