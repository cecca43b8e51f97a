"""Which devices of one node a pod gets.

The devices of a type that the pod may have come as a DeviceView: total, free and used amounts of each. Several types
may be allocated jointly, the secondary ones on the PCIe switches of the primary. GPUs have rules of their own (gpus).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from fairlead.core.model.reasons import Status, unresolvable, unschedulable
from fairlead.koordinator.devices.request import (
    APPLY_FOR_ALL,
    AS_COUNT,
    MEMORY,
    RATIO,
    SAME_PCIE,
    Amounts,
    DeviceDemand,
)
from fairlead.koordinator.devices.rows import GivenDevice
from fairlead.koordinator.records.cards import GPU
from fairlead.koordinator.scoring import usage_score

if TYPE_CHECKING:
    from fairlead.koordinator.devices.rows import DeviceHoldings, Given
    from fairlead.koordinator.records.cards import NodeDevices, SharedDevice, VirtualFunction


@dataclass(frozen=True, slots=True)
class DeviceScorer:
    """Scores by the share that is used, over resources with weights."""

    weights: Mapping[str, int]
    most: bool

    def score(self, asked: Amounts, total: Amounts, free: Amounts) -> int:
        """0..100 for something of which so much is free. Where more is free than there is, it counts as used up."""
        score = weights = 0
        for name, weight in self.weights.items():
            whole = total.get(name, 0)
            if not whole:
                continue
            left = free.get(name, 0)
            used = whole - left + asked.get(name, 0) if whole >= left else whole
            score += weight * usage_score(used, whole, most=self.most)
            weights += weight
        return score // weights if weights else 0


@dataclass(slots=True)
class DeviceView:
    """The devices of one type that are in question, by minor."""

    total: dict[int, Amounts] = field(default_factory=dict)
    free: dict[int, dict[str, int]] = field(default_factory=dict)
    used: dict[int, dict[str, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Limits:
    """What narrows the devices: NUMA nodes; amounts that are free beside the free ones (`reusable`), by type and minor;
    amounts beyond which nothing may be taken (`required`); minors that come first."""

    numa: frozenset[int] | None = None
    reusable: Mapping[str, Mapping[int, Amounts]] = field(default_factory=dict)
    required: Mapping[str, Mapping[int, Amounts]] = field(default_factory=dict)
    only: Mapping[str, frozenset[int]] = field(default_factory=dict)
    preferred: Mapping[str, frozenset[int]] = field(default_factory=dict)


def fits(asked: Amounts, free: Amounts) -> bool:
    """Whether no amount that a device has is exceeded; names that it does not have are not compared."""
    return all(asked.get(name, 0) <= amount for name, amount in free.items())


def view_of(
    kind: str, devices: NodeDevices, holdings: DeviceHoldings, request: DeviceDemand, limits: Limits
) -> DeviceView:
    """The devices of a type that a pod may have."""
    view = DeviceView()
    hint = request.hints.get(kind)
    held, required = holdings.amounts.get(kind, {}), limits.required.get(kind, {})
    reusable = limits.reusable.get(kind, {})
    for device in devices.by_type.get(kind, ()):
        if limits.numa is not None and (device.numa is None or (device.numa != -1 and device.numa not in limits.numa)):
            continue
        if hint is not None and hint.selector is not None and not hint.selector.matches(device.labels):
            continue
        if required and device.minor not in required:
            continue
        free = _free(device, held.get(device.minor, {}), reusable.get(device.minor, {}))
        if required:
            most = required[device.minor]
            free = {name: min(amount, most.get(name, 0)) for name, amount in free.items()}
        view.total[device.minor] = device.amounts
        view.free[device.minor] = free
        used = {name: amount - free.get(name, 0) for name, amount in device.amounts.items()}
        if any(used.values()):
            view.used[device.minor] = used
    return view if any(any(free.values()) for free in view.free.values()) else DeviceView()


def _free(device: SharedDevice, held: Amounts, reusable: Amounts) -> dict[str, int]:
    return {
        name: max(0, amount - max(0, held.get(name, 0) - reusable.get(name, 0)))
        for name, amount in device.amounts.items()
    }


class DeviceChoice:
    """The choice of devices for one pod on one node."""

    def __init__(
        self,
        devices: NodeDevices,
        holdings: DeviceHoldings,
        request: DeviceDemand,
        scorer: DeviceScorer | None,
        *,
        model: Mapping[str, str],
        swaps_free_and_total: bool,
        ascending_partitions: bool,
    ) -> None:
        self.devices = devices
        self.holdings = holdings
        self.request = request
        self.scorer = scorer
        self.model = model
        """The labels of the node, which name the vendor and the model of its GPUs."""
        self.swaps_free_and_total = swaps_free_and_total
        self.ascending_partitions = ascending_partitions

    def demands(self) -> dict[str, tuple[Amounts, int]] | Status:
        """By type, what one device gives and how many are needed on this node."""
        found: dict[str, tuple[Amounts, int]] = {}
        for kind, asked in self.request.amounts.items():
            devices = self.devices.by_type.get(kind, ())
            if not devices:
                return unresolvable(f"Insufficient {kind} devices")
            if kind == GPU:
                assert self.request.gpu is not None
                found[kind] = (self.request.gpu.each, self.request.gpu.count)
                continue
            demand = self._plain_demand(kind, asked)
            if isinstance(demand, Status):
                return demand
            found[kind] = demand
        for kind in found:
            hint = self.request.hints.get(kind)
            wants_function = hint is not None and hint.vf_selector is not None
            if wants_function and not any(device.functions for device in self.devices.by_type[kind]):
                return unresolvable(f"Insufficient {kind} VirtualFunctions")
        return found

    def _plain_demand(self, kind: str, asked: Amounts) -> tuple[Amounts, int] | Status:
        """The same for a type without rules of its own: more than 100 is several devices, else hints decide."""
        hint = self.request.hints.get(kind)
        name, amount = next(iter(asked.items()))
        if amount > 100 and amount % 100 == 0:
            return {name: 100}, amount // 100
        if hint is None:
            return asked, 1
        if hint.strategy == APPLY_FOR_ALL:
            listed = self.devices.by_type[kind]
            selector = hint.selector
            count = len(listed) if selector is None else sum(selector.matches(device.labels) for device in listed)
            return (asked, count) if count else unresolvable(f"Insufficient {kind} devices")
        if hint.strategy == AS_COUNT:
            return {name: 100 if hint.exclusive == "DeviceLevel" else 1}, amount
        return asked, 1

    def choose(self, limits: Limits) -> Given | Status:
        """The devices that the pod gets, or the refusal."""
        demands = self.demands()
        if isinstance(demands, Status):
            return demands
        views = {kind: view_of(kind, self.devices, self.holdings, self.request, limits) for kind in demands}
        given: dict[str, tuple[GivenDevice, ...]] = {}
        if len(demands) > 1 and self.request.joint:
            jointly = self._jointly(demands, views, limits)
            if isinstance(jointly, Status):
                return jointly
            given = jointly
        for kind, (each, count) in demands.items():
            if kind in given:
                continue
            some = self._of_type(kind, views[kind], each, count, limits, frozenset())
            if isinstance(some, Status):
                return some
            if some:
                given[kind] = some
        if not given:
            return unschedulable(*(f"Insufficient {kind} devices" for kind in demands))
        return given

    def _jointly(
        self, demands: Mapping[str, tuple[Amounts, int]], views: Mapping[str, DeviceView], limits: Limits
    ) -> dict[str, tuple[GivenDevice, ...]] | Status:
        primary, *others = self.request.joint
        first = self._of_type(primary, views[primary], *demands[primary], limits, frozenset())
        if isinstance(first, Status):
            return first
        if not first:
            return unschedulable("node(s) Insufficient primary device")
        given = {primary: first}
        switches = self._switches(primary, first)
        same = self.request.joint_scope == SAME_PCIE
        for kind in others:
            each, count = demands[kind]
            some = self._of_type(
                kind, views[kind], each, max(count, len(switches)) if same else count, limits, switches
            )
            if isinstance(some, Status):
                return some
            if some:
                given[kind] = some
        if same and any(self._switches(kind, given.get(kind, ())) != switches for kind in others):
            return unschedulable("node(s) Device Joint-Allocate rules violation")
        return given

    def _switches(self, kind: str, given: tuple[GivenDevice, ...]) -> frozenset[str]:
        """The PCIe switches that some devices are on."""
        minors = {device.minor for device in given}
        return frozenset(
            device.pcie
            for device in self.devices.by_type.get(kind, ())
            if device.minor in minors and device.numa is not None
        )

    def _of_type(
        self, kind: str, view: DeviceView, each: Amounts, count: int, limits: Limits, switches: frozenset[str]
    ) -> tuple[GivenDevice, ...] | Status:
        count = max(1, count)
        if kind == GPU:
            from fairlead.koordinator.devices.gpus import choose_gpus

            return choose_gpus(self, view, limits, count)
        return self.by_score(kind, view, each, (count, max(count, len(switches))), limits, switches)

    def by_score(
        self,
        kind: str,
        view: DeviceView,
        each: Amounts,
        counts: tuple[int, int],
        limits: Limits,
        switches: frozenset[str],
    ) -> tuple[GivenDevice, ...] | Status:
        """The best scored devices that fit: at least the first of two numbers, at most the second."""
        hint = self.request.hints.get(kind)
        only = limits.only.get(kind)
        found: list[GivenDevice] = []
        for minor in self._order(kind, view, each, limits, switches):
            if (only and minor not in only) or not any(view.free[minor].values()) or not fits(each, view.free[minor]):
                continue
            function: VirtualFunction | None = None
            if hint is not None and hint.vf_selector is not None:
                function = self._function(kind, minor)
                if function is None:
                    continue
            found.append(GivenDevice(minor, each, function))
            if len(found) == counts[1]:
                break
        return tuple(found) if len(found) >= counts[0] else unschedulable(f"Insufficient {kind} devices")

    def _order(self, kind: str, view: DeviceView, each: Amounts, limits: Limits, switches: frozenset[str]) -> list[int]:
        """Minors by score; those on the switches of a primary device come first, one of each switch in turn."""
        scores = {
            minor: self.scorer.score(each, view.total[minor], free) if self.scorer is not None else 0
            for minor, free in view.free.items()
        }
        preferred = limits.preferred.get(kind, frozenset())
        if preferred:
            return sorted(scores, key=lambda minor: (minor not in preferred, -scores[minor], minor))
        ordered = sorted(scores, key=lambda minor: (-scores[minor], minor))
        places = {device.minor: device for device in self.devices.by_type[kind]}
        turn: dict[str, int] = {}
        turns: dict[int, int] = {}
        for minor in ordered:
            device = places[minor]
            if device.numa is not None and device.pcie in switches:
                turns[minor] = turn.get(device.pcie, 0)
                turn[device.pcie] = turns[minor] + 1
        near = sorted(turns, key=lambda minor: (turns[minor], -scores[minor], minor))
        return [*near, *(minor for minor in ordered if minor not in turns)]

    def _function(self, kind: str, minor: int) -> VirtualFunction | None:
        """The virtual function of a device with the lowest bus id that is free and matches."""
        hint = self.request.hints[kind]
        taken = self.holdings.functions.get(kind, {}).get(minor, set())
        device = next(device for device in self.devices.by_type[kind] if device.minor == minor)
        free = [
            function
            for labels, functions in device.functions
            if hint.vf_selector is not None and hint.vf_selector.matches(labels)
            for function in functions
            if function.bus not in taken
        ]
        return min(free, key=lambda function: function.bus, default=None)

    def node_score(self, limits: Limits) -> int:
        """The sum over types of the score of all devices together."""
        demands = self.demands()
        if isinstance(demands, Status) or self.scorer is None:
            return 0
        total = 0
        for kind, (each, _) in demands.items():
            view = view_of(kind, self.devices, self.holdings, self.request, limits)
            if view.total and any(each.values()):
                whole, free = _summed(view.total), _summed(view.free)
                total += self.scorer.score(each, whole, free)
        return total


def _summed(parts: Mapping[int, Amounts]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts.values():
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def with_memory(given: Given, devices: NodeDevices) -> Given:
    """The same with both memory and its share in percent on every GPU."""
    if GPU not in given:
        return given
    totals = {device.minor: device.amounts.get(MEMORY, 0) for device in devices.by_type[GPU]}
    return {**given, GPU: tuple(_filled(device, totals[device.minor]) for device in given[GPU])}


def _filled(device: GivenDevice, total: int) -> GivenDevice:
    amounts = dict(device.amounts)
    if MEMORY in amounts and RATIO not in amounts:
        amounts[RATIO] = int(amounts[MEMORY] / total * 100)
    elif MEMORY not in amounts:
        amounts[MEMORY] = amounts.get(RATIO, 0) * total // 100
    return replace(device, amounts=amounts)
