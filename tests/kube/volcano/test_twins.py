"""The real Volcano scheduler and Fairlead on the same fresh scenarios on real API servers, under nine configurations:
what runs at the end, per gang and per queue, is the same."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.real.control_plane import ControlPlane
from tests.support.real.volcano_chance import stories_without_chance
from tests.support.real.volcano_runner import FAIRLEAD, VOLCANO, prepare, tell_all
from tests.support.real.volcano_settings import SETTINGS
from tests.support.real.volcano_stories import Story

pytestmark = [pytest.mark.kube, pytest.mark.takes(seconds=90)]

STORIES = 7
"""Of each setting: more than sixty in all."""
TELLINGS = 3
"""How often a story that ended differently is told in all, before that counts."""


def test_the_same_gangs_and_queues_run_under_both_schedulers(tmp_path: Path) -> None:
    stories = [story for setting in SETTINGS for story in stories_without_chance(setting, STORIES)]
    planes = {name: ControlPlane(tmp_path / name) for name in (VOLCANO, FAIRLEAD)}
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(prepare, planes.values()))
        for _ in range(TELLINGS):
            differing = compared(planes, stories)
            stories = [story for story, _ in differing]
            if not stories:
                break
    finally:
        for plane in planes.values():
            plane.stop()
    assert not differing, "\n".join(words for _, words in differing)


def compared(planes: dict[str, ControlPlane], stories: Sequence[Story]) -> list[tuple[Story, str]]:
    """Stories that ended differently under the two, each in words. Both are told at the same time."""

    def told(name: str) -> list[dict[str, int]]:
        return asyncio.run(tell_all(name, planes[name], stories))

    with ThreadPoolExecutor() as pool:
        theirs, ours = pool.map(told, (VOLCANO, FAIRLEAD))
    return [
        (story, f"{story}\n  volcano:  {their}\n  fairlead: {our}")
        for story, their, our in zip(stories, theirs, ours, strict=True)
        if their != our
    ]
