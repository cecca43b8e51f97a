"""NodeNUMAResource: binds pods to CPUs and keeps them to NUMA nodes.

Rows on which nothing of this concerns a pod are judged as columns; the others one by one. The NUMA nodes that Filter
chose on a row are noted in the cycle: Score and Reserve keep to them. A pod that requests nothing of this, in a cluster
where no node wants it, is a *plain* one: no node is refused, scores depend on the sums of requests alone and are kept.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.numa_hints import NumaHint, with_preference
from fairlead.core.framework.plugin import Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.model.events import POD, ActionType, ClusterEvent
from fairlead.core.model.quantity import format_quantity
from fairlead.core.model.reasons import (
    SKIP,
    SUCCESS,
    Code,
    Reason,
    Reject,
    Status,
    Verdict,
    failed,
    unresolvable,
    unschedulable,
)
from fairlead.errors import FairleadError
from fairlead.koordinator.kinds import KOORD_NODE_TOPOLOGY, NODE_TOPOLOGY_EVENTS
from fairlead.koordinator.numa.accumulator import FULL_CORES, MOST_ALLOCATED
from fairlead.koordinator.numa.allocation import NumaAllocation, Reusable, available, demand_on, policy_of
from fairlead.koordinator.numa.merging import BEST_EFFORT, EXCLUSIVE, RESTRICTED, Hints, merge
from fairlead.koordinator.numa.providers import gather_hints, refused_elsewhere
from fairlead.koordinator.numa.request import (
    DEFAULT_POLICY,
    NOT_WHOLE,
    RESOURCE_SPEC,
    RESOURCE_STATUS,
    NumaRequest,
    asks_for_nothing,
    numa_request,
    read_annotation,
)
from fairlead.koordinator.numa.rows import BIND_NONE, NodeOptions, NumaRows, PodCpus, amplified
from fairlead.koordinator.pod_annotations import write_annotation
from fairlead.koordinator.records.cpu_topology import format_cpus
from fairlead.koordinator.reservations.shown import is_taken_off, taken_over_on, usable_on
from fairlead.koordinator.scoring import usage_score, weighted_score

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.numa_hints import NumaNodes
    from fairlead.core.state.nodes import Nodes
    from fairlead.core.state.table import NodeTable

_CONFLICT = "node(s) cpu bind policy conflicts with pod's required cpu bind policy"
_NO_HINTS = "node(s) Insufficient NUMA Node resources"


_ALWAYS_SCORED = ("cpu", "memory", "ephemeral-storage")


@dataclass(frozen=True, slots=True)
class NumaSettings:
    """`weights` of resources count for both scores, as in the original; `most` and `numa_most` prefer what is used."""

    default_policy: str = FULL_CORES
    most: bool = False
    numa_most: bool = False
    weights: Mapping[str, int] = field(default_factory=lambda: {"cpu": 1, "memory": 1})
    sorts_by_position: bool = False
    """A slip of the original in splitting over NUMA nodes (KoordinatorQuirks.numa_split_sorts_by_position)."""


@dataclass(slots=True)
class NumaNote:
    """What is known of the pod in this cycle: its request, and by row the NUMA nodes that it is kept to. The note of a
    plain pod serves all pods like it and does not change."""

    request: NumaRequest
    plain: bool = False
    affinity: dict[int, NumaNodes | None] = field(default_factory=dict)
    held: PodCpus | None = None

    def copy(self) -> NumaNote:
        return NumaNote(self.request, self.plain)


class NodeNUMAResource(CachedPlugin):
    name = "NodeNUMAResource"
    scope = Scope.ROW
    reads = frozenset({"spec"})
    kinds_read = (KOORD_NODE_TOPOLOGY,)

    def __init__(self, settings: NumaSettings) -> None:
        self._settings = settings
        self._strategy = MOST_ALLOCATED if settings.numa_most else "LeastAllocated"

    def events(self) -> Sequence[Interest]:
        return (
            Interest(ClusterEvent(POD, ActionType.DELETE)),
            Interest(ClusterEvent(NODE_TOPOLOGY_EVENTS, ActionType.ADD | ActionType.UPDATE | ActionType.DELETE)),
        )

    def rows(self, cycle: Cycle) -> NumaRows:
        """The rows of the cycle's cluster, up to date."""
        strategy = self._strategy
        rows = cycle.cluster.index(lambda cluster: NumaRows(cluster, strategy), NumaRows, strategy)
        rows.catch_up()
        return rows

    def refresh(self, cycle: Cycle) -> bool:
        return self._is_plain(cycle)

    def looks_at_pods(self, cycle: Cycle) -> bool:
        return not self._is_plain(cycle)

    def _is_plain(self, cycle: Cycle) -> bool:
        return asks_for_nothing(cycle.pod) and self.rows(cycle).all_plain

    def pre_filter(self, cycle: Cycle) -> Status | None:
        request = numa_request(cycle.pod, self._settings.default_policy)
        if isinstance(request, Status):
            return request
        cycle.notes[self.name] = NumaNote(request, self._is_plain(cycle))
        return None

    def add_pod(self, cycle: Cycle, pod: object, row: int) -> None:
        """A pod is on a row for a trial; what is held there is counted anew when requested."""

    remove_pod = add_pod

    # ---- filter ----

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        note: NumaNote = cycle.notes[self.name]
        if note.plain:
            return
        rows, table = self.rows(cycle), cycle.cluster.table
        asks = note.request.asks
        concerned = nodes.all() if asks else ~nodes.take(rows.plain)
        concerned &= nodes.take(table.alive)
        refused: dict[tuple[bool, tuple[str, ...]], list[int]] = {}
        numbers = nodes.row_numbers()
        for at in np.flatnonzero(concerned).tolist():
            said = self._judge(cycle, note, int(numbers[at]))
            if said is not None:
                refused.setdefault((said.code is Code.UNRESOLVABLE, said.reasons), []).append(at)
        for (final, reasons), places in refused.items():
            mask = nodes.none()
            mask[places] = True
            for reason in reasons:
                yield Reject(Reason(self.name, reason, final=final), mask)

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        note: NumaNote = cycle.notes[self.name]
        if note.plain or not (note.request.asks or not self.rows(cycle).plain[row]):
            return None
        said = self._judge(cycle, note, row)
        return None if said is None else Verdict(self.name, said.reasons, said.code is Code.UNRESOLVABLE)

    def _judge(self, cycle: Cycle, note: NumaNote, row: int) -> Status | None:
        options, request = self.rows(cycle).options(row), note.request
        policy = self._policy(request, options)
        if policy is None:
            return unresolvable("node(s) NUMA Topology policy not match")
        bound = self._bound(request, options)
        if isinstance(bound, Status):
            return bound
        if (refused := self._amplified(cycle, request, row, options, bound=bound)) is not None:
            return refused
        if bound:
            if not options.cpus.cpus:
                return unresolvable("node(s) invalid CPU Topology")
            required = policy_of(options) or request.required
            if request.required and request.required != required:
                return unresolvable(_CONFLICT)
            if required == FULL_CORES and request.cpus % options.cpus.per_core:
                return unresolvable("node(s) requested cpus not multiple cpus per core")
            if required and not policy:
                said = self._allocation(cycle, note, row, bound=bound).allocate(None, self._reusable(cycle, row))
                return said if isinstance(said, Status) else None
        if policy and policy != BEST_EFFORT:
            return self._admit(cycle, note, row, policy)
        return None

    def _policy(self, request: NumaRequest, options: NodeOptions) -> str | None:
        """The NUMA policy of pod and node; None if they differ."""
        if options.policy and request.numa_policy and options.policy != request.numa_policy:
            return None
        return request.numa_policy or options.policy

    def _bound(self, request: NumaRequest, options: NodeOptions) -> bool | Status:
        """Whether the pod is bound to CPUs on this node."""
        if request.bound:
            return True
        cpu = request.amounts.get("cpu", 0)
        if not cpu or options.bind == BIND_NONE:
            return False
        return unresolvable(NOT_WHOLE) if cpu % 1000 else True

    def _amplified(
        self, cycle: Cycle, request: NumaRequest, row: int, options: NodeOptions, *, bound: bool
    ) -> Status | None:
        """The cpu of a node that looks larger than it is: bound CPUs count as much as they look."""
        asked, ratio = request.amounts.get("cpu", 0), options.node_ratio
        if not asked or ratio <= 1:
            return None
        if bound:
            asked = amplified(asked, ratio)
        table = cycle.cluster.table
        taken = 1000 * len(self.rows(cycle).holdings(row).cpus)
        requested = int(table.requested_column("cpu")[row])
        if requested >= taken > 0:
            requested += amplified(taken, ratio) - taken
        if asked > int(table.allocatable_column("cpu")[row]) - requested:
            return unschedulable("Insufficient amplified cpu")
        return None

    # ---- NUMA policies ----

    def _admit(self, cycle: Cycle, note: NumaNote, row: int, policy: str) -> Status | None:
        """Choose the NUMA nodes that the pod is kept to on a row, and try it there."""
        options = self.rows(cycle).options(row)
        if not options.numa:
            return unresolvable("node(s) missing NUMA resources")
        exclusive = note.request.numa_exclusive or (EXCLUSIVE if note.request.numa_policy else "")
        if row not in note.affinity:
            hints = gather_hints(cycle, row, self._hints(cycle, note, row, policy))
            if isinstance(hints, Status):
                return hints
            state = self.rows(cycle).holdings(row).state
            merged = merge(policy, hints, [number for number, _ in options.numa], exclusive, state)
            if merged.reasons:
                return unschedulable(*merged.reasons)
            nodes = merged.best.nodes
        else:
            nodes = note.affinity[row]
        bound = self._bound(note.request, options)
        assert not isinstance(bound, Status), "asked before"
        said = self._allocation(cycle, note, row, bound=bound).allocate(nodes, self._reusable(cycle, row))
        refused = said if isinstance(said, Status) else refused_elsewhere(cycle, row, nodes)
        if refused is None:
            note.affinity[row] = nodes
        return refused

    def _hints(self, cycle: Cycle, note: NumaNote, row: int, policy: str) -> Hints | Status:
        """For every resource the sets of NUMA nodes that can really hold the pod."""
        options = self.rows(cycle).options(row)
        if not options.numa:
            return unschedulable(_NO_HINTS)
        bound = self._bound(note.request, options)
        assert not isinstance(bound, Status), "asked before"
        allocation, reusable = self._allocation(cycle, note, row, bound=bound), self._reusable(cycle, row)
        free, demand = allocation.free(reusable), allocation.demand
        totals = dict(options.numa)
        numbers = [number for number, _ in options.numa]
        named = {name for amounts in totals.values() for name in amounts if name in demand.amounts}
        hints: dict[str, list[NumaHint]] = {name: [] for name in demand.amounts if name in named}
        smallest = dict.fromkeys(hints, len(numbers))
        seen: set[str] = set()
        for size in range(1, len(numbers) + 1):
            for some in combinations(numbers, size):
                seen |= {name for number in some for name in totals[number] if name in demand.amounts}
                if isinstance(allocation.allocate(frozenset(some), reusable), Status):
                    continue
                score = self._numa_score([totals[n] for n in some], [free[n] for n in some], demand.amounts)
                for name in sorted(seen):
                    if all(free[number].get(name, 0) for number in some):
                        hints[name].append(NumaHint(frozenset(some), score=score))
                        smallest[name] = min(smallest[name], size)
        restricted = policy == RESTRICTED
        return {
            name: with_preference(offered, smallest[name], all_preferred=restricted) for name, offered in hints.items()
        }

    def _numa_score(
        self, totals: Sequence[Mapping[str, int]], free: Sequence[Mapping[str, int]], asked: Mapping[str, int]
    ) -> int:
        whole, left = _summed(totals), _summed(free)
        used = {name: max(0, amount - left.get(name, 0)) for name, amount in whole.items()}
        return weighted_score(self._settings.weights, used, whole, asked, most=self._settings.numa_most)

    # ---- allocation ----

    def _allocation(self, cycle: Cycle, note: NumaNote, row: int, *, bound: bool) -> NumaAllocation:
        rows = self.rows(cycle)
        options = rows.options(row)
        demand = demand_on(note.request, options, bound=bound)
        return NumaAllocation(options, rows.holdings(row), demand, sorts_by_position=self._settings.sorts_by_position)

    def _reusable(self, cycle: Cycle, row: int) -> Reusable:
        """What the pod may take of reservations on a row; their CPUs come first."""
        rows = self.rows(cycle)
        left = [held for state in usable_on(cycle, row) if (held := rows.left_of(state)) is not None]
        left += [held for pod in taken_over_on(cycle, row) if (held := rows.held_by(pod)) is not None]
        if not left:
            return Reusable()
        cpus = frozenset[int]().union(*(held.cpus for held in left))
        amounts: dict[int, dict[str, int]] = {}
        if not is_taken_off(cycle):
            for held in left:
                for number, part in held.numa:
                    amounts[number] = _summed([amounts.get(number, {}), part])
        return Reusable(amounts, cpus)

    # ---- score ----

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        return None if self.name in cycle.notes else SKIP

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64] | int:
        note: NumaNote | None = cycle.notes.get(self.name)
        if note is None:  # the pod requests nothing, and the profile does not have this plugin at PreScore
            return 0
        scores = self._plain_scores(nodes, note.request.amounts)
        if note.plain:
            return scores
        singly = nodes.all() if note.request.asks else ~nodes.take(self.rows(cycle).plain)
        numbers = nodes.row_numbers()
        for at in np.flatnonzero(singly).tolist():
            score = self._score_singly(cycle, note, int(numbers[at]))
            if score is not None:
                scores[at] = score
        return scores

    def score_row(self, cycle: Cycle, row: int) -> int:
        note: NumaNote | None = cycle.notes.get(self.name)
        if note is None:
            return 0
        if not note.plain and (note.request.asks or not self.rows(cycle).plain[row]):
            score = self._score_singly(cycle, note, row)
            if score is not None:
                return score
        return self._plain_score(cycle.cluster.table, row, note.request.amounts)

    def _plain_scores(self, nodes: Nodes, asked: Mapping[str, int]) -> NDArray[np.int64]:
        """Scores by what is requested of whole nodes."""
        total = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for name, weight in self._settings.weights.items():
            if name not in _ALWAYS_SCORED and not asked.get(name):
                continue
            capacity, used = nodes.allocatable(name), nodes.requested(name) + asked.get(name, 0)
            divisor = np.maximum(capacity, 1)
            if self._settings.most:
                share = np.minimum(used, capacity) * 100 // divisor
            else:
                share = np.where(used > capacity, 0, (capacity - used) * 100 // divisor)
            present = capacity != 0
            total += np.where(present, share * weight, 0)
            weights += np.where(present, weight, 0)
        return total // np.maximum(weights, 1)

    def _plain_score(self, table: NodeTable, row: int, asked: Mapping[str, int]) -> int:
        """The same for one row."""
        total = weights = 0
        for name, weight in self._settings.weights.items():
            capacity = table.allocatable[name].item(row) if name in table.allocatable else 0
            if not capacity or (name not in _ALWAYS_SCORED and not asked.get(name)):
                continue
            used = table.requested_column(name).item(row) + asked.get(name, 0)
            total += weight * usage_score(used, capacity, most=self._settings.most)
            weights += weight
        return total // max(weights, 1)

    def _score_singly(self, cycle: Cycle, note: NumaNote, row: int) -> int | None:
        """The score of a row that is not plain; None if it is scored like any other."""
        options, request = self.rows(cycle).options(row), note.request
        policy, bound = self._policy(request, options) or "", self._bound(request, options)
        if isinstance(bound, Status) or (bound and not options.cpus.cpus):
            return 0
        demand = demand_on(request, options, bound=bound)
        if not policy:
            return self._score_amplified(cycle, row, options, demand.amounts)
        allocation, reusable = self._allocation(cycle, note, row, bound=bound), self._reusable(cycle, row)
        said = allocation.allocate(note.affinity.get(row), reusable)
        if isinstance(said, Status):
            raise FairleadError(f'running Score plugins: plugin "{self.name}" failed with: {said.message}')
        whole, used = self._whole_and_used(cycle, row, allocation, said, reusable)
        return weighted_score(self._settings.weights, used, whole, demand.amounts, most=self._settings.most)

    def _score_amplified(self, cycle: Cycle, row: int, options: NodeOptions, asked: Mapping[str, int]) -> int | None:
        ratio = options.ratios.get("cpu", 0.0)
        plain = cycle.notes[self.name].request.amounts.get("cpu")
        if (not asked.get("cpu") or ratio <= 1) and asked.get("cpu") == plain:
            return None
        whole, used = _of_node(cycle, row)
        if asked.get("cpu") and ratio > 1:
            taken = 1000 * len(self.rows(cycle).holdings(row).cpus)
            used["cpu"] = used.get("cpu", 0) - taken + amplified(taken, ratio)
        return weighted_score(self._settings.weights, used, whole, asked, most=self._settings.most)

    def _whole_and_used(
        self, cycle: Cycle, row: int, allocation: NumaAllocation, given: PodCpus, reusable: Reusable
    ) -> tuple[dict[str, int], dict[str, int]]:
        """What the NUMA nodes of an allocation have, and what is used there. If CPUs are bound, used cpu is the number
        of all bound CPUs of the node, as in the original."""
        options = allocation.options
        if given.numa:
            _, held = available(options, allocation.holdings, reusable)
            totals = dict(options.numa)
            whole = _summed([totals[number] for number, _ in given.numa])
            used = _summed([held[number] for number, _ in given.numa if number in held])
        else:
            whole, used = _of_node(cycle, row)
        if given.cpus:
            count = len(allocation.holdings.without(reusable.cpus - given.cpus))
            used["cpu"] = amplified(1000 * count, options.ratios.get("cpu", 0.0))
        return whole, used

    # ---- after the choice ----

    def reserve(self, cycle: Cycle, row: int) -> Status | None:
        note: NumaNote | None = cycle.notes.get(self.name)
        if note is None or note.plain:
            return None
        options = self.rows(cycle).options(row)
        policy, bound = self._policy(note.request, options) or "", self._bound(note.request, options)
        if policy == BEST_EFFORT and (refused := self._admit(cycle, note, row, policy)) is not None:
            return refused
        if isinstance(bound, Status):
            return bound
        if not bound and not policy:
            return None
        if bound and not options.cpus.cpus:
            return failed("node(s) invalid CPU Topology")
        said = self._allocation(cycle, note, row, bound=bound).allocate(
            note.affinity.get(row), self._reusable(cycle, row)
        )
        if isinstance(said, Status):
            return said
        note.held = said
        self.rows(cycle).give(cycle.pod, row, said)
        return None

    def unreserve(self, cycle: Cycle, row: int) -> None:
        note: NumaNote | None = cycle.notes.get(self.name)
        if note is not None and note.held is not None:
            note.held = None
            self.rows(cycle).take_back(cycle.pod, row)

    def pre_bind_pre_flight(self, cycle: Cycle, row: int) -> Status:
        note: NumaNote | None = cycle.notes.get(self.name)
        return SKIP if note is None or note.held is None else SUCCESS

    def pre_bind(self, cycle: Cycle, row: int) -> None:
        note: NumaNote | None = cycle.notes.get(self.name)
        if note is None or note.held is None:
            return
        options = self.rows(cycle).options(row)
        if self._bound(note.request, options) is True:
            self._write_spec(cycle, note, options)
        write_annotation(cycle, RESOURCE_STATUS, _status_text(note.held))

    def _write_spec(self, cycle: Cycle, note: NumaNote, options: NodeOptions) -> None:
        """Write the policy that was used where the pod names none of its own."""
        demand = demand_on(note.request, options, bound=True)
        spec = read_annotation(cycle.pod, RESOURCE_SPEC)
        assert not isinstance(spec, Status), "it was read before"
        written = dict(spec)
        if demand.required and written.get("requiredCPUBindPolicy") in (None, "", DEFAULT_POLICY):
            written["requiredCPUBindPolicy"] = demand.policy
        if written.get("preferredCPUBindPolicy") == DEFAULT_POLICY:
            written["preferredCPUBindPolicy"] = demand.policy
        if not written.get("requiredCPUBindPolicy") and not written.get("preferredCPUBindPolicy") and demand.policy:
            written["preferredCPUBindPolicy"] = demand.policy
        if written != spec:
            write_annotation(cycle, RESOURCE_SPEC, json.dumps(written, separators=(",", ":")))


def _status_text(held: PodCpus) -> str:
    document: dict[str, object] = {}
    if held.cpus:
        document["cpuset"] = format_cpus(held.cpus)
    if held.numa:
        listed = ((number, {name: format_quantity(given[name], name) for name in given}) for number, given in held.numa)
        document["numaNodeResources"] = [{"node": number, "resources": resources} for number, resources in listed]
    return json.dumps(document, separators=(",", ":"))


def _summed(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    total: dict[str, int] = {}
    for part in parts:
        for name, amount in part.items():
            total[name] = total.get(name, 0) + amount
    return total


def _of_node(cycle: Cycle, row: int) -> tuple[dict[str, int], dict[str, int]]:
    """What a whole node has, and what is requested of it."""
    table = cycle.cluster.table
    whole = {name: int(column[row]) for name, column in table.allocatable.items()}
    used = {name: int(table.requested_column(name)[row]) for name in whole if name != "pods"}
    return whole, used
