"""Stories recorded from the real Volcano 1.15.1 controllers and webhooks, lived through again step by step.

Each story is a few objects and happenings in a namespace; data/README.md says what agreement means and what is left to
chance.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from fairlead.cli.stories import story_scheduler
from fairlead.sim.recording import Form, Scenario, scenarios_in
from fairlead.sim.story_replay import StoryReplay

RECORDING = Path(__file__).parent / "data" / "volcano" / "jobs.jsonl.gz"
PARTS = 6
LOOKED_EARLY = {(2026, 0), (3004, 5)}
"""Story and step, recorded before everything was still: a Job without replicas, a CronJob that was deleted."""


@pytest.mark.parametrize("part", range(PARTS))
def test_every_step_of_a_recorded_story_is_ours_too(part: int) -> None:
    stories = [story for number, story in enumerate(scenarios_in(RECORDING)) if number % PARTS == part]
    differences = [
        difference
        for story in stories
        for step in StoryReplay(story, story_scheduler).steps()
        for difference in step
        if (difference.seed, difference.index) not in LOOKED_EARLY
    ]
    assert differences == []


def test_the_recording_of_stories_is_whole() -> None:
    stories = list(scenarios_in(RECORDING))
    assert {story.form for story in stories} == {Form.STORY}
    assert len(stories) == 245
    assert sum(len(story.doc["steps"]) for story in stories) == 1468


def _story(family: str) -> Scenario:
    return next(story for story in scenarios_in(RECORDING) if story.family == family)


@pytest.mark.parametrize("field", ["phase", "pods", "podgroups", "events"])
def test_a_story_that_ended_otherwise_is_told_apart(field: str) -> None:
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
            case "events":
                after["events"] = [["Job", "job1", "Normal", "ExecuteAction", "Start to execute nothing ", "x"]]
    found = Counter(d.field.split(".")[0] for step in StoryReplay(story, story_scheduler).steps() for d in step)
    assert found["jobs" if field == "phase" else field] > 0
