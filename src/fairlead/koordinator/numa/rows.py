"""NumaRows: what each node has of CPUs and NUMA nodes, and what the pods on it hold of them.

What a pod holds stands in its annotations once it is bound; between Reserve and that moment GivenSinceReserve keeps
it. Holdings of a row are counted on request, and anew after the row was touched, trials included.

Invariant: holdings are the sum over the pods on the row; a trial that takes a pod away frees what it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.model.quantity import read_quantity, to_units
from fairlead.core.model.reasons import Status
from fairlead.koordinator.given import GivenSinceReserve
from fairlead.koordinator.kinds import KOORD_NODE_TOPOLOGY
from fairlead.koordinator.numa.request import RESOURCE_SPEC, RESOURCE_STATUS, read_annotation
from fairlead.koordinator.records.cpu_topology import CpuTopology, amplification_ratios, parse_cpus
from fairlead.koordinator.reservations.holdings import reservations_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.koordinator.records.cpu_topology import Cpus, NodeTopology
    from fairlead.koordinator.reservations.holdings import ReservationState

BIND_LABEL = "node.koordinator.sh/cpu-bind-policy"
STRATEGY_LABEL = "node.koordinator.sh/numa-allocate-strategy"
POLICY_LABEL = "node.koordinator.sh/numa-topology-policy"
BIND_FULL, BIND_SPREAD, BIND_NONE = "FullPCPUsOnly", "SpreadByPCPUs", "None"
NO_CPUS = CpuTopology({})

NumaAmounts = tuple[tuple[int, Mapping[str, int]], ...]
"""Amounts by NUMA node, in ascending order."""


@dataclass(frozen=True, slots=True)
class PodCpus:
    """What a pod holds: CPUs, what it wants for itself there, and amounts of NUMA nodes."""

    cpus: Cpus
    exclusive: str
    numa: NumaAmounts


@dataclass(frozen=True, slots=True, eq=False)
class NodeOptions:
    """A node as its object and its NodeResourceTopology describe it. `numa` has amplified amounts, `ratios` say by how
    much, `node_ratio` is what the Node object itself says of cpu."""

    cpus: CpuTopology
    known: bool
    reserved: Cpus
    bind: str
    policy: str
    strategy: str
    numa: NumaAmounts
    ratios: Mapping[str, float]
    node_ratio: float

    @property
    def plain(self) -> bool:
        """Whether nothing of NUMA or binding concerns a pod that does not request it."""
        return self.bind == BIND_NONE and not self.policy and self.node_ratio <= 1 and self.ratios.get("cpu", 0) <= 1


def amplified(amount: int, ratio: float) -> int:
    """An amount as it looks on a node that is taken to be larger than it is."""
    return amount if ratio <= 1 else int(np.ceil(amount * ratio))


@dataclass(slots=True)
class NumaHoldings:
    """What is held on one node: CPUs with the number of holders and the exclusiveness of the last one, amounts by NUMA
    node, and which NUMA nodes are used by pods inside of them alone, or by pods that span several."""

    cpus: dict[int, tuple[int, str]] = field(default_factory=dict)
    numa: dict[int, dict[str, int]] = field(default_factory=dict)
    single: set[int] = field(default_factory=set)
    shared: set[int] = field(default_factory=set)

    def add(self, held: PodCpus, topology: CpuTopology) -> None:
        for cpu in held.cpus:
            count, _ = self.cpus.get(cpu, (0, ""))
            self.cpus[cpu] = (count + 1, held.exclusive)
        used = {topology.cpus[cpu].numa for cpu in held.cpus if cpu in topology.cpus}
        (self.shared if len(used) > 1 else self.single).update(used)
        for numa, amounts in held.numa:
            own = self.numa.setdefault(numa, {})
            for name, amount in amounts.items():
                own[name] = own.get(name, 0) + amount

    def without(self, *freed: Cpus) -> dict[int, str]:
        """Held CPUs and the exclusiveness on them, as if these were given back once each."""
        left = dict(self.cpus)
        for cpus in freed:
            for cpu in cpus:
                if cpu in left:
                    count, exclusive = left.pop(cpu)
                    if count > 1:
                        left[cpu] = (count - 1, exclusive)
        return {cpu: exclusive for cpu, (_, exclusive) in left.items()}

    def state(self, numa: int) -> str:
        """Whether a NUMA node is idle, used by pods inside of it alone, or shared."""
        return "shared" if numa in self.shared else "single" if numa in self.single else "idle"


def free_cpus(options: NodeOptions, held: Iterable[int]) -> Cpus:
    return frozenset(options.cpus.cpus).difference(held, options.reserved)


class NumaRows:
    def __init__(self, cluster: Cluster, default_strategy: str) -> None:
        self._cluster = cluster
        self._reservations = reservations_of(cluster)
        self._default_strategy = default_strategy
        self._kind_index = cluster.object_index.of(KOORD_NODE_TOPOLOGY)
        self._version = self._static_mark = self._content_mark = -1
        self._options: dict[int, NodeOptions] = {}
        self._holdings: dict[int, NumaHoldings] = {}
        self._given = GivenSinceReserve(cluster, held_cpus)
        self.plain: NDArray[np.bool_] = np.ones(cluster.table.capacity, dtype=np.bool_)
        """Rows where NUMA and binding concern only pods that request them."""
        self.all_plain = True
        """Whether all rows are such."""

    def catch_up(self) -> None:
        table, kind_index = self._cluster.table, self._kind_index
        marks = (table.static.mark, kind_index.version, table.content.mark, table.capacity)
        if marks == (self._static_mark, self._version, self._content_mark, len(self.plain)):
            return
        if len(self.plain) != table.capacity:
            self.plain = np.ones(table.capacity, dtype=np.bool_)
            self._static_mark = -1
        changed, objects = table.static.since(self._static_mark), kind_index.since(self._version)
        if self._static_mark < 0 or changed is None or objects is None:
            rows = list(range(table.high))
        else:
            rows = [*changed, *(table.row_of[name] for name in objects if name in table.row_of)]
        self._static_mark, self._version = table.static.mark, kind_index.version
        for row in rows:
            self._options.pop(row, None)
            self._holdings.pop(row, None)
            self.plain[row] = self._is_plain(row)
        if rows:
            self.all_plain = bool(self.plain[: table.high].all())
        touched = table.content.since(self._content_mark) if self._content_mark >= 0 else None
        self._content_mark = table.content.mark
        if touched is None:
            self._holdings.clear()
        else:
            for row in touched:
                self._holdings.pop(row, None)

    def _is_plain(self, row: int) -> bool:
        node = self._cluster.table.nodes[row]
        return node is None or self.options(row).plain

    def options(self, row: int) -> NodeOptions:
        found = self._options.get(row)
        if found is None:
            node = self._cluster.table.nodes[row]
            assert node is not None, "only nodes that are there are asked about"
            found = self._options[row] = self._read(node, self._kind_index.get(node.name))
        return found

    def _read(self, node: Node, topology: NodeTopology | None) -> NodeOptions:
        label = node.labels.get(BIND_LABEL, "")
        full = label == BIND_FULL or (topology is not None and topology.full_cores)
        of_node = amplification_ratios(node.annotations) or {}
        numa: NumaAmounts = topology.numa if topology is not None else ()
        ratios = topology.amplification if topology is not None else None
        if ratios is None:
            ratios = of_node
            numa = tuple((number, _amplify_all(amounts, of_node)) for number, amounts in numa)
        return NodeOptions(
            cpus=topology.cpus if topology is not None else NO_CPUS,
            known=topology is not None,
            reserved=topology.reserved if topology is not None else frozenset(),
            bind=BIND_FULL if full else BIND_SPREAD if label == BIND_SPREAD else BIND_NONE,
            policy=node.labels.get(POLICY_LABEL) or (topology.policy if topology is not None else ""),
            strategy=node.labels.get(STRATEGY_LABEL) or self._default_strategy,
            numa=numa,
            ratios=ratios,
            node_ratio=of_node.get("cpu", 0.0),
        )

    def holdings(self, row: int) -> NumaHoldings:
        """What the pods on a row hold at the moment."""
        self.catch_up()
        found = self._holdings.get(row)
        if found is None:
            found = self._holdings[row] = NumaHoldings()
            topology = self.options(row).cpus
            for pod in self._cluster.table.pods[row]:
                held = self.held_by(pod)
                if held is not None and topology.cpus:
                    found.add(held, topology)
        return found

    def held_by(self, pod: Pod) -> PodCpus | None:
        """What a pod holds, by its annotations, or by what it was given lately; a reserve pod holds what its owners
        have left."""
        state = self._reservations.by_uid.get(pod.uid)
        if state is not None:
            return self.left_of(state)
        return self._given.of(pod)

    def left_of(self, state: ReservationState) -> PodCpus | None:
        """What is left of the CPUs and amounts that a reservation holds."""
        whole = self._given.of_uid(state.record.uid)
        if whole is None or not state.owners:
            return whole
        cpus, numa = whole.cpus, {number: dict(amounts) for number, amounts in whole.numa}
        for uid in state.owners:
            held = self._given.of_uid(uid)
            if held is None:
                continue
            cpus -= held.cpus
            for number, amounts in held.numa:
                for name, amount in amounts.items():
                    if name in numa.get(number, {}):
                        numa[number][name] = max(0, numa[number][name] - amount)
        return PodCpus(cpus, whole.exclusive, tuple(sorted(numa.items())))

    def give(self, pod: Pod, row: int, held: PodCpus) -> None:
        self._given.give(pod, held)
        self._holdings.pop(row, None)

    def take_back(self, pod: Pod, row: int) -> None:
        self._given.take_back(pod)
        self._holdings.pop(row, None)


def _amplify_all(amounts: Mapping[str, int], ratios: Mapping[str, float]) -> Mapping[str, int]:
    return {name: amplified(amount, ratios.get(name, 0.0)) for name, amount in amounts.items()}


def held_cpus(pod: Pod) -> PodCpus | None:
    """What a pod's annotations say that it holds; None if they say nothing, or nothing that can be read."""
    if RESOURCE_STATUS not in pod.annotations:
        return None
    status, spec = read_annotation(pod, RESOURCE_STATUS), read_annotation(pod, RESOURCE_SPEC)
    if isinstance(status, Status) or isinstance(spec, Status):
        return None
    try:
        cpus = parse_cpus(status.get("cpuset") or "")
        numa = tuple(
            (
                int(part.get("node", 0)),
                {n: to_units(n, read_quantity(a)) for n, a in (part.get("resources") or {}).items()},
            )
            for part in status.get("numaNodeResources") or ()
        )
    except (ValueError, AttributeError):
        return None
    return PodCpus(cpus, spec.get("preferredCPUExclusivePolicy") or "", numa) if cpus or numa else None
