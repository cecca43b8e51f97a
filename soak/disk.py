"""Faults of the disk under a journal, hundreds of them: what `tests/e2e/test_disk_faults.py` does with twenty."""

from __future__ import annotations

import tempfile
from pathlib import Path

from soak.scenarios import Extent, Outcome
from soak.validator import Verdict
from tests.support.disk.faults import compiler, play


def disk(extent: Extent) -> Outcome:
    """No scheduler takes part; a C compiler does."""
    if compiler() is None:
        return Outcome("faults of the disk", Verdict(inconsistent=["there is no C compiler"]))
    with tempfile.TemporaryDirectory() as directory:
        problems = [problem for problem in play(extent.faults, Path(directory)) if problem]
    return Outcome("faults of the disk", Verdict(inconsistent=problems), {"faults": float(extent.faults)})
