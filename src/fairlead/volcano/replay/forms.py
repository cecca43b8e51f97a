"""The forms of recordings of Volcano: rounds, each a configuration with a cluster, and stories of Jobs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from fairlead.kube.replay.recording import RecordedForm
from fairlead.kube.replay.wellformed import (
    NAMED,
    NODE,
    POD,
    TEXT,
    Check,
    complaint_about,
    is_a,
    list_of,
    map_of,
    object_of,
    optional,
)
from fairlead.volcano.config.build import recorded_rounds
from fairlead.volcano.config.setup import VolcanoSetup
from fairlead.volcano.replay.replay import VolcanoReplay

if TYPE_CHECKING:
    from fairlead.kube.replay.recording import ReplayMeans, Scenario
    from fairlead.kube.replay.replay import DecisionDifference

RECORDED_SETUP = VolcanoSetup("shipped", compatible=True, only=True)
"""What ran when the stories were recorded: the shipped configuration with the original's quirks."""

_LISTED = optional(list_of(object_of({"metadata": NAMED})))
_STEP = object_of(
    {
        **{name: optional(TEXT) for name in ("action", "do", "pod", "node", "for", "overused")},
        "scores": optional(map_of(is_a((int, float), "a number"))),
    }
)
_CONDITION = object_of({"type": TEXT, "status": TEXT, "reason": optional(TEXT), "message": optional(TEXT)})
_GROUP = object_of({"phase": optional(TEXT), "conditions": optional(list_of(_CONDITION))})
_AFTER = object_of({
    "binds": optional(map_of(TEXT)),
    "evicted": optional(list_of(TEXT)),
    "unschedulable": optional(map_of(optional(TEXT))),
    "podgroups": map_of(_GROUP),
})  # fmt: skip
_ROUND: Mapping[str, Check] = {
    "conf": TEXT,
    "nodes": list_of(NODE),
    "pods": list_of(POD),
    "queues": _LISTED,
    "podgroups": _LISTED,
    "hypernodes": _LISTED,
    "steps": list_of(_STEP),
    "after": _AFTER,
}
_STORY: Mapping[str, Check] = {
    "namespace": TEXT,
    "steps": list_of(object_of({
        "do": TEXT,
        "object": optional(object_of({"kind": TEXT, "metadata": is_a(Mapping, "an object")})),
        "pods": optional(list_of(TEXT)),
        "after": optional(is_a(Mapping, "an object")),
    })),
}  # fmt: skip


def _round(scenario: Scenario, means: ReplayMeans) -> Iterator[list[DecisionDifference]]:
    yield VolcanoReplay(scenario, recorded_rounds).differences()


def _steps(scenario: Scenario, means: ReplayMeans) -> Iterator[list[DecisionDifference]]:
    # a whole cluster, which rounds do not need
    from fairlead.volcano.replay.story_replay import StoryReplay
    from fairlead.volcano.replay.story_world import STORY_CONTROLLERS, story_settings

    return StoryReplay(scenario, means.cluster(RECORDED_SETUP, STORY_CONTROLLERS, [story_settings()])).steps()


ROUND_FORM = RecordedForm(
    "Volcano",
    "steps",
    ("nodes", "pods", "conf", "after"),
    partial(complaint_about, fields=_ROUND),
    _round,
    recognised_by=("conf", "nodes"),
)
STORY_FORM = RecordedForm(
    "Volcano Jobs",
    "steps",
    ("namespace",),
    partial(complaint_about, fields=_STORY),
    _steps,
    left_out="steps that follow an action which the original lost",
)
FORMS = (ROUND_FORM, STORY_FORM)
