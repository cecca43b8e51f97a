"""Journals of tests: opened with a Store, damaged, or as an earlier version of fairlead wrote them."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.journal_format import DATABASE
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Doc, Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP

_FORMAT_1 = """
ALTER TABLE objects RENAME TO newer;
CREATE TABLE objects (version INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL,
                      name TEXT NOT NULL, raw BLOB NOT NULL);
INSERT INTO objects SELECT version, resource, namespace, name, raw FROM newer;
DROP TABLE newer;
DELETE FROM meta WHERE key = 'total';
UPDATE meta SET value = CAST(value AS INTEGER) WHERE key = 'resourceVersion';
UPDATE meta SET value = '1' WHERE key = 'format';
"""


def opened(directory: Path, **options: bool) -> Store:
    journal = Journal(directory, **options)
    try:
        return Store(clock=lambda: 1.7e9, rng=random.Random(3), journal=journal)
    except BaseException:
        journal.close()
        raise


def create(store: Store, name: str, size: int = 1) -> None:
    store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", name, body={"data": {"k": "v" * size}}))


def config_maps(store: Store) -> dict[str, Doc]:
    return {doc["metadata"]["name"]: doc for doc in store.list(CONFIG_MAP)}


def execute(directory: Path, sql: str, *values: object) -> None:
    """Change a database behind fairlead's back."""
    database = sqlite3.connect(directory / DATABASE, isolation_level=None)
    database.execute(sql, values)
    database.close()


def turn_into_format_1(directory: Path) -> None:
    database = sqlite3.connect(directory / DATABASE, isolation_level=None)
    database.executescript(f"BEGIN; {_FORMAT_1} COMMIT;")
    database.close()
