"""The Store on disk: a SQLite database in WAL mode that holds each object's newest version.

A row is an object, its key is the object's resourceVersion: versions only rise, so a write appends at the end of the
tree and removes one row by number, without any index. A batch is one transaction. It is in the file before `append`
returns, so it survives the death of the process; with `fsync` it survives the death of the machine as well.

The `resourceVersion` in the file is a bound that no version given out exceeds. It is raised by a thousand at a time,
because each page of the file that a transaction changes makes it dearer. What notices damage is in journal_format.py.

Invariant: the objects in the database are exactly those after the last batch whose `append` returned.
"""

from __future__ import annotations

import errno
import fcntl
import logging
import os
import sqlite3
import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, TypeVar
from zlib import crc32

from fairlead.cluster.store.journal_format import (
    ALL_ROWS,
    ASIDE,
    BROKEN,
    DATABASE,
    OLD_ROW,
    VERSIONS_LOST,
    DamagedRow,
    Row,
    expected_total,
    judge,
    named,
    prepare,
    sealed,
    unsealed,
    version_share,
)
from fairlead.cluster.store.reserve import LOG_PAGES, Reserve
from fairlead.errors import JournalError, StorageFull

if TYPE_CHECKING:
    from fairlead.cluster.store.history import Event

log = logging.getLogger("fairlead.journal")

LOCK, RESERVE = "lock", "reserve"
RESTART_GAP = 1000
"""Versions left out at each start. Nobody can then hold a version of a former life for one of this."""
VERSIONS_AHEAD = 1000
"""How far the bound in the file is put beyond the version that reached it."""
CACHE_KIB = 8 * 1024
T = TypeVar("T")
_PORTIONS = (64, 8, 1)
_SET = "UPDATE meta SET value = ? WHERE key = ?"

Statement: TypeAlias = tuple[str, Sequence[object]]
"""SQL and what its question marks stand for."""


class Journal:
    """The database of one directory, locked against other processes while it is open."""

    def __init__(
        self, directory: str | os.PathLike[str], *, fsync: bool = False, leave_out_damaged: bool = False
    ) -> None:
        self._directory = Path(directory)
        self._leave_out_damaged = leave_out_damaged
        self._lock = locked(self._directory)
        self._total = 0
        """The sum over the rows of the database."""
        try:
            self._reserve = Reserve(self._directory / RESERVE)
            self._database = self._opened(fsync=fsync)
            self._bound = self._read_bound()
            if not self._reserve.take():
                log.warning("the disk of %s is full: only deletions are taken", self._directory)
            self._follow_reserve()
        except BaseException:
            os.close(self._lock)
            raise

    def append(self, events: Sequence[Event], version: int) -> None:
        """Write a batch, whole or not at all. `version` is the newest one given out."""
        rows: dict[int, tuple[object, ...]] = {}
        replaced: list[int] = []
        total = self._total
        for event in events:
            if event.before is not None:
                total -= version_share(event.before.version)
                if rows.pop(event.before.version, None) is None:
                    replaced.append(event.before.version)
            if (record := event.after) is not None:
                resource = f"{event.kind.group}/{event.kind.version}/{event.kind.plural}"
                number, namespace, name, raw = record.version, record.namespace, record.name, record.raw
                total += version_share(number)
                crc = crc32(raw, crc32(f"{number} {resource} {namespace}/{name}".encode()))
                rows[number] = number, resource, namespace, name, raw, crc
        statements = [*_deletions(replaced), *_insertions([(*row, total) for row in rows.values()])]
        if replaced and not rows:
            statements.append((_SET, [sealed(f"{version} {total}"), "total"]))
        bound = self._bound if version <= self._bound else version + VERSIONS_AHEAD
        if bound != self._bound:
            statements.append((_SET, [sealed(str(bound)), "resourceVersion"]))
        if not self._reserve.log_pages and not _frees(events) and not self._may_grow():
            raise StorageFull(f"the data directory {self._directory} takes no more writes: its disk is full")
        try:
            self._execute(statements)
        except sqlite3.Error as error:
            if not self._executed_with_more_room(statements, error, frees=_frees(events)):
                raise StorageFull(f"the data directory {self._directory} takes no more writes: {error}") from error
        self._bound, self._total = bound, total

    def _execute(self, statements: Sequence[Statement]) -> None:
        """All of them, or none."""
        database = self._database
        try:
            if len(statements) == 1:  # a transaction by itself
                database.execute(*statements[0])
            elif statements:
                database.execute("BEGIN IMMEDIATE")
                for statement in statements:
                    database.execute(*statement)
                database.execute("COMMIT")
        except sqlite3.Error:
            self._roll_back()
            raise

    def _executed_with_more_room(self, statements: Sequence[Statement], error: sqlite3.Error, *, frees: bool) -> bool:
        """Whether the statements could be executed after all, if it was the disk that was full: what they free is worth
        the reserve, and SQLite's log can be copied back, which makes room unless the database must grow for it."""
        if error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return False
        self._copy_log_back()
        if self._executed(statements):
            return True
        if not frees or not self._reserve.give_back():
            return False
        self._follow_reserve()
        self._copy_log_back()
        return self._executed(statements)

    def _executed(self, statements: Sequence[Statement]) -> bool:
        try:
            self._execute(statements)
        except sqlite3.Error:
            return False
        return True

    def _copy_log_back(self) -> None:
        with suppress(sqlite3.Error):
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def _may_grow(self) -> bool:
        """Whether there is room again after the reserve was given back: on the disk, or in pages of the database that
        deletions left."""
        if self._reserve.take():
            self._follow_reserve()
            return True
        (free,) = self._database.execute("PRAGMA freelist_count").fetchone()
        return bool(free > 5 * LOG_PAGES[-1])

    def _follow_reserve(self) -> None:
        """Let SQLite copy its log back when it is as large as the reserve allows."""
        self._database.execute(f"PRAGMA wal_autocheckpoint = {self._reserve.log_pages or LOG_PAGES[-1]}")

    def load(self) -> Iterator[Row]:
        """All objects, oldest version first. Rows that are not as they were written end it with a JournalError that
        names them, after the others; or they are set aside, if that is wanted."""
        damaged: list[DamagedRow] = []
        total = 0
        try:
            for found in self._database.execute(ALL_ROWS):
                if found[0] is None:  # each row has a number, if SQLite knows which column that is
                    raise sqlite3.DatabaseError("the definition of its table is damaged")
                row = judge(found)
                total += version_share(found[0])
                if isinstance(row, DamagedRow):
                    damaged.append(row)
                else:
                    yield row
            expected = expected_total(self._database)
            if total != expected:
                damaged += self._replaced(damaged)
        except BROKEN as error:
            raise unreadable(self._directory, error) from error
        self._total = total
        if damaged or total != expected:
            self._report(damaged, complete=total == expected)

    def set_aside(self, versions: list[int], why: str) -> None:
        """Take rows out of the objects and keep them beside, for people to look at."""
        database, gone = self._database, set(versions)
        total = self._total - sum(map(version_share, gone))
        try:
            database.execute("BEGIN IMMEDIATE")
            database.execute(ASIDE)
            for some in _portions(versions):
                listed = _listed("?", some)
                database.execute(
                    "INSERT OR REPLACE INTO aside SELECT version, resource, namespace, name, raw, ? FROM objects"
                    f" WHERE version IN ({listed})",
                    [why, *some],
                )
                database.execute(f"DELETE FROM objects WHERE version IN ({listed})", some)
            database.execute(_SET, [sealed(f"{self._bound} {total}"), "total"])
            database.execute("COMMIT")
            self._total = total
        except sqlite3.Error as error:
            self._roll_back()
            log.warning("objects stay in the journal though they cannot be served: %s", error)

    @property
    def resource_version(self) -> int:
        """The bound: no version that was given out exceeds it."""
        return self._bound

    def limit_pages(self, pages: int) -> None:
        """Let the database grow no further than that many pages of 4 KiB."""
        self._database.execute(f"PRAGMA max_page_count = {pages:d}")

    def close(self) -> None:
        self._database.close()
        os.close(self._lock)

    def _opened(self, *, fsync: bool) -> sqlite3.Connection:
        """The database. Opening it takes a little room, which a full disk has in the reserve."""
        path = self._directory / DATABASE
        try:
            return _opened(path, fsync=fsync)
        except JournalError:
            if not self._reserve.give_back():
                raise
            return _opened(path, fsync=fsync)

    def _read_bound(self) -> int:
        try:
            found = unsealed(self._database, "resourceVersion")
            if found is not None:
                return found[0]
            if self._leave_out_damaged:
                (newest,) = self._database.execute("SELECT coalesce(max(version), 0) FROM objects").fetchone()
                log.warning("the journal's highest version is damaged: versions go on from those of its objects")
                return int(newest) + VERSIONS_LOST
        except BROKEN as error:
            raise unreadable(self._directory, error) from error
        raise _damaged(self._directory, "its highest version")

    def _replaced(self, damaged: list[DamagedRow]) -> list[DamagedRow]:
        """Rows of objects that a newer row holds too: a disk lost their deletion."""
        newest: dict[tuple[str, str, str, str], DamagedRow] = {}
        old: list[DamagedRow] = []
        known = {row.version for row in damaged}
        for found in self._database.execute(ALL_ROWS):
            row = judge(found)
            if isinstance(row, DamagedRow) or row[0] in known:
                continue
            version, resource, namespace, name, _ = row
            key = resource.partition("/")[0], resource.rpartition("/")[2], namespace, name
            if (before := newest.get(key)) is not None:
                old.append(before)
            newest[key] = DamagedRow(version, resource, namespace, name, OLD_ROW)
        return old

    def _report(self, damaged: list[DamagedRow], *, complete: bool) -> None:
        what = named(damaged)
        if not complete:
            what += " and " * bool(what) + "which objects there are (some are missing, or deleted ones came back)"
        if not self._leave_out_damaged:
            raise _damaged(self._directory, what)
        for resource, count in Counter(row.resource for row in damaged).items():
            log.warning(
                "the journal holds %d damaged objects of %s: they are set aside, and not served", count, resource
            )
        if not complete:
            log.warning("objects are missing in the journal, or deleted ones came back: it goes on with what is there")
        for why in sorted({row.why for row in damaged}):
            self.set_aside([row.version for row in damaged if row.why == why], why)
        if not complete and not damaged:
            self.set_aside([], "")

    def _roll_back(self) -> None:
        if self._database.in_transaction:
            self._database.execute("ROLLBACK")


def _frees(events: Iterable[Event]) -> bool:
    """Whether a batch only deletes, or brings deletions on their way: nothing else is worth the reserve."""
    return all(event.after is None or b'"deletionTimestamp":' in event.after.raw for event in events)


def unreadable(directory: Path, error: Exception) -> JournalError:
    """What is said of a database that SQLite cannot read."""
    return JournalError(
        f"the journal {directory / DATABASE} cannot be read: {error}; `fairlead journal check {directory}` says what is"
        f" damaged, `fairlead journal repair {directory}` makes a new one of what can be read"
    )


def _damaged(directory: Path, what: str) -> JournalError:
    return JournalError(
        f"the journal {directory / DATABASE} is damaged: {what}; `fairlead journal check {directory}` says more,"
        f" `fairlead up --data {directory} --leave-out-damaged` goes on without what is damaged"
    )


def _deletions(versions: list[int]) -> Iterator[Statement]:
    for some in _portions(versions):
        yield f"DELETE FROM objects WHERE version IN ({_listed('?', some)})", some


def _insertions(rows: list[tuple[object, ...]]) -> Iterator[Statement]:
    for some in _portions(rows):
        yield f"INSERT INTO objects VALUES {_listed('(?, ?, ?, ?, ?, ?, ?)', some)}", [*chain(*some)]


def _portions(things: list[T]) -> Iterator[list[T]]:
    """Few statements, of few lengths. While one runs, a thread that has work takes the interpreter, and keeps it."""
    start = 0
    for size in _PORTIONS:
        while len(things) - start >= size:
            yield things[start : start + size]
            start += size


def _listed(placeholder: str, things: list[T]) -> str:
    return ", ".join([placeholder] * len(things))


def locked(directory: Path) -> int:
    """The descriptor of the directory's lock file, held."""
    try:
        directory.mkdir(parents=True, exist_ok=True, mode=0o700)
        _check_owner(directory)
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


def _check_owner(directory: Path) -> None:
    """Refuse a directory that others may change: they could replace the token, and what the cluster holds."""
    status = directory.stat()
    if status.st_mode & stat.S_IWOTH:
        mode = stat.S_IMODE(status.st_mode)
        raise JournalError(
            f"the data directory {directory} has the mode {mode:04o}: everybody on this machine could change what is in"
            f" it; chmod 700 {directory}, or name a directory in it, which is then made"
        )
    if status.st_uid not in (os.geteuid(), 0):
        text = f"the data directory {directory} belongs to another user, who could change what is in it"
        if os.geteuid() != 0:
            raise JournalError(text)
        log.warning(text)  # root often runs in a container, on a directory of the user outside
    if status.st_mode & stat.S_IWGRP:
        log.warning("the data directory %s can be changed by its group", directory)


def _opened(path: Path, *, fsync: bool) -> sqlite3.Connection:
    try:
        if path.exists() and not path.stat().st_size and _size(path.with_name(DATABASE + "-wal")):
            raise sqlite3.DatabaseError("its file is empty")  # SQLite would remove the rest
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        database = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        try:
            database.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
            database.execute("PRAGMA journal_mode = WAL")
            database.execute(f"PRAGMA synchronous = {'FULL' if fsync else 'NORMAL'}")
            prepare(database, path)
            database.text_factory = bytes
        except BaseException:
            database.close()
            raise
    except (*BROKEN, OSError) as error:
        raise unreadable(path.parent, error) from error
    return database


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
