"""A full disk: deletions still go through, a restart too, and nothing that was acknowledged is lost.

`limit_pages` makes SQLite's database full; that the disk itself is full is played by a Reserve that finds no room.
"""

from __future__ import annotations

import asyncio
import logging
import os
import random
import stat
from pathlib import Path

import pytest

from fairlead.cli.kubeconfig_file import KeptPort, KubeconfigFile
from fairlead.cluster.store import reserve
from fairlead.cluster.store.journal import Journal, _check_owner
from fairlead.cluster.store.store import Store, StoreApi
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP, POD
from fairlead.errors import JournalError, StorageFull
from tests.support.journals import config_maps, create, opened


def filled(directory: Path) -> tuple[Store, Journal]:
    journal = Journal(directory)
    store = Store(clock=lambda: 1.7e9, rng=random.Random(3), journal=journal)
    for number in range(30):
        create(store, f"c{number}", 3000)
    return store, journal


def no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve.Reserve, "_allocated", lambda *_: False)


def delete(name: str) -> Write:
    return Write(Verb.DELETE, CONFIG_MAP, "default", name)


class FullDisk:
    """The disk under a journal: transactions fail as SQLite's do until the reserve was given back."""

    def __init__(self, directory: Path, journal: Journal, monkeypatch: pytest.MonkeyPatch) -> None:
        self._reserve, self._execute, self._journal = directory / "reserve", journal._execute, journal
        monkeypatch.setattr(journal, "_execute", self.execute)
        no_room(monkeypatch)

    def execute(self, statements: object) -> None:
        if self._reserve.exists():
            self._journal.limit_pages(1)
            try:
                self._journal._database.execute("CREATE TABLE more (a)")
            finally:
                self._journal.limit_pages(1_000_000)
        self._execute(statements)  # type: ignore[arg-type]


def test_a_reserve_is_kept_for_deletions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, journal = filled(tmp_path)
    assert (tmp_path / "reserve").stat().st_size >= 2.5 * reserve.PAGE * reserve.LOG_PAGES[-1]
    with monkeypatch.context() as patched:
        FullDisk(tmp_path, journal, patched)
        with pytest.raises(StorageFull, match="takes no more writes"):
            create(store, "more")
        assert (tmp_path / "reserve").exists()
        store.perform(delete("c1"))
        assert not (tmp_path / "reserve").exists()
        # What deletions freed is for deletions until there is a reserve again.
        with pytest.raises(StorageFull, match="its disk is full"):
            create(store, "more")
        store.perform(delete("c2"))
    create(store, "more")
    assert (tmp_path / "reserve").exists()
    expected = config_maps(store)
    assert len(expected) == 29
    store.close()
    store = opened(tmp_path)
    assert config_maps(store) == expected
    store.close()


def test_a_deletion_that_takes_two_steps_goes_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, journal = filled(tmp_path)
    pod = {"spec": {"nodeName": "n", "containers": [{"name": "c", "image": "i"}]}}
    store.perform(Write(Verb.CREATE, POD, "default", "p", body=pod))
    with monkeypatch.context() as patched:
        FullDisk(tmp_path, journal, patched)
        store.perform(Write(Verb.DELETE, POD, "default", "p"))
        assert "deletionTimestamp" in store.read(POD, "default", "p")["metadata"]
        store.perform(Write(Verb.DELETE, POD, "default", "p", body={"gracePeriodSeconds": 0}))
    assert store.get(POD, "default", "p") is None
    store.close()


def test_deletions_are_not_held_up_by_creations_beside_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, journal = filled(tmp_path)

    async def together() -> list[object]:
        api = StoreApi(store)
        creation = Write(Verb.CREATE, CONFIG_MAP, "default", "more", body={})
        return await asyncio.gather(
            *map(api.perform, [creation, delete("c1"), delete("none"), delete("c2")]), return_exceptions=True
        )

    with monkeypatch.context() as patched:
        FullDisk(tmp_path, journal, patched)
        answers = asyncio.run(together())
    assert [type(answer).__name__ for answer in answers] == ["StorageFull", "dict", "NotFound", "dict"]
    assert len(config_maps(store)) == 28
    store.close()


def test_a_start_on_a_full_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store, _ = filled(tmp_path)
    store.close()
    (tmp_path / "reserve").unlink()
    with monkeypatch.context() as patched:
        no_room(patched)
        store = opened(tmp_path)
        assert [record.getMessage() for record in caplog.records] == [
            f"the disk of {tmp_path} is full: only deletions are taken"
        ]
        store.perform(delete("c1"))
        with pytest.raises(StorageFull):
            create(store, "more")
    store.close()


def test_what_is_only_remembered_need_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise OSError(28, "No space left on device")

    data = tmp_path / "data"
    data.mkdir()
    monkeypatch.setattr("fairlead.cli.kubeconfig_file.write_private", full)
    with caplog.at_level(logging.WARNING):
        KeptPort(data).keep(4711)
        KubeconfigFile(tmp_path / "kubeconfig", chosen=True, data=data).write(b"content")
    assert (tmp_path / "kubeconfig").read_bytes() == b"content"
    assert [record.getMessage().partition(" (")[0] for record in caplog.records] == [
        f"{data / 'port'} cannot be written",
        f"{data / 'kubeconfig.sha256'} cannot be written",
    ]


def test_a_kubeconfig_that_is_remembered_is_not_remembered_again(tmp_path: Path) -> None:
    KubeconfigFile(tmp_path / "kubeconfig", chosen=True, data=tmp_path).write(b"content")
    memory = tmp_path / "kubeconfig.sha256"
    before = memory.stat()
    KubeconfigFile(tmp_path / "kubeconfig", chosen=True, data=tmp_path).write(b"content")
    assert memory.stat().st_ino == before.st_ino


def test_a_directory_that_everybody_may_change_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tmp_path.chmod(0o777)
    with pytest.raises(JournalError, match=rf"has the mode 0777: .* chmod 700 {tmp_path}"):
        Journal(tmp_path)
    assert list(tmp_path.iterdir()) == []
    Journal(tmp_path / "within").close()
    tmp_path.chmod(0o770)
    Journal(tmp_path).close()
    assert [record.getMessage() for record in caplog.records] == [
        f"the data directory {tmp_path} can be changed by its group"
    ]
    tmp_path.chmod(0o700)


def test_a_directory_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Foreign(type(tmp_path)):  # type: ignore[misc]
        def stat(self, **options: bool) -> os.stat_result:
            found = list(super().stat(**options))
            found[stat.ST_UID] = 4711
            return os.stat_result(found)

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(JournalError, match="belongs to another user"):
        _check_owner(Foreign(tmp_path))
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    _check_owner(Foreign(tmp_path))
    assert "belongs to another user" in caplog.text
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    _check_owner(Foreign(tmp_path))
