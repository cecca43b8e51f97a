"""The quality-of-service class of a pod: Guaranteed, Burstable or BestEffort, from what its containers ask for."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from fairlead.api.quantities import amount

if TYPE_CHECKING:
    from fairlead.model.flow import Doc

_COUNTED = ("cpu", "memory")


def quality_of_service(spec: Doc) -> str:
    """Requests and limits of the pod as a whole, where given, stand for those of its containers."""
    whole = spec.get("resources")
    parts = [whole] if whole and (whole.get("requests") or whole.get("limits")) else list(_parts(spec))
    if not any(_asks(part) for part in parts):
        return "BestEffort"
    return "Guaranteed" if all(_guaranteed(part) for part in parts) else "Burstable"


def _parts(spec: Doc) -> Iterable[Doc]:
    for group in ("containers", "initContainers"):
        for container in spec.get(group, ()):
            yield container.get("resources", {})


def _asks(resources: Doc) -> bool:
    return any(
        name in _COUNTED and amount(value) > 0
        for section in ("requests", "limits")
        for name, value in resources.get(section, {}).items()
    )


def _guaranteed(resources: Doc) -> bool:
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    return all(
        name in limits and amount(limits[name]) > 0 and amount(requests.get(name, limits[name])) == amount(limits[name])
        for name in _COUNTED
    )
