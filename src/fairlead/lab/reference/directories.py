"""Finds out of what kind a directory of recordings is, and gives its checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

from fairlead.lab.omega.setup import ExperimentError
from fairlead.lab.reference.omega import is_omega, omega_checks

if TYPE_CHECKING:
    from fairlead.lab.reference.checks import CheckOptions, ReferenceCheck

_KINDS: tuple[tuple[str, Callable[[Path], bool], Callable[[Path, CheckOptions], Iterator[ReferenceCheck]]], ...] = (
    ("omega: results.json and jobs_*.csv.gz", is_omega, omega_checks),
)


def checks_of(directory: Path, options: CheckOptions, only: tuple[str, ...] = ()) -> list[ReferenceCheck]:
    """The checks of a directory whose name matches one of the patterns, or contains it; all without patterns."""
    for _, fits, checks in _KINDS:
        if fits(directory):
            return [check for check in checks(directory, options) if not only or _matches(check.name, only)]
    forms = "; ".join(form for form, _, _ in _KINDS)
    raise ExperimentError(f"{directory}: no reference directory of a form that is known ({forms})")


def _matches(name: str, patterns: tuple[str, ...]) -> bool:
    return any(fnmatchcase(name, pattern) or pattern in name for pattern in patterns)
