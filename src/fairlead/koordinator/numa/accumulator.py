"""Which CPUs a pod gets out of those that are free: the rules of the original, step by step.

Whole cores on one NUMA node come first, then on one socket, then whole sockets; CPUs that are to be spread come from
one NUMA node, then one socket; what is left is taken one by one. A pod that wants cores or NUMA nodes for itself avoids
those of other such pods as long as that is possible.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fairlead.koordinator.records.cpu_topology import CpuPlace, Cpus, CpuTopology

FULL_CORES, SPREAD = "FullPCPUs", "SpreadByPCPUs"
CORE_LEVEL, NUMA_LEVEL = "PCPULevel", "NUMANodeLevel"
MOST_ALLOCATED = "MostAllocated"
NOT_ENOUGH = "not enough cpus available to satisfy request"


@dataclass(frozen=True, slots=True)
class CpuRules:
    """How CPUs are chosen. `exclusive` is what the pod wants for itself: cores, NUMA nodes, or nothing."""

    policy: str
    exclusive: str
    most_allocated: bool


def take_preferred(
    topology: CpuTopology, free: Cpus, preferred: Cpus, held: Mapping[int, str], count: int, rules: CpuRules
) -> Cpus | str:
    """So many of the free CPUs, the preferred ones first; `held` are taken CPUs with what their pods want for
    themselves. The words of the refusal if there are too few."""
    first = free & preferred
    taken: Cpus = frozenset()
    if first:
        some = take(topology, first, held, min(count, len(first)), rules)
        if isinstance(some, str):
            return some
        taken, count, free = some, count - len(some), free - first
    if count > 0:
        rest = take(topology, free, held, count, rules)
        if isinstance(rest, str):
            return rest
        taken |= rest
    return taken


def take(topology: CpuTopology, free: Cpus, held: Mapping[int, str], count: int, rules: CpuRules) -> Cpus | str:
    if count < 1:
        return frozenset()
    if count > len(free):
        return NOT_ENOUGH
    accumulator = _Accumulator(topology, free, held, count, rules)
    found = accumulator.run()
    return "failed to allocate cpus" if found is None else found


class _Accumulator:
    def __init__(self, topology: CpuTopology, free: Cpus, held: Mapping[int, str], count: int, rules: CpuRules) -> None:
        self.topology = topology
        self.places: dict[int, CpuPlace] = {cpu: topology.cpus[cpu] for cpu in sorted(free) if cpu in topology.cpus}
        self.needed = count
        self.rules = rules
        self.taken: set[int] = set()
        known = [(topology.cpus[cpu], exclusive) for cpu, exclusive in held.items() if cpu in topology.cpus]
        self.closed_cores = {place.core for place, exclusive in known if exclusive == CORE_LEVEL}
        self.closed_numa = {place.numa for place, exclusive in known if exclusive == NUMA_LEVEL}

    def run(self) -> Cpus | None:
        topology, full = self.topology, self.rules.policy == FULL_CORES
        if full or topology.per_core == 1:
            found = self._whole_cores()
            if found is not None:
                return found
        if not full:
            found = self._within(topology.per_numa, self._free_in_numa)
            if found is None:
                found = self._within(topology.per_socket, self._free_in_socket)
            if found is not None:
                return found
        for open_only in (True, False):
            for cpu in self._spread(self._any_free(open_only=open_only)):
                if self.needed >= 1:
                    self._take([cpu])
                if self.needed < 1:
                    return frozenset(self.taken)
        return None

    def _within(self, size: int, groups: Callable[[bool], list[list[int]]]) -> Cpus | None:
        """The first group that has enough, its CPUs spread over cores."""
        if self.needed > size:
            return None
        for open_only in (True, False):
            for cpus in groups(open_only):
                if len(cpus) >= self.needed:
                    return self._take(self._spread(cpus)[: self.needed])
        return None

    def _whole_cores(self) -> Cpus | None:
        topology = self.topology
        if self.needed <= topology.per_numa:
            for open_only in (True, False):
                for cpus in self._cores_in_numa(open_only=open_only):
                    if len(cpus) >= self.needed:
                        return self._take(cpus[: self.needed])
        if self.needed <= topology.per_socket:
            for cpus in self._cores_in_socket():
                if len(cpus) >= self.needed:
                    return self._take(cpus[: self.needed])
        left: list[list[int]] = []
        for cpus in sorted(self._cores_in_socket(), key=len, reverse=True):
            if self.needed < len(cpus):
                left.append(cpus)
                continue
            self._take(cpus)
            if self.needed < 1:
                return frozenset(self.taken)
        return self._core_by_core(sorted(left, key=len))

    def _core_by_core(self, sockets: Iterable[list[int]]) -> Cpus | None:
        size = self.topology.per_core
        if self.needed < size:
            return None
        for cpus in sockets:
            for at in range(0, len(cpus), size):
                self._take(cpus[at : at + size])
                if self.needed < 1:
                    return frozenset(self.taken)
                if self.needed < size:
                    break
        return None

    def _take(self, cpus: Iterable[int]) -> Cpus:
        for cpu in cpus:
            place = self.places.pop(cpu)
            self.taken.add(cpu)
            self.needed -= 1
            if self.rules.exclusive == CORE_LEVEL:
                self.closed_cores.add(place.core)
            elif self.rules.exclusive == NUMA_LEVEL:
                self.closed_numa.add(place.numa)
        return frozenset(self.taken)

    # ---- what is closed to this pod ----

    def _core_closed(self, place: CpuPlace) -> bool:
        return self.rules.exclusive == CORE_LEVEL and place.core in self.closed_cores

    def _numa_closed(self, place: CpuPlace) -> bool:
        return self.rules.exclusive == NUMA_LEVEL and place.numa in self.closed_numa

    # ---- groups of free CPUs ----

    def _ordered(self, count: int) -> int:
        """The key of a group by its free CPUs: fewer first if nodes are to be filled, else more first."""
        return count if self.rules.most_allocated else -count

    def _cores(self, *, open_numa: bool) -> tuple[dict[int, list[int]], dict[int, int]]:
        """Free CPUs by core, and the number of free CPUs by socket."""
        cores: dict[int, list[int]] = {}
        sockets: dict[int, int] = {}
        for cpu, place in self.places.items():
            if not (open_numa and self._numa_closed(place)):
                cores.setdefault(place.core, []).append(cpu)
                sockets[place.socket] = sockets.get(place.socket, 0) + 1
        return cores, sockets

    def _grouped(self, cores: Mapping[int, list[int]], key: Callable[[CpuPlace], int]) -> dict[int, list[int]]:
        """Wholly free cores one after the other, by NUMA node or socket."""
        groups: dict[int, list[int]] = {}
        for core in sorted(cores):
            if len(cores[core]) == self.topology.per_core:
                groups.setdefault(key(self.places[cores[core][0]]), []).extend(cores[core])
        return groups

    def _cores_in_numa(self, *, open_only: bool) -> list[list[int]]:
        cores, sockets = self._cores(open_numa=open_only)
        groups = self._grouped(cores, lambda place: place.numa)

        def order(numa: int) -> tuple[int, int, int]:
            socket = self.places[groups[numa][0]].socket
            return self._ordered(len(groups[numa])), self._ordered(sockets[socket]), numa

        return [groups[numa] for numa in sorted(groups, key=order)]

    def _cores_in_socket(self) -> list[list[int]]:
        cores, _ = self._cores(open_numa=False)
        groups = self._grouped(cores, lambda place: place.socket)
        return [groups[socket] for socket in sorted(groups, key=lambda s: (self._ordered(len(groups[s])), s))]

    def _free_in_numa(self, open_only: bool) -> list[list[int]]:
        groups: dict[int, list[int]] = {}
        sockets: dict[int, int] = {}
        for cpu, place in self.places.items():
            if open_only and (self._core_closed(place) or self._numa_closed(place)):
                continue
            groups.setdefault(place.numa, []).append(cpu)
            sockets[place.socket] = sockets.get(place.socket, 0) + 1
        order = {
            numa: (self._ordered(len(cpus)), self._ordered(sockets[self.places[cpus[0]].socket]), numa)
            for numa, cpus in groups.items()
        }
        return [self._one_a_core(groups[numa], open_only) for numa in sorted(groups, key=order.__getitem__)]

    def _free_in_socket(self, open_only: bool) -> list[list[int]]:
        groups: dict[int, list[int]] = {}
        for cpu, place in self.places.items():
            if not (open_only and self._core_closed(place)):
                groups.setdefault(place.socket, []).append(cpu)
        narrowed = {socket: self._one_a_core(cpus, open_only) for socket, cpus in groups.items()}
        return [narrowed[s] for s in sorted(narrowed, key=lambda s: (self._ordered(len(narrowed[s])), s))]

    def _one_a_core(self, cpus: list[int], narrow: bool) -> list[int]:
        """Of each core the first CPU, if it is to be narrowed so."""
        if not narrow:
            return cpus
        first: dict[int, int] = {}
        for cpu in cpus:
            first.setdefault(self.topology.cpus[cpu].core, cpu)
        return list(first.values())

    def _any_free(self, *, open_only: bool) -> list[int]:
        cores: dict[int, list[int]] = {}
        sockets: dict[int, int] = {}
        numa: dict[int, int] = {}
        for cpu, place in self.places.items():
            if open_only and (self._core_closed(place) or self._numa_closed(place)):
                continue
            cores.setdefault(place.core, []).append(cpu)
            sockets[place.socket] = sockets.get(place.socket, 0) + 1
            numa[place.numa] = numa.get(place.numa, 0) + 1
        near: dict[int, int] = {}
        for cpu in self.taken:
            socket = self.topology.cpus[cpu].socket
            near[socket] = near.get(socket, 0) + 1

        def order(core: int) -> tuple[int, ...]:
            place = self.places[cores[core][0]]
            return (
                -near.get(place.socket, 0),
                self._ordered(sockets[place.socket]),
                self._ordered(numa[place.numa]),
                len(cores[core]),
                place.socket,
                core,
            )

        return [cpu for core in sorted(cores, key=order) for cpu in cores[core]]

    def _spread(self, cpus: list[int]) -> list[int]:
        """The same CPUs, of each core one before any core has its second."""
        if len(cpus) <= self.topology.per_core:
            return cpus
        ordered: list[int] = []
        waiting = cpus
        while waiting:
            seen: set[int] = set()
            later: list[int] = []
            for cpu in waiting:
                core = self.topology.cpus[cpu].core
                if core in seen:
                    later.append(cpu)
                else:
                    seen.add(core)
                    ordered.append(cpu)
            waiting = later
        return ordered
