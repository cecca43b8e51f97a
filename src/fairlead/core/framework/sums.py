"""Sums of requests: arithmetic that replaces a trial when resources are all that decides.

For most pods the only filter that looks at the pods on a node is the one for resources; the others step aside, or look
at the Node object alone. Whether a pod would fit if some pods left or others came is then a subtraction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Protocol

import numpy as np

from fairlead.core.framework.plugin import Scope
from fairlead.core.framework.results.cached_plugin import sums_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Verdict
    from fairlead.core.state.table import NodeTable


class Sums(Protocol):
    """The amounts that a pod requests (`asked`), and the refusal of a node that lacks one."""

    @property
    def asked(self) -> Mapping[str, int]: ...

    def shortage(self, allocatable: Mapping[str, int], free: Mapping[str, int], slots: int) -> Verdict | None:
        """The refusal of a node with these amounts in all and free, and room for `slots` more pods; None if the pod
        fits."""
        ...


def sums_alone(cycle: Cycle) -> Sums | None:
    """The sums of the only filter that looks at the pods on a node; None if there is another, or none."""
    found: Sums | None = None
    for plugin in cycle.profile.at("filter"):
        if plugin.name in cycle.no_filter or plugin.scope is Scope.STATIC:
            continue
        if found is not None:
            return None
        found = sums_of(plugin, cycle)
        if found is None:
            return None
    return found


def has_room(table: NodeTable, row: int, asked: Mapping[str, int]) -> bool:
    """Whether a node has these amounts free."""
    allocatable, requested = table.allocatable, table.requested
    for resource, amount in asked.items():
        offered, taken = allocatable.get(resource), requested.get(resource)
        if offered is None or amount > offered.item(row) - (taken.item(row) if taken is not None else 0):
            return False
    return True


def sums_among(cycle: Cycle) -> Sums | None:
    """The sums of the first filter that has any: necessary for a fit, though other filters may refuse too."""
    for plugin in cycle.profile.at("filter"):
        if plugin.name not in cycle.no_filter and (found := sums_of(plugin, cycle)) is not None:
            return found
    return None


def room_on(table: NodeTable, row: int, resources: Iterable[str]) -> tuple[dict[str, int], dict[str, int], int]:
    """A node's allocatable and free amounts of some resources, and how many more pods it may hold."""
    allocatable = {resource: int(table.allocatable_column(resource)[row]) for resource in resources}
    free = {resource: amount - int(table.requested_column(resource)[row]) for resource, amount in allocatable.items()}
    return allocatable, free, int(table.allocatable_column("pods")[row]) - int(table.pod_count[row])


def free_of(table: NodeTable, resource: str) -> NDArray[np.int64]:
    """The free amount of a resource on each row; 0 where there is no node, or where it is overcommitted."""
    free = table.allocatable_column(resource)[: table.high] - table.requested_column(resource)[: table.high]
    return np.where(table.alive[: table.high], np.maximum(free, 0), 0)


def rooms(table: NodeTable, asked: Mapping[str, int]) -> NDArray[np.int64]:
    """Of each row, how many more pods that request these amounts it could hold, by sums alone."""
    slots = table.allocatable_column("pods")[: table.high] - table.pod_count[: table.high]
    found: NDArray[np.int64] = np.where(table.alive[: table.high], np.maximum(slots, 0), 0)
    for resource, amount in asked.items():
        found = np.minimum(found, free_of(table, resource) // amount)
    return found


def shortage_with(sums: Sums, table: NodeTable, row: int, others: Iterable[Pod]) -> Verdict | None:
    """The refusal of a node if some other pods were there too; None if the pod would fit."""
    allocatable, free, slots = room_on(table, row, sums.asked)
    for pod in others:
        slots -= 1
        for resource in free:
            free[resource] -= pod.shape.request.get(resource, 0)
    return sums.shortage(allocatable, free, slots)
