"""Gavel's jobs and results: `small.csv` has runs of the authors' simulator, `published.json` the paper's tables.

Mean completion times of the small runs agree within 3 % (first come, first served) or 5 %. Of the published tables the
order of the policies is compared, at loads where they are well apart.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.lab.omega.setup import ExperimentError, read_rows
from papers.sharing.rounds import SharingJob, run_rounds
from papers.sharing.shares import SHARE_POLICIES

if TYPE_CHECKING:
    from papers.reference.checks import CheckOptions, ReferenceCheck

TYPES = ("v100", "p100", "k80")
_SMALL = range(50, 150)
_PUBLISHED = range(4000, 5001)
_PUBLISHED_CLUSTER = (36, 36, 36)
_ORDERED_AT = {"single": ("2.00", "4.80"), "multi": ("1.00",)}
"""Jobs an hour at which the order of policies is compared by default, by the list of jobs: below and above the knee of
the blind ones."""
_APART = 1.1
"""Published values that differ by less than this factor have no order."""


def is_gavel(directory: Path) -> bool:
    return (directory / "throughputs.csv").is_file() and (directory / "small.csv").is_file()


def gavel_checks(directory: Path, options: CheckOptions) -> Iterator[ReferenceCheck]:
    columns = ("cluster", "policy", "seed", "mean_gap_seconds", "list", "mean_jct_seconds")
    for row in read_rows(directory / "small.csv", columns):
        if row["policy"] not in SHARE_POLICIES:
            known = ", ".join(SHARE_POLICIES)
            raise ExperimentError(f"{directory / 'small.csv'}: no policy {row['policy']}; known are {known}")
        yield GavelSmallRun(
            directory,
            tuple(int(count) for count in row["cluster"].split(":")),
            row["policy"],
            int(row["seed"]),
            float(row["mean_gap_seconds"]),
            row["list"],
            float(row["mean_jct_seconds"]),
        )
    if (directory / "published.json").is_file():
        for kind, usual in _ORDERED_AT.items():
            published = _published(directory, kind)
            rates = sorted({rate for table in published.values() for rate in table}, key=float)
            for rate in rates if options.everything else usual:
                yield GavelOrder(directory, kind, rate)


def _published(directory: Path, kind: str) -> dict[str, dict[str, float]]:
    """Mean hours by policy and rate, of the policies that we have; `kind` is the list of jobs, `single` or `multi`."""
    tables = json.loads((directory / "published.json").read_text())[kind]["avg_jct_hours"]
    return {policy: tables[policy] for policy in SHARE_POLICIES if policy in tables}


def read_sharing_jobs(directory: Path, kind: str, seed: int, mean_gap: float, count: int) -> list[SharingJob]:
    """The first jobs of a list, with speeds on all types; arrivals are so far apart in the mean."""
    speeds = {
        (row["job_type"], row["gpus"]): tuple(float(row[name]) for name in TYPES)
        for row in read_rows(directory / "throughputs.csv", ("job_type", "gpus", *TYPES))
    }
    rows = read_rows(directory / f"jobs_{kind}_seed{seed}.csv.gz", ("job", "unit_arrival", "job_type", "gpus", "steps"))
    return [
        SharingJob(
            int(row["job"]),
            float(row["unit_arrival"]) * mean_gap,
            float(row["steps"]),
            speeds[row["job_type"], row["gpus"]],
            int(row["gpus"]),
        )
        for row in rows[:count]
    ]


@dataclass(frozen=True)
class GavelSmallRun:
    directory: Path
    cluster: tuple[int, ...]
    policy: str
    seed: int
    mean_gap: float
    jobs: str
    recorded: float

    @property
    def name(self) -> str:
        return f"small/{self.policy}/{self.seed}"

    def differences(self) -> list[str]:
        jobs = read_sharing_jobs(self.directory, self.jobs, self.seed, self.mean_gap, 4 * _SMALL.stop)
        mean = run_rounds(SHARE_POLICIES[self.policy](self.cluster), jobs, _SMALL)
        bound = 0.03 if self.policy.startswith("fifo") else 0.05
        if abs(mean / self.recorded - 1) <= bound:
            return []
        return [f"mean completion time is {mean:.0f} s, recorded {self.recorded:.0f} s"]


@dataclass(frozen=True, slots=True)
class PublishedMean:
    """The mean completion time of a policy in hours: ours, and the paper's."""

    policy: str
    ours: float
    published: float


def published_means(directory: Path, kind: str, rate: str) -> Iterator[PublishedMean]:
    """What our policies come to at one rate of arrivals on the paper's cluster, seed 0, each as soon as it has been
    run; `kind` is `single` for jobs of one GPU, `multi` for those of up to eight."""
    tables = _published(directory, kind)
    rates = sorted({rate for table in tables.values() for rate in table}, key=float)
    if rate not in rates:
        raise ExperimentError(
            f"{directory / 'published.json'}: no rate {rate} for {kind}; there are {', '.join(rates)}"
        )
    for policy, table in tables.items():
        if rate in table:
            jobs = read_sharing_jobs(directory, kind, 0, 3600 / float(rate), 6000)
            mean = run_rounds(SHARE_POLICIES[policy](_PUBLISHED_CLUSTER), jobs, _PUBLISHED) / 3600
            yield PublishedMean(policy, mean, table[rate])


def out_of_order(means: Sequence[PublishedMean]) -> list[str]:
    """Pairs of policies that are well apart in the paper and the other way round in ours."""
    return [
        f"{one.policy} {one.ours:.2f} h and {other.policy} {other.ours:.2f} h, "
        f"published {one.published:.2f} h and {other.published:.2f} h"
        for one, other in combinations(means, 2)
        if not _same_order(one.published / other.published, one.ours / other.ours)
    ]


@dataclass(frozen=True)
class GavelOrder:
    """The order of the policies at one rate of arrivals."""

    directory: Path
    kind: str
    rate: str

    @property
    def name(self) -> str:
        return f"order/{self.kind}/{self.rate}"

    def differences(self) -> list[str]:
        return out_of_order(list(published_means(self.directory, self.kind, self.rate)))


def _same_order(published: float, ours: float) -> bool:
    if max(published, 1 / published) < _APART:
        return True
    return (published > 1) == (ours > 1)
