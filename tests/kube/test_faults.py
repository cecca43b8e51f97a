"""The scheduler on a real API server behind a proxy that misbehaves, judged by a validator that shares no code with it.

The short form of `make soak`: the scenarios that found something once.
"""

from __future__ import annotations

import pytest
from soak.overload import behind_patches
from soak.scenarios import SCENARIOS

pytestmark = pytest.mark.kube


@pytest.mark.parametrize("name", ["lost", "cuts", "nonsense", "preemption", "leader", "odd"])
def test_nothing_is_lost_moved_or_overcommitted(name: str) -> None:
    outcome = SCENARIOS[name]("fairlead")
    assert outcome.verdict.problems == [], outcome.line()


def test_a_bind_passes_six_hundred_patches_at_twenty_requests_a_second() -> None:
    _, patches_before_it = behind_patches("fairlead")
    assert patches_before_it < 60
