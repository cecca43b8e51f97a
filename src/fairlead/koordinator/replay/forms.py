"""The form of recordings of Koordinator's scheduler: a configuration, a cluster, and decisions that come in steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from fairlead.koordinator.records.quirks import KOORDINATOR_RECORDED
from fairlead.koordinator.replay.replay import KoordinatorReplay
from fairlead.kube.replay.recording import RecordedForm
from fairlead.kube.replay.wellformed import (
    NODE,
    POD,
    TEXT,
    TYPED,
    Check,
    complaint_about,
    is_a,
    list_of,
    map_of,
    object_of,
    optional,
)

if TYPE_CHECKING:
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Doc
    from fairlead.kube.replay.recording import ReplayMeans, Scenario
    from fairlead.kube.replay.replay import DecisionDifference

_CLUSTER: Mapping[str, Check] = {
    "config": is_a(Mapping, "an object"),
    "gates": optional(map_of(is_a(bool, "true or false"))),
    "nodes": list_of(NODE),
    "objects": list_of(TYPED),
    "existing": list_of(POD),
    "decisions": list_of(object_of({
        "step": is_a(int, "a whole number"),
        "deleted": optional(list_of(optional(TEXT))),
        "object": optional(TYPED),
        "pod": optional(POD),
        "reservation": optional(TYPED),
        "node": optional(TEXT),
        "message": optional(TEXT),
        "scores": optional(map_of(map_of(is_a(int, "a whole number")))),
        "annotations": optional(is_a(Mapping, "an object")),
        "victims": optional(list_of(TEXT)),
    })),
}  # fmt: skip


def _decisions(scenario: Scenario, means: ReplayMeans) -> Iterator[list[DecisionDifference]]:
    def make_profile(document: Doc, gates: frozenset[str]) -> Profile:
        return means.recorded_profile(document, gates, (KOORDINATOR_RECORDED,))

    return KoordinatorReplay(scenario, make_profile).decisions()


KOORDINATOR_FORM = RecordedForm(
    "Koordinator",
    "decisions",
    ("nodes", "existing", "objects"),
    partial(complaint_about, fields=_CLUSTER),
    _decisions,
    recognised_by=("config",),
)
FORMS = (KOORDINATOR_FORM,)
