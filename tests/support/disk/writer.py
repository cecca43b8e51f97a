"""A process that writes to a journal and says after each batch what it has acknowledged, in the record of its disk.

python -m tests.support.disk.writer DIRECTORY SEED BATCHES FSYNC
"""

from __future__ import annotations

import json
import os
import random
import struct
import sys
from pathlib import Path

from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP
from fairlead.errors import StorageFull

NAMES = 30
SIZES = (4, 400, 4000, 20_000)
LOG_PAGES = 40
"""SQLite copies its log back this often: what is dangerous happens in every run."""


def say(what: str, content: object) -> None:
    """Append a line of our own to the record of the disk, between its writes."""
    data = json.dumps([what, content]).encode()
    descriptor = os.open(os.environ["DISK_RECORD"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(descriptor, b"a" + struct.pack("<Iqq", 0, 0, len(data)) + data)
    os.close(descriptor)


def main(directory: str, seed: int, batches: int, *, fsync: bool) -> None:
    rng = random.Random(seed)
    journal = Journal(Path(directory), fsync=fsync)
    journal._database.execute(f"PRAGMA wal_autocheckpoint = {LOG_PAGES}")
    store = Store(clock=lambda: 1.7e9, rng=rng, journal=journal)
    say("done", {})
    state: dict[str, str] = {}
    for _ in range(batches):
        changes: dict[str, str | None] = {}
        for number in rng.sample(range(NAMES), rng.choice([1, 1, 1, 4])):
            gone = f"c{number}" in state and rng.random() < 0.3
            changes[f"c{number}"] = None if gone else rng.randbytes(rng.choice(SIZES) // 2).hex()
        say("trying", changes)
        try:
            with store.batch():
                for name, content in changes.items():
                    change(store, name, content, known=name in state)
        except StorageFull:
            say("refused", changes)
            continue
        for name, content in changes.items():
            if content is None:
                del state[name]
            else:
                state[name] = content
        say("done", changes)
    os._exit(0)  # as a kill: nothing is closed


def change(store: Store, name: str, content: str | None, *, known: bool) -> None:
    if content is None:
        store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", name))
    else:
        verb = Verb.PATCH if known else Verb.CREATE
        store.perform(Write(verb, CONFIG_MAP, "default", name, body={"data": {"k": content}}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), fsync=sys.argv[4] == "fsync")
