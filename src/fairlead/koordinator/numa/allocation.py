"""One pod on one node: the amounts of NUMA nodes and the CPUs that it would get.

With NUMA nodes to keep to, every resource is split over them as evenly as possible; then CPUs are taken, of each NUMA
node as many as its share. A required binding policy leaves only CPUs that can satisfy it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from fairlead.core.model.reasons import Status, unresolvable, unschedulable
from fairlead.koordinator.numa.accumulator import (
    FULL_CORES,
    MOST_ALLOCATED,
    NOT_ENOUGH,
    SPREAD,
    CpuRules,
    take_preferred,
)
from fairlead.koordinator.numa.rows import (
    BIND_FULL,
    BIND_NONE,
    BIND_SPREAD,
    NodeOptions,
    NumaHoldings,
    PodCpus,
    amplified,
    free_cpus,
)

if TYPE_CHECKING:
    from fairlead.core.framework.numa_hints import NumaNodes
    from fairlead.koordinator.numa.request import NumaRequest
    from fairlead.koordinator.records.cpu_topology import Cpus, CpuTopology

NO_CPUS: Cpus = frozenset()


@dataclass(frozen=True, slots=True)
class Reusable:
    """What a pod may take on a node although it is held: amounts of NUMA nodes, and CPUs, which it takes first."""

    numa: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    cpus: Cpus = frozenset()


@dataclass(frozen=True, slots=True)
class CpuDemand:
    """A pod's request as one node has to meet it: `bound` and `policy` count what the node itself demands; `amounts`
    are amplified where the node is and the pod is bound, `raw` are not."""

    bound: bool
    policy: str
    required: bool
    exclusive: str
    cpus: int
    amounts: Mapping[str, int]
    raw: Mapping[str, int]


def demand_on(request: NumaRequest, options: NodeOptions, *, bound: bool) -> CpuDemand:
    policy, required = request.required or request.preferred, bool(request.required)
    if not required and options.bind != BIND_NONE:
        policy, required = (FULL_CORES if options.bind == BIND_FULL else SPREAD), True
    ratio = options.ratios.get("cpu", 0.0)
    amounts = request.amounts
    if bound and ratio > 1 and amounts.get("cpu"):
        amounts = {**amounts, "cpu": amplified(amounts["cpu"], ratio)}
    return CpuDemand(bound, policy, required, request.exclusive, request.cpus, amounts, request.amounts)


def policy_of(options: NodeOptions) -> str:
    """The binding policy that a node demands; empty if it demands none."""
    return {BIND_FULL: FULL_CORES, BIND_SPREAD: SPREAD}.get(options.bind, "")


def available(
    options: NodeOptions, holdings: NumaHoldings, reusable: Reusable
) -> tuple[dict[int, dict[str, int]], dict[int, dict[str, int]]]:
    """What is free on each NUMA node, and what is held there."""
    ratio = options.ratios.get("cpu", 0.0)
    free: dict[int, dict[str, int]] = {}
    held: dict[int, dict[str, int]] = {}
    for number, amounts in options.numa:
        taken: dict[str, int] = {}
        if number in holdings.numa:
            taken = dict(holdings.numa[number])
            if ratio > 1:
                bound = 1000 * len(options.cpus.of_numa.get(number, NO_CPUS) & holdings.cpus.keys())
                taken["cpu"] = taken.get("cpu", 0) - bound + amplified(bound, ratio)
            again = reusable.numa.get(number, {})
            taken = {name: max(0, amount - again.get(name, 0)) for name, amount in taken.items()}
            held[number] = taken
        free[number] = {name: max(0, amount - taken.get(name, 0)) for name, amount in amounts.items()}
    return free, held


def satisfying(policy: str, cpus: Cpus, topology: CpuTopology) -> Cpus:
    """Those of the CPUs that a required policy can use: wholly free cores, or one CPU of each core."""
    cores: dict[int, list[int]] = {}
    for cpu in sorted(cpus):
        if cpu in topology.cpus:
            cores.setdefault(topology.cpus[cpu].core, []).append(cpu)
    if policy == FULL_CORES:
        return frozenset(cpu for some in cores.values() if len(some) == topology.per_core for cpu in some)
    if policy == SPREAD:
        return frozenset(some[0] for some in cores.values())
    return cpus


class NumaAllocation:
    """Tries to place one pod's demand on one node."""

    def __init__(
        self, options: NodeOptions, holdings: NumaHoldings, demand: CpuDemand, *, sorts_by_position: bool
    ) -> None:
        self.options = options
        self.holdings = holdings
        self.demand = demand
        self._sorts_by_position = sorts_by_position

    def allocate(self, nodes: NumaNodes | None, reusable: Reusable) -> PodCpus | Status:
        """What the pod would get on some NUMA nodes (None: on any), or the refusal."""
        numa: Sequence[tuple[int, Mapping[str, int]]] = ()
        if nodes is not None:
            split = self._split(sorted(nodes), reusable)
            if isinstance(split, Status):
                return split
            numa = split
        cpus = self._bind(numa, reusable) if self.demand.bound else NO_CPUS
        if isinstance(cpus, str):
            return unschedulable(cpus)
        return PodCpus(cpus, self.demand.exclusive, tuple(numa))

    def free(self, reusable: Reusable) -> dict[int, dict[str, int]]:
        """What is free on each NUMA node; of cpu no more than a required policy can use."""
        free, _ = available(self.options, self.holdings, reusable)
        if self.demand.required:
            cpus = free_cpus(self.options, self.holdings.without(reusable.cpus))
            for number, amounts in free.items():
                if amounts.get("cpu"):
                    here = cpus & self.options.cpus.of_numa.get(number, NO_CPUS)
                    usable = satisfying(self.demand.policy, here, self.options.cpus)
                    amounts["cpu"] = min(amounts["cpu"], 1000 * len(usable))
        return free

    def _split(self, nodes: list[int], reusable: Reusable) -> list[tuple[int, Mapping[str, int]]] | Status:
        if not self.options.numa:
            return unresolvable("insufficient resources on NUMA Node")
        free = self.free(reusable)
        known = {name for amounts in free.values() for name in amounts}
        shares: dict[int, dict[str, int]] = {}
        missing: list[str] = []
        for name, asked in (self.demand.raw if self.demand.bound else self.demand.amounts).items():
            left = asked
            for at, number in enumerate(self._order(name, nodes, free) if name in known else ()):
                part = min(self._part(name, left, len(nodes) - at), free.get(number, {}).get(name, 0))
                if part:
                    shares.setdefault(number, {})[name] = part
                    left -= part
            if left and name in known:
                missing.append(f"Insufficient NUMA {name}")
        return unschedulable(*missing) if missing else sorted(shares.items())

    def _order(self, name: str, nodes: list[int], free: Mapping[int, Mapping[str, int]]) -> list[int]:
        """NUMA nodes in the order in which they get their share: those with the least left first. The original compares
        what is left on the NUMA nodes 0, 1 ... by the positions in its list, whichever NUMA nodes stand there."""

        def left(number: int) -> int:
            return free.get(number, {}).get(name, 0)

        if not self._sorts_by_position:
            return sorted(nodes, key=left)
        ordered = list(nodes)
        for first in range(1, len(ordered)):
            at = first
            while at > 0 and left(at) < left(at - 1):
                ordered[at], ordered[at - 1] = ordered[at - 1], ordered[at]
                at -= 1
        return ordered

    def _part(self, name: str, left: int, nodes: int) -> int:
        """The share of one of so many NUMA nodes: of bound pods whole CPUs, and whole cores where they are required."""
        if name != "cpu" or not self.demand.bound:
            return left // nodes
        whole = -(-left // 1000)
        if self.demand.required and self.demand.policy == FULL_CORES:
            size = self.options.cpus.per_core
            return whole // size // nodes * size * 1000
        return whole // nodes * 1000

    def _bind(self, numa: Sequence[tuple[int, Mapping[str, int]]], reusable: Reusable) -> Cpus | str:
        options, demand, topology = self.options, self.demand, self.options.cpus
        held = self.holdings.without(reusable.cpus)
        free = free_cpus(options, held)
        if demand.required:
            free = satisfying(demand.policy, free, topology)
        if len(free) < demand.cpus:
            return NOT_ENOUGH
        rules = CpuRules(demand.policy, demand.exclusive, options.strategy == MOST_ALLOCATED)
        taken = NO_CPUS
        for number, amounts in numa:
            here = free & topology.of_numa.get(number, NO_CPUS)
            count = min(len(here), amounts.get("cpu", 0) // 1000)
            some = take_preferred(topology, here, reusable.cpus, held, count, rules)
            if isinstance(some, str):
                return some
            taken |= some
        if numa and len(taken) != demand.cpus:
            return NOT_ENOUGH
        if len(taken) < demand.cpus:
            rest = take_preferred(topology, free - taken, reusable.cpus, held, demand.cpus - len(taken), rules)
            if isinstance(rest, str):
                return rest
            taken |= rest
        if demand.required and not _satisfies(demand.policy, taken, topology):
            return f"insufficient CPUs to satisfy required cpu bind policy {demand.policy}"
        return taken


def _satisfies(policy: str, cpus: Cpus, topology: CpuTopology) -> bool:
    cores = len({topology.cpus[cpu].core for cpu in cpus})
    if policy == FULL_CORES:
        return cores * topology.per_core == len(cpus)
    return cores == len(cpus) if policy == SPREAD else True
