"""Check: one recorded run, or a set of runs, that ours is compared with. The answer is a list of differences.

Checks are records that a worker process can be sent; what they read, they read there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Protocol

from fairlead.lab.omega.setup import ExperimentError


class ReferenceCheck(Protocol):
    @property
    def name(self) -> str: ...

    def differences(self) -> list[str]:
        """What differs, in words; empty if ours agrees."""
        ...


@dataclass(frozen=True, slots=True)
class CheckOptions:
    """`seeds` is how many seeds are run, None for as many as the kind of directory has by default; `everything` asks
    for all that is recorded; `own_generator` draws with our generator where the recorded one can be repeated."""

    seeds: int | None = None
    everything: bool = False
    own_generator: bool = False


@dataclass(frozen=True, slots=True)
class CheckResult:
    name: str
    differences: list[str]


def run_checks(checks: Iterable[ReferenceCheck], workers: int) -> Iterator[CheckResult]:
    """The results in the order of the checks, each as soon as it is there."""
    if workers <= 1:
        yield from map(_run, checks)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(_run, checks)


def _run(check: ReferenceCheck) -> CheckResult:
    """A file that cannot be used makes its own check differ; the others are run all the same."""
    try:
        return CheckResult(check.name, check.differences())
    except ExperimentError as error:
        return CheckResult(check.name, [str(error)])


def close(ours: float, recorded: float, relative: float = 1e-6) -> bool:
    return math.isclose(ours, recorded, rel_tol=relative, abs_tol=1e-12)


T_95 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262)
"""Student's t for 95 % and 1 to 9 degrees of freedom."""


def mean_and_interval(values: list[float]) -> tuple[float, float]:
    """The mean and half the width of its 95 % interval; an infinite one if there is only one value."""
    mean = math.fsum(values) / len(values)
    if len(values) < 2:
        return mean, math.inf
    variance = math.fsum((value - mean) ** 2 for value in values) / (len(values) - 1)
    t = T_95[len(values) - 2] if len(values) <= 10 else 2.262
    return mean, t * math.sqrt(variance / len(values))
