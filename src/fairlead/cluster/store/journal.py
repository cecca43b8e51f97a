"""The Store on disk: a SQLite database in WAL mode that holds each object's newest version.

A row is an object, its key is the object's resourceVersion: versions only rise, so a write appends at the end of the
tree and removes one row by number, without any index. A batch is one transaction. It is in the file before `append`
returns, so it survives the death of the process; with `fsync` it survives the death of the machine as well.

The `resourceVersion` in the file is a bound that no version given out exceeds. It is raised by a thousand at a time,
because each page of the file that a transaction changes makes it dearer.

Invariant: the objects in the database are exactly those after the last batch whose `append` returned.
"""

from __future__ import annotations

import errno
import fcntl
import os
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from fairlead.errors import JournalError, StorageFull

if TYPE_CHECKING:
    from fairlead.cluster.store.history import Event

FORMAT = "1"
DATABASE, LOCK = "objects.db", "lock"
RESTART_GAP = 1000
"""Versions left out at each start. Nobody can then hold a version of a former life for one of this."""
VERSIONS_AHEAD = 1000
"""How far the bound in the file is put beyond the version that reached it."""
CACHE_KIB = 8 * 1024
T = TypeVar("T")
_PORTIONS = (64, 8, 1)
_SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS objects (version INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,
                                    name TEXT NOT NULL, raw BLOB NOT NULL);
"""


Row: TypeAlias = tuple[int, str, str, str, bytes]
"""One object as it was kept: version, resource (`group/version/plural`), namespace, name, and its JSON."""

Statement: TypeAlias = tuple[str, Sequence[object]]
"""SQL and what its question marks stand for."""


class Journal:
    """The database of one directory, locked against other processes while it is open."""

    def __init__(self, directory: str | os.PathLike[str], *, fsync: bool = False) -> None:
        self._directory = Path(directory)
        self._lock = _locked(self._directory)
        try:
            self._database = _opened(self._directory / DATABASE, fsync=fsync)
            self._bound = self.resource_version
        except BaseException:
            os.close(self._lock)
            raise

    def append(self, events: Iterable[Event], version: int) -> None:
        """Write a batch, whole or not at all. `version` is the newest one given out."""
        database = self._database
        rows: dict[int, tuple[object, ...]] = {}
        replaced: list[int] = []
        for event in events:
            if event.before is not None and rows.pop(event.before.version, None) is None:
                replaced.append(event.before.version)
            if (record := event.after) is not None:
                resource = f"{event.kind.group}/{event.kind.version}/{event.kind.plural}"
                rows[record.version] = record.version, resource, record.namespace, record.name, record.raw
        statements = [*_deletions(replaced), *_insertions(list(rows.values()))]
        bound = self._bound if version <= self._bound else version + VERSIONS_AHEAD
        if bound != self._bound:
            statements.append(("UPDATE meta SET value = ? WHERE key = 'resourceVersion'", [bound]))
        try:
            if len(statements) == 1:  # a transaction by itself
                database.execute(*statements[0])
            elif statements:
                database.execute("BEGIN IMMEDIATE")
                for statement in statements:
                    database.execute(*statement)
                database.execute("COMMIT")
            self._bound = bound
        except sqlite3.Error as error:
            self._roll_back()
            raise StorageFull(f"the data directory {self._directory} takes no more writes: {error}") from error

    def load(self) -> Iterator[Row]:
        """All objects, oldest version first."""
        return self._database.execute("SELECT version, resource, namespace, name, raw FROM objects")

    @property
    def resource_version(self) -> int:
        """The bound: no version that was given out exceeds it."""
        (value,) = self._database.execute("SELECT value FROM meta WHERE key = 'resourceVersion'").fetchone()
        return int(value)

    def limit_pages(self, pages: int) -> None:
        """Let the database grow no further than that many pages of 4 KiB."""
        self._database.execute(f"PRAGMA max_page_count = {pages:d}")

    def close(self) -> None:
        self._database.close()
        os.close(self._lock)

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")


def _deletions(versions: list[int]) -> Iterator[Statement]:
    for some in _portions(versions):
        yield f"DELETE FROM objects WHERE version IN ({_listed('?', some)})", some


def _insertions(rows: list[tuple[object, ...]]) -> Iterator[Statement]:
    for some in _portions(rows):
        yield f"INSERT INTO objects VALUES {_listed('(?, ?, ?, ?, ?)', some)}", [*chain(*some)]


def _portions(things: list[T]) -> Iterator[list[T]]:
    """Few statements, of few lengths. While one runs, a thread that has work takes the interpreter, and keeps it."""
    start = 0
    for size in _PORTIONS:
        while len(things) - start >= size:
            yield things[start : start + size]
            start += size


def _listed(placeholder: str, things: list[T]) -> str:
    return ", ".join([placeholder] * len(things))


def _locked(directory: Path) -> int:
    """The descriptor of the directory's lock file, held."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise JournalError(f"the data directory {directory} cannot be used: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if error.errno in (errno.EAGAIN, errno.EACCES):
            raise JournalError(f"the data directory {directory} is in use by another process") from error
        raise JournalError(f"the data directory {directory} cannot be locked: {error.strerror}") from error
    return descriptor


def _opened(path: Path, *, fsync: bool) -> sqlite3.Connection:
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            _prepare(database, path, fsync=fsync)
        except BaseException:
            database.close()
            raise
    except (sqlite3.Error, OSError) as error:
        raise JournalError(f"the journal {path} cannot be read: {error}") from error
    return database


def _prepare(database: sqlite3.Connection, path: Path, *, fsync: bool) -> None:
    database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    database.execute("PRAGMA journal_mode = WAL")
    database.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
    tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables:
        _check_format(database, path, tables)
        return
    database.executescript(f"BEGIN; {_SCHEMA} COMMIT;")
    database.execute("INSERT OR IGNORE INTO meta VALUES ('format', ?), ('resourceVersion', 0)", (FORMAT,))


def _check_format(database: sqlite3.Connection, path: Path, tables: set[str]) -> None:
    found = database.execute("SELECT value FROM meta WHERE key = 'format'").fetchone() if "meta" in tables else None
    if found is None:
        raise JournalError(f"the journal {path} has no format version: it was not written by fairlead")
    if str(found[0]) != FORMAT:
        raise JournalError(f'the journal {path} has the format "{found[0]}"; this version of fairlead reads "{FORMAT}"')
