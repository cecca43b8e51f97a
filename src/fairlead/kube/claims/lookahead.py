"""Whether requests for devices can be met at all: a matching of devices to requests, without constraints.

Each request wants so many of the devices that fit it, and no device serves two. If no such matching exists, no search
finds one either.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Demand(NamedTuple):
    """How many devices a request wants, and the places of those that fit."""

    wanted: int
    places: tuple[int, ...]


def impossible(demands: Sequence[Demand]) -> bool:
    """Whether the demands cannot all be met together. (Kuhn's algorithm, one augmenting path per wanted device.)"""
    holder: dict[int, int] = {}

    def augment(demand: int, visited: set[int]) -> bool:
        for place in demands[demand].places:
            if place not in visited:
                visited.add(place)
                if place not in holder or augment(holder[place], visited):
                    holder[place] = demand
                    return True
        return False

    return any(
        demand.wanted > len(demand.places) or not all(augment(at, set()) for _ in range(demand.wanted))
        for at, demand in enumerate(demands)
    )
