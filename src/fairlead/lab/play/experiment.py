"""Experiment: all runs of a scenario, for each policy, load and seed, each in a directory of its own.

Runs are independent of each other, so they are spread over processes, or over the workers of a Dask cluster that shares
the file system. A run's directory gets its name when the run is complete; an experiment that is started again plays
only what is not there. A changed scenario is not mixed with results of the old one.

How long the rest takes is estimated from runs that are done: those of the same policy and load, if there are any.

Invariant: the bytes of a run do not depend on where it was played, nor on the other runs.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
import time
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.config.source import read_text
from fairlead.errors import ConfigError
from fairlead.lab.play.run import RunKey, play
from fairlead.lab.results.loading import ABOUT, MARK
from fairlead.lab.scenario.feasibility import NeverFits, jobs_that_never_fit
from fairlead.lab.scenario.fleet import largest_node, nodes_of
from fairlead.lab.scenario.jobs import jobs_of
from fairlead.lab.scenario.reading import check_scenario, read_scenario
from fairlead.runtime.collecting import ALLOCATIONS_OF_EXPERIMENTS, collect_rarely

if TYPE_CHECKING:
    from fairlead.lab.scenario.records import LabScenario, LoadSpec


class RunTimes:
    """How long runs took, and how long those that are missing will take."""

    def __init__(self) -> None:
        self._seconds: dict[tuple[str, str], list[float]] = {}

    def add(self, key: RunKey, seconds: float) -> None:
        self._seconds.setdefault((key.policy, key.load), []).append(seconds)

    def left(self, missing: Iterable[RunKey], workers: int) -> float | None:
        """Seconds until the missing runs are done on so many processes; None before a run is done."""
        every = [one for many in self._seconds.values() for one in many]
        if not every:
            return None
        mean = sum(every) / len(every)
        times = [_mean(self._seconds.get((key.policy, key.load)), mean) for key in missing]
        return max(sum(times) / max(1, workers), max(times, default=0.0))


def _mean(values: Sequence[float] | None, default: float) -> float:
    return sum(values) / len(values) if values else default


class Experiment:
    """A scenario, as a file or made in Python, and the directory of its results."""

    def __init__(self, scenario: Path | LabScenario, directory: Path) -> None:
        """Raises ConfigError if the scenario cannot be used, or the directory holds results of another one. Paths in a
        file are taken from its directory, those of a LabScenario from the working directory."""
        self._source = scenario.resolve() if isinstance(scenario, Path) else scenario
        self.base = self._source.parent if isinstance(self._source, Path) else Path.cwd()
        self.directory = directory.resolve()
        self.scenario = scenario_of(self._source)
        self.times = RunTimes()
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

    def never_fitting(self, load: LoadSpec) -> tuple[list[NeverFits], int]:
        """Which jobs of a load can never fit on the cluster, with the first seed, and of how many. Nodes of a snapshot
        are not looked at: each run looks at them itself."""
        cluster = self.scenario.cluster
        largest = partial(largest_node, cluster)
        jobs = jobs_of(load, self.scenario.seeds[0], cluster.queues, largest=largest)
        return ([] if cluster.snapshot else jobs_that_never_fit(jobs, nodes_of(cluster, now=0.0))), len(jobs)

    def play(self, *, workers: int = 1, dask: str = "") -> Iterator[RunKey]:
        """Play what is missing, on so many processes or on a Dask cluster; yields each run that is done. An error of a
        run is raised when it is found, and what was played before stays."""
        self._write_mark()
        keys = self.missing()
        if dask:
            played = self._on_dask(keys, dask)
        elif workers <= 1 or len(keys) <= 1:
            played = (self._play_one(key) for key in keys)
        else:
            played = self._on_processes(keys, workers)
        with closing(played):
            for key, seconds in played:
                self.times.add(key, seconds)
                yield key

    def _play_one(self, key: RunKey) -> TimedRun:
        return play_one(*self._arguments(key))

    def _on_processes(self, keys: Sequence[RunKey], workers: int) -> Generator[TimedRun]:
        """A caller that stops, or is interrupted, waits for the runs that are under way; no other is begun. A pool
        cannot take back what it has queued, so it gets no more than it has workers."""
        waiting = iter(keys)
        with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
            under_way = {pool.submit(play_one, *self._arguments(key)) for key in islice(waiting, workers)}
            while under_way:
                done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
                for key in islice(waiting, len(done)):
                    under_way.add(pool.submit(play_one, *self._arguments(key)))
                for future in done:
                    yield future.result()

    def _arguments(self, key: RunKey) -> tuple[Path | LabScenario, RunKey, Path, Path]:
        return self._source, key, self.directory, self.base

    def _on_dask(self, keys: Sequence[RunKey], address: str) -> Generator[TimedRun]:
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
            futures = [client.submit(play_one, *self._arguments(key), pure=False) for key in keys]
            for future in completed(futures):
                yield future.result()

    # ---- one scenario per directory ----

    def _fingerprint(self) -> str:
        """What the results depend on beside the code: the scenario and the files that it names."""
        text = read_text(self._source) if isinstance(self._source, Path) else repr(self._source)
        digest = hashlib.sha256(text.encode())
        for file in files_of(self.scenario, self.base):
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
        runs = [key.directory for key in self.keys]
        mark = {"scenario": self.scenario.name, "fingerprint": self._fingerprint(), "runs": runs}
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


def scenario_of(source: Path | LabScenario) -> LabScenario:
    """The scenario of a file, or a checked one."""
    return read_scenario(source) if isinstance(source, Path) else check_scenario(source)


TimedRun = tuple[RunKey, float]
"""A run and the seconds that it took."""


def play_one(source: Path | LabScenario, key: RunKey, directory: Path, base: Path) -> TimedRun:
    """Play one run of a scenario. What an interrupted one left is removed first."""
    for left in directory.glob(f".{key.directory}.*"):
        shutil.rmtree(left, ignore_errors=True)
    collect_rarely(ALLOCATIONS_OF_EXPERIMENTS)
    began = time.monotonic()
    play(scenario_of(source), key, directory / key.directory, base=base)
    return key, time.monotonic() - began
