"""GPUs: by partition where the node has a table of them, else by topology, else by score; shares by template where the
model has some.

Partitions are groups of GPUs that work well together; of those that are free, the one is chosen that leaves the most
others whole. The topology is a tree of node, NUMA nodes and PCIe switches; a choice deeper in the tree is better, then
one in scopes that are used already.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from fairlead.core.model.reasons import Code, Status, unresolvable, unschedulable
from fairlead.koordinator.devices.choice import fits
from fairlead.koordinator.devices.request import SCOPES
from fairlead.koordinator.devices.rows import GivenDevice
from fairlead.koordinator.devices.templates import template_for
from fairlead.koordinator.records.cards import GPU, MODEL, PARTITION_POLICY, VENDOR, GpuPartition

if TYPE_CHECKING:
    from fairlead.koordinator.devices.choice import DeviceChoice, DeviceView, Limits
    from fairlead.koordinator.devices.request import GpuDemand
    from fairlead.koordinator.records.cards import SharedDevice

_HOPPER: Mapping[int, tuple[GpuPartition, ...]] = {
    count: tuple(GpuPartition(tuple(range(first, first + count)), 1) for first in range(0, 8, count))
    for count in (1, 2, 4, 8)
}
"""The partitions of nodes with eight GPUs of NVIDIA's Hopper models, which need no table of their own."""
_HOPPER_MODELS = frozenset({"H100", "H800", "H20"})
_PACKING = {8: 10000, 4: 100, 2: 1}

Groups = Mapping[int, Sequence[Sequence[GpuPartition]]]
"""Partitions by number of GPUs, in groups of equal score."""


def choose_gpus(choice: DeviceChoice, view: DeviceView, limits: Limits, count: int) -> tuple[GivenDevice, ...] | Status:
    """The GPUs that a pod gets out of those in question."""
    demand = choice.request.gpu
    assert demand is not None
    template = "" if demand.templates is None else template_for(choice.model, demand.templates)
    if isinstance(template, Status):
        return template
    used = _mask(minor for minor in choice.holdings.amounts.get(GPU, {}) if minor not in view.total) | _mask(view.used)
    some = _by_partition(choice, demand, view, used)
    if some:
        return some
    found = _by_topology(choice, demand, view, used, limits, count)
    if isinstance(found, Status) or not template:
        return found
    return tuple(replace(device, template=template) for device in found)


def _mask(minors: Iterator[int] | Mapping[int, object]) -> int:
    return sum(1 << minor for minor in minors)


# ---- partitions ----


def _by_partition(
    choice: DeviceChoice, demand: GpuDemand, view: DeviceView, used: int
) -> tuple[GivenDevice, ...] | Status | None:
    """By the node's table; None if there is nothing to be had from it and nobody insists."""
    if demand.shared:
        return None
    groups, honored = _groups(choice)
    minors = _find_partition(demand, groups, view, used)
    if isinstance(minors, Status):
        return minors if honored or demand.honors else None
    return tuple(GivenDevice(minor, demand.each) for minor in minors)


def _groups(choice: DeviceChoice) -> tuple[Groups | None, bool]:
    """The node's partitions, and whether they must be kept to."""
    table, honored = choice.devices.partitions, choice.devices.honors_partitions
    if table is None:
        vendor, model = choice.model.get(VENDOR, ""), choice.model.get(MODEL, "")
        table = _HOPPER if vendor in ("", "nvidia") and model in _HOPPER_MODELS else None
        honored = choice.model.get(PARTITION_POLICY) == "Honor"
    if table is None:
        return None, honored
    sign = 1 if choice.ascending_partitions else -1
    return {count: _by_score(partitions, sign) for count, partitions in table.items() if partitions}, honored


def _by_score(partitions: Sequence[GpuPartition], sign: int) -> list[list[GpuPartition]]:
    ordered = sorted(partitions, key=lambda partition: sign * partition.score)
    return [list(group) for _, group in groupby(ordered, key=lambda partition: partition.score)]


def _find_partition(demand: GpuDemand, groups: Groups | None, view: DeviceView, used: int) -> tuple[int, ...] | Status:
    if groups is None:
        return unresolvable("node(s) missing GPU Partition Table")
    offered = groups.get(demand.count)
    if offered is None:
        return unresolvable("node(s) Unsupported number of GPU requests")
    there = _mask(iter([minor for minor, amounts in view.total.items() if any(amounts.values())]))
    free: list[GpuPartition] = []
    for group in offered:
        free = [partition for partition in group if _is_free(partition, demand, used, there)]
        if free or demand.restricted:
            break
    if not free:
        return unschedulable("Insufficient Partitioned GPU Devices")
    return max(free, key=lambda partition: _left_whole(partition, used, groups, demand.count)).minors


def _is_free(partition: GpuPartition, demand: GpuDemand, used: int, there: int) -> bool:
    if partition.mask & used or partition.mask & ~there:
        return False
    return demand.bandwidth is None or (partition.bandwidth is not None and demand.bandwidth <= partition.bandwidth)


def _left_whole(partition: GpuPartition, used: int, groups: Groups, count: int) -> int:
    """How much is left of larger partitions if this one is taken."""
    taken = used | partition.mask
    return sum(
        weight * other.score
        for size, weight in _PACKING.items()
        if size >= count and groups.get(size)
        for other in groups[size][0]
        if not other.mask & taken
    )


# ---- topology ----


@dataclass(frozen=True, slots=True)
class _Scope:
    """A part of the node: all GPUs, those of a NUMA node, or those of a PCIe switch."""

    level: int
    minors: tuple[int, ...]
    inner: tuple[_Scope, ...] = ()


@dataclass(frozen=True, slots=True)
class _Found:
    depth: int
    used_scopes: int
    score: int
    minors: tuple[int, ...]


def _tree(devices: Sequence[SharedDevice]) -> _Scope | None:
    """The scopes of a node; None if the place of some GPU is not known."""
    if not devices or any(device.numa is None for device in devices):
        return None

    def minors(some: Sequence[SharedDevice]) -> tuple[int, ...]:
        return tuple(sorted(device.minor for device in some))

    def inner(some: Sequence[SharedDevice]) -> tuple[_Scope, ...]:
        switches = sorted({device.pcie for device in some})
        return tuple(_Scope(SCOPES["PCIe"], minors([d for d in some if d.pcie == pcie])) for pcie in switches)

    numa = {number: [d for d in devices if d.numa == number] for number in {d.numa for d in devices}}
    parts = tuple(
        _Scope(SCOPES["NUMANode"], minors(numa[number]), inner(numa[number]))
        for number in sorted(number for number in numa if number is not None)
    )
    return _Scope(SCOPES["Node"], minors(devices), parts)


def _by_topology(
    choice: DeviceChoice, demand: GpuDemand, view: DeviceView, used: int, limits: Limits, count: int
) -> tuple[GivenDevice, ...] | Status:
    tree = _tree(choice.devices.by_type.get(GPU, ()))
    refused: Status | None = None
    if tree is None:
        refused = unresolvable("node(s) missing GPU Device Topology Tree")
    elif demand.shared and demand.count > 1:
        refused = unresolvable("node(s) Unsupported Multi-Shared GPU")
    else:
        found = _ScopeSearch(choice, demand, view, used).search(tree, 0, 0)
        if found is not None:
            return tuple(GivenDevice(minor, demand.each) for minor in found.minors)
        words = "Insufficient Topology Scoped GPU Devices" if demand.scope else "Insufficient GPU Devices"
        refused = unschedulable(words)
    if demand.scope or refused.code is not Code.UNRESOLVABLE:
        return refused
    return choice.by_score(GPU, view, demand.each, (count, count), limits, frozenset())


class _ScopeSearch:
    def __init__(self, choice: DeviceChoice, demand: GpuDemand, view: DeviceView, used: int) -> None:
        self._choice = choice
        self._demand = demand
        self._view = view
        self._used = used

    def search(self, scope: _Scope, depth: int, used_scopes: int) -> _Found | None:
        """The best GPUs of a scope: inner scopes are better, then scopes that are used already."""
        if len(scope.minors) < self._demand.count:
            return None
        depth += 1
        used_scopes += bool(_mask(iter(scope.minors)) & self._used)
        best: _Found | None = None
        for inner in scope.inner:
            found = self.search(inner, depth, used_scopes)
            if found is not None and (best is None or self._is_better(found, best)):
                best = found
        if best is not None:
            return best
        return None if self._demand.level > scope.level else self._here(scope, depth, used_scopes)

    def _is_better(self, found: _Found, best: _Found) -> bool:
        if (found.depth, found.used_scopes) != (best.depth, best.used_scopes):
            return (found.depth, found.used_scopes) > (best.depth, best.used_scopes)
        return self._demand.shared and found.score > best.score

    def _here(self, scope: _Scope, depth: int, used_scopes: int) -> _Found | None:
        free = [minor for minor in scope.minors if self._fits(minor)]
        if not self._demand.shared:
            chosen = tuple(free[: self._demand.count])
            return _Found(depth, used_scopes, -1, chosen) if len(chosen) == self._demand.count else None
        if not free:
            return None
        best = max(free, key=self._score)
        return _Found(depth, used_scopes, self._score(best), (best,))

    def _fits(self, minor: int) -> bool:
        total = self._view.total.get(minor)
        return total is not None and any(total.values()) and fits(self._demand.each, self._view.free[minor])

    def _score(self, minor: int) -> int:
        """The score of a GPU. The original hands over what is free as the total, and the total as what is free."""
        scorer = self._choice.scorer
        if scorer is None:
            return 0
        amounts = next(d.amounts for d in self._choice.devices.by_type[GPU] if d.minor == minor)
        free = self._view.free[minor]
        if self._choice.swaps_free_and_total:
            return scorer.score(self._demand.each, free, amounts)
        return scorer.score(self._demand.each, amounts, free)
