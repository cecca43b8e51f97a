"""A journal on a disk that fails: torn and refused writes, failing syncs, and power cuts of three kinds of disk.

Twenty faults here, five hundred in `make soak ARGS='--only disk'`. A C compiler is needed.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.cluster.store import journal
from tests.support.disk.faults import Run, after_a_cut, built, play, write

pytestmark = pytest.mark.long
CUTS = 40


def recorded(directory: Path, *, fsync: bool) -> Run:
    place = directory / "data"
    place.mkdir(mode=0o700)
    return write(built(directory), place, seed=1, fsync=fsync)


def test_nothing_is_lost_and_nothing_is_silently_wrong(tmp_path: Path) -> None:
    assert [problem for problem in play(20, tmp_path) if problem] == []


def test_a_sync_that_is_left_out_is_noticed(tmp_path: Path) -> None:
    """The check is able to fail: a journal that does not sync does not hold what one that does promises."""
    run = recorded(tmp_path, fsync=False)
    assert any(after_a_cut(run, "honest", seed, tmp_path / "after") for seed in range(CUTS))


def test_lost_rows_would_be_silently_wrong_without_the_sum_over_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = recorded(tmp_path, fsync=True)
    monkeypatch.setattr(journal.Journal, "_report", lambda *_, **__: None)
    assert any("silently wrong" in after_a_cut(run, "reordering", seed, tmp_path / "after") for seed in range(4 * CUTS))
