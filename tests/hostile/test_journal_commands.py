"""`fairlead journal check` and `repair`: what is said of a damaged directory, and what is left of it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from fairlead.cli.main import cli
from fairlead.cluster.store.journal_format import DATABASE
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP
from fairlead.errors import JournalError
from tests.support.journals import config_maps, create, execute, opened, turn_into_format_1


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    """Objects of many sizes, some changed and some deleted: in one page, in several, and in none any more."""
    store = opened(tmp_path)
    for number in range(120):
        create(store, f"c{number}", 10 + number * 97)
    for number in range(0, 120, 3):
        store.perform(Write(Verb.PATCH, CONFIG_MAP, "default", f"c{number}", body={"data": {"k": "new"}}))
    for number in range(0, 120, 10):
        store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", f"c{number}"))
    store.close()
    return tmp_path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["journal", *map(str, arguments)])


def test_a_sound_directory_is_said_to_be_sound_and_not_touched(filled: Path) -> None:
    before = (filled / DATABASE).read_bytes()
    result = run("check", filled)
    assert (result.exit_code, result.output) == (0, "118 objects can be read, 0 are damaged\n")
    assert (filled / DATABASE).read_bytes() == before
    assert sorted(path.name for path in filled.iterdir()) == ["lock", DATABASE, "reserve"]


def test_damaged_objects_are_listed_and_left_out(filled: Path) -> None:
    execute(filled, "UPDATE objects SET raw = replace(raw, 'new', 'old') WHERE name IN ('c3', 'c6')")
    result = run("check", filled)
    assert result.exit_code == 1
    assert result.stdout == (
        "damaged: configmaps default/c3: its checksum is wrong\n"
        "damaged: configmaps default/c6: its checksum is wrong\n"
        "116 objects can be read, 2 are damaged\n"
    )
    result = run("repair", filled)
    assert result.exit_code == 0
    kept = filled / "objects.db.damaged-1"
    assert result.stdout.endswith(f"kept 116 objects and left out 2; what was there is {kept}\n")
    assert kept.stat().st_mode & 0o777 == (filled / DATABASE).stat().st_mode & 0o777 == 0o600
    assert run("check", filled).stdout == "set aside earlier: 2 objects\n116 objects can be read, 0 are damaged\n"
    store = opened(filled)
    assert len(config_maps(store)) == 106
    assert "c3" not in config_maps(store)
    store.close()


def test_a_repaired_directory_gives_out_no_version_twice(filled: Path) -> None:
    store = opened(filled)
    version = store.resource_version
    store.close()
    execute(filled, "UPDATE meta SET value = '7' WHERE key = 'resourceVersion'")
    assert "damaged: its highest version\n" in run("check", filled).stdout
    assert run("repair", filled).exit_code == 0
    store = opened(filled)
    assert store.resource_version > version
    store.close()


@pytest.mark.parametrize("page", [0, 1, 2, 3, 10])
def test_a_lost_page_costs_at_most_what_was_in_it(filled: Path, page: int) -> None:
    """Page 0 is SQLite's header; others are roots, inner pages or leaves."""
    store = opened(filled)
    expected = config_maps(store)
    store.close()
    database = filled / DATABASE
    content = database.read_bytes()
    database.write_bytes(content[: page * 4096] + bytes(4096) + content[(page + 1) * 4096 :])
    with pytest.raises(JournalError, match="fairlead journal"):
        opened(filled)
    assert run("check", filled).exit_code == 1
    assert run("repair", filled).exit_code == 0
    assert run("check", filled).exit_code == 0
    store = opened(filled)
    found = config_maps(store)
    store.close()
    assert len(expected.keys() & found.keys()) >= len(expected) - 12
    for name, doc in found.items():
        assert name not in expected or doc == expected[name]


def test_whatever_byte_is_wrong_the_directory_can_be_repaired(filled: Path) -> None:
    store = opened(filled)
    expected = config_maps(store)
    store.close()
    database = filled / DATABASE
    good = database.read_bytes()
    rng = random.Random(11)
    for _ in range(25):
        at = rng.choice([rng.randrange(100), rng.randrange(8192), rng.randrange(len(good))])
        for beside in filled.glob(DATABASE + "*"):
            beside.unlink()
        database.write_bytes(good[:at] + bytes([good[at] ^ rng.randrange(1, 256)]) + good[at + 1 :])
        if run("check", filled).exit_code:
            assert run("repair", filled).exit_code == 0, at
            store = opened(filled)
            found = config_maps(store)
            store.close()
            assert len(expected.keys() & found.keys()) >= len(expected) - 12, at
            assert all(doc == expected[name] for name, doc in found.items() if name in expected), at


def test_a_directory_in_use_is_left_alone(filled: Path) -> None:
    store = opened(filled)
    for command in ("check", "repair"):
        result = run(command, filled)
        assert result.exit_code == 1
        assert "is in use by another process" in result.output
    store.close()


def test_a_directory_without_a_journal_is_said_to_have_none(tmp_path: Path) -> None:
    result = run("check", tmp_path)
    assert (result.exit_code, result.output) == (1, f"Error: there is no journal in {tmp_path}\n")


def test_an_older_format_is_upgraded_elsewhere(filled: Path) -> None:
    turn_into_format_1(filled)
    assert "upgrades it when it opens it" in run("check", filled).output


def test_a_log_that_was_not_copied_back_counts(tmp_path: Path) -> None:
    store = opened(tmp_path)
    for number in range(20):
        create(store, f"c{number}", 3000)
    copies = {path: path.read_bytes() for path in tmp_path.glob(DATABASE + "*")}
    store.close()
    for path, content in copies.items():  # as a kill left them
        path.write_bytes(content)
    assert run("check", tmp_path).exit_code == 0
    (tmp_path / DATABASE).write_bytes(b"\0" * 4096)
    assert run("repair", tmp_path).exit_code == 0
    store = opened(tmp_path)
    assert len(config_maps(store)) == 20
    store.close()
