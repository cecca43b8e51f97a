"""OpenAPI as far as kubectl reads it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fairlead.cluster.server.descriptions import DESCRIPTIONS
from fairlead.cluster.server.openapi import OpenApi, openapi_v2, openapi_v3, openapi_v3_index
from fairlead.cluster.store.schema import schema_data
from fairlead.core.model.kinds import Definition, Kind, Registry

REGISTRY = Registry()
GROUP_VERSIONS = sorted({("apis/" if kind.group else "api/") + kind.api_version for kind in REGISTRY})


def references(node: Any) -> set[str]:
    if isinstance(node, dict):
        own = {node["$ref"]} if isinstance(node.get("$ref"), str) else set()
        return own.union(*map(references, node.values()))
    return set().union(*map(references, node)) if isinstance(node, list) else set()


@pytest.mark.parametrize("group_version", GROUP_VERSIONS)
def test_every_group_version_has_a_document_whose_references_resolve(group_version: str) -> None:
    document = json.loads(openapi_v3(REGISTRY, group_version) or b"")
    known = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert references(document) <= known


def test_the_index_names_every_document_with_a_hash() -> None:
    paths = json.loads(openapi_v3_index(REGISTRY))["paths"]
    assert sorted(paths) == GROUP_VERSIONS
    assert all(f"/openapi/v3/{path}?hash=" in entry["serverRelativeURL"] for path, entry in paths.items())


def test_writes_offer_field_validation_and_name_their_kind() -> None:
    paths = json.loads(openapi_v3(REGISTRY, "apis/apps/v1") or b"")["paths"]
    deployments = paths["/apis/apps/v1/namespaces/{namespace}/deployments"]
    assert "fieldValidation" in {one["name"] for one in deployments["post"]["parameters"]}
    assert deployments["post"]["x-kubernetes-group-version-kind"] == {
        "group": "apps",
        "version": "v1",
        "kind": "Deployment",
    }
    single = paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"]
    assert "application/strategic-merge-patch+json" in single["patch"]["requestBody"]["content"]


def test_kinds_that_are_custom_resources_elsewhere_offer_no_strategic_merging() -> None:
    paths = json.loads(openapi_v3(REGISTRY, "apis/batch.volcano.sh/v1alpha1") or b"")["paths"]
    single = paths["/apis/batch.volcano.sh/v1alpha1/namespaces/{namespace}/jobs/{name}"]
    assert "application/strategic-merge-patch+json" not in single["patch"]["requestBody"]["content"]
    assert "application/apply-patch+yaml" in single["patch"]["requestBody"]["content"]


def test_lists_carry_their_merge_keys() -> None:
    schemas = json.loads(openapi_v3(REGISTRY, "api/v1") or b"")["components"]["schemas"]
    containers = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]["containers"]
    assert containers["x-kubernetes-patch-merge-key"] == "name"
    assert containers["x-kubernetes-patch-strategy"] == "merge"


def test_what_scheduling_reads_is_described_and_every_description_has_its_field() -> None:
    schemas = json.loads(openapi_v3(REGISTRY, "api/v1") or b"")["components"]["schemas"]
    spec = schemas["io.k8s.api.core.v1.PodSpec"]["properties"]
    for field in ("affinity", "nodeSelector", "tolerations", "schedulerName", "priorityClassName", "schedulingGates"):
        assert spec[field]["description"]
    types = schema_data()["types"]
    for name, texts in DESCRIPTIONS.items():
        assert set(texts) - {""} <= set(types[name]["properties"]), name


def test_a_defined_kind_appears_with_its_own_schema() -> None:
    registry = Registry()
    openapi = OpenApi(registry)
    assert openapi.v3("apis/example.com/v1") is None
    before = openapi.v3_index()
    schema = {"type": "object", "properties": {"spec": {"type": "object", "description": "All of it."}}}
    registry.add(Kind("example.com", "v1", "Thing", "things", definition=Definition("things.example.com", schema)))
    document = json.loads(openapi.v3("apis/example.com/v1") or b"")
    thing = document["components"]["schemas"]["com.example.v1.Thing"]
    assert thing["properties"]["spec"]["description"] == "All of it."
    assert thing["x-kubernetes-group-version-kind"] == [{"group": "example.com", "version": "v1", "kind": "Thing"}]
    assert openapi.v3_index() != before
    assert "com.example.v1.Thing" in json.loads(openapi.v2())["definitions"]


def test_the_older_dialect_resolves_too_and_knows_no_all_of() -> None:
    document = json.loads(openapi_v2(REGISTRY))
    assert references(document) <= {f"#/definitions/{name}" for name in document["definitions"]}
    assert b'"allOf":[' not in openapi_v2(REGISTRY)


def test_what_is_not_served_has_no_document() -> None:
    assert openapi_v3(REGISTRY, "apis/example.com/v1") is None


def test_a_kind_added_while_running_appears_as_an_open_object() -> None:
    registry = Registry()
    registry.add(Kind("example.com", "v1", "Thing", "things"))
    document = json.loads(openapi_v3(registry, "apis/example.com/v1") or b"")
    assert document["components"]["schemas"]["com.example.v1.Thing"]["x-kubernetes-preserve-unknown-fields"] is True
