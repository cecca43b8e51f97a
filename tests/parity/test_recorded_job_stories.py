"""Stories recorded from the real Volcano 1.15.1 controllers and webhooks, lived through again step by step.

Each story is a few objects and happenings in a namespace; data/README.md says what agreement means and what is left to
chance.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairlead.kube.replay.recording import Scenario, scenarios_in
from fairlead.volcano.replay.forms import STORY_FORM
from fairlead.volcano.replay.story_agreement import Agreement
from tests.support.replays import replayed

RECORDING = Path(__file__).parent / "data" / "volcano" / "jobs.jsonl.gz"
PARTS = 6


@pytest.mark.parametrize("part", range(PARTS))
def test_every_step_of_a_recorded_story_is_ours_too(part: int) -> None:
    stories = [story for number, story in enumerate(scenarios_in(RECORDING)) if number % PARTS == part]
    differences = [difference for story in stories for step in replayed(story) for difference in step]
    assert differences == []


def test_the_recording_of_stories_is_whole() -> None:
    stories = list(scenarios_in(RECORDING))
    assert {story.form for story in stories} == {STORY_FORM}
    assert len(stories) == 245
    assert sum(len(story.doc["steps"]) for story in stories) == 1468


def _story(family: str) -> Scenario:
    return next(story for story in scenarios_in(RECORDING) if story.family == family)


@pytest.mark.parametrize("field", ["phase", "pods", "podgroups", "events", "made", "version"])
def test_a_story_that_ended_otherwise_is_distinguished(field: str) -> None:
    story = _story("policies")
    for step in story.doc["steps"]:
        after = step.get("after") or {}
        match field:
            case "phase":
                for job in (after.get("jobs") or {}).values():
                    job["status"]["state"]["phase"] = "Aborted"
            case "pods":
                after["pods"] = {}
            case "podgroups":
                after["podgroups"] = {"other": {"spec": {}}}
            case "made":
                for pod in (after.get("made") or {}).values():
                    pod["spec"]["hostname"] = "elsewhere"
            case "version":
                for job in (after.get("jobs") or {}).values():
                    job["status"].pop("version", None)
            case "events":
                after["events"] = [["Job", "job1", "Normal", "ExecuteAction", "Start to execute nothing ", "x"]]
    found = Counter(d.field.split(".")[0] for step in replayed(story) for d in step)
    assert found["jobs" if field in ("phase", "version") else field] > 0


def test_an_object_made_anew_is_distinguished_from_one_that_stayed() -> None:
    """A recorded kill that left the Job's Secret alone would differ from ours, which makes it anew."""
    stories = (story for story in scenarios_in(RECORDING) if story.family == "corner")
    story = next(one for one in stories if _made_again(one, "secrets"))
    for step in story.doc["steps"]:
        for secret in ((step.get("after") or {}).get("secrets") or {}).values():
            secret["try"] = 1
    assert [d for step in replayed(story) for d in step if d.field == "secrets made anew"]


def _made_again(story: Scenario, section: str) -> bool:
    states = [(step.get("after") or {}).get(section) or {} for step in story.doc["steps"]]
    return any(one.get("try", 1) > 1 for state in states for one in state.values())


def test_what_was_still_moving_when_the_recorder_looked_is_left_out() -> None:
    """A pod whose Job is gone, and a new Job without its PodGroup: no rule leaves such a thing at rest."""
    recorded = {
        "jobs": {"fresh": {"status": {"state": {"phase": "Pending"}}}},
        "pods": {"gone-t-0": {"phase": "Failed", "try": 1, "group": "gone-{uid:Job/gone}"}},
    }
    own = {
        "jobs": {"fresh": {"status": {"state": {"phase": "Running"}}}},
        "podgroups": {"fresh-{uid:Job/fresh}": {"spec": {}}},
    }
    assert list(Agreement().differences(recorded, own)) == []
    recorded["pods"]["gone-t-0"]["terminating"] = True
    assert [field for field, _, _ in Agreement().differences(recorded, own)] == ["pods"]
