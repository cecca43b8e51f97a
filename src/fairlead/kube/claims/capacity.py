"""How much of a device's capacities a request takes, and whether that is there. Amounts are compared in nanos.

A request may name capacities; a policy of the device rounds what was requested, or says what to take if nothing was.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from fairlead.core.model.quantity import BINARY_SI, Quantity

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import DeviceRequest
    from fairlead.core.model.devices import Device, DeviceCapacity, RequestPolicy

_NANO = 10**9


def consumption(device: Device, request: DeviceRequest) -> dict[str, Quantity]:
    """What the request would take of each capacity of the device, requested or not."""
    return {name: _amount(request.capacity.get(name), capacity) for name, capacity in device.capacity.items()}


def fits(
    device: Device, request: DeviceRequest, used: Mapping[str, int] | None, taking: Mapping[str, int] | None
) -> bool:
    """Whether the device has room for the request besides what is `used` and what this attempt is `taking` already."""
    if any(name not in device.capacity for name in request.capacity):
        return False
    for name, capacity in device.capacity.items():
        amount = _amount(request.capacity.get(name), capacity)
        if capacity.policy is not None and _violates(amount, capacity.policy):
            return False
        others = ((used or {}).get(name) or 0) + ((taking or {}).get(name) or 0)
        if others + amount.nanos > capacity.value.nanos:
            return False
    return True


def _amount(asked: Quantity | None, capacity: DeviceCapacity) -> Quantity:
    policy = capacity.policy
    if asked is None:
        return policy.default if policy is not None and policy.default is not None else capacity.value
    if policy is None:
        return asked
    if policy.least is not None:
        return _rounded_up(asked, policy.least, policy.step)
    if policy.values is not None:
        return next((value for value in policy.values if asked <= value), asked)
    return asked


def _rounded_up(asked: Quantity, least: Quantity, step: Quantity | None) -> Quantity:
    if asked < least:
        return least
    if step is None:
        return asked
    start, width = least.value(), step.value()
    steps = -(-(asked.value() - start) // width)
    return Quantity((start + steps * width) * _NANO, BINARY_SI)


def _violates(amount: Quantity, policy: RequestPolicy) -> bool:
    """The default is always allowed."""
    if policy.default is not None and amount == policy.default:
        return False
    if policy.has_range:
        if policy.most is not None and amount > policy.most:
            return True
        if policy.step is not None:
            start = policy.least.value() if policy.least is not None else 0
            return (amount.value() - start) % policy.step.value() != 0
        return False
    return bool(policy.values) and amount not in (policy.values or ())
