"""Fresh random stories of Volcano Jobs, carried out by Volcano's own controllers and scheduler on a real API server and
then by ours: after every step the same stands in the API.

`make fuzz WHAT=jobs` makes new ones: FAIRLEAD_FUZZ says how many and FAIRLEAD_FUZZ_SEED where to begin. Without them
the same few stories are played every time. What was recorded is kept in build/fuzz/ for `fairlead replay`. A story
about which we differ is recorded several times more: what the original itself does once in these is no difference.
"""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from fairlead.kube.replay.recording import Scenario
from fairlead.kube.replay.replay import DecisionDifference
from fairlead.volcano.replay.forms import STORY_FORM
from tests.support.fuzz.job_recorder import JobRecorder
from tests.support.fuzz.jobs import make_job_story
from tests.support.fuzz.paths import ROOT
from tests.support.real.control_plane import ControlPlane
from tests.support.real.job_teams import TEAMS, USERS, at_work, without_kubelet
from tests.support.replays import replayed

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=35)]

FAMILIAR = 35_006
COUNT = int(os.environ.get("FAIRLEAD_FUZZ", "6"))
AT_ONCE = 20
REPEATS = 10
QUIET = (2.6, 4.5)
"""Seconds without a change after which a step is over: when a story is recorded first, and when it is repeated."""
Doc = dict[str, Any]
Place = tuple[int, str]
"""A step and a field in which we differ."""


@asynccontextmanager
async def recording(tmp_path: Path) -> AsyncIterator[JobRecorder]:
    """A control plane with Volcano's own programs, and nobody else's kubelet."""
    plane = ControlPlane(tmp_path, users=USERS)
    try:
        await asyncio.to_thread(plane.start)
        async with without_kubelet(plane, nodes=4) as api:
            with at_work(TEAMS[0], plane, period="1s"):
                recorder = JobRecorder(api)
                async with recorder.at_work():
                    yield recorder
    finally:
        await asyncio.to_thread(plane.stop)


async def test_the_real_controllers_bring_jobs_to_the_same_states(tmp_path: Path) -> None:
    fresh = secrets.randbelow(10**6) if "FAIRLEAD_FUZZ" in os.environ else FAMILIAR
    seed = int(os.environ.get("FAIRLEAD_FUZZ_SEED") or fresh)
    file = ROOT / "build" / "fuzz" / f"jobs-{seed}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    steps, found = 0, []
    async with recording(tmp_path) as recorder:
        with file.open("wb") as lines:
            for first in range(seed, seed + COUNT, AT_ONCE):
                stories = [make_job_story(number) for number in range(first, min(first + AT_ONCE, seed + COUNT))]
                recorded = await record(recorder, stories, 0)
                steps += sum(len(one["steps"]) for one in recorded)
                lines.writelines(orjson.dumps(one) + b"\n" for one in recorded)
                found += await lasting(recorder, stories, recorded)
    assert steps > 2 * COUNT
    assert found == [], f"{len(found)} differences in {steps} steps of {file}"


async def record(recorder: JobRecorder, stories: Sequence[Doc], telling: int) -> list[Doc]:
    quiet = QUIET[min(telling, 1)]
    return list(await asyncio.gather(*(recorder.record(story, telling, quiet) for story in stories)))


async def lasting(recorder: JobRecorder, stories: Sequence[Doc], recorded: Sequence[Doc]) -> list[DecisionDifference]:
    """In what we differ from every recording of a story."""
    left = {one["seed"]: differences_of(one) for one in recorded}
    for turn in range(1, REPEATS + 1):
        again = [story for story in stories if left[story["seed"]]]
        for one in await record(recorder, again, turn) if again else ():
            theirs = differences_of(one)
            left[one["seed"]] = {at: difference for at, difference in left[one["seed"]].items() if at in theirs}
    return [difference for differences in left.values() for difference in differences.values()]


def differences_of(recorded: Doc) -> dict[Place, DecisionDifference]:
    scenario = Scenario(f"seed {recorded['seed']}", 1, STORY_FORM, recorded["seed"], recorded["family"], recorded)
    return {(one.index, one.field): one for step in replayed(scenario) for one in step}
