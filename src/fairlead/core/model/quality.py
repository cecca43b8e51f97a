"""The quality-of-service class of a pod: Guaranteed, Burstable or BestEffort, from what its containers request."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.core.model.quantity import read_quantity

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")
_Resources = Mapping[str, Any]


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Requests and limits of the pod as a whole, where given, stand for those of its containers."""
    whole = spec.get("resources")
    parts = [whole] if whole and (whole.get("requests") or whole.get("limits")) else _parts(spec)
    asks, guaranteed = False, True
    for part in parts:
        asks = asks or _asks(part)
        guaranteed = guaranteed and _guaranteed(part)
    if not asks:
        return BEST_EFFORT
    return GUARANTEED if guaranteed else BURSTABLE


def _parts(spec: Mapping[str, Any]) -> Iterable[_Resources]:
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            yield container.get("resources") or {}


def _asks(resources: _Resources) -> bool:
    for section in ("requests", "limits"):
        amounts = resources.get(section) or {}
        for name in _COUNTED:
            if name in amounts and _amount(amounts[name]) > 0:
                return True
    return False


def _guaranteed(resources: _Resources) -> bool:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    for name in _COUNTED:
        if name not in limits or _amount(limits[name]) <= 0:
            return False
        if _amount(requests.get(name, limits[name])) != _amount(limits[name]):
            return False
    return True


def _amount(value: object) -> int:
    return read_quantity(value).nanos
