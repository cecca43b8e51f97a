"""What is left of a damaged journal: a report of what is wrong, and a new database of what can be read.

SQLite reads as far as it can, from both ends. What it does not reach is looked for page by page: a row that its
checksum confirms is whole, wherever it was found. Of an object that is found several times the newest row counts. A
page that was given up may still hold an object that was deleted; the report says how many objects came from pages.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from fairlead.cluster.store.journal_format import (
    ALL_ROWS,
    ASIDE,
    BROKEN,
    DATABASE,
    FORMAT,
    NEW,
    OLD_ROW,
    VERSIONS_LOST,
    DamagedRow,
    Row,
    expected_total,
    judge,
    row_crc,
    sealed,
    unsealed,
    version_share,
)
from fairlead.cluster.store.journal_pages import rows_in_pages
from fairlead.errors import JournalError

_MOST_LINES = 20


@dataclass(slots=True)
class Findings:
    """What a database holds. `problems` are about more than one object."""

    rows: dict[int, Row] = field(default_factory=dict)
    damaged: dict[int, DamagedRow] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    aside: int = 0
    from_pages: int = 0
    bound: int | None = None

    @property
    def sound(self) -> bool:
        return not self.damaged and not self.problems


@dataclass(frozen=True, slots=True)
class Repair:
    """What `repair` did: what was found, and where the old database is."""

    found: Findings
    kept_as: Path


def examine(directory: Path) -> Findings:
    """Read a database without changing anything; the caller holds the directory's lock."""
    path = directory / DATABASE
    if not path.exists():
        raise JournalError(f"there is no journal in {directory}")
    found = Findings()
    try:
        database = _opened(path)
        try:
            _read(database, found)
        finally:
            database.close()
    except BROKEN as error:
        found.problems.append(f"SQLite cannot read it: {error}")
    return found


def repair(directory: Path) -> Repair:
    """Put a new database of what can be read in the place of the present one, which is kept beside it."""
    found = examine(directory)
    path = directory / DATABASE
    if found.problems:
        _look_into_pages(path, found)
    for version in _replaced(found.rows.values()):
        row = found.rows.pop(version)
        found.damaged[version] = DamagedRow(*row[:4], OLD_ROW)
    made = directory / (DATABASE + ".new")
    try:
        _write(made, path, found)
    except (sqlite3.Error, OSError) as error:
        made.unlink(missing_ok=True)
        raise JournalError(f"the new journal {made} cannot be written: {error}") from error
    return Repair(found, _exchange(path, made))


def _opened(path: Path) -> sqlite3.Connection:
    """A connection that changes no file. Without a log nothing else may look at the database either."""
    log = path.with_name(path.name + "-wal")
    how = "mode=ro" if log.exists() and log.stat().st_size else "mode=ro&immutable=1"
    database = sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True, isolation_level=None)
    database.text_factory = bytes
    return database


def _read(database: sqlite3.Connection, found: Findings) -> None:
    form = database.execute("SELECT CAST(value AS TEXT) FROM meta WHERE key = 'format'").fetchone()
    if form is not None and form[0] == b"1":
        raise JournalError('the journal has the format "1"; `fairlead up --data DIR` upgrades it when it opens it')
    if form is None or form[0] != FORMAT.encode():
        found.problems.append("the number of its format")
    for line in database.execute(f"PRAGMA integrity_check({_MOST_LINES})"):
        if line[0] != b"ok":
            found.problems.append(f"database: {line[0].decode(errors='replace')}")
    _read_rows(database, found)
    bound = unsealed(database, "resourceVersion")
    if bound is None:
        found.problems.append("its highest version")
    else:
        found.bound = bound[0]
    if sum(map(version_share, (*found.rows, *found.damaged))) != expected_total(database):
        found.problems.append("the set of objects: some are missing, or deleted ones came back")
    for version in _replaced(found.rows.values()):
        found.damaged[version] = DamagedRow(*found.rows.pop(version)[:4], OLD_ROW)
    if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'aside'").fetchone():
        (found.aside,) = database.execute("SELECT count(*) FROM aside").fetchone()


def _read_rows(database: sqlite3.Connection, found: Findings) -> None:
    """All rows, from the first on and, if that stops, from the last back."""
    for order in ("ASC", "DESC"):
        try:
            for values in database.execute(f"{ALL_ROWS} ORDER BY version {order}"):
                row = judge(values)
                if isinstance(row, DamagedRow):
                    found.damaged[row.version] = row
                else:
                    found.rows[row[0]] = row
            return
        except BROKEN as error:
            where = "first on" if order == "ASC" else "last back"
            found.problems.append(f"objects can be read from the {where} only in part: {error}")


def _replaced(rows: Iterable[Row]) -> list[int]:
    """The versions of rows of objects that a newer row holds too."""
    newest: dict[tuple[str, ...], int] = {}
    old: list[int] = []
    for version, resource, namespace, name, _ in sorted(rows):
        key = _key((version, resource, namespace, name, b""))
        if key in newest:
            old.append(newest[key])
        newest[key] = version
    return old


def _look_into_pages(path: Path, found: Findings) -> None:
    present = {_key(row) for row in found.rows.values()}
    log = path.with_name(path.name + "-wal")
    for row in rows_in_pages(path.read_bytes(), log.read_bytes() if log.exists() else b""):
        if row[0] not in found.rows and _key(row) not in present:
            found.rows[row[0]] = row
            found.damaged.pop(row[0], None)
            found.from_pages += 1


def _key(row: Row) -> tuple[str, ...]:
    return row[1].partition("/")[0], row[1].rpartition("/")[2], *row[2:4]


def _write(made: Path, path: Path, found: Findings) -> None:
    made.unlink(missing_ok=True)
    os.close(os.open(made, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    newest = max(found.rows, default=0)
    bound = max(newest, found.bound) if found.bound is not None else newest + VERSIONS_LOST
    total = sum(map(version_share, found.rows))
    database = sqlite3.connect(made, isolation_level=None)
    try:
        database.create_function("sealed", 1, sealed, deterministic=True)
        database.executescript(NEW)
        database.execute("BEGIN IMMEDIATE")
        database.executemany("INSERT INTO objects VALUES (?, ?, ?, ?, ?, ?, ?)", _values(found, total))
        database.execute(ASIDE)
        database.executemany("INSERT OR IGNORE INTO aside VALUES (?, ?, ?, ?, ?, ?)", _set_aside(path, found))
        values = {"resourceVersion": sealed(str(bound)), "total": sealed(f"{bound} {total}")}
        database.executemany("UPDATE meta SET value = ? WHERE key = ?", [(new, key) for key, new in values.items()])
        database.execute("COMMIT")
    finally:
        database.close()
    descriptor = os.open(made, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _values(found: Findings, total: int) -> Iterator[tuple[object, ...]]:
    for version, resource, namespace, name, raw in sorted(found.rows.values()):
        crc = row_crc(version, resource.encode(), namespace.encode(), name.encode(), raw)
        yield version, resource, namespace, name, raw, crc, total


def _set_aside(path: Path, found: Findings) -> list[tuple[object, ...]]:
    """What was set aside before, and what is now, as far as it can be read."""
    rows: list[tuple[object, ...]] = []
    try:
        database = _opened(path)
        database.text_factory = lambda text: text.decode(errors="replace")
        try:
            for row in found.damaged.values():
                there = database.execute("SELECT raw FROM objects WHERE version = ?", [row.version]).fetchone()
                raw = there[0] if there is not None and there[0] is not None else b""
                rows.append((row.version, row.resource, row.namespace, row.name, raw, row.why))
            if found.aside:
                rows += database.execute("SELECT * FROM aside").fetchall()
        finally:
            database.close()
    except BROKEN:
        pass  # the old file is kept
    return rows


def _exchange(path: Path, made: Path) -> Path:
    """Give the old database and its log another name, and the new one theirs."""
    number = 1
    while (kept := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    path.with_name(path.name + "-shm").unlink(missing_ok=True)
    log = path.with_name(path.name + "-wal")
    path.rename(kept)
    if log.exists():
        log.rename(kept.with_name(kept.name + "-wal"))
    made.rename(path)
    return kept
