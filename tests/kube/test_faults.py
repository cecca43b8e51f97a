"""The scheduler on a real API server behind a proxy that misbehaves, judged by a validator that shares no code with it.

The short form of `make soak`: every scenario, with less of everything, each in a process of its own as there.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from soak.scenarios import SCENARIOS

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=350)]

BEHIND_PATCHES = """
from soak.overload import behind_patches
latency, patches = behind_patches("fairlead")
print(f"bound behind {patches} patches")
raise SystemExit(patches >= 60)
"""

SLOW = """
from soak.overload import DELETES, slow_api
measured = slow_api("fairlead", seconds=15.0)
print(measured)
raise SystemExit(bool(measured.verdict.problems) or measured.figures[DELETES] > 2)
"""


def played(*words: str) -> None:
    """The process must end well; what it printed is shown if it does not."""
    done = subprocess.run(
        [sys.executable, *words], capture_output=True, text=True, timeout=900, check=False, stdin=subprocess.DEVNULL
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


TOGETHER = [
    ("silence", "odd", "leader", "tokens"), ("etcd-stopped", "lost", "errors", "cuts"),
    ("api-killed", "burst", "kills", "preemption"), ("late", "nonsense", "single"),
]  # fmt: skip
"""Scenarios, three or four at a time: most of each is waiting."""


@pytest.mark.parametrize("names", TOGETHER, ids="+".join)
def test_nothing_is_lost_moved_or_overcommitted(names: tuple[str, ...]) -> None:
    with ThreadPoolExecutor() as pool:
        for done in [pool.submit(played, "-m", "soak", "--minutes", "0", "--short", "--only", name) for name in names]:
            done.result()


def test_every_scenario_is_played_in_short() -> None:
    assert {name for names in TOGETHER for name in names} == {*SCENARIOS} - {"many-kills"}


def test_a_bind_passes_six_hundred_patches_at_twenty_requests_a_second() -> None:
    played("-c", BEHIND_PATCHES)


def test_an_api_that_takes_two_seconds_a_request_loses_nothing_and_deletes_nobody_again_and_again() -> None:
    played("-c", SLOW)
