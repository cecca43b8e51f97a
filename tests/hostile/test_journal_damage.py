"""Journals with wrong bytes, lost rows or rows that came back: each is noticed at load and named."""

from __future__ import annotations

import logging
import random
import sqlite3
from pathlib import Path

import pytest

from fairlead.cluster.server.pki import Credentials
from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.journal_format import DATABASE
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP
from fairlead.errors import JournalError
from tests.support.journals import config_maps, create, execute, opened, turn_into_format_1


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    store = opened(tmp_path)
    for number in range(60):
        create(store, f"c{number}", 200)
    for number in range(0, 60, 3):
        store.perform(Write(Verb.PATCH, CONFIG_MAP, "default", f"c{number}", body={"data": {"k": "new"}}))
    for number in range(0, 60, 10):
        store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", f"c{number}"))
    store.close()
    return tmp_path


def test_a_flipped_byte_is_never_silently_wrong(filled: Path) -> None:
    store = opened(filled)
    expected = config_maps(store)
    store.close()
    database = filled / DATABASE
    good = database.read_bytes()
    rng = random.Random(7)
    refused = 0
    for _ in range(150):
        at, value = rng.randrange(len(good)), rng.randrange(1, 256)
        for beside in filled.glob(DATABASE + "-*"):
            beside.unlink()
        database.write_bytes(good[:at] + bytes([good[at] ^ value]) + good[at + 1 :])
        try:
            store = opened(filled)
        except JournalError as error:
            refused += "fairlead journal check" in str(error)
            continue
        assert config_maps(store) == expected, f"byte {at} ^ {value}"
        store.close()
    assert refused > 50


def test_a_damaged_object_is_named_and_can_be_left_out(filled: Path, caplog: pytest.LogCaptureFixture) -> None:
    execute(filled, "UPDATE objects SET raw = replace(raw, 'new', 'old') WHERE name IN ('c3', 'c6')")
    with pytest.raises(JournalError, match=r"is damaged: configmaps default/c3, configmaps default/c6; ") as refused:
        opened(filled)
    assert f"`fairlead up --data {filled} --leave-out-damaged`" in str(refused.value)
    with caplog.at_level(logging.WARNING, "fairlead.journal"):
        store = opened(filled, leave_out_damaged=True)
    assert [record.getMessage() for record in caplog.records] == [
        "the journal holds 2 damaged objects of /v1/configmaps: they are set aside, and not served"
    ]
    assert len(config_maps(store)) == 52
    create(store, "c3")
    store.close()
    store = opened(filled)
    assert len(config_maps(store)) == 53
    store.close()


@pytest.mark.parametrize("how", ["name = 'c3' || name", "namespace = 'other'", "resource = '/v1/secrets'",
                                 "version = version + 5000", "raw = CAST(raw AS TEXT) || ' '", "crc = crc + 1",
                                 "name = CAST(x'ff' AS TEXT)"])  # fmt: skip
def test_each_part_of_a_row_is_checked(filled: Path, how: str) -> None:
    execute(filled, f"UPDATE objects SET {how} WHERE name = 'c4'")
    with pytest.raises(JournalError, match="is damaged: "):
        opened(filled)


def test_a_row_that_was_lost_is_missed(filled: Path) -> None:
    execute(filled, "DELETE FROM objects WHERE name = 'c4'")
    with pytest.raises(JournalError, match="which objects there are"):
        opened(filled)
    store = opened(filled, leave_out_damaged=True)
    assert "c4" not in config_maps(store)
    store.close()
    opened(filled).close()


def test_a_row_that_came_back_is_named(filled: Path) -> None:
    """As if the page that lost it had never reached the disk."""
    (kept,) = _rows(filled, "c5")
    store = opened(filled)
    store.perform(Write(Verb.PATCH, CONFIG_MAP, "default", "c5", body={"data": {"k": "newest"}}))
    store.close()
    execute(filled, "INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", *kept)
    with pytest.raises(JournalError, match=r"is damaged: configmaps default/c5 and which objects there are"):
        opened(filled)
    store = opened(filled, leave_out_damaged=True)
    assert config_maps(store)["c5"]["data"] == {"k": "newest"}
    store.close()
    opened(filled).close()


def _rows(directory: Path, name: str) -> list[tuple[object, ...]]:
    database = sqlite3.connect(directory / DATABASE)
    found = database.execute("SELECT * FROM objects WHERE name = ?", [name]).fetchall()
    database.close()
    return found


def test_deletions_alone_are_counted(filled: Path) -> None:
    store = opened(filled)
    for name in ("c1", "c2"):
        store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", name))
    store.close()
    opened(filled).close()


def test_the_highest_version_cannot_go_back(filled: Path) -> None:
    store = opened(filled)
    version = store.resource_version
    store.close()
    execute(filled, "UPDATE meta SET value = '7' WHERE key = 'resourceVersion'")
    with pytest.raises(JournalError, match="is damaged: its highest version"):
        opened(filled)
    store = opened(filled, leave_out_damaged=True)
    assert store.resource_version > version
    create(store, "later")
    store.close()
    opened(filled).close()


def test_a_journal_of_the_first_format_is_upgraded(filled: Path) -> None:
    store = opened(filled)
    expected, version = config_maps(store), store.resource_version
    store.close()
    turn_into_format_1(filled)
    store = opened(filled)
    assert config_maps(store) == expected
    assert store.resource_version >= version
    create(store, "more")
    store.close()
    store = opened(filled)
    assert config_maps(store).keys() == expected.keys() | {"more"}
    store.close()


@pytest.mark.parametrize("raw", [b"", b"{}", b"[1]", b'{"metadata": null}', b'{"metadata": {"name": "x"}}', b"\xff"])
def test_a_row_of_the_first_format_that_is_no_object_is_named(filled: Path, raw: bytes) -> None:
    turn_into_format_1(filled)
    execute(filled, "UPDATE objects SET raw = ? WHERE name = 'c4'", raw)
    with pytest.raises(JournalError, match=r"is damaged: configmaps default/c4;"):
        opened(filled)


@pytest.mark.parametrize("size", [0, 50, 4096, 5000])
def test_a_file_that_was_cut_off_is_refused(filled: Path, size: int) -> None:
    database = filled / DATABASE
    database.write_bytes(database.read_bytes()[:size])
    Credentials.kept_in(filled, now=1.7e9)
    with pytest.raises(JournalError, match=r"cannot be read|is damaged|is empty, and token beside it"):
        opened(filled)


def test_an_empty_database_beside_a_log_is_refused(filled: Path) -> None:
    """SQLite would remove the log, and with it what was not yet copied into the database."""
    database = filled / DATABASE
    log = filled / (DATABASE + "-wal")
    database.write_bytes(b"")
    log.write_bytes(b"x" * 100)
    with pytest.raises(JournalError, match="its file is empty"):
        opened(filled)
    assert log.read_bytes() == b"x" * 100


def test_an_empty_database_beside_the_port_is_refused(tmp_path: Path) -> None:
    (tmp_path / "port").write_text("4711\n")
    with pytest.raises(JournalError, match="is empty, and port beside it say that it held a cluster"):
        Journal(tmp_path)


def test_a_process_that_ended_before_the_first_row_left_a_journal_that_starts(tmp_path: Path) -> None:
    Journal(tmp_path).close()
    turn_into_format_1(tmp_path)
    execute(tmp_path, "DELETE FROM meta")
    opened(tmp_path).close()
    opened(tmp_path).close()
