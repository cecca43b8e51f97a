"""kill -9 of a whole `fairlead up --data` under writers and watchers: one history explains what all of them saw.

Three kills here, twenty in ten minutes in `make soak ARGS='--only history'`.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.support.history.checker import Checker
from tests.support.history.lives import live

pytestmark = pytest.mark.long


def test_one_history_explains_all_through_kills(tmp_path: Path) -> None:
    clients = live(tmp_path / "here", kills=3, seconds=3)
    assert Checker(clients.record).check() == []
    assert clients.writes > 100


def test_what_a_lost_sync_leaves_behind_is_noticed(tmp_path: Path) -> None:
    """After the second kill the data are those of after the first: what a power cut leaves of a disk that lies."""

    def lose(life: int, data: Path) -> None:
        if life == 0:
            shutil.copytree(data, tmp_path / "before")
        else:
            shutil.rmtree(data)
            shutil.move(tmp_path / "before", data)

    clients = live(tmp_path / "here", kills=2, seconds=1.5, between=lose)
    assert any("lost" in problem for problem in Checker(clients.record).check())
