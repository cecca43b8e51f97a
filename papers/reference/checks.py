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
