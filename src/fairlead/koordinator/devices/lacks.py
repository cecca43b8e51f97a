"""How many devices are missing for pods that want to start together, worked out with the choice that places them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from fairlead.core.model.lack import Lack
from fairlead.core.model.reasons import Status
from fairlead.koordinator.devices.choice import DeviceChoice, Limits
from fairlead.koordinator.devices.request import CORE, MEMORY, RATIO, DeviceDemand, device_request
from fairlead.koordinator.devices.rows import DeviceHoldings
from fairlead.koordinator.records.cards import GPU

if TYPE_CHECKING:
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.devices.rows import DeviceRows

_MEASURES = (RATIO, CORE, MEMORY)
"""By which of its amounts a GPU is measured, the first that is requested."""


class ChoiceSettings(Protocol):
    """What of the plugin's settings decides about a choice."""

    @property
    def swaps_free_and_total(self) -> bool: ...
    @property
    def ascending_partitions(self) -> bool: ...


def device_lacks(pods: Sequence[Pod], rows: DeviceRows, settings: ChoiceSettings) -> Iterator[Lack]:
    demands = [(pod, demand) for pod in pods if not isinstance(demand := device_request(pod), Status)]
    for kind in dict.fromkeys(kind for _, demand in demands for kind in demand.amounts):
        of_kind = [demand for _, demand in demands if kind in demand.amounts]
        resource = _measure(kind, of_kind[0])
        served = _served(of_kind, rows, settings)
        asked = [_asked(kind, resource, demand) for demand in of_kind]
        if all(served):
            continue
        missing = sum(amount for amount, has in zip(asked, served, strict=True) if not has)
        free, holders = _left(kind, resource, rows)
        yield Lack.of_units("Device", kind, resource, sum(asked), free, missing, holders)


def _measure(kind: str, demand: DeviceDemand) -> str:
    named = demand.gpu.each if kind == GPU and demand.gpu is not None else demand.amounts[kind]
    return next((name for name in _MEASURES if named.get(name)), next(iter(named)))


def _asked(kind: str, resource: str, demand: DeviceDemand) -> int:
    if kind == GPU and demand.gpu is not None:
        return demand.gpu.count * demand.gpu.each.get(resource, 0)
    return demand.amounts[kind].get(resource, 0)


def _served(demands: Sequence[DeviceDemand], rows: DeviceRows, settings: ChoiceSettings) -> list[bool]:
    """Of each demand in turn whether some node has its devices left."""
    copies: dict[int, DeviceHoldings] = {}
    served = []
    for demand in demands:
        for row in rows.rows_with_devices():
            if row not in copies:
                copies[row] = _copied(rows.holdings(row))
            devices, node = rows.devices(row), rows.node(row)
            if devices is None or node is None:
                continue
            choice = DeviceChoice(
                devices,
                copies[row],
                demand,
                None,
                model=node.labels,
                swaps_free_and_total=settings.swaps_free_and_total,
                ascending_partitions=settings.ascending_partitions,
            )
            given = choice.choose(Limits())
            if not isinstance(given, Status):
                copies[row].add(given)
                served.append(True)
                break
        else:
            served.append(False)
    return served


def _copied(holdings: DeviceHoldings) -> DeviceHoldings:
    amounts = {kind: {minor: dict(own) for minor, own in held.items()} for kind, held in holdings.amounts.items()}
    functions = {kind: {minor: set(own) for minor, own in held.items()} for kind, held in holdings.functions.items()}
    return DeviceHoldings(amounts, functions)


def _left(kind: str, resource: str, rows: DeviceRows) -> tuple[int, list[tuple[str, int, str]]]:
    """What all devices of a type have left, and who holds the rest."""
    free, holders = 0, []
    for row in rows.rows_with_devices():
        devices = rows.devices(row)
        held: Mapping[int, Mapping[str, int]] = rows.holdings(row).amounts.get(kind, {})
        for device in devices.by_type.get(kind, ()) if devices is not None else ():
            free += max(0, device.amounts.get(resource, 0) - held.get(device.minor, {}).get(resource, 0))
        for pod, given in rows.holders(row):
            amount = sum(one.amounts.get(resource, 0) for one in given.get(kind, ()))
            if amount:
                holders.append((pod, amount, "it was given them"))
    return free, holders
