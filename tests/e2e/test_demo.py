"""`fairlead demo` as a new user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fairlead.cli.demo import queues
from fairlead.cli.demo.gang import MEMBERS
from fairlead.errors import FairleadError


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What the demo prints, with one space between words."""
    directory: Path = tmp_path_factory.mktemp("demo")
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fairlead", "demo"], cwd=directory, capture_output=True,
        text=True, timeout=120, check=False, env={"COLUMNS": "200"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert not list(directory.iterdir())
    return " ".join(done.stdout.split())


def test_500_pods_run_and_12_wait_with_their_reasons(words: str) -> None:
    assert "500 pods run, 12 wait." in words
    assert "pods per second" in words
    for zone in ("zone-a", "zone-b", "zone-c"):
        assert zone in words
    assert "0/100 nodes are available" in words
    assert "Insufficient nvidia.com/gpu" in words


def test_gang_waits_whole_then_starts_whole(words: str) -> None:
    _, _, scene = words.partition("$ fairlead explain job train --changes")
    assert "default/job-train is Unschedulable: 1 of 4 members fit, 4 are needed" in scene
    assert "short of Nodes all nodes together: asks 32 nvidia.com/gpu, 14 free, 24 missing" in scene
    _, _, changes = scene.partition("what would help, each tried:")
    assert "when Job default/sweep has ended (3 pods)" in changes
    assert "with 3 more nodes like gpu-0" in changes
    _, _, start = changes.partition("Ten minutes later sweep has ended, and all 4 pods of train start at once:")
    assert all(start.count(f"→ gpu-{number}") == 1 for number in range(MEMBERS))


def test_queues_share_by_weight_while_both_have_work(words: str) -> None:
    _, _, scene = words.partition("3. Two queues share 32 GPUs")
    for minute, (teaching, research) in zip(queues.MINUTES, queues.SHARES, strict=True):
        bar = "█" * teaching + "▒" * research
        assert f"minute {minute} {bar} teaching {teaching}, research {research}" in scene


def test_queues_that_share_otherwise_fail_the_demo(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that `make wheel` and CI notice it."""
    from rich.console import Console

    monkeypatch.setattr(queues, "SHARES", [(16, 16)] * len(queues.MINUTES))
    with pytest.raises(FairleadError, match="the queues had"):
        queues.show_queues(Console(quiet=True))
