"""Constraints of a claim on attributes of its devices, followed while a search picks devices and takes picks back.

`Distinct` has a quirk of the original, kept where decisions must be equal: of each request only the latest value is
known, and taking a pick back forgets the request's value altogether. Mended, it compares with all earlier picks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fairlead.core.model.device_claims import AttributeConstraint, DeviceRequest
    from fairlead.core.model.devices import Attribute, Device


class ConstraintFollower(Protocol):
    """One constraint during one search."""

    def add(self, request: DeviceRequest, device: Device) -> bool:
        """Count a device in, if that is allowed."""
        ...

    def remove(self, request: DeviceRequest, device: Device) -> None:
        """Take the last one back."""
        ...


class Matching:
    """All devices have one value. (Versions are compared as texts.)"""

    def __init__(self, constraint: AttributeConstraint) -> None:
        self._constraint = constraint
        self._value: Attribute | None = None
        self._count = 0

    def add(self, request: DeviceRequest, device: Device) -> bool:
        if not self._constraint.concerns(request):
            return True
        value = device.attribute(self._constraint.attribute)
        if value is None or not value[0] or (self._count and value != self._value):
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, request: DeviceRequest, device: Device) -> None:
        if self._constraint.concerns(request):
            self._count -= 1


class Distinct:
    """No two devices have the same value."""

    def __init__(self, constraint: AttributeConstraint) -> None:
        self._constraint = constraint
        self._values: list[Attribute] = []

    def add(self, request: DeviceRequest, device: Device) -> bool:
        if not self._constraint.concerns(request):
            return True
        value = device.attribute(self._constraint.attribute)
        if value is None or value in self._values:
            return False
        self._values.append(value)
        return True

    def remove(self, request: DeviceRequest, device: Device) -> None:
        if self._constraint.concerns(request):
            self._values.pop()


class DistinctByRequest:
    """The same with the original's quirk."""

    def __init__(self, constraint: AttributeConstraint) -> None:
        self._constraint = constraint
        self._values: dict[str, Attribute] = {}

    def add(self, request: DeviceRequest, device: Device) -> bool:
        if not self._constraint.concerns(request):
            return True
        value = device.attribute(self._constraint.attribute)
        if value is None or value in self._values.values():
            return False
        self._values[request.request_name] = value
        return True

    def remove(self, request: DeviceRequest, device: Device) -> None:
        if self._constraint.concerns(request):
            self._values.pop(request.request_name, None)


def followers(constraints: Sequence[AttributeConstraint], *, compatible: bool) -> list[ConstraintFollower]:
    found: list[ConstraintFollower] = []
    for constraint in constraints:
        if not constraint.distinct:
            found.append(Matching(constraint))
        elif compatible:
            found.append(DistinctByRequest(constraint))
        else:
            found.append(Distinct(constraint))
    return found
