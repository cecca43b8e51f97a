"""Taken: what one search for devices has taken so far, besides what is in use on the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.core.model.device_claims import DeviceRequest
    from fairlead.core.model.devices import PoolId
    from fairlead.core.model.quantity import Quantity
    from fairlead.kube.claims.device_views import Place
    from fairlead.kube.claims.uses import Uses


class Taken:
    def __init__(self, uses: Uses) -> None:
        self._uses = uses
        self.by_claim: dict[int, set[int]] = {}
        """By position of a device, the claims that it was taken for."""
        self.capacity: dict[int, dict[str, int]] = {}
        """What was taken of the capacities of shared devices, by position."""
        self._counters: dict[PoolId, dict[str, dict[str, int]]] = {}
        self._counters_left: dict[PoolId, dict[str, dict[str, int]]] = {}

    def in_use(self, claim: int, request: DeviceRequest, place: Place) -> bool:
        taken = self.by_claim.get(place.at)
        if request.admin:
            return taken is not None and claim in taken
        return bool(taken) or self._uses.in_use(place.device.id)

    def take_share(self, place: Place, consumed: Mapping[str, Quantity]) -> None:
        taking = self.capacity.setdefault(place.at, {})
        for name, amount in consumed.items():
            taking[name] = taking.get(name, 0) + amount.nanos

    def return_share(self, place: Place, consumed: Mapping[str, Quantity]) -> None:
        taking = self.capacity[place.at]
        for name, amount in consumed.items():
            taking[name] -= amount.nanos
        if not any(taking.values()):
            del self.capacity[place.at]

    def take_counters(self, place: Place) -> bool:
        """Whether the pool's counters allow for the device besides what this search took; then they are taken."""
        pool = place.pool
        left = self._counters_left.get(pool.id)
        if left is None:
            left = self._counters_left[pool.id] = self._uses.counters_left(pool)
        taken = self._counters.setdefault(pool.id, {})
        for name, counters in place.device.counters.items():
            mine = taken.setdefault(name, {})
            for counter, amount in counters.items():
                mine[counter] = mine.get(counter, 0) + amount
        enough = all(
            amount >= taken.get(name, {}).get(counter, 0)
            for name, counters in left.items()
            for counter, amount in counters.items()
        )
        if not enough:
            self.return_counters(place)
        return enough

    def return_counters(self, place: Place) -> None:
        taken = self._counters[place.pool.id]
        for name, counters in place.device.counters.items():
            for counter, amount in counters.items():
                taken[name][counter] -= amount
