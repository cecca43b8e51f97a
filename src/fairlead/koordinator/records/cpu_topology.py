"""NodeResourceTopology as Koordinator writes it: the CPUs of a node, its NUMA nodes, and what is reserved there.

Also how sets of CPUs are written (`0-3,8`). Core numbers are made unique over sockets, as the original does, because
they are compared across sockets when CPUs are chosen.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from fairlead.core.model.documents import EMPTY, compiler
from fairlead.core.model.quantity import read_quantity, to_units

CPU_TOPOLOGY = "node.koordinator.sh/cpu-topology"
CPU_ALLOCS = "node.koordinator.sh/pod-cpu-allocs"
NODE_RESERVATION = "node.koordinator.sh/reservation"
SYSTEM_QOS = "node.koordinator.sh/system-qos-resource"
KUBELET_POLICY = "kubelet.koordinator.sh/cpu-manager-policy"
AMPLIFICATION = "node.koordinator.sh/resource-amplification-ratio"
_POLICIES = {
    "BestEffort": "BestEffort", "Restricted": "Restricted", "SingleNUMANodePodLevel": "SingleNUMANode",
}  # fmt: skip

Cpus = frozenset[int]


class CpuPlace(NamedTuple):
    """Where a CPU is: its core, NUMA node and socket."""

    core: int
    numa: int
    socket: int


@dataclass(frozen=True)
class CpuTopology:
    """The CPUs of a node by number. One without CPUs is not valid: nothing can be bound there."""

    cpus: Mapping[int, CpuPlace]

    @cached_property
    def per_core(self) -> int:
        return len(self.cpus) // max(1, len({place.core for place in self.cpus.values()}))

    @cached_property
    def per_numa(self) -> int:
        return len(self.cpus) // max(1, len({(place.socket, place.numa) for place in self.cpus.values()}))

    @cached_property
    def per_socket(self) -> int:
        return len(self.cpus) // max(1, len({place.socket for place in self.cpus.values()}))

    @cached_property
    def of_numa(self) -> Mapping[int, Cpus]:
        """The CPUs of each NUMA node."""
        found: dict[int, set[int]] = {}
        for number, place in self.cpus.items():
            found.setdefault(place.numa, set()).add(number)
        return {numa: frozenset(numbers) for numa, numbers in found.items()}


@dataclass(frozen=True, slots=True, eq=False)
class NodeTopology:
    """`numa` are the NUMA nodes in ascending order with what pods can have there, reserved CPUs taken off. `full_cores`
    says that the kubelet gives whole cores only. `amplification` is None if the object says nothing of it."""

    name: str
    cpus: CpuTopology
    reserved: Cpus
    full_cores: bool
    policy: str
    numa: tuple[tuple[int, Mapping[str, int]], ...]
    amplification: Mapping[str, float] | None


@compiler("NodeResourceTopology")
def compile_node_topology(document: Mapping[str, Any]) -> NodeTopology:
    metadata = document["metadata"]
    annotations = metadata.get("annotations") or EMPTY
    topology = CpuTopology(dict(_places(_json(annotations, CPU_TOPOLOGY).get("detail") or ())))
    kubelet = _json(annotations, KUBELET_POLICY)
    reserved = _reserved(annotations, kubelet)
    options = kubelet.get("options") or {}
    return NodeTopology(
        name=metadata["name"],
        cpus=topology,
        reserved=reserved,
        full_cores=kubelet.get("policy") == "static" and options.get("full-pcpus-only") == "true",
        policy=next((_POLICIES[p] for p in document.get("topologyPolicies") or () if p in _POLICIES), ""),
        numa=tuple(sorted(_zones(document.get("zones") or (), topology, reserved), key=lambda zone: zone[0])),
        amplification=amplification_ratios(annotations),
    )


def _places(detail: Iterable[Mapping[str, int]]) -> Iterator[tuple[int, CpuPlace]]:
    for cpu in detail:
        socket = cpu.get("socket", 0)
        yield cpu.get("id", 0), CpuPlace(socket << 16 | cpu.get("core", 0), cpu.get("node", 0), socket)


def _reserved(annotations: Mapping[str, str], kubelet: Mapping[str, Any]) -> Cpus:
    """CPUs that nobody may be bound to: those of the kubelet, of the node's reservation, and of the system."""
    reserved = set(parse_cpus(kubelet.get("reservedCPUs") or ""))
    allocs: Any = _json(annotations, CPU_ALLOCS)
    for alloc in allocs if isinstance(allocs, list) else ():
        if alloc.get("managedByKubelet") and alloc.get("uid"):
            reserved |= parse_cpus(alloc.get("cpuset") or "")
    reserved |= parse_cpus(_json(annotations, NODE_RESERVATION).get("reservedCPUs") or "")
    system = _json(annotations, SYSTEM_QOS)
    if system.get("cpuset") and system.get("cpusetExclusive", True):
        reserved |= parse_cpus(system["cpuset"])
    return frozenset(reserved)


def _zones(
    zones: Iterable[Mapping[str, Any]], topology: CpuTopology, reserved: Cpus
) -> Iterator[tuple[int, Mapping[str, int]]]:
    for zone in zones:
        parts = (zone.get("name") or "").split("node-")
        if zone.get("type") != "Node" or len(parts) != 2 or not parts[1].isdecimal():
            continue
        number = int(parts[1])
        amounts = {
            resource["name"]: to_units(resource["name"], read_quantity(resource.get("allocatable") or "0"))
            for resource in zone.get("resources") or ()
        }
        if amounts.get("cpu"):
            amounts["cpu"] -= 1000 * len(reserved & topology.of_numa.get(number, frozenset()))
        yield number, amounts


def amplification_ratios(annotations: Mapping[str, str]) -> Mapping[str, float] | None:
    """How much larger resources look than they are; None if nothing is said of it."""
    if AMPLIFICATION not in annotations:
        return None
    written = _json(annotations, AMPLIFICATION)
    return {name: float(ratio) for name, ratio in written.items()} if isinstance(written, dict) else None


def _json(annotations: Mapping[str, str], key: str) -> dict[str, Any]:
    """The JSON of an annotation; nothing if there is none, or if it cannot be read."""
    try:
        found = json.loads(annotations[key]) if annotations.get(key) else {}
    except ValueError:
        return {}
    return found if isinstance(found, (dict, list)) else {}  # type: ignore[return-value]


def parse_cpus(text: str) -> Cpus:
    """`0-3,8` as numbers. Raises ValueError if it is not of that form."""
    numbers: set[int] = set()
    for part in text.split(","):
        if part.strip():
            first, _, last = part.strip().partition("-")
            numbers.update(range(int(first), int(last or first) + 1))
    return frozenset(numbers)


def format_cpus(cpus: Iterable[int]) -> str:
    """The shortest way to write a set of CPUs."""
    ranges: list[list[int]] = []
    for number in sorted(cpus):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in ranges)
