"""The tables of a journal: what a row holds, how damage is noticed, and how an older file becomes one of today.

Each row carries a checksum over its key and its content (`crc`), so that a wrong byte is noticed with the object that
it is in. It also carries the sum over all rows that were there after its transaction (`total`): rows that a disk lost,
or that came back, make another sum. A transaction that only deletes has no row of its own and puts the sum beside.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias, cast
from zlib import crc32

import orjson

from fairlead.errors import JournalError

FORMAT = "2"
DATABASE = "objects.db"
CREATED_BESIDE = ("token", "port", "kubeconfig.sha256")
"""Files of a data directory that are written after its database: none of them is there before it has tables."""
_TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (version INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,
                                    name TEXT NOT NULL, raw BLOB NOT NULL, crc INTEGER NOT NULL,
                                    total INTEGER NOT NULL);
"""
NEW = f"""
BEGIN IMMEDIATE; {_TABLES}
INSERT INTO meta VALUES ('format', '{FORMAT}'), ('resourceVersion', sealed('0')), ('total', sealed('0 0'));
COMMIT;
"""
ASIDE = """
CREATE TABLE IF NOT EXISTS aside (version INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,
                                  name TEXT NOT NULL, raw BLOB NOT NULL, why TEXT NOT NULL);
"""
_UPGRADE = """
BEGIN IMMEDIATE;
ALTER TABLE objects ADD COLUMN crc INTEGER NOT NULL DEFAULT 0;
ALTER TABLE objects ADD COLUMN total INTEGER NOT NULL DEFAULT 0;
UPDATE objects SET crc = first_crc(version, CAST(resource AS BLOB), CAST(namespace AS BLOB), CAST(name AS BLOB), raw);
INSERT INTO meta SELECT 'total', sealed(value || ' ' || (SELECT coalesce(sum(version_share(version)), 0) FROM objects))
    FROM meta WHERE key = 'resourceVersion';
UPDATE meta SET value = sealed(CAST(value AS TEXT)) WHERE key = 'resourceVersion';
UPDATE meta SET value = '2' WHERE key = 'format';
COMMIT;
"""
ALL_ROWS = "SELECT version, resource, namespace, name, raw, crc FROM objects"
BROKEN = (sqlite3.Error, UnicodeDecodeError, TypeError)
"""What reading a damaged database raises; the last ones if the damage is in what SQLite quotes or in its tables."""
OLD_ROW = "a newer row holds the same object"
VERSIONS_LOST = 1_000_000
"""How far versions go on behind the newest row if nobody knows which was given out last."""
_PRIME = (1 << 31) - 1

Row: TypeAlias = tuple[int, str, str, str, bytes]
"""One object as it was kept: version, resource (`group/version/plural`), namespace, name, and its JSON."""


@dataclass(frozen=True, slots=True)
class DamagedRow:
    """A row that is not as it was written; its names are as far as they can be read."""

    version: int
    resource: str
    namespace: str
    name: str
    why: str = "its checksum is wrong"

    def __str__(self) -> str:
        group, _, rest = self.resource.partition("/")
        plural = rest.rpartition("/")[2]
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        return f"{plural}.{group} {where}" if group else f"{plural or self.resource} {where}"


def row_crc(version: int, resource: bytes, namespace: bytes, name: bytes, raw: bytes) -> int:
    """The checksum of a row. `Journal.append` has the same for texts, where it runs for every write."""
    return crc32(raw, crc32(b"%d %b %b/%b" % (version, resource, namespace, name)))


def version_share(version: int) -> int:
    """What a row adds to the sum over all rows. Sums of cubes of different versions differ."""
    return version * version * version % _PRIME


def sealed(text: str) -> str:
    """A value of `meta` with its checksum."""
    return f"{text} {crc32(text.encode())}"


def unsealed(database: sqlite3.Connection, key: str) -> list[int] | None:
    """The numbers of a value of `meta`; None if they are not what was written."""
    row = database.execute("SELECT CAST(value AS TEXT) FROM meta WHERE key = ?", [key]).fetchone()
    text = row[0] if row is not None else ""
    text = text.decode(errors="replace") if isinstance(text, bytes) else str(text)
    numbers = text.rpartition(" ")[0]
    return [int(part) for part in numbers.split()] if numbers and text == sealed(numbers) else None


def judge(found: tuple[object, ...]) -> Row | DamagedRow:
    """A row as it was read, with all texts as bytes."""
    version, resource, namespace, name, raw, crc = cast("tuple[int, bytes, bytes, bytes, bytes, int]", found)
    try:
        if row_crc(version, resource, namespace, name, raw) == crc:
            return version, resource.decode(), namespace.decode(), name.decode(), raw
    except (TypeError, UnicodeDecodeError):
        pass
    return DamagedRow(version, *(_readable(text) for text in (resource, namespace, name)))


def expected_total(database: sqlite3.Connection) -> int | None:
    """The sum over all rows after the last transaction: of the newest row, or of a later one that only deleted. None if
    it cannot be read."""
    beside = unsealed(database, "total")
    if beside is None or len(beside) != 2:
        return None
    version, total = beside
    newest = database.execute("SELECT version, total FROM objects ORDER BY version DESC LIMIT 1").fetchone()
    return newest[1] if newest is not None and newest[0] > version else total


def prepare(database: sqlite3.Connection, path: Path) -> None:
    """Give a new database its tables, and an older one today's; raises JournalError for what is not a journal."""
    database.create_function("sealed", 1, sealed, deterministic=True)
    tables = {str(name) for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables:
        refuse_emptied(path)
        database.executescript(NEW)
        return
    found = database.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() if "meta" in tables else None
    if found is None and _was_never_used(database, tables):
        database.executescript(f"DROP TABLE IF EXISTS objects; DROP TABLE IF EXISTS meta; {NEW}")
        return
    if found is None:
        raise JournalError(f"the journal {path} has no format version: it was not written by fairlead")
    if str(found[0]) == "1":
        _upgrade(database)
    elif str(found[0]) != FORMAT:
        raise JournalError(f'the journal {path} has the format "{found[0]}"; this version of fairlead reads "{FORMAT}"')


def refuse_emptied(path: Path) -> None:
    """Raise if a database without tables stands where there was one with a cluster."""
    beside = [name for name in CREATED_BESIDE if (path.parent / name).exists()]
    if beside:
        raise JournalError(
            f"the journal {path} is empty, and {', '.join(beside)} beside it say that it held a cluster; put the file"
            f" back, or remove {', '.join(beside)} there to begin with an empty cluster"
        )


def _was_never_used(database: sqlite3.Connection, tables: set[str]) -> bool:
    """Whether a process of an earlier version ended between making the tables and their first row."""
    return tables <= {"meta", "objects"} and not any(
        database.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() for table in tables
    )


def _upgrade(database: sqlite3.Connection) -> None:
    database.create_function("first_crc", 5, _first_crc, deterministic=True)
    database.create_function("version_share", 1, version_share, deterministic=True)
    database.executescript(_UPGRADE)


def _first_crc(version: int, resource: bytes, namespace: bytes, name: bytes, raw: object) -> int:
    """The checksum of a row that never had one: a wrong one if its content is not the object that its key names."""
    try:
        metadata = orjson.loads(cast("bytes", raw))["metadata"]
        names = metadata["resourceVersion"], metadata.get("namespace") or "", metadata["name"]
        if names == (str(version), namespace.decode(), name.decode()):
            return row_crc(version, resource, namespace, name, cast("bytes", raw))
    except (orjson.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError):
        pass
    return -1


def _readable(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def named(damaged: Iterable[DamagedRow], most: int = 5) -> str:
    """Some of them in a line."""
    texts = [str(row) for row in damaged]
    more = f" and {len(texts) - most} more" if len(texts) > most else ""
    return ", ".join(texts[:most]) + more
