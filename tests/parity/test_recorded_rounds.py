"""Rounds recorded from the real Volcano 1.15.1, run again: every placement, score, eviction, phase and message.

The recordings are small clusters made at random; data/README.md says how they were made and what agreement means.
"""

from __future__ import annotations

import re
from pathlib import Path

import orjson
import pytest

from fairlead.errors import ScenarioError
from fairlead.kube.replay.recording import Scenario, scenarios_in
from fairlead.kube.replay.replay import Report
from fairlead.volcano.config.build import recorded_rounds
from fairlead.volcano.replay.replay import VolcanoReplay

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


def test_a_round_that_went_another_way_is_distinguished() -> None:
    """The replay follows what was recorded; it must not follow it anywhere."""
    scenario = next(s for s in scenarios_in(DATA / "volcano.jsonl.gz") if len(s.doc["after"]["binds"]) > 1)
    steps = [step for step in scenario.doc["steps"] if step.get("do") == "allocate" and "scores" in step]
    steps[0]["scores"] = {node: score + 1 for node, score in steps[0]["scores"].items()}
    assert [d.field for d in VolcanoReplay(scenario, recorded_rounds).differences()] == ["scores"]


def _one_with_room_made() -> Scenario:
    recorded = scenarios_in(DATA / "volcano.jsonl.gz")
    return next(
        s for s in recorded if any(step.get("do") == "pipeline" and "scores" in step for step in s.doc["steps"])
    )


@pytest.mark.parametrize("field", ["pod", "node"])
@pytest.mark.parametrize("what", ["evict", "pipeline"])
def test_a_step_about_somebody_who_is_not_there_is_a_difference(what: str, field: str) -> None:
    scenario = _one_with_room_made()
    next(step for step in scenario.doc["steps"] if step.get("do") == what)[field] = "nobody"
    differences = VolcanoReplay(scenario, recorded_rounds).differences()
    assert bool(differences) == ((what, field) != ("evict", "node"))


@pytest.mark.parametrize(
    ("field", "value", "complaint"),
    [
        ("after", [], "'after' should be an object"),
        ("after", {}, "'after.podgroups' should be an object"),
        ("steps", ["allocate"], "'steps[0]' should be an object"),
        ("steps", [{"do": "allocate", "scores": {"n00": "many"}}], "'steps[0].scores.n00' should be a number"),
        ("pods", [{"metadata": {}, "spec": {}}], "'pods[0].metadata.name' should be a string"),
    ],
)
def test_a_line_that_is_no_round_says_what_is_wrong_with_it(
    tmp_path: Path, field: str, value: object, complaint: str
) -> None:
    doc = {**_one_with_room_made().doc, field: value}
    file = tmp_path / "damaged.jsonl"
    file.write_bytes(orjson.dumps(doc))
    with pytest.raises(ScenarioError, match=re.escape(f"damaged.jsonl:1: {complaint}")):
        list(scenarios_in(file))


def test_a_configuration_that_cannot_be_used_names_the_line() -> None:
    scenario = _one_with_room_made()
    scenario.doc["conf"] = "actions: ["
    with pytest.raises(ScenarioError, match=r"volcano.jsonl.gz:\d+: 'conf' cannot be used"):
        VolcanoReplay(scenario, recorded_rounds)
