"""Experiment: all runs of a scenario, for each policy, load and seed, each in a directory of its own.

Runs are independent of each other, so they are spread over processes, or over the workers of a Dask cluster that shares
the file system. A run's directory gets its name when the run is complete; an experiment that is started again plays
only what is not there. A changed scenario is not mixed with results of the old one.

Invariant: the bytes of a run do not depend on where it was played, nor on the other runs.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.config.source import read_text
from fairlead.errors import ConfigError
from fairlead.lab.play.run import RunKey, play
from fairlead.lab.results.loading import ABOUT
from fairlead.lab.scenario.reading import read_scenario
from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS, collect_rarely

if TYPE_CHECKING:
    from fairlead.lab.scenario.records import LabScenario

MARK = "experiment.json"


class Experiment:
    """A scenario file and the directory of its results."""

    def __init__(self, file: Path, directory: Path) -> None:
        """Raises ConfigError if the scenario cannot be used, or the directory holds results of another one."""
        self.file = file.resolve()
        self.directory = directory.resolve()
        self.scenario = read_scenario(self.file)
        self._check_mark()

    @property
    def keys(self) -> list[RunKey]:
        """All runs."""
        scenario = self.scenario
        return [
            RunKey(policy.name, load.name, seed)
            for seed in scenario.seeds
            for load in scenario.loads
            for policy in scenario.policies
        ]

    def missing(self) -> list[RunKey]:
        """The runs that are not complete."""
        return [key for key in self.keys if not (self.directory / key.directory / ABOUT).is_file()]

    def play(self, *, workers: int = 1, dask: str = "") -> Iterator[RunKey]:
        """Play what is missing, on so many processes or on a Dask cluster; yields each run that is done. An error of a
        run is raised when it is found, and what was played before stays."""
        self._write_mark()
        keys = self.missing()
        if dask:
            yield from self._on_dask(keys, dask)
        elif workers <= 1 or len(keys) <= 1:
            for key in keys:
                yield play_one(self.file, key, self.directory)
        else:
            yield from self._on_processes(keys, workers)

    def _on_processes(self, keys: Sequence[RunKey], workers: int) -> Iterator[RunKey]:
        """A caller that stops asking, or is interrupted, waits for the runs that are under way; no other is begun. A
        pool cannot take back what it has queued, so it gets no more than it has workers."""
        waiting = iter(keys)
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            under_way = {pool.submit(play_one, self.file, key, self.directory) for key in islice(waiting, workers)}
            while under_way:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for key in islice(waiting, len(done)):
                    under_way.add(pool.submit(play_one, self.file, key, self.directory))
                for future in done:
                    yield future.result()

    def _on_dask(self, keys: Sequence[RunKey], address: str) -> Iterator[RunKey]:
        try:
            from distributed import Client
            from distributed import as_completed as completed
        except ImportError as error:
            raise ConfigError("Dask is not installed", hint="pip install 'fairlead[dask]'") from error
        try:
            client = Client(address, timeout="10s")
        except OSError as error:
            raise ConfigError(f"no Dask scheduler answers at {address}: {error}") from error
        with client:
            futures = [client.submit(play_one, self.file, key, self.directory, pure=False) for key in keys]
            for future in completed(futures):
                yield future.result()

    # ---- one scenario per directory ----

    def _fingerprint(self) -> str:
        """What the results depend on beside the code: the scenario file and the files that it names."""
        digest = hashlib.sha256(read_text(self.file).encode())
        for file in files_of(self.scenario, self.file.parent):
            digest.update(file.read_bytes())
        return digest.hexdigest()

    def _check_mark(self) -> None:
        mark = self.directory / MARK
        if mark.is_file():
            try:
                known = json.loads(mark.read_text(encoding="utf-8"))["fingerprint"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ConfigError("cannot be read", file=str(mark), hint="name another directory") from error
            if known != self._fingerprint():
                raise ConfigError(
                    "holds results of another scenario, or of this one before it was changed",
                    file=str(self.directory),
                    hint="name another directory with --out, or remove this one",
                )

    def _write_mark(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        mark = {"scenario": self.scenario.name, "fingerprint": self._fingerprint()}
        draft = self.directory / f".{MARK}.{os.getpid()}"
        draft.write_text(json.dumps(mark) + "\n", encoding="utf-8")
        draft.replace(self.directory / MARK)


def files_of(scenario: LabScenario, base: Path) -> list[Path]:
    """The files that a scenario names: traces, a snapshot, and configurations and plugins of its policies, whose paths
    are taken from `base`. One that is not there is left out; the run that needs it says so."""
    traces = [scenario.cluster.trace, *(load.trace for load in scenario.loads)]
    named = [trace.file for trace in traces if trace is not None]
    named += [scenario.cluster.snapshot] if scenario.cluster.snapshot is not None else []
    for policy in scenario.policies:
        plugins = [one.rpartition(":")[0] for one in policy.plugins if isinstance(one, str)]
        config = [policy.config] if isinstance(policy.config, str) else []
        named += [base / one for one in (*config, policy.volcano, *plugins) if one]
    return [file for file in named if file.is_file()]


def play_one(file: Path, key: RunKey, directory: Path) -> RunKey:
    """Play one run of a scenario file. What an interrupted one left is removed first."""
    for left in directory.glob(f".{key.directory}.*"):
        shutil.rmtree(left, ignore_errors=True)
    collect_rarely(ALLOCATIONS_OF_EXPERIMENTS)
    play(read_scenario(file), key, directory / key.directory, base=file.parent)
    return key
