"""The quality-of-service class of a pod: Guaranteed, Burstable or BestEffort, from what its containers ask for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fairlead.model.quantity import read_quantity

GUARANTEED, BURSTABLE, BEST_EFFORT = "Guaranteed", "Burstable", "BestEffort"
_COUNTED = ("cpu", "memory")
_Resources = Mapping[str, Any]


def quality_of_service(spec: Mapping[str, Any]) -> str:
    """Requests and limits of the pod as a whole, where given, stand for those of its containers."""
    whole = spec.get("resources")
    parts = [whole] if whole and (whole.get("requests") or whole.get("limits")) else list(_parts(spec))
    if not any(_asks(part) for part in parts):
        return BEST_EFFORT
    return GUARANTEED if all(_guaranteed(part) for part in parts) else BURSTABLE


def _parts(spec: Mapping[str, Any]) -> Iterable[_Resources]:
    for group in ("containers", "initContainers"):
        for container in spec.get(group) or ():
            yield container.get("resources") or {}


def _asks(resources: _Resources) -> bool:
    return any(
        name in _COUNTED and _amount(value) > 0
        for section in ("requests", "limits")
        for name, value in (resources.get(section) or {}).items()
    )


def _guaranteed(resources: _Resources) -> bool:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    return all(
        name in limits
        and _amount(limits[name]) > 0
        and _amount(requests.get(name, limits[name])) == _amount(limits[name])
        for name in _COUNTED
    )


def _amount(value: object) -> int:
    return read_quantity(value).nanos
