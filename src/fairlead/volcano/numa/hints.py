"""Which CPUs a pod gets: the NUMA nodes that could hold it, the choice of the machine's policy, and the CPUs in them.

A hint is a set of NUMA nodes with enough free CPUs; it is preferred if no smaller set of the machine could ever hold as
many. CPUs are taken from the chosen nodes first: whole sockets, then whole cores, then threads close to those taken.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from math import ceil
from typing import TYPE_CHECKING

from fairlead.core.framework.numa_hints import NumaHint, NumaNodes, NumaPolicy, merge_hints

if TYPE_CHECKING:
    from fairlead.volcano.records.topology import Cpu, NumaTopology

_POLICIES = {
    "best-effort": NumaPolicy.BEST_EFFORT,
    "restricted": NumaPolicy.RESTRICTED,
    "single-numa-node": NumaPolicy.SINGLE,
}


def hints(layout: NumaTopology, free: frozenset[int], count: int) -> list[NumaHint]:
    """Sets of NUMA nodes with enough free CPUs, smaller ones first."""
    of_machine = Counter(cpu.numa for cpu in layout.cpus.values())
    of_free = Counter(layout.cpus[cpu].numa for cpu in free if cpu in layout.cpus)
    smallest = len(of_machine)
    found: list[NumaNodes] = []
    for nodes in _sets(sorted(of_machine)):
        if sum(of_machine[node] for node in nodes) >= count:
            smallest = min(smallest, len(nodes))
        if sum(of_free[node] for node in nodes) >= count:
            found.append(nodes)
    return [NumaHint(nodes, preferred=len(nodes) == smallest) for nodes in found]


def _sets(nodes: list[int]) -> Iterator[NumaNodes]:
    for size in range(1, len(nodes) + 1):
        yield from (frozenset(some) for some in combinations(nodes, size))


def chosen(policy: str, layout: NumaTopology, offered: list[NumaHint]) -> NumaNodes | None:
    """The NUMA nodes that a policy settles for; None if it admits none. A policy that is not known admits everything
    and prefers nothing."""
    if policy not in _POLICIES:
        return frozenset()
    merged = merge_hints(_POLICIES[policy], [offered], frozenset(cpu.numa for cpu in layout.cpus.values()))
    return (merged.best.nodes or frozenset()) if merged.admitted else None


def reserved(layout: NumaTopology) -> frozenset[int]:
    """CPUs that are kept for the machine itself: as many as are reserved, rounded up, the first ones."""
    return take(layout.cpus, frozenset(layout.cpus), ceil(layout.reserved.get("cpu", 0) / 1000)) or frozenset()


def assigned(layout: NumaTopology, free: frozenset[int], count: int, nodes: NumaNodes) -> frozenset[int] | None:
    """The CPUs to have: of some NUMA nodes as far as they go, then any. None if there are too few."""
    near = frozenset(cpu for cpu in free if layout.cpus[cpu].numa in nodes)
    first = take(layout.cpus, near, min(count, len(near))) or frozenset()
    rest = take(layout.cpus, free - first, count - len(first))
    return None if rest is None else first | rest


def take(cpus: Mapping[int, Cpu], free: frozenset[int], count: int) -> frozenset[int] | None:
    """So many of the free CPUs, in pieces as large as possible. None if there are fewer."""
    if len(free) < count:
        return None
    taken: set[int] = set()
    for level in (_socket, _core):
        whole = Counter(level(cpu) for cpu in cpus.values())
        here = Counter(level(cpus[cpu]) for cpu in free - taken)
        crowd = Counter(_socket(cpus[cpu]) for cpu in free - taken)
        for piece in sorted((p for p in here if here[p] == whole[p]), key=lambda p: (crowd[p[:1]], p)):
            if len(taken) + whole[piece] <= count:
                taken |= {cpu for cpu in free if level(cpus[cpu]) == piece}
    while len(taken) < count:
        taken.add(_nearest(cpus, free - taken, taken))
    return frozenset(taken)


def planned(layout: NumaTopology, free: frozenset[int], counts: Sequence[tuple[str, int]]) -> frozenset[int] | str:
    """The CPUs of a pod whose containers, given by name, want so many each: what one gets the next cannot have. If the
    machine's policy does not admit a container, the name of that container."""
    taken: frozenset[int] = frozenset()
    for name, count in counts:
        nodes = chosen(layout.topology_policy, layout, hints(layout, free - taken, count))
        if nodes is None:
            return name
        taken |= assigned(layout, free - taken, count, nodes) or frozenset()
    return taken


def _socket(cpu: Cpu) -> tuple[int, ...]:
    return (cpu.socket,)


def _core(cpu: Cpu) -> tuple[int, ...]:
    return (cpu.socket, cpu.core)


def _nearest(cpus: Mapping[int, Cpu], free: frozenset[int], taken: set[int]) -> int:
    """On the socket that most were taken from, then where least is left."""
    used = Counter(_socket(cpus[cpu]) for cpu in taken)
    sockets, cores = Counter(_socket(cpus[cpu]) for cpu in free), Counter(_core(cpus[cpu]) for cpu in free)

    def order(number: int) -> tuple[int, int, int, tuple[int, ...], int]:
        cpu = cpus[number]
        return -used[_socket(cpu)], sockets[_socket(cpu)], cores[_core(cpu)], _core(cpu), number

    return min(free, key=order)
