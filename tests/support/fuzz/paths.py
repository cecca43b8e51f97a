"""The root of the repository, below which fuzz tests keep recordings, and the configuration of their kube-scheduler."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[3]
CONFIG = ROOT / "tests" / "parity" / "data" / "kube" / "scheduler-config.yaml"
