"""kill -9 at random points of a write load: what was acknowledged is there after the restart.

One child per kill writes to the journal as fast as it can and prints each acknowledged write; it is killed after a
random number of acknowledgements and a random further moment, so that the signal meets it inside transactions as well
as between them. Children are forked from a server that has imported everything, which makes 200 kills a matter of
seconds. The directory lives on through all of them, so every restart also opens what a killed process left behind.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.store import Store
from fairlead.core.model.flow import Verb, Write
from fairlead.core.model.kinds import CONFIG_MAP

KILLS = int(os.environ.get("FAIRLEAD_KILLS", "200"))
OBJECTS = 40
Acknowledged = dict[str, tuple[str, str] | None]
"""Of each object the last acknowledged version and content; None if its deletion was acknowledged."""


def open_store(directory: str) -> Store:
    return Store(clock=time.time, rng=random.Random(), journal=Journal(directory))


def write_until_killed(directory: str, seed: int, acknowledge: Connection) -> None:
    """Tell of each write before it is tried and after it was acknowledged."""
    rng = random.Random(seed)
    store = open_store(directory)
    while True:
        with_these = [f"c{number}" for number in rng.sample(range(OBJECTS), rng.choice([1, 1, 1, 4]))]
        acknowledge.send(("trying", with_these))
        done: Acknowledged = {}
        with store.batch():
            for name in with_these:
                done[name] = write_one(store, name, rng)
        acknowledge.send(("done", done))


def write_one(store: Store, name: str, rng: random.Random) -> tuple[str, str] | None:
    content = rng.randbytes(rng.choice([4, 400, 4000])).hex()
    body = {"data": {"k": content}}
    if store.get(CONFIG_MAP, "default", name) is None:
        doc = store.perform(Write(Verb.CREATE, CONFIG_MAP, "default", name, body=body))
    elif rng.random() < 0.2:
        store.perform(Write(Verb.DELETE, CONFIG_MAP, "default", name))
        return None
    else:
        doc = store.perform(Write(Verb.PATCH, CONFIG_MAP, "default", name, body=body))
    return doc["metadata"]["resourceVersion"], content


def kill_one(directory: str, seed: int, known: Acknowledged) -> set[str]:
    """Run a writer, kill it, take note of what it had acknowledged; the names of the batch that was under way."""
    rng = random.Random(seed)
    context = multiprocessing.get_context("forkserver")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=write_until_killed, args=(directory, seed, theirs))
    child.start()
    theirs.close()
    under_way: set[str] = set()
    left = rng.randint(1, 25)
    try:
        while left or ours.poll():
            what, names = ours.recv()
            if what == "trying":
                under_way = set(names)
                continue
            known.update(names)
            under_way = set()
            left -= 1
            if left == 0:
                time.sleep(rng.random() * 0.002)
                assert child.pid is not None
                os.kill(child.pid, signal.SIGKILL)
                child.join()
    except (EOFError, OSError):  # the last message may be cut short: then it was not said
        child.join()
    assert child.exitcode == -signal.SIGKILL
    return under_way


@pytest.mark.long
def test_no_acknowledged_write_is_lost_when_the_process_is_killed(tmp_path: Path) -> None:
    multiprocessing.get_context("forkserver").set_forkserver_preload(["tests.e2e.test_journal_kill"])
    known: Acknowledged = {}
    interrupted = 0
    for kill in range(KILLS):
        under_way = kill_one(str(tmp_path), kill, known)
        interrupted += bool(under_way)
        store = open_store(str(tmp_path))
        present = {doc["metadata"]["name"]: doc for doc in store.list(CONFIG_MAP)}
        for name, expected in known.items():
            doc = present.get(name)
            found = None if doc is None else (doc["metadata"]["resourceVersion"], doc["data"]["k"])
            if name not in under_way:
                assert found == expected, f"kill {kill}: {name}"
        for name in under_way:
            doc = present.get(name)
            known[name] = None if doc is None else (doc["metadata"]["resourceVersion"], doc["data"]["k"])
        store.close()
    assert interrupted > KILLS // 10, "the signal never met a batch under way, so this proved little"
