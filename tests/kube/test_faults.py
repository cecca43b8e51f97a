"""The scheduler on a real API server behind a proxy that misbehaves, judged by a validator that shares no code with it.

The short form of `make soak`: the scenarios that found something once, each in a process of its own as there.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.kube

BEHIND_PATCHES = """
from soak.overload import behind_patches
latency, patches = behind_patches("fairlead")
print(f"bound behind {patches} patches")
raise SystemExit(patches >= 60)
"""


def played(*words: str) -> None:
    """The process must end well; what it printed is shown if it does not."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=900, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.mark.parametrize("name", ["lost", "cuts", "nonsense", "preemption", "leader", "odd", "tokens", "kills"])
def test_nothing_is_lost_moved_or_overcommitted(name: str) -> None:
    played("-m", "soak", "--minutes", "0", "--only", name)


def test_a_bind_passes_six_hundred_patches_at_twenty_requests_a_second() -> None:
    played("-c", BEHIND_PATCHES)
