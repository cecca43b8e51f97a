"""What a disk can do to a journal, and whether the journal's promises hold.

A writer runs on a disk that fails, or that records what it is told (shim.c). Of a record, the files after a power cut
are built: an honest disk keeps what was synced and any part of the rest; one that ignores syncs keeps a beginning of
all writes in their order; one that also reorders keeps any of them. Then the journal is opened as after any restart.
"""

from __future__ import annotations

import errno
import json
import os
import random
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fairlead.cluster.store.journal import Journal
from fairlead.cluster.store.journal_format import DATABASE
from fairlead.cluster.store.journal_repair import repair
from fairlead.cluster.store.store import Store
from fairlead.core.model.kinds import CONFIG_MAP
from fairlead.errors import JournalError

SOURCE = Path(__file__).with_name("shim.c")
ROOT = Path(__file__).parents[3]
_HEAD = struct.Struct("<Iqq")
State = dict[str, str]
Files = dict[str, bytearray]


def compiler() -> str | None:
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


def built(directory: Path) -> Path:
    """The shim, compiled."""
    library, cc = directory / "shim.so", compiler()
    if cc is None:
        raise FileNotFoundError("these tests need a C compiler: install cc, or deselect them with -m 'not long'")
    subprocess.run([cc, "-shared", "-fPIC", "-O1", "-o", library, SOURCE, "-ldl"], check=True)
    return library


@dataclass(frozen=True, slots=True)
class Operation:
    """One line of the record: a write, truncate, sync or unlink of a file, or what the writer said."""

    op: str
    file: str
    offset: int
    data: bytes


@dataclass(slots=True)
class Run:
    """What a writer did, and on which states it can be held: `states[n]` after its n-th acknowledged batch."""

    operations: list[Operation]
    states: list[State] = field(default_factory=list)
    acknowledged_at: list[int] = field(default_factory=list)
    """The number of operations before each state was acknowledged."""
    tried: list[State] = field(default_factory=list)
    """What would have come of batches that were refused, or never answered."""

    @classmethod
    def of(cls, record: Path) -> Run:
        run = cls(list(_operations(record.read_bytes())))
        state: State = {}
        for index, operation in enumerate(run.operations):
            if operation.op == "a":
                what, changes = json.loads(operation.data)
                after = {key: value for key, value in {**state, **changes}.items() if value is not None}
                if what == "done":
                    state = after
                    run.states.append(state)
                    run.acknowledged_at.append(index)
                else:
                    run.tried.append(after)
        return run

    def acknowledged_before(self, cut: int) -> int:
        """The number of the last state that was acknowledged before that operation; -1 if none was."""
        return sum(at < cut for at in self.acknowledged_at) - 1


def _operations(record: bytes) -> Iterator[Operation]:
    at = 0
    while at < len(record):
        op = chr(record[at])
        length, offset, size = _HEAD.unpack_from(record, at + 1)
        at += 1 + _HEAD.size
        file = Path(record[at : at + length].decode()).name
        at += length
        yield Operation(op, file, offset, record[at : at + size])
        at += size


def write(library: Path, directory: Path, *, seed: int, batches: int = 60, fsync: bool = False, **disk: object) -> Run:
    """Run a writer on a disk; `disk` are the shim's settings without their prefix."""
    record = directory.with_name(directory.name + ".record")
    record.unlink(missing_ok=True)
    settings = {f"DISK_{name.upper()}": str(value) for name, value in disk.items()}
    environment = {
        **os.environ,
        **settings,
        "LD_PRELOAD": str(library),
        "DISK_FILES": f"{directory.name}/{DATABASE}",
        "DISK_RECORD": str(record),
        "PYTHONPATH": f"{ROOT}/src:{ROOT}",
    }
    arguments = [str(directory), str(seed), str(batches), "fsync" if fsync else "none"]
    done = subprocess.run([sys.executable, "-m", "tests.support.disk.writer", *arguments], env=environment, cwd=ROOT,
                          capture_output=True, text=True, timeout=120, check=False)  # fmt: skip
    if done.returncode not in (0, 137) and "JournalError" not in done.stderr and "StorageFull" not in done.stderr:
        raise AssertionError(done.stderr)
    return Run.of(record) if record.exists() else Run([])


# ---- power cuts ----


def honest(run: Run, cut: int, rng: random.Random) -> Files:
    """What was synced before the cut, and any part of what was not."""
    synced: dict[str, int] = {}
    for index, operation in enumerate(run.operations[:cut]):
        if operation.op == "s":
            synced[operation.file] = index
    share = rng.choice([0.0, 0.5, 0.9])
    kept = [
        operation
        for index, operation in enumerate(run.operations[:cut])
        if operation.op == "u" or index < synced.get(operation.file, -1) or rng.random() < share
    ]
    return files_after(kept, rng)


def ignoring_syncs(run: Run, cut: int, rng: random.Random) -> Files:
    """The beginning of all that was written, in its order."""
    return files_after(run.operations[: rng.randint(max(0, cut - 60), cut)], rng)


def reordering(run: Run, cut: int, rng: random.Random) -> Files:
    """Any of the last writes, whatever was synced: each is there or not."""
    begin = rng.randint(max(0, cut - 150), cut)
    lost = rng.choice([0.05, 0.3, 0.6])
    late = [operation for operation in run.operations[begin:cut] if operation.op == "u" or rng.random() > lost]
    return files_after([*run.operations[:begin], *late], rng)


def files_after(operations: list[Operation], rng: random.Random) -> Files:
    """The files after these operations, of which the last write may be torn."""
    files: Files = {}
    last = len(operations) - 1
    for index, operation in enumerate(operations):
        file = files.setdefault(operation.file, bytearray()) if operation.op in "wt" else bytearray()
        if operation.op == "w":
            data = operation.data
            if index == last and rng.random() < 0.5:
                data = data[: rng.randrange(len(data) + 1) // 512 * 512]
            end = operation.offset + len(data)
            file.extend(bytes(max(0, end - len(file))))
            file[operation.offset : end] = data
        elif operation.op == "t":
            file.extend(bytes(max(0, operation.offset - len(file))))
            del file[operation.offset :]
        elif operation.op == "u":
            files.pop(operation.file, None)
    return files


# ---- what is found ----


def found_in(directory: Path) -> State | str:
    """What the journal holds after a restart, or the words of its refusal."""
    try:
        journal = Journal(directory)
    except JournalError as error:
        return str(error)
    try:
        store = Store(clock=lambda: 1.7e9, rng=random.Random(1), journal=journal)
        return {doc["metadata"]["name"]: doc["data"]["k"] for doc in store.list(CONFIG_MAP)}
    except JournalError as error:
        return str(error)
    finally:
        journal.close()


def restored(directory: Path, files: Files) -> State | str:
    """The same of files after a power cut. A directory without a database is one where nothing was ever written."""
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(mode=0o700)
    for name, content in files.items():
        (directory / name).write_bytes(content)
    return found_in(directory)


CUTS = {"honest": honest, "ignoring syncs": ignoring_syncs, "reordering": reordering}
FAILURES: dict[str, dict[str, Any]] = {
    "torn": {"fault": "torn"}, "full": {"fault": "errno", "errno": errno.ENOSPC},
    "broken": {"fault": "errno", "errno": errno.EIO}, "read-only": {"fault": "errno", "errno": errno.EROFS},
    "failing syncs": {"fault": "sync"},
}  # fmt: skip


def after_a_cut(run: Run, model: str, seed: int, directory: Path) -> str:
    """What is wrong after a power cut on that disk; empty if nothing is."""
    rng = random.Random(seed)
    cut = rng.randint(run.acknowledged_at[0], len(run.operations))
    found = restored(directory, CUTS[model](run, cut, rng))
    least = run.acknowledged_before(cut)
    if isinstance(found, str):
        if model != "reordering" or "fairlead journal" not in found:
            return f"{model} {seed}: {found}"
        repair(directory)
        found = found_in(directory)
        return f"{model} {seed}: after a repair {found}" if isinstance(found, str) else ""
    begin = least if model == "honest" else 0
    if found in [*run.states[begin:], *run.tried]:
        return ""
    if not found and model != "honest":  # the first batch had not come that far
        return ""
    return f"{model} {seed}: {len(found)} objects are silently wrong; acknowledged were {len(run.states[least])}"


def play(count: int, directory: Path) -> Iterator[str]:
    """So many faults of all kinds; what is wrong after each, or nothing."""
    library, kinds = built(directory), [*CUTS, *FAILURES]
    runs: dict[bool, Run] = {}
    for number in range(count):
        kind = kinds[number % len(kinds)]
        if number % (10 * len(kinds)) == 0:
            for fsync in (False, True):
                place = directory / f"written-{number}-{fsync}"
                place.mkdir(mode=0o700)
                runs[fsync] = write(library, place, seed=number, fsync=fsync)
        if kind in CUTS:
            fsync = kind == "honest" or number % 2 == 0
            yield after_a_cut(runs[fsync], kind, number, directory / "after")
        else:
            yield after_a_failure(library, kind, number, directory / f"failed-{number}")


def after_a_failure(library: Path, name: str, seed: int, directory: Path) -> str:
    """What is wrong after writes failed in the middle, for a while or for good, and the process was killed."""
    rng = random.Random(seed)
    settings = FAILURES[name] | {"from": rng.randint(1, 300), "count": rng.choice([0, 0, 1, 5])}
    directory.mkdir(mode=0o700)
    run = write(library, directory, seed=seed, fsync=name == "failing syncs", **settings)
    found = found_in(directory)
    if isinstance(found, str):
        return f"{name} {seed}: {found}"
    if not run.states or found == run.states[-1] or (run.tried and found == run.tried[-1]):
        return ""
    return f"{name} {seed}: {len(found)} objects, acknowledged were {len(run.states[-1])}"
