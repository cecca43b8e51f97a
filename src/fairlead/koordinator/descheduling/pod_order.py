"""The order in which pods are moved: what costs least first.

By band (koord-free first), priority, Kubernetes' quality of service, Koordinator's class, the costs that annotations
say, then, if asked, how well the pod's use covers what is too much on its node, then the youngest first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fairlead.core.model.pod import Pod
from fairlead.koordinator.records.bands import BATCH, FREE, MID, NONE, PROD, band_of, class_by
from fairlead.koordinator.records.reservations import PREFIX

EVICTION_COST = PREFIX + "eviction-cost"
NEVER = 2**31 - 1
"""The eviction cost of a pod that is never moved."""
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_BANDS = {NONE: 5, PROD: 4, MID: 3, BATCH: 2, FREE: 1}
_QUALITIES = {"Guaranteed": 3, "Burstable": 2, "BestEffort": 1}
_CLASSES = {"": 5, "SYSTEM": 4, "LSE": 4, "LSR": 3, "LS": 2, "BE": 1}
_CLASS_OF_QUALITY = {"Guaranteed": "LSR", "Burstable": "LS", "BestEffort": "BE"}
_NUMBER = re.compile(r"-?[0-9]+|0")

Cover = Callable[[Pod], float | None]
"""How well a pod's use covers what is too much; None for a pod without a metric."""


def cost(annotations: Mapping[str, str], name: str) -> int:
    """A number of 32 bits that an annotation says; 0 if it says none, has a plus sign or leading zeros."""
    text = annotations.get(name, "")
    if not _NUMBER.fullmatch(text) or (text[0] == "0" and text != "0"):
        return 0
    return int(text) if -(2**31) <= int(text) < 2**31 else 0


def eviction_cost(pod: Pod) -> int:
    return cost(pod.annotations, EVICTION_COST)


def in_order(pods: Iterable[Pod], cover: Cover | None = None) -> list[Pod]:
    """The pods, those to move first in front; equal ones by name."""
    return sorted(pods, key=lambda pod: _rank(pod, cover))


def _rank(pod: Pod, cover: Cover | None) -> tuple[Any, ...]:
    quality = pod.shape.quality
    named = class_by(pod.labels) or _CLASS_OF_QUALITY.get(quality, "")
    covered = None if cover is None else cover(pod)
    return (
        _BANDS[band_of(pod)],
        pod.priority,
        _QUALITIES.get(quality, 0),
        _CLASSES[named],
        cost(pod.annotations, _DELETION_COST),
        eviction_cost(pod),
        (covered is None and cover is not None, -(covered or 0.0)),
        -pod.created,
        pod.key,
    )


def covering(used: Mapping[str, int], excess: Mapping[str, int], weights: Mapping[str, int]) -> float:
    """How well a use covers what is too much: the share of it, and just enough is better than more than enough."""
    total = weight_sum = 0.0
    for resource, amount in used.items():
        weight = weights.get(resource, 0)
        total += weight * _covered(amount, excess.get(resource, 0))
        weight_sum += weight
    return total / weight_sum if weight_sum else 0.0


def _covered(amount: int, excess: int) -> float:
    if excess == 0:
        return 0.0
    ratio = amount / excess
    return 1 / ratio + 1 if ratio >= 1 else ratio
