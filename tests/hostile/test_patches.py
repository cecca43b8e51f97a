"""Patches that would grow without end or take for ever, and definitions that break discovery."""

from __future__ import annotations

import time
from typing import Any

import pytest

from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.store.patch import MOST_OPERATIONS, json_patch
from fairlead.cluster.store.schema import struct_of
from fairlead.cluster.store.strategic import merge_strategically
from fairlead.core.model.kinds import POD
from fairlead.errors import Invalid, TooLarge
from tests.support.served import Client, run

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def add(number: int) -> dict[str, Any]:
    return {"op": "add", "path": f"/data/k{number}", "value": "v"}


def test_a_patch_has_at_most_ten_thousand_operations() -> None:
    patched = json_patch({"data": {}}, [add(number) for number in range(MOST_OPERATIONS)])
    assert len(patched["data"]) == MOST_OPERATIONS
    with pytest.raises(TooLarge, match="The allowed maximum operations in a JSON patch is 10000, got 10001"):
        json_patch({"data": {}}, [add(number) for number in range(MOST_OPERATIONS + 1)])


def test_a_document_is_not_copied_into_itself_again_and_again() -> None:
    doc = {"data": {"a": "x" * 100}}
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/c{number}"} for number in range(40)]
    with pytest.raises(Invalid):
        json_patch(doc, doubling)
    large = [{"op": "add", "path": "/data/a", "value": "x" * 1_000_000}]
    with pytest.raises(Invalid):
        json_patch(doc, large + [{"op": "copy", "from": "/data/a", "path": f"/data/c{number}"} for number in range(4)])
    assert doc == {"data": {"a": "x" * 100}}


def test_a_patch_that_fails_leaves_document_and_patch_as_they_were() -> None:
    doc: dict[str, Any] = {"data": {"a": [1]}}
    patch = [{"op": "add", "path": "/data/b", "value": {}}, {"op": "add", "path": "/data/b/c", "value": 1},
             {"op": "test", "path": "/data/a", "value": 2}]  # fmt: skip
    with pytest.raises(Invalid):
        json_patch(doc, patch)
    assert doc == {"data": {"a": [1]}}
    assert patch[0]["value"] == {}


def test_many_finalizers_are_united_in_their_order() -> None:
    old = [f"example.com/{number}" for number in range(20_000)]
    new = [f"example.com/{number}" for number in range(30_000, 10_000, -1)]
    merged = merge_strategically(struct_of(POD), {"metadata": {"finalizers": old}}, {"metadata": {"finalizers": new}})
    finalizers = merged["metadata"]["finalizers"]
    assert len(finalizers) == 30_001
    known = set(new)
    assert set(finalizers) == {*old, *known}
    assert [one for one in finalizers if one in known] == new


def test_a_version_with_a_long_name_is_refused_and_discovery_works() -> None:
    async def story(client: Client) -> None:
        schema = {"openAPIV3Schema": {"type": "object"}}
        names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
        version = {"name": "v" + "1" * 5_000, "served": True, "storage": True, "schema": schema}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [version]}
        status, answer = await client.ask(
            "POST", DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": spec}
        )
        assert (status, answer["reason"]) == (422, "Invalid")
        assert "must be no more than 63 bytes" in answer["message"]
        version["name"] = "v" + "1" * 62
        assert (await client.ask("POST", DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": spec}))[
            0
        ] == 201
        assert (await client.ask("GET", "/apis"))[0] == 200

    run(Credentials.generate(now=time.time()), story)


def test_a_version_that_objects_are_stored_in_cannot_be_dropped() -> None:
    async def story(client: Client) -> None:
        schema = {"openAPIV3Schema": {"type": "object"}}
        names = {"plural": "things", "singular": "thing", "kind": "Thing", "listKind": "ThingList"}
        one = {"name": "v1", "served": True, "storage": True, "schema": schema}
        spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": [one]}
        await client.ask("POST", DEFINITIONS, {"metadata": {"name": "things.example.com"}, "spec": spec})
        path = f"{DEFINITIONS}/things.example.com"
        merge = "application/merge-patch+json"
        status, answer = await client.ask(
            "PATCH", path, {"spec": {"versions": [one | {"name": "v2"}]}}, Content_Type=merge
        )
        assert status == 422
        assert "missing from spec.versions; must be removed from status.storedVersions" in answer["message"]

    run(Credentials.generate(now=time.time()), story)


def test_an_object_is_not_larger_than_etcd_takes() -> None:
    maps = "/api/v1/namespaces/default/configmaps"

    async def story(client: Client) -> None:
        body = {"metadata": {"name": "large", "annotations": {"a": "x"}}, "data": {"k": "x" * 1_000_000}}
        assert (await client.ask("POST", maps, body))[0] == 201
        growth = {"binaryData": {"b": "QUFB" * 200_000}}
        status, answer = await client.ask("PATCH", f"{maps}/large", growth, Content_Type="application/merge-patch+json")
        assert (status, answer["reason"]) == (413, "RequestEntityTooLarge")
        assert (await client.ask("GET", f"{maps}/large"))[1]["data"] == body["data"]
        assert "binaryData" not in (await client.ask("GET", f"{maps}/large"))[1]

    run(Credentials.generate(now=time.time()), story)
