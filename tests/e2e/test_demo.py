"""`fairlead demo` as a new user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_the_demo_places_500_pods_and_says_why_12_wait(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "fairlead", "demo"], cwd=tmp_path, capture_output=True,
        text=True, timeout=120, check=False, env={"COLUMNS": "200"},
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    words = " ".join(done.stdout.split())
    assert "500 pods run, 12 wait." in words
    assert "pods per second" in words
    for zone in ("zone-a", "zone-b", "zone-c"):
        assert zone in words
    assert "0/100 nodes are available" in words
    assert "Insufficient nvidia.com/gpu" in words
    assert not list(tmp_path.iterdir())
