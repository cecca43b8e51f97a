"""Finds out of what kind a directory of recordings is, and gives its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.lab.omega.setup import ExperimentError
from papers.reference.gavel import gavel_checks, is_gavel
from papers.reference.gpu_policies import gpu_policy_checks, is_gpu_policies
from papers.reference.omega import is_omega, omega_checks
from papers.reference.openb import is_openb, openb_checks

if TYPE_CHECKING:
    from papers.reference.checks import CheckOptions, ReferenceCheck

_KINDS: tuple[tuple[str, Callable[[Path], bool], Callable[[Path, CheckOptions], Iterator[ReferenceCheck]]], ...] = (
    ("omega: results.json and jobs_*.csv.gz", is_omega, omega_checks),
    ("gpu-policies: results_per_job.csv.gz with list, policy and preemptions", is_gpu_policies, gpu_policy_checks),
    ("openb: expected_allo.csv.gz", is_openb, openb_checks),
    ("gavel: throughputs.csv and small.csv", is_gavel, gavel_checks),
)


def checks_of(directory: Path, options: CheckOptions, only: tuple[str, ...] = ()) -> list[ReferenceCheck]:
    """The checks of a directory whose name matches one of the patterns, or contains it; all without patterns."""
    for _, fits, checks in _KINDS:
        if fits(directory):
            return [check for check in checks(directory, options) if not only or matches(check.name, only)]
    forms = "; ".join(form for form, _, _ in _KINDS)
    raise ExperimentError(f"{directory}: no reference directory of a form that is known ({forms})")


def matches(name: str, patterns: tuple[str, ...]) -> bool:
    """Whether a name matches one of the patterns, or contains it."""
    return any(fnmatchcase(name, pattern) or pattern in name for pattern in patterns)
