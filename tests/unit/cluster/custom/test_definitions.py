"""Defined kinds in the Store: the journal, changes of a definition, and what expressions can say."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from fairlead.cluster.custom.declared import escaped
from fairlead.cluster.custom.definitions import version_priority
from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import PatchType, Verb, Write
from fairlead.core.model.kinds import CUSTOM_RESOURCE_DEFINITION, Kind
from fairlead.errors import Conflict, Invalid, NotFound, StorageFull
from fairlead.volcano.kinds import VC_QUEUE

Doc = dict[str, Any]
NAME = "things.example.com"


def definition(*versions: str, **properties: Doc) -> Doc:
    spec = {"type": "object", "properties": {"size": {"type": "integer"}} | properties}
    schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
    served = [
        {"name": name, "served": True, "storage": index == 0, "schema": schema}
        for index, name in enumerate(versions or ("v1",))
    ]
    names = {"plural": "things", "kind": "Thing"}
    return {"spec": {"group": "example.com", "scope": "Namespaced", "names": names, "versions": served}}


def new_store(journal: Journal | None = None) -> Store:
    return Store(clock=lambda: 1_800_000_000.0, rng=random.Random(1), journal=journal)


def define(store: Store, body: Doc) -> Kind:
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, body))
    return thing_kind(store)


def thing_kind(store: Store, version: str = "v1") -> Kind:
    kind = store.registry.by_resource("example.com", version, "things")
    assert kind is not None
    return kind


def create(store: Store, kind: Kind, name: str, **spec: Any) -> Doc:
    return store.perform(Write(Verb.CREATE, kind, "default", name, {"spec": spec}))


def test_definitions_and_their_objects_survive_a_restart(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    store = new_store(journal)
    create(store, define(store, definition()), "a", size=3)
    # A rewritten definition stands behind its objects in the journal.
    patch = {"metadata": {"labels": {"x": "y"}}}
    store.perform(Write(Verb.PATCH, CUSTOM_RESOURCE_DEFINITION, "", NAME, patch))
    store.close()
    again = new_store(Journal(tmp_path))
    assert again.read(thing_kind(again), "default", "a")["spec"] == {"size": 3}
    again.close()


def test_objects_follow_when_another_version_is_stored(tmp_path: Path) -> None:
    store = new_store(Journal(tmp_path))
    create(store, define(store, definition("v1", "v2")), "a", size=3)
    doc = store.read(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    body = {**doc, "spec": definition("v2", "v1", note={"type": "string", "default": "x"})["spec"]}
    changed = store.perform(Write(Verb.UPDATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, body))
    assert changed["status"]["storedVersions"] == ["v1", "v2"]
    for version in ("v1", "v2"):
        found = store.read(thing_kind(store, version), "default", "a")
        assert (found["apiVersion"], found["spec"]) == (f"example.com/{version}", {"size": 3, "note": "x"})
    store.close()
    again = new_store(Journal(tmp_path))
    assert again.read(thing_kind(again, "v2"), "default", "a")["spec"] == {"size": 3, "note": "x"}
    again.close()


def test_a_definition_that_could_not_be_written_is_not_served(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    store = new_store(journal)
    journal.limit_pages(1)
    with pytest.raises(StorageFull):
        define(store, definition(big={"type": "string", "description": "x" * 1_000_000}))
    assert store.registry.by_resource("example.com", "v1", "things") is None
    store.close()


def test_watchers_are_cut_off_when_the_definition_changes() -> None:
    store = new_store()
    kind = define(store, definition())
    subscription = store.subscribe(kind)
    doc = store.read(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    body = {**doc, "spec": definition("v1", note={"type": "string"})["spec"]}
    store.perform(Write(Verb.UPDATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, body))
    assert subscription.overflowed
    assert thing_kind(store) is not kind


def test_a_definition_of_a_built_in_kind_is_stored_and_changes_nothing() -> None:
    store = new_store()
    names = {"plural": "queues", "kind": "Queue"}
    spec = definition("v1beta1")["spec"] | {"group": "scheduling.volcano.sh", "scope": "Cluster", "names": names}
    name = "queues.scheduling.volcano.sh"
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", name, {"spec": spec}))
    store.perform(Write(Verb.CREATE, VC_QUEUE, "", "q", {"spec": {"weight": 2}}))
    store.perform(Write(Verb.DELETE, CUSTOM_RESOURCE_DEFINITION, "", name))
    assert store.read(VC_QUEUE, "", "q")["spec"]["weight"] == 2
    with pytest.raises(NotFound):
        store.read(CUSTOM_RESOURCE_DEFINITION, "", name)


def test_two_definitions_cannot_have_the_same_kind() -> None:
    store = new_store()
    define(store, definition())
    body = definition()
    body["spec"]["names"] = {"plural": "stuffs", "kind": "Thing"}
    doc = store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", "stuffs.example.com", body))
    accepted = next(one for one in doc["status"]["conditions"] if one["type"] == "NamesAccepted")
    assert (accepted["status"], accepted["reason"], accepted["message"]) == (
        "False",
        "KindConflict",
        '"Thing" is already in use',
    )
    assert store.registry.by_resource("example.com", "v1", "stuffs") is None


def test_defined_objects_can_be_applied_server_side() -> None:
    store = new_store()
    tags = {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}
    kind = define(store, definition(tags=tags))

    def apply(who: str, **spec: Any) -> Doc:
        body = {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "a"}, "spec": spec}
        params = {"fieldManager": who}
        return store.perform(Write(Verb.PATCH, kind, "default", "a", body, patch_type=PatchType.APPLY, params=params))

    apply("one", size=1, tags=["x"])
    assert apply("two", tags=["y"])["spec"]["tags"] == ["x", "y"]
    assert apply("one", size=1)["spec"]["tags"] == ["y"]
    with pytest.raises(Conflict, match=r'conflict with "one": \.spec\.size'):
        apply("two", size=2)


def test_versions_are_preferred_as_clients_do() -> None:
    names = ["v1alpha1", "foo", "v1", "v2beta1", "v10", "v1beta2", "v2"]
    assert sorted(names, key=version_priority) == ["v10", "v2", "v1", "v2beta1", "v1beta2", "v1alpha1", "foo"]


def test_a_misspelt_field_is_found_when_the_definition_is_created() -> None:
    store = new_store()
    body = definition()
    spec = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": "self.absent > 1"}]
    with pytest.raises(Invalid, match="undefined field 'absent'"):
        define(store, body)


def test_a_rule_that_fails_to_run_refuses_the_object() -> None:
    store = new_store()
    body = definition()
    spec = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["x-kubernetes-validations"] = [{"rule": "10 / self.size > 1"}]
    kind = define(store, body)
    with pytest.raises(Invalid, match=r"division by zero evaluating rule: 10 / self\.size > 1"):
        create(store, kind, "a", size=0)


def test_a_rule_that_an_unchanged_part_broke_before_does_not_refuse_a_change() -> None:
    store = new_store()
    kind = define(store, definition(note={"type": "string"}))
    create(store, kind, "a", size=1)
    doc = store.read(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    rules = {"size": {"type": "integer", "x-kubernetes-validations": [{"rule": "self > 1"}]}}
    body = {**doc, "spec": definition("v1", note={"type": "string"}, **rules)["spec"]}
    store.perform(Write(Verb.UPDATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, body))

    def change(**spec: Any) -> Doc:
        return store.perform(Write(Verb.PATCH, thing_kind(store), "default", "a", {"spec": spec}))

    assert change(note="x")["spec"] == {"size": 1, "note": "x"}
    with pytest.raises(Invalid, match="failed rule: self > 1"):
        change(size=0)


@pytest.mark.parametrize(
    ("name", "written"),
    [("namespace", "__namespace__"), ("a-b.c/d", "a__dash__b__dot__c__slash__d"), ("a__b", "a__underscores__b"),
     ("x_y", "x_y"), ("1a", None), ("a b", None), ("", None)],
)  # fmt: skip
def test_fields_have_names_in_expressions(name: str, written: str | None) -> None:
    assert escaped(name) == written
