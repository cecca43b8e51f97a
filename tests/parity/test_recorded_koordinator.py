"""Decisions recorded from the real koord-scheduler 1.8.0, decided again: nodes, scores, messages, what was written on
pods, and what stood in quotas and reservations. A part of the recordings; data/README.md says how they were made.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.config.koordinator.recorded import recorded_koordinator
from fairlead.sim.koordinator.replay import KoordinatorReplay
from fairlead.sim.recording import scenarios_in
from fairlead.sim.replay import Report

DATA = Path(__file__).parent / "data" / "koordinator"
PARTS = 2
"""The recording is replayed in as many parts, so that workers can share it."""
FAMILIES = {"quota", "gang", "reservation", "device", "loadaware", "numa", "qos", "mix"}


@pytest.mark.parametrize("part", range(PARTS))
def test_every_recorded_decision_of_koordinator_is_ours_too(part: int) -> None:
    report = Report()
    for number, scenario in enumerate(scenarios_in(DATA / "decisions.jsonl.gz")):
        if number % PARTS == part:
            for differences in KoordinatorReplay(scenario, recorded_koordinator).decisions():
                report.add(scenario.family, differences)
    assert report.differences == []
    assert report.total > 200


def test_the_recording_has_all_families() -> None:
    assert {scenario.family for scenario in scenarios_in(DATA / "decisions.jsonl.gz")} == FAMILIES
