"""The form of recordings of kube-scheduler: a cluster, and decisions about single pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

from fairlead.kube.replay.recording import RecordedForm
from fairlead.kube.replay.replay import KubeReplay
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
    from fairlead.kube.replay.recording import ReplayMeans, Scenario
    from fairlead.kube.replay.replay import DecisionDifference

_EXTENDER = object_of({
    "name": TEXT,
    "filter": optional(object_of({
        "kept": list_of(TEXT),
        "refused": optional(map_of(object_of({"message": TEXT, "final": is_a(bool, "true or false")}))),
    })),
    "scores": optional(map_of(is_a(int, "a whole number"))),
    "victims": optional(map_of(object_of({"pods": list_of(TEXT), "violations": is_a(int, "a whole number")}))),
})  # fmt: skip
_DECISION = object_of({
    "pod": POD,
    "node": optional(TEXT),
    "message": optional(TEXT),
    "feasible": optional(list_of(TEXT)),
    "scores": optional(map_of(map_of(is_a(int, "a whole number")))),
    "nominated": optional(TEXT),
    "victims": optional(list_of(TEXT)),
    "claims": optional(map_of(TEXT)),
    "extenders": optional(list_of(_EXTENDER)),
})  # fmt: skip
_CLUSTER: Mapping[str, Check] = {
    "nodes": list_of(NODE),
    "objects": optional(list_of(TYPED)),
    "existing": list_of(POD),
    "waiting": optional(list_of(POD)),
    "decisions": list_of(_DECISION),
}


def _decisions(scenario: Scenario, means: ReplayMeans) -> Iterator[list[DecisionDifference]]:
    return KubeReplay(scenario, means.profiles(scenario)).decisions()


KUBE_FORM = RecordedForm(
    "kube-scheduler", "decisions", ("nodes", "existing"), partial(complaint_about, fields=_CLUSTER), _decisions
)
FORMS = (KUBE_FORM,)
