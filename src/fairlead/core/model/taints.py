"""Taints of nodes, tolerations of pods, and when one answers the other.

Effects NoSchedule and NoExecute keep a pod away, PreferNoSchedule only costs score. How long a toleration lasts does
not matter here. The operators Lt and Gt need a feature that is off, so they tolerate nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE = "NoSchedule", "PreferNoSchedule", "NoExecute"


class Taint(NamedTuple):
    key: str
    value: str
    effect: str

    @property
    def hard(self) -> bool:
        """Whether it keeps pods away (and does not only cost score)."""
        return self.effect in (NO_SCHEDULE, NO_EXECUTE)


class Toleration(NamedTuple):
    """`operator` is spelled out: an empty one is Equal."""

    key: str
    operator: str
    value: str
    effect: str


UNSCHEDULABLE = Taint("node.kubernetes.io/unschedulable", "", NO_SCHEDULE)
"""The taint that a cordoned node is taken to have."""


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator == "Equal":
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def is_tolerated(taint: Taint, tolerations: Iterable[Toleration]) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def first_untolerated(taints: Iterable[Taint], tolerations: Sequence[Toleration]) -> Taint | None:
    """The first hard taint that no toleration answers."""
    return next((taint for taint in taints if taint.hard and not is_tolerated(taint, tolerations)), None)


def parse_tolerations(documents: Iterable[Mapping[str, Any]] | None) -> tuple[Toleration, ...]:
    return tuple(
        Toleration(
            document.get("key") or "",
            document.get("operator") or "Equal",
            document.get("value") or "",
            document.get("effect") or "",
        )
        for document in documents or ()
    )


def parse_taints(documents: Iterable[Mapping[str, Any]] | None) -> tuple[Taint, ...]:
    return tuple(
        Taint(document.get("key") or "", document.get("value") or "", document.get("effect") or "")
        for document in documents or ()
    )
