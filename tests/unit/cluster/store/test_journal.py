"""The Store on disk: what comes back, what is refused, and what happens when the disk is full."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

import orjson
import pytest

from fairlead.client.port import Query
from fairlead.cluster.store.journal import VERSIONS_AHEAD, Journal
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, NAMESPACE, POD_GROUP, POD_GROUP_BETA
from fairlead.errors import Gone, JournalError, StorageFull
from tests.support.journals import create, execute, opened, turn_into_format_1


def create_together(store: Store, **sizes: int) -> None:
    with store.batch():
        for name, size in sizes.items():
            create(store, name, size)


def names(store: Store) -> list[str]:
    return [doc["metadata"]["name"] for doc in store.list(CONFIG_MAP)]


@pytest.mark.parametrize("fsync", [False, True])
def test_a_restart_brings_back_every_object_and_goes_on_counting(tmp_path: Path, fsync: bool) -> None:
    store = opened(tmp_path, fsync=fsync)
    for name in "abc":
        create(store, name)
    store.perform(Write(Verb.PATCH, CONFIG_MAP, "default", "a", body={"data": {"k": "new"}}))
    store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", "b"))
    before, version = store.read(CONFIG_MAP, "default", "a"), store.resource_version
    store.close()
    store = opened(tmp_path, fsync=fsync)
    assert names(store) == ["a", "c"]
    assert store.read(CONFIG_MAP, "default", "a") == before
    create(store, "d")
    assert int(store.read(CONFIG_MAP, "default", "d")["metadata"]["resourceVersion"]) > version
    store.close()


def test_a_restart_brings_back_what_a_large_batch_left(tmp_path: Path) -> None:
    """Created, changed and deleted in one transaction, objects that were there before and new ones."""
    store = opened(tmp_path)
    for number in range(10):
        create(store, f"old-{number}")
    with store.batch():
        for number in range(150):
            create(store, f"new-{number}")
        for name in [f"old-{number}" for number in range(5)] + [f"new-{number}" for number in range(100)]:
            store.perform(Write(Verb.PATCH, CONFIG_MAP, "default", name, body={"data": {"k": "changed"}}))
        for name in ("old-0", "old-9", "new-0", "new-149"):
            store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", name))
    left = list(store.list(CONFIG_MAP))
    store.close()
    store = opened(tmp_path)
    assert list(store.list(CONFIG_MAP)) == left
    assert len(left) == 156
    store.close()


def test_a_watch_of_a_former_life_must_list_anew(tmp_path: Path) -> None:
    store = opened(tmp_path)
    create(store, "a")
    version = str(store.resource_version)
    store.close()
    store = opened(tmp_path)
    with pytest.raises(Gone, match="too old resource version"):
        store.subscribe(CONFIG_MAP, Query(resource_version=version))
    store.close()


def test_no_version_is_given_out_twice_whatever_was_written_last(tmp_path: Path) -> None:
    """The file says only how far versions may have come, so a delete at the end leaves no trace of its own version."""
    given: list[int] = []
    for life in range(3):
        store = opened(tmp_path)
        create(store, f"kept-{life}")
        given.append(store.resource_version)
        for number in range(life * VERSIONS_AHEAD // 2):
            create(store, "passing")
            store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", "passing"))
            assert store.resource_version == given[-1] + 2 * (number + 1)
        given.append(store.resource_version)
        store.close()
    assert sorted(given) == given
    assert all(later > earlier for earlier, later in zip(given[1::2], given[2::2], strict=False))


def test_the_first_objects_are_made_once(tmp_path: Path) -> None:
    store = opened(tmp_path)
    uids = [doc["metadata"]["uid"] for doc in store.list(NAMESPACE)]
    store.close()
    store = opened(tmp_path)
    assert [doc["metadata"]["uid"] for doc in store.list(NAMESPACE)] == uids
    store.close()


def test_a_second_process_is_kept_out(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    with pytest.raises(JournalError, match="is in use by another process"):
        Journal(tmp_path)
    journal.close()
    Journal(tmp_path).close()


def test_an_unknown_format_is_refused_by_name(tmp_path: Path) -> None:
    Journal(tmp_path).close()
    database = sqlite3.connect(tmp_path / "objects.db")
    database.execute("UPDATE meta SET value = '99' WHERE key = 'format'")
    database.commit()
    database.close()
    with pytest.raises(JournalError, match='has the format "99"; this version of fairlead reads "2"'):
        Journal(tmp_path)


def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    (tmp_path / "objects.db").write_bytes(b"not a database at all" * 100)
    with pytest.raises(JournalError, match="cannot be read"):
        Journal(tmp_path)


def test_a_full_disk_changes_nothing_and_shows_nothing(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    store = Store(clock=lambda: 1.7e9, rng=random.Random(3), journal=journal)
    create(store, "before")
    watch = store.subscribe(CONFIG_MAP, Query(resource_version=str(store.resource_version)))
    journal.limit_pages(20)
    with pytest.raises(StorageFull):
        create_together(store, small=1, large=200_000)
    assert names(store) == ["before"]
    assert watch.drain() == []
    journal.limit_pages(10_000)
    create(store, "after")
    store.close()
    store = opened(tmp_path)
    assert names(store) == ["after", "before"]
    store.close()


def test_objects_that_were_kept_in_an_older_version_come_back_in_the_one_that_is_kept_now(tmp_path: Path) -> None:
    store = opened(tmp_path)
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "disruptionMode": "PodGroup"}
    store.perform(Write(Verb.CREATE, POD_GROUP, "default", "g", body={"spec": spec}))
    before = store.read(POD_GROUP, "default", "g")
    store.close()
    turn_into_format_1(tmp_path)
    written = "UPDATE objects SET resource = 'scheduling.k8s.io/v1alpha2/podgroups', raw = ? WHERE name = 'g'"
    execute(tmp_path, written, orjson.dumps(before))
    store = opened(tmp_path)
    assert store.read(POD_GROUP, "default", "g") == before
    assert store.read(POD_GROUP_BETA, "default", "g")["spec"]["disruptionMode"] == {"all": {}}
    store.perform(Write(Verb.DELETE, POD_GROUP_BETA, "default", "g"))
    store.close()
    store = opened(tmp_path)
    assert list(store.list(POD_GROUP)) == []
    store.close()
