"""Gangs as Koordinator describes them: by a PodGroup, or by annotations on the pods themselves.

A gang wants at least so many of its pods to start together; gangs that name each other form a group that starts as one.
What is left out or not understood has the original's default.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from fairlead.core.model.documents import EMPTY, compiler
from fairlead.core.model.durations import parse_duration

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod

PREFIX = "gang.scheduling.koordinator.sh/"
GROUP_LABEL = "pod-group.scheduling.sigs.k8s.io"
NAME_LABEL = GROUP_LABEL + "/name"
MIN_LABEL = GROUP_LABEL + "/min-available"
SELECTOR = "scheduling.koordinator.sh/network-topology-selector"
TOPOLOGY_SPEC = PREFIX + "network-topology-spec"
TOPOLOGY_INDEX = PREFIX + "network-topology-index"
_NAME = PREFIX + "name"
STRICT, NON_STRICT = "Strict", "NonStrict"
ONLY_WAITING, WAITING_AND_RUNNING, ONCE_SATISFIED = "only-waiting", "waiting-and-running", "once-satisfied"
_POLICIES = frozenset({ONLY_WAITING, WAITING_AND_RUNNING, ONCE_SATISFIED})


@dataclass(frozen=True, slots=True)
class GatherRule:
    """On which layer of the network a gang wants to be together, whether it must be, and in which multiples."""

    layer: str
    must: bool
    multiple: int


@dataclass(frozen=True, slots=True)
class GangSpec:
    """`policy` and `wait` are empty and 0 where nothing is said; the profile's default counts then. `groups` are the
    ids of all gangs that start with this one, in order."""

    id: str
    least: int
    mode: str
    policy: str
    wait: float
    groups: tuple[str, ...]
    gather: tuple[GatherRule, ...] | None
    by_object: bool
    shown: Mapping[str, Any] = field(default_factory=dict, compare=False)
    """The status that the PodGroup shows."""

    @property
    def group_id(self) -> str:
        return ",".join(self.groups)


def named_gang(labels: Mapping[str, str], annotations: Mapping[str, str]) -> str:
    """The name of the gang to which labels and annotations assign a pod; empty if they name none."""
    return labels.get(GROUP_LABEL) or labels.get(NAME_LABEL) or annotations.get(_NAME, "")


def gang_name(pod: Pod) -> str:
    """The name of a pod's gang; empty if it has none."""
    return named_gang(pod.labels, pod.annotations)


def gang_id(pod: Pod) -> str:
    name = gang_name(pod)
    return f"{pod.namespace}/{name}" if name else ""


@compiler("PodGroup")
def compile_gang(document: Mapping[str, Any]) -> GangSpec:
    """The gang that a PodGroup describes."""
    metadata, spec = document["metadata"], document.get("spec") or {}
    seconds = spec.get("scheduleTimeoutSeconds") or 0
    name = f"{metadata.get('namespace') or ''}/{metadata['name']}"
    annotations = metadata.get("annotations") or EMPTY
    made = _spec(name, spec.get("minMember") or 0, annotations, float(max(0, seconds)), by_object=True)
    return replace(made, shown=document.get("status") or EMPTY)


def gang_of_pod(pod: Pod) -> GangSpec | None:
    """The gang that a pod's own labels and annotations describe; None if its size cannot be read, or if it has a
    PodGroup to describe it."""
    if pod.labels.get(GROUP_LABEL):
        return None
    text = pod.labels.get(MIN_LABEL) or pod.annotations.get(PREFIX + "min-available", "")
    try:
        least = int(text)
    except ValueError:
        return None
    return _spec(gang_id(pod), least, pod.annotations, _wait(pod.annotations), by_object=False)


def _wait(annotations: Mapping[str, str]) -> float:
    try:
        return max(0.0, parse_duration(annotations.get(PREFIX + "waiting-time") or "0s"))
    except ValueError:
        return 0.0


def _spec(name: str, least: int, annotations: Mapping[str, str], wait: float, *, by_object: bool) -> GangSpec:
    policy = annotations.get(PREFIX + "match-policy") or annotations.get(GROUP_LABEL + "/match-policy") or ""
    mode = annotations.get(PREFIX + "mode", "")
    return GangSpec(
        id=name,
        least=least,
        mode=mode if mode in (STRICT, NON_STRICT) else STRICT,
        policy=policy if policy in _POLICIES else "",
        wait=wait,
        groups=tuple(sorted(_groups(annotations))) or (name,),
        gather=_gather(annotations.get(TOPOLOGY_SPEC)),
        by_object=by_object,
    )


def _groups(annotations: Mapping[str, str]) -> list[str]:
    try:
        listed = json.loads(annotations.get(PREFIX + "groups") or "[]")
    except ValueError:
        return []
    return [str(one) for one in listed] if isinstance(listed, list) else []


def _gather(text: str | None) -> tuple[GatherRule, ...] | None:
    if not text:
        return None
    try:
        rules = json.loads(text).get("gatherStrategy") or ()
        return tuple(
            GatherRule(rule.get("layer") or "", rule.get("strategy") == "MustGather", rule.get("podCountMultiple") or 0)
            for rule in rules
        )
    except (ValueError, AttributeError):
        return None
