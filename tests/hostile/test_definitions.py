"""Definitions that go before their objects, or stop being served: memory, journal and watchers stay one."""

from __future__ import annotations

import logging
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from fairlead.client.port import Query
from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.journal_format import DATABASE
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, CUSTOM_RESOURCE_DEFINITION, Kind
from fairlead.errors import Gone, NotFound, StorageFull
from tests.support.journals import execute, turn_into_format_1

NAME = "foos.ex.com"
CLOSED: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
OPEN: dict[str, Any] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def definition(schema: dict[str, Any] = OPEN, **names: Any) -> dict[str, Any]:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "foos", "kind": "Foo"} | names
    return {"spec": {"group": "ex.com", "scope": "Namespaced", "names": names, "versions": [version]}}


def opened(directory: Path) -> tuple[Store, Journal]:
    journal = Journal(directory)
    return Store(clock=lambda: 1.8e9, rng=random.Random(1), journal=journal), journal


def foo(store: Store) -> Kind:
    kind = store.registry.by_resource("ex.com", "v1", "foos")
    assert kind is not None
    return kind


def stuck(store: Store, *names: str) -> Kind:
    """A definition that waits for objects with finalizers."""
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, definition()))
    for name in names:
        body = {"metadata": {"finalizers": ["ex.com/never"]}, "a": 1}
        store.perform(Write(Verb.CREATE, foo(store), "default", name, body))
    store.perform(Write(Verb.DELETE, CUSTOM_RESOURCE_DEFINITION, "", NAME))
    return foo(store)


def take_finalizer_off(store: Store) -> None:
    patch = {"metadata": {"finalizers": None}}
    store.perform(Write(Verb.PATCH, CUSTOM_RESOURCE_DEFINITION, "", NAME, patch))


def rows(directory: Path, table: str = "objects") -> list[str]:
    with sqlite3.connect(directory / DATABASE) as database:
        found = database.execute(f"SELECT name FROM {table} WHERE resource LIKE 'ex.com/%' ORDER BY name").fetchall()
    database.close()
    return [name for (name,) in found]


def test_the_finalizer_of_a_stuck_definition_can_be_taken_off(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    kind = stuck(store, "a", "b")
    watch = store.subscribe(kind)
    assert len(watch.drain()) == 2
    before = store.resource_version
    take_finalizer_off(store)
    with pytest.raises(NotFound):
        store.read(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    told = watch.drain()
    assert [(type_, record.name) for type_, record, _ in told] == [("DELETED", "a"), ("DELETED", "b")]
    assert [version for _, _, version in told] == [before + 1, before + 2]
    assert watch.ended
    assert not watch.overflowed
    assert rows(tmp_path) == []
    store.close()
    store, _ = opened(tmp_path)
    assert store.registry.by_resource("ex.com", "v1", "foos") is None
    store.close()


def test_nothing_resumes_from_before_a_definition_that_came_again(tmp_path: Path) -> None:
    """The deletions of the objects went with the log of the definition that is gone, so the watcher must list."""
    store, _ = opened(tmp_path)
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, definition()))
    store.perform(Write(Verb.CREATE, foo(store), "default", "a", {}))
    before = str(store.resource_version)
    store.perform(Write(Verb.DELETE, CUSTOM_RESOURCE_DEFINITION, "", NAME))
    gone = str(store.resource_version)
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, definition()))
    again = str(store.resource_version)
    store.perform(Write(Verb.CREATE, foo(store), "default", "b", {}))
    for version in (before, gone):
        with pytest.raises(Gone, match=f"too old resource version: {version}"):
            store.subscribe(foo(store), Query(resource_version=version))
        with pytest.raises(Gone):
            store.page(foo(store), Query(resource_version=version, resource_version_match="Exact"))
    resumed = store.subscribe(foo(store), Query(resource_version=again))
    assert [(type_, record.name) for type_, record, _ in resumed.drain()] == [("ADDED", "b")]
    store.close()


def test_a_full_disk_gives_a_definition_and_its_objects_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, journal = opened(tmp_path)
    kind = stuck(store, "a", "b")
    watch = store.subscribe(kind)
    watch.drain()
    objects = list(store.list(kind))

    def full(*_: object) -> None:
        raise StorageFull("no more")

    with monkeypatch.context() as patched:
        patched.setattr(journal, "append", full)
        with pytest.raises(StorageFull):
            take_finalizer_off(store)
    assert foo(store) is kind
    assert list(store.list(kind)) == objects
    assert watch.drain() == []
    assert not watch.ended
    take_finalizer_off(store)
    assert [type_ for type_, _, _ in watch.drain()] == ["DELETED", "DELETED"]
    store.close()


def test_a_full_disk_gives_back_what_a_narrower_schema_cut_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch that changes objects, their definition and objects again is undone whole."""
    store, journal = opened(tmp_path)
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, definition()))
    kind = foo(store)
    for name in "abc":
        store.perform(Write(Verb.CREATE, kind, "default", name, {"extra": name}))
    objects = list(store.list(kind))
    watch = store.subscribe(kind, Query(resource_version=str(store.resource_version)))

    def full(*_: object) -> None:
        raise StorageFull("no more")

    def change_all() -> None:
        with store.batch():
            store.perform(Write(Verb.CREATE, kind, "default", "d", {"extra": "d"}))
            doc = store.read(CUSTOM_RESOURCE_DEFINITION, "", NAME)
            body = {**doc, "spec": definition(CLOSED)["spec"]}
            store.perform(Write(Verb.UPDATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, body))
            store.perform(Write(Verb.DELETE, foo(store), "default", "a"))
            store.perform(Write(Verb.PATCH, foo(store), "default", "b", {"a": 5}))

    with monkeypatch.context() as patched:
        patched.setattr(journal, "append", full)
        with pytest.raises(StorageFull):
            change_all()
    assert list(store.list(foo(store))) == objects
    assert watch.drain() == []
    assert not watch.overflowed
    change_all()
    left = {doc["metadata"]["name"]: (doc.get("a"), "extra" in doc) for doc in store.list(foo(store))}
    assert left == {"b": (5, False), "c": (None, False), "d": (None, False)}
    assert watch.overflowed
    store.close()
    store, _ = opened(tmp_path)
    assert {doc["metadata"]["name"] for doc in store.list(foo(store))} == {"b", "c", "d"}
    store.close()


def test_objects_of_a_definition_that_is_not_established_are_hidden_and_kept(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, definition(shortNames=["fo"])))
    store.perform(Write(Verb.CREATE, foo(store), "default", "a", {"a": 1}))
    other = definition(plural="bars", kind="Bar", shortNames=["ba"])
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", "bars.ex.com", other))
    clash = {"spec": {"names": {"shortNames": ["ba"]}}}
    store.perform(Write(Verb.PATCH, CUSTOM_RESOURCE_DEFINITION, "", NAME, clash))
    doc = store.read(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    body = {**doc, "status": {}}
    store.perform(Write(Verb.UPDATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, body, subresource="status"))
    assert store.registry.by_resource("ex.com", "v1", "foos") is None
    assert rows(tmp_path) == ["a"]
    store.close()
    store, _ = opened(tmp_path)
    assert store.registry.by_resource("ex.com", "v1", "foos") is None
    freed = {"spec": {"names": {"shortNames": ["fo"]}}}
    store.perform(Write(Verb.PATCH, CUSTOM_RESOURCE_DEFINITION, "", NAME, freed))
    assert store.read(foo(store), "default", "a")["a"] == 1
    # Not established it can still be deleted, with all that is hidden behind it.
    store.perform(Write(Verb.PATCH, CUSTOM_RESOURCE_DEFINITION, "", NAME, clash))
    doc = store.read(CUSTOM_RESOURCE_DEFINITION, "", NAME)
    body = {**doc, "status": {}}
    store.perform(Write(Verb.UPDATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, body, subresource="status"))
    store.perform(Write(Verb.DELETE, CUSTOM_RESOURCE_DEFINITION, "", NAME))
    assert rows(tmp_path) == []
    assert store.registry.by_resource("ex.com", "v1", "bars") is not None
    store.close()


def test_a_name_that_another_definition_took_stays_with_that_one(tmp_path: Path) -> None:
    store, _ = opened(tmp_path)
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", NAME, definition()))
    other = definition(plural="bars")  # the kind Foo is taken
    store.perform(Write(Verb.CREATE, CUSTOM_RESOURCE_DEFINITION, "", "bars.ex.com", other))
    store.perform(Write(Verb.DELETE, CUSTOM_RESOURCE_DEFINITION, "", "bars.ex.com"))
    assert store.registry.by_kind("ex.com/v1", "Foo") is foo(store)
    store.close()


def test_rows_that_nothing_serves_are_set_aside(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    store, _ = opened(tmp_path)
    stuck(store, "a", "b")
    store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", "kept", {}))
    store.close()
    turn_into_format_1(tmp_path)
    execute(tmp_path, "DELETE FROM objects WHERE name = ?", NAME)  # as that version left it
    with caplog.at_level(logging.WARNING, "fairlead.journal"):
        store, _ = opened(tmp_path)
    assert [record.getMessage() for record in caplog.records] == [
        "the journal holds 2 objects of ex.com/v1/foos, which no definition serves: they are set aside, and not served"
    ]
    assert store.read(CONFIG_MAP, "default", "kept")
    store.close()
    assert (rows(tmp_path), rows(tmp_path, "aside")) == ([], ["a", "b"])
    caplog.clear()
    store, _ = opened(tmp_path)
    store.close()
    assert caplog.records == []
