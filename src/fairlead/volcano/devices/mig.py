"""MIG: cards that are partitioned into parts of fixed sizes, all by one geometry at a time.

A part is named by the group of its geometry and its position, counted over all sizes of the geometry in their order.
A request gets the smallest free part that is large enough. `only_used_sizes` keeps to sizes of which some part is in
use already, once a card is partitioned, as Volcano does.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_PART = re.compile(r"\[([^\]-]*)-(\d+)\]")


@dataclass(frozen=True, slots=True)
class Instance:
    """One size of the parts in a geometry, and how many of that size there are."""

    name: str
    memory: int
    count: int


@dataclass(frozen=True, slots=True)
class Geometry:
    """One way to cut a card; all parts of a card are of one geometry."""

    group: str
    instances: tuple[Instance, ...]

    def at(self, position: int) -> Instance | None:
        """Whose part has this number, counted over all sizes in their order."""
        for instance in self.instances:
            if position < instance.count:
                return instance
            position -= instance.count
        return None


@dataclass(frozen=True, slots=True)
class Part:
    group: str
    position: int

    def __str__(self) -> str:
        return f"[{self.group}-{self.position}]"


def part_in(device: str) -> Part | None:
    """The part that the id of a device names."""
    found = _PART.search(device)
    return Part(found[1], int(found[2])) if found is not None else None


def pick(
    geometries: Sequence[Geometry], used: Collection[Part], memory: int, *, only_used_sizes: bool = False
) -> tuple[Part, int] | None:
    """The part to take and the memory it has; None if no part that is free is large enough."""
    groups = {part.group for part in used}
    for geometry in geometries:
        if not groups or geometry.group in groups:
            found = _smallest(geometry, used, memory, only_used_sizes=only_used_sizes and bool(used))
            if found is not None:
                return found
    return None


def _smallest(
    geometry: Geometry, used: Collection[Part], memory: int, *, only_used_sizes: bool
) -> tuple[Part, int] | None:
    taken = {part.position for part in used if part.group == geometry.group}
    offers, first = [], 0
    for order, instance in enumerate(geometry.instances):
        positions = range(first, first + instance.count)
        first += instance.count
        free = [position for position in positions if position not in taken]
        in_use = len(free) < instance.count
        if free and instance.memory >= memory and (in_use or not only_used_sizes):
            offers.append((instance.memory, order, free[0]))
    if not offers:
        return None
    size, _, position = min(offers)
    return Part(geometry.group, position), size


def memory_of(geometries: Sequence[Geometry], part: Part) -> int:
    """The memory that a part has; 0 for one that there is not."""
    for geometry in geometries:
        if geometry.group == part.group:
            instance = geometry.at(part.position)
            return instance.memory if instance is not None else 0
    return 0
