"""Recorded runs of Google's cluster scheduler simulator: `results.json` with `experiments`, job lists, initial cells.

With java.util.Random's numbers a run is repeated exactly: counters are equal and means agree to 1e-6, and where a file
per job was recorded, every job does. With our own numbers the means over the seeds agree within 1.5 times both
intervals. Transactions that are incremental by sequence numbers are compared with the variant `sticky`, Mesos with
`fifo`: there the original's own rules leave the result open, or end in its assertion.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fairlead.lab.omega.metrics import Metrics, measure
from fairlead.lab.omega.setup import ExperimentError, read_experiment, read_jobs, read_rows
from fairlead.lab.omega.streams import JavaStream, OwnStream, Stream
from fairlead.lab.report.intervals import mean_and_interval
from papers.omega.experiment import run_experiment
from papers.reference.checks import CheckOptions, ReferenceCheck, close

if TYPE_CHECKING:
    from fairlead.lab.omega.simulation import JobRun, Simulation

SHARED, INDEPENDENT = "shared", "independent"
"""All schedulers draw from the same seed, as in the original, or each from its own."""
_PER_JOB = ("wait_first", "wait_full", "attempts", "task_attempts", "useful", "wasted", "unplaced")
_ABOUT_THE_RUN = ("id", "variant", "rng", "seed")
_STEADY = ("cpu_util",)
"""Metrics that may differ by 0.002 more, whatever their interval."""
_FEW_TRANSACTIONS = 30
"""A fraction of fewer successful transactions than this says nothing when seeds differ."""
_SEEDS, _SEEDS_IF_THEY_DIFFER = 10, 30


def is_omega(directory: Path) -> bool:
    return (directory / "results.json").is_file() and any(directory.glob("jobs_*.csv.gz"))


def omega_checks(directory: Path, options: CheckOptions) -> Iterator[ReferenceCheck]:
    for name, experiment in _experiments(directory).items():
        variant = _variant(experiment["setup"])
        if options.own_generator:
            yield OmegaMeans(directory, name, variant, options.seeds)
            continue
        recorded = recorded_runs(directory, name, variant)
        if not recorded:
            yield OmegaUnrecorded(name, variant)
        seeds = max((seed for _, seed in recorded), default=0) + 1 if options.everything else options.seeds or 1
        for rng in (SHARED, INDEPENDENT) if options.everything else (SHARED,):
            for seed in range(seeds):
                if (rng, seed) in recorded:
                    yield OmegaRun(directory, name, variant, rng, seed, alone=seeds == 1)


def _experiments(directory: Path) -> dict[str, Any]:
    path = directory / "results.json"
    try:
        found = json.loads(path.read_text())["experiments"]
        assert isinstance(found, dict)
        return found
    except OSError as error:
        raise ExperimentError(f"{path}: cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, AssertionError) as error:
        raise ExperimentError(f"{path}: no JSON object with `experiments`") from error


def _variant(setup: Mapping[str, Any]) -> str:
    if setup.get("arch") == "mesos":
        return "fifo"
    by_sequence = setup.get("conflict") == "sequence-numbers" and setup.get("tx") == "incremental"
    return "sticky" if by_sequence else "original"


def recorded_runs(directory: Path, name: str, variant: str) -> dict[tuple[str, int], dict[str, str]]:
    """The lines of results_raw.csv.gz about a set-up, by random numbers and seed."""
    path = directory / "results_raw.csv.gz"
    if path not in _RAW:
        _RAW[path] = {}
        for row in read_rows(path, ("id", "variant", "rng", "seed")):
            _RAW[path].setdefault((row["id"], row["variant"]), {})[row["rng"], int(row["seed"])] = row
    return _RAW[path].get((name, variant), {})


_RAW: dict[Path, dict[tuple[str, str], dict[tuple[str, int], dict[str, str]]]] = {}
"""What has been read, by file: the lines of all set-ups are in one."""


def run_setup(directory: Path, name: str, seed: int, *, independent: bool, own: bool = False) -> Simulation:
    """One run of a set-up of a directory."""
    setup = _experiments(directory)[name]["setup"]
    jobs = read_jobs(directory / f"jobs_{setup['jobs']}.csv.gz")

    def streams(scheduler: int) -> Stream:
        if own:
            return OwnStream(seed, scheduler)
        return JavaStream(1000 * seed + scheduler + 1 if independent else seed)

    return run_experiment(read_experiment(name, setup, directory), jobs, streams)


def setups_of(directory: Path) -> dict[str, Mapping[str, Any]]:
    return {name: experiment["setup"] for name, experiment in _experiments(directory).items()}


def run_metrics(directory: Path, name: str) -> Metrics:
    """What a set-up comes to with seed 0."""
    return measure(run_setup(directory, name, 0, independent=False))


def recorded_metrics(directory: Path, name: str) -> Metrics:
    """What the original recorded of a set-up with seed 0; empty if it recorded nothing."""
    row = recorded_runs(directory, name, _variant(setups_of(directory)[name])).get((SHARED, 0), {})
    return {key: float(text) if text else None for key, text in row.items() if key not in _ABOUT_THE_RUN}


@dataclass(frozen=True)
class OmegaUnrecorded:
    """A set-up of which nothing is recorded that ours could be held to, so that it cannot be said to agree."""

    name: str
    variant: str

    def differences(self) -> list[str]:
        return [f"results_raw.csv.gz has no run of the variant {self.variant}"]


@dataclass(frozen=True)
class OmegaRun:
    """One recorded run, repeated exactly."""

    directory: Path
    setup: str
    variant: str
    rng: str
    seed: int
    alone: bool

    @property
    def name(self) -> str:
        return self.setup if self.alone else f"{self.setup}/{self.rng}/{self.seed}"

    def differences(self) -> list[str]:
        simulation = run_setup(self.directory, self.setup, self.seed, independent=self.rng == INDEPENDENT)
        recorded = recorded_runs(self.directory, self.setup, self.variant)[self.rng, self.seed]
        found = list(_unequal(measure(simulation), recorded))
        per_job = self.directory / f"perjob_{self.setup}.csv.gz"
        if self.rng == SHARED and self.seed == 0 and per_job.is_file():
            found += _unequal_jobs(simulation.jobs, read_rows(per_job))
        return found


def _unequal(ours: Metrics, recorded: Mapping[str, str]) -> Iterator[str]:
    for name, text in recorded.items():
        if name in _ABOUT_THE_RUN:
            continue
        value = ours.get(name)
        if not text:
            if value is not None:
                yield f"{name} is {value:.9g}, recorded none"
        elif value is None or not close(value, float(text)):
            yield f"{name} is {value}, recorded {text}"


def _unequal_jobs(ours: list[JobRun], recorded: list[dict[str, str]]) -> Iterator[str]:
    by_id = {str(job.spec.id): job for job in ours}
    for row in recorded:
        job = by_id.get(row["job"])
        if job is None:
            yield f"job {row['job']} is not in the list"
            continue
        for name in _PER_JOB:
            value = getattr(job, name)
            text = row["unscheduled" if name == "unplaced" else name]
            if not close(value, float(text)):
                yield f"job {row['job']}: {name} is {value}, recorded {text}"


@dataclass(frozen=True)
class OmegaMeans:
    """The means of a set-up over seeds, with our own random numbers. Unless it is told how many, it runs ten seeds, and
    twenty more before it says that the means differ: with fifty means a set-up and a hundred set-ups, one or the other
    of ten seeds is beyond its bound by chance."""

    directory: Path
    setup: str
    variant: str
    seeds: int | None = None

    @property
    def name(self) -> str:
        return f"{self.setup}/own"

    @cached_property
    def _run(self) -> Mapping[str, Any]:
        runs: Mapping[str, Any] = _experiments(self.directory)[self.setup]["runs"]
        run: Mapping[str, Any] = runs.get(f"{self.variant}/{INDEPENDENT}") or runs[f"{self.variant}/{SHARED}"]
        return run

    @property
    def _recorded(self) -> Mapping[str, Any]:
        metrics: Mapping[str, Any] = self._run["metrics"]
        return metrics

    def differences(self) -> list[str]:
        runs: list[Metrics] = []
        found: list[str] = []
        for seeds in (_SEEDS, _SEEDS_IF_THEY_DIFFER) if self.seeds is None else (self.seeds,):
            runs += [
                measure(run_setup(self.directory, self.setup, seed, independent=True, own=True))
                for seed in range(len(runs), seeds)
            ]
            found = [words for name in self._recorded if (words := self._compare(name, runs))]
            if not found:
                break
        return found

    def _compare(self, name: str, runs: list[Metrics]) -> str:
        recorded = self._recorded[name]
        values = [value for run in runs if (value := run.get(name)) is not None]
        if recorded is None or not values or self._says_nothing(name, runs):
            return ""
        mean, interval = mean_and_interval(values)
        if interval and self._run.get("seeds") == 1:
            # One run has no interval: that of a single run of ours stands in for it.
            recorded = {"mean": recorded, "ci95": interval * len(values) ** 0.5}
        if not isinstance(recorded, Mapping):
            # Equal in all recorded seeds; it may be a step that few seeds take, so that it varies in ours.
            bound = 1.5 * interval + 0.005 * abs(recorded) if interval else 1e-6 * abs(recorded)
            return "" if abs(mean - recorded) <= bound else _words(name, mean, recorded, bound)
        bound = 1.5 * (recorded["ci95"] ** 2 + interval**2) ** 0.5 + 0.005 * abs(recorded["mean"])
        bound += 0.002 if name in _STEADY else 0.0
        return "" if abs(mean - recorded["mean"]) <= bound else _words(name, mean, recorded["mean"], bound)

    def _says_nothing(self, name: str, runs: list[Metrics]) -> bool:
        kind, _, what = name.partition(".")
        if what not in ("conflict_fraction", "task_conflict_fraction"):
            return False
        return any((run.get(f"{kind}.tx_ok") or 0) < _FEW_TRANSACTIONS for run in runs)


def _words(name: str, mean: float, recorded: float, bound: float) -> str:
    return f"{name} is {mean:.6g}, recorded {recorded:.6g} and at most {bound:.3g} away"
