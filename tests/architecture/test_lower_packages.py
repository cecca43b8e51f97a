"""The packages below the families name none of them: not in imports, nor in docstrings, comments, texts or data.

What a lower package needs of a family comes from the family's record or as an argument. A file that names a family
would have to be read, and changed, with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.sources import ROOT, at_least

LOWER = {"core": 140, "client": 14, "cluster": 135, "runtime": 17, "config": 6, "cel": 16, "kube": 95}
"""Each with how many files of it the rule looks at, at least."""
FAMILIES = re.compile("volcano|koordinator", re.IGNORECASE)
ALLOWED: dict[str, str] = {}
"""Files that may name a family, each with the reason."""
MOST_ALLOWED = 5


def files_of(package: str) -> list[Path]:
    return [path for path in sorted((ROOT / package).rglob("*")) if path.is_file() and path.suffix != ".pyc"]


def lines_with_families(path: Path) -> Iterator[int]:
    for number, line in enumerate(path.read_bytes().decode("utf-8", "replace").splitlines(), 1):
        if FAMILIES.search(line):
            yield number


def named_in(package: str) -> dict[str, list[int]]:
    files = at_least(LOWER[package], files_of(package))
    found = {path.relative_to(ROOT).as_posix(): list(lines_with_families(path)) for path in files}
    return {name: lines for name, lines in found.items() if lines or FAMILIES.search(name)}


@pytest.mark.parametrize("package", LOWER)
def test_a_lower_package_names_no_family(package: str) -> None:
    found = {name: lines for name, lines in named_in(package).items() if name not in ALLOWED}
    assert not found, "with the lines that name one"


def test_exceptions_are_few_and_needed() -> None:
    found = {name for package in LOWER for name in named_in(package)}
    assert len(ALLOWED) <= MOST_ALLOWED
    assert not {*ALLOWED} - found, "these name no family any more: take them out of the list"


def test_names_are_found_wherever_they_stand(tmp_path: Path) -> None:
    file = tmp_path / "x.py"
    file.write_text('"""As in Volcano."""\nimport os  # koordinator\nKIND = "jobs.batch.volcano.sh"\n')
    assert list(lines_with_families(file)) == [1, 2, 3]
