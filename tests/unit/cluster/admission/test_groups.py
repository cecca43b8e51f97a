"""PodGroups and Workloads in both versions of their API, against answers that were recorded from real servers."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import Registry
from fairlead.errors import ApiError
from tests.support.recorded_answers import FINALIZERS, clean

DATA = Path(__file__).parents[1] / "data"
VERSIONS = ("v1alpha2", "v1beta1")
RECORDED = {version: json.loads((DATA / f"groups-{version}.json").read_text()) for version in VERSIONS}
OWN = ("uid", "creationTimestamp", "resourceVersion", "managedFields", "generation")


def write(verb: Verb, doc: dict[str, Any], subresource: str = "") -> Write:
    kind = Registry().by_kind(doc["apiVersion"], doc["kind"])
    assert kind is not None
    namespace, params = "default" if kind.namespaced else "", {"fieldValidation": "Strict"}
    return Write(verb, kind, namespace, doc["metadata"]["name"], doc, subresource=subresource, params=params)


def store_with(*docs: dict[str, Any]) -> Store:
    store = Store(clock=lambda: 1_800_000_000.0, rng=Random(1))
    for doc in docs:
        store.perform(write(Verb.CREATE, doc))
    return store


def comparable(doc: dict[str, Any]) -> dict[str, Any]:
    out: dict[str, Any] = clean(json.loads(json.dumps(doc)))
    out["metadata"] = {key: value for key, value in out["metadata"].items() if key not in OWN}
    if kept := [one for one in out["metadata"].pop("finalizers", []) if one not in FINALIZERS]:
        out["metadata"]["finalizers"] = kept
    if not out.get("status"):
        out.pop("status", None)
    return out


def cases(section: str) -> list[Any]:
    return [
        pytest.param(version, case, id=f"{version}: {_named(case)}")
        for version in VERSIONS
        for case in RECORDED[version][section]
    ]


def _named(case: dict[str, Any]) -> str:
    doc = case.get("doc") or case["new"]
    return f"{doc['kind']} {json.dumps(doc.get('spec', {}))[:60]} {case['answer'].get('message', '')[:60]}"


def agree(answer: dict[str, Any], ours: dict[str, Any] | ApiError) -> None:
    """The same document, or the same refusal: message, code and causes."""
    if answer["kind"] != "Status":
        assert not isinstance(ours, ApiError), ours.message
        assert comparable(ours) == comparable(answer)
        return
    assert isinstance(ours, ApiError), f"let through: {ours}"
    assert ours.message == answer["message"]
    assert ours.code == answer["code"]
    theirs = {tuple(sorted(cause.items())) for cause in answer.get("details", {}).get("causes", [])}
    assert {tuple(sorted(cause.items())) for cause in ours.details.get("causes", [])} == theirs


def performed(store: Store, wish: Write) -> dict[str, Any] | ApiError:
    try:
        return store.perform(wish)
    except ApiError as error:
        return error


@pytest.mark.parametrize(("version", "case"), cases("created"))
def test_a_created_group_is_what_the_original_makes_of_it(version: str, case: dict[str, Any]) -> None:
    store = store_with(*RECORDED[version]["surroundings"])
    agree(case["answer"], performed(store, write(Verb.CREATE, case["doc"])))


@pytest.mark.parametrize(("version", "case"), cases("updated"))
def test_an_updated_group_is_what_the_original_makes_of_it(version: str, case: dict[str, Any]) -> None:
    first = clean({**case["old"], "status": None, "metadata": {"name": case["old"]["metadata"]["name"]}})
    store = store_with(*RECORDED[version]["surroundings"], first)
    wish = write(Verb.UPDATE, case["new"], case["subresource"])
    there = store.get(wish.kind, "default", wish.name)
    assert there is not None
    metadata = {**case["new"]["metadata"], "uid": there["metadata"]["uid"]}
    metadata.pop("finalizers", None)
    if "resourceVersion" in metadata:
        metadata["resourceVersion"] = there["metadata"]["resourceVersion"]
    new = {**case["new"], "metadata": metadata}
    agree(case["answer"], performed(store, write(Verb.UPDATE, new, case["subresource"])))


@pytest.mark.parametrize("version", ["v1alpha2", "v1beta1"])
def test_who_writes_a_field_that_is_dropped_is_warned(version: str) -> None:
    spec = {
        "schedulingPolicy": {"gang": {"minCount": 2}},
        "resourceClaims": [{"name": "cards", "resourceClaimName": "cards"}],
    }
    body = {"apiVersion": f"scheduling.k8s.io/{version}", "kind": "PodGroup", "metadata": {"name": "g"}, "spec": spec}
    warnings: list[str] = []
    stored = store_with().perform(write(Verb.CREATE, body), warnings=warnings)
    assert "resourceClaims" not in stored["spec"]
    assert warnings == ["spec.resourceClaims is dropped: claims of groups are not served, name the claim in each pod"]
