"""Sums: when all that decides is whether requests add up to no more than there is, arithmetic replaces a trial.

Most pods meet no filter that looks at what lies on a node but the one for resources; the others step aside, or look at
the node itself. Then the question "would it fit if these pods went, or those came" is a subtraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairlead.framework.plugin import Scope

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.model.pod import Pod
    from fairlead.model.reasons import Verdict
    from fairlead.state.table import NodeTable


class Sums(Protocol):
    """What a pod asks for, and what is said of a node that lacks it."""

    @property
    def asked(self) -> Mapping[str, int]: ...

    def shortage(self, allocatable: Mapping[str, int], free: Mapping[str, int], slots: int) -> Verdict | None:
        """The verdict on a node with so much in all, so much free, and room for so many more pods."""
        ...


def sums_alone(cycle: Cycle) -> Sums | None:
    """The sums that decide whether a pod fits where others go or come, if nothing else looks at what lies on nodes."""
    found: Sums | None = None
    for plugin in cycle.profile.at("filter"):
        if plugin.name in cycle.no_filter or plugin.scope is Scope.STATIC:
            continue
        if found is not None:
            return None
        found = plugin.sums(cycle)
        if found is None:
            return None
    return found


def has_room(table: NodeTable, row: int, asked: Mapping[str, int]) -> bool:
    """Whether there is that much left on a node."""
    allocatable, requested = table.allocatable, table.requested
    for resource, amount in asked.items():
        offered, taken = allocatable.get(resource), requested.get(resource)
        if offered is None or amount > offered.item(row) - (taken.item(row) if taken is not None else 0):
            return False
    return True


def sums_among(cycle: Cycle) -> Sums | None:
    """Sums that a pod has to meet wherever it goes, whatever else is asked of it."""
    for plugin in cycle.profile.at("filter"):
        if plugin.name not in cycle.no_filter and (found := plugin.sums(cycle)) is not None:
            return found
    return None


def room_on(table: NodeTable, row: int, resources: Iterable[str]) -> tuple[dict[str, int], dict[str, int], int]:
    """Of some resources, how much a node has in all and how much is free; and how many more pods it may hold."""
    allocatable = {resource: int(table.allocatable_column(resource)[row]) for resource in resources}
    free = {resource: amount - int(table.requested_column(resource)[row]) for resource, amount in allocatable.items()}
    return allocatable, free, int(table.allocatable_column("pods")[row]) - int(table.pod_count[row])


def free_of(table: NodeTable, resource: str) -> NDArray[np.int64]:
    """What is free of a resource on each row; nothing where there is no node, or more is promised than there is."""
    free = table.allocatable_column(resource)[: table.high] - table.requested_column(resource)[: table.high]
    return np.where(table.alive[: table.high], np.maximum(free, 0), 0)


def rooms(table: NodeTable, asked: Mapping[str, int]) -> NDArray[np.int64]:
    """How many more pods that ask for this each row holds, by sums alone."""
    slots = table.allocatable_column("pods")[: table.high] - table.pod_count[: table.high]
    found: NDArray[np.int64] = np.where(table.alive[: table.high], np.maximum(slots, 0), 0)
    for resource, amount in asked.items():
        found = np.minimum(found, free_of(table, resource) // amount)
    return found


def shortage_with(sums: Sums, table: NodeTable, row: int, others: Iterable[Pod]) -> Verdict | None:
    """The verdict on a node if some other pods were there too."""
    allocatable, free, slots = room_on(table, row, sums.asked)
    for pod in others:
        slots -= 1
        for resource in free:
            free[resource] -= pod.shape.request.get(resource, 0)
    return sums.shortage(allocatable, free, slots)
