"""Rounds recorded from the real Volcano 1.15.1, run again: every placement, score, eviction, phase and message.

The recordings are small clusters made at random; data/README.md says how they were made and what agreement means.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from fairlead.config.volcano_build import recorded_rounds
from fairlead.sim.recording import scenarios_in
from fairlead.sim.replay import Report
from fairlead.sim.volcano_replay import VolcanoReplay

DATA = Path(__file__).parent / "data" / "volcano"
RECORDINGS = {"volcano": 696, "volcano-corners": 425}
PARTS = 4
"""Each recording is replayed in as many parts, so that workers can share it."""


@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_recorded_round_is_ours_too(recording: str, part: int) -> None:
    report = Report()
    for number, scenario in enumerate(scenarios_in(DATA / f"{recording}.jsonl.gz")):
        if number % PARTS == part:
            report.add(scenario.family, VolcanoReplay(scenario, recorded_rounds).differences())
    assert report.differences == []
    assert report.total > 0


@pytest.mark.parametrize("recording", RECORDINGS)
def test_the_recordings_of_rounds_are_whole(recording: str) -> None:
    assert sum(1 for _ in scenarios_in(DATA / f"{recording}.jsonl.gz")) == RECORDINGS[recording]


def test_a_round_that_went_another_way_is_told_apart() -> None:
    """The replay follows what was recorded; it must not follow it anywhere."""
    scenario = next(s for s in scenarios_in(DATA / "volcano.jsonl.gz") if len(s.doc["after"]["binds"]) > 1)
    steps = [step for step in scenario.doc["steps"] if step.get("do") == "allocate" and "scores" in step]
    steps[0]["scores"] = {node: score + 1 for node, score in steps[0]["scores"].items()}
    assert [d.field for d in VolcanoReplay(scenario, recorded_rounds).differences()] == ["scores"]
