"""NodeResourcesFit and NodeResourcesBalancedAllocation: whether a pod's requests fit, and scores by use of resources.

The filter reads the pod's requests. The scores read requests with a default for containers that have none and, as in
the original, neither pod-level requests nor resizes in progress.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.framework.plugin import Hint, Interest, Scope
from fairlead.core.framework.results.cached_plugin import CachedPlugin
from fairlead.core.framework.sums import has_room, room_on
from fairlead.core.model import kinds
from fairlead.core.model.events import DEVICE_CLASS, NODE, POD, ActionType, ClusterEvent
from fairlead.core.model.quantity import MAX_INT64, is_extended, is_scalar
from fairlead.core.model.reasons import SKIP, Reason, Reject, Status, Verdict
from fairlead.core.state.nodes import Nodes
from fairlead.kube.claims.counting import DeviceCounts
from fairlead.kube.claims.devices import devices_of
from fairlead.kube.claims.extended import may_be_served
from fairlead.kube.resources.free_amounts import (
    EVENNESS,
    EXACT_BELOW,
    FREE,
    HALF,
    NOTHING,
    RESOURCES,
    TAKEN,
    UNUSED,
    WHOLE,
    evenness,
    room_of,
)
from fairlead.kube.resources.hints import after_class, after_node_change, after_pod_change
from fairlead.kube.resources.placement_fit import most_allocated
from fairlead.kube.scoring import BrokenLine, percent, rounded

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.gang import Proposal
    from fairlead.core.model.devices import CompileSelector
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.cluster import Cluster
    from fairlead.core.state.gangs import Gang
    from fairlead.core.state.table import NodeTable
    from fairlead.kube.claims.devices import ExtendedNames

CPU_AND_MEMORY = (("cpu", 1), ("memory", 1))
_PLAIN = ("cpu", "memory", "ephemeral-storage")
_TOO_MANY_PODS = "Too many pods"
_FIT_SCORE = "NodeResourcesFit.score"


class Request:
    """A pod's requests, and the refusal of a node that lacks some (framework/sums.Sums). `needs` are the requests as a
    column for FreeAmounts; None unless they are only cpu and memory, in amounts that floats hold exactly. `servable`
    are the resources that a device class may serve on nodes that have none of them."""

    __slots__ = ("asked", "needs", "plain", "plugin", "servable")

    def __init__(self, asked: Mapping[str, int], plugin: str) -> None:
        self.asked = asked
        self.plugin = plugin
        self.servable = tuple(filter(may_be_served, asked))
        self.plain = all(resource in RESOURCES and amount < EXACT_BELOW for resource, amount in asked.items())
        self.needs: NDArray[np.float64] = np.array(
            [(1.0,), *[(float(asked.get(resource) or -np.inf),) for resource in RESOURCES]]
        )

    def shortage(self, allocatable: Mapping[str, int], free: Mapping[str, int], slots: int) -> Verdict | None:
        reasons = [_TOO_MANY_PODS] if slots < 1 else []
        final = False
        for resource, amount in self.asked.items():
            if amount > free[resource]:
                reasons.append(f"Insufficient {resource}")
                final |= amount > allocatable[resource]
        return Verdict(self.plugin, tuple(reasons), final) if reasons else None


def _never_enough(nodes: Nodes, resource: str, amount: int) -> NDArray[np.bool_]:
    """The rows that have too little of a resource even without any pods."""
    return nodes.allocatable(resource) < amount


class NodeResourcesFit(CachedPlugin):
    """Refuses nodes with too little left; scores the others by one of three strategies."""

    name = "NodeResourcesFit"
    scores_grow = True
    scope = Scope.COUNTED
    reads = frozenset({"spec"})
    _TOO_MANY = Reason(name, _TOO_MANY_PODS)

    def __init__(
        self,
        *,
        strategy: str = "LeastAllocated",
        resources: Sequence[tuple[str, int]] = CPU_AND_MEMORY,
        shape: Sequence[tuple[int, int]] = (),
        ignored_resources: Iterable[str] = (),
        ignored_groups: Iterable[str] = (),
        compile_selector: CompileSelector | None = None,
    ) -> None:
        self._strategy = strategy
        self._resources = tuple((name, weight or 1) for name, weight in resources)
        self._line = BrokenLine(shape) if strategy == "RequestedToCapacityRatio" else None
        self._ignored_resources = frozenset(ignored_resources)
        self._ignored_groups = frozenset(ignored_groups)
        self._reasons: dict[str, Reason] = {}
        self._names: ExtendedNames | None = None
        """Which classes serve extended resources, once a pod requested one: hints get no cluster."""
        names = [name for name, _ in self._resources]
        self._device_counts = DeviceCounts(names, compile_selector)
        by_name = dict(self._resources)
        self._weights = (by_name["cpu"], by_name["memory"]) if sorted(names) == ["cpu", "memory"] else None
        """The weights of cpu and memory if scores depend on just these; None if on others or on a shape, where the
        general way is gone."""
        if self._line is not None:
            self._weights = None

    def events(self) -> Sequence[Interest]:
        pods = ClusterEvent(POD, ActionType.DELETE | ActionType.UPDATE_POD_SCALE_DOWN)
        nodes = ClusterEvent(NODE, ActionType.ADD | ActionType.UPDATE_NODE_ALLOCATABLE)
        classes = ClusterEvent(DEVICE_CLASS, ActionType.ADD | ActionType.UPDATE)
        return (
            Interest(pods, after_pod_change),
            Interest(nodes, self._after_node_change),
            Interest(classes, after_class),
        )

    def epoch(self, cycle: Cycle) -> int | None:
        """A device class may serve a resource from now on, or not any more; or devices that are scored changed."""
        counts = self._device_counts
        if not counts.possible and not any(map(may_be_served, cycle.pod.shape.scalars)):
            return None
        classes = cycle.cluster.object_index.of(kinds.DEVICE_CLASS).version
        return classes + counts.epoch(cycle.cluster) if counts.possible else classes

    def _after_node_change(self, pod: Pod, old: object, new: object) -> Hint:
        names = self._names
        return after_node_change(pod, old, new, lambda resource: names is not None and bool(names.class_of(resource)))

    # ---- filter ----

    def pre_filter(self, cycle: Cycle) -> Status | None:
        """Note the pod's requests, without ignored resources."""
        request = cycle.pod.shape.fit_request
        asked = {r: amount for r, amount in request.items() if amount > 0 and not self._ignores(r)}
        cycle.notes[self.name] = Request(asked, self.name)
        return None

    def sums(self, cycle: Cycle) -> Request | None:
        request: Request = cycle.notes[self.name]
        return None if self._served(cycle, request) else request

    def _served(self, cycle: Cycle, request: Request) -> tuple[str, ...]:
        """The resources that a device class serves on nodes that have none of them."""
        if not request.servable or not cycle.cluster.object_index.of(kinds.DEVICE_CLASS):
            return ()
        names = self._names = devices_of(cycle.cluster).extended
        return tuple(resource for resource in request.servable if names.class_of(resource))

    def filter(self, cycle: Cycle, nodes: Nodes) -> Iterable[Reject]:
        request: Request = cycle.notes[self.name]
        block = room_of(cycle.cluster).block(nodes)
        if block is None or not request.plain:
            return self._filter_with_care(request, nodes, self._served(cycle, request))
        short = block[FREE] < request.needs
        return self._shortages(request, nodes, short) if np.count_nonzero(short) else ()

    def _shortages(self, request: Request, nodes: Nodes, short: NDArray[np.bool_]) -> Iterable[Reject]:
        """The refusals; the lines of `short` are rows with too few pod slots, too little cpu, too little memory."""
        yield Reject(self._TOO_MANY, short[0])
        for resource, amount in request.asked.items():
            of = short[1 + RESOURCES.index(resource)]
            yield Reject(self._reason(resource), of, final=partial(_never_enough, nodes, resource, amount))

    def _filter_with_care(self, request: Request, nodes: Nodes, served: Sequence[str]) -> Iterable[Reject]:
        """The general way: for requests of other resources, and for amounts that floats do not hold exactly."""
        yield Reject(self._TOO_MANY, nodes.take(nodes.table.pod_count) >= nodes.allocatable("pods"))
        for resource, amount in request.asked.items():
            allocatable = nodes.allocatable(resource)
            short = allocatable - nodes.requested(resource) < amount
            if resource in served:
                short &= allocatable > 0
            yield Reject(self._reason(resource), short, final=allocatable < amount)

    def _reason(self, resource: str) -> Reason:
        reason = self._reasons.get(resource)
        if reason is None:
            reason = self._reasons[resource] = Reason(self.name, f"Insufficient {resource}")
        return reason

    def _ignores(self, resource: str) -> bool:
        if not is_extended(resource):
            return False
        return resource in self._ignored_resources or resource.split("/", 1)[0] in self._ignored_groups

    def filter_row(self, cycle: Cycle, row: int) -> Verdict | None:
        request: Request = cycle.notes[self.name]
        table = cycle.cluster.table
        if request.servable:
            served = [r for r in self._served(cycle, request) if table.allocatable_column(r).item(row) <= 0]
            if served:
                request = Request({r: amount for r, amount in request.asked.items() if r not in served}, self.name)
        places = table.allocatable_column("pods").item(row) - table.pod_count.item(row)
        if places > 0 and has_room(table, row, request.asked):
            return None
        return request.shortage(*room_on(table, row, request.asked))

    # ---- score ----

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        cycle.notes[_FIT_SCORE] = self._asked(cycle)
        return None

    def _asked(self, cycle: Cycle) -> NDArray[np.float64] | None:
        """The pod's requests times 100, as a column; None if the general way is needed."""
        return None if self._weights is None else _both(cycle.pod.shape.score_request, times=100)

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        asked: NDArray[np.float64] | None
        asked = cycle.notes[_FIT_SCORE] if _FIT_SCORE in cycle.notes else self._asked(cycle)
        room, weights = room_of(cycle.cluster), self._weights
        block = room.block(nodes)
        if block is None or asked is None or weights is None:
            return self._score_with_care(cycle, nodes)
        whole, points = block[WHOLE], block[UNUSED] - asked
        if self._strategy == "MostAllocated":
            np.subtract(100.0 * whole, points, out=points)
            np.minimum(points, 100.0 * whole, out=points)
        else:
            np.maximum(points, NOTHING, out=points)
        points /= whole
        np.trunc(points, out=points)
        cpu, memory = points[0], points[1]
        if weights[0] == weights[1]:
            cpu += memory
            cpu *= HALF
        else:
            cpu *= weights[0]
            memory *= weights[1]
            cpu += memory
            cpu /= weights[0] + weights[1]
        scores: NDArray[np.int64] = cpu.astype(np.int64)
        lacking = room.lacking(nodes)
        if lacking is not None:
            scores[lacking] = self._score_with_care(cycle, Nodes(nodes.table, nodes.positions()[lacking]))
        return scores

    def _score_with_care(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        """The general way: for shapes, for nodes that lack a resource, and for numbers that floats do not hold
        exactly."""
        request = cycle.pod.shape.score_request
        total = np.zeros(len(nodes), dtype=np.int64)
        weights = np.zeros(len(nodes), dtype=np.int64)
        for resource, weight in self._resources:
            asked = request.get(resource, 0)
            if not _is_scored(resource, asked):
                continue
            used = nodes.take(_used_column(nodes.table, resource))
            capacity, used = self._device_counts.amounts(cycle.cluster, nodes, resource, used)
            scores = self._score_one(np.minimum(used, MAX_INT64 - asked) + asked, capacity)
            counts = capacity != 0
            if self._line is not None:
                counts &= scores > 0
            total += np.where(counts, scores * weight, 0)
            weights += np.where(counts, weight, 0)
        if self._line is not None:
            return rounded(total / np.maximum(weights, 1))
        return total // np.maximum(weights, 1)

    def score_row(self, cycle: Cycle, row: int) -> int:
        request, table = cycle.pod.shape.score_request, cycle.cluster.table
        counts = self._device_counts
        if self._line is not None or (counts.possible and counts.epoch(cycle.cluster)):
            return int(self.score(cycle, Nodes(table, np.array([row], dtype=np.int32)))[0])
        total = weights = 0
        offered = table.allocatable
        for resource, weight in self._resources:
            asked = request.get(resource, 0)
            if resource not in _PLAIN and not _is_scored(resource, asked):
                continue
            capacity = offered[resource].item(row) if resource in offered else 0
            if capacity == 0:
                continue
            wanted = _used_column(table, resource).item(row) + asked
            if self._strategy == "MostAllocated":
                total += weight * (min(wanted, capacity) * 100 // capacity)
            elif wanted <= capacity:
                total += weight * ((capacity - wanted) * 100 // capacity)
            weights += weight
        return total // weights if weights else 0

    def _score_one(self, wanted: NDArray[np.int64], capacity: NDArray[np.int64]) -> NDArray[np.int64]:
        used = np.minimum(wanted, capacity)
        if self._strategy == "LeastAllocated":
            return percent(capacity - used, capacity)
        if self._strategy == "MostAllocated":
            return percent(used, capacity)
        assert self._line is not None
        return self._line(np.where(wanted > capacity, 100, percent(used, capacity)))

    # ---- gangs ----

    def placement_score(self, gang: Gang, proposals: Sequence[Proposal], cluster: Cluster) -> Sequence[int]:
        return most_allocated(self._resources, proposals, cluster.table, counts=_is_scored, used=_used_column)


class NodeResourcesBalancedAllocation(CachedPlugin):
    """Scores nodes by how much the pod evens out the use of their resources; without `by_gain`, by how even it is with
    the pod, whatever it was before."""

    name = "NodeResourcesBalancedAllocation"
    scope = Scope.COUNTED
    reads = frozenset({"spec"})

    def __init__(self, *, resources: Sequence[tuple[str, int]] = CPU_AND_MEMORY, by_gain: bool = True) -> None:
        self._resources = tuple(name for name, _ in resources)
        self._by_gain = by_gain
        self._device_counts = DeviceCounts(self._resources)

    def epoch(self, cycle: Cycle) -> int | None:
        return self._device_counts.epoch(cycle.cluster) if self._device_counts.possible else None

    def pre_score(self, cycle: Cycle, nodes: Nodes) -> Status | None:
        request = cycle.pod.shape.request
        if not any(request.get(resource, 0) for resource in self._resources):
            return SKIP
        cycle.notes[self.name] = self._asked(cycle)
        return None

    def _scored(self, request: Mapping[str, int]) -> list[str]:
        return [r for r in self._resources if _is_scored(r, request.get(r, 0))]

    def _asked(self, cycle: Cycle) -> NDArray[np.float64] | None:
        """The pod's requests as a column; None if the general way is needed."""
        request = cycle.pod.shape.request
        return _both(request) if sorted(self._scored(request)) == ["cpu", "memory"] else None

    def score(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        asked: NDArray[np.float64] | None
        asked = cycle.notes[self.name] if self.name in cycle.notes else self._asked(cycle)
        room = room_of(cycle.cluster)
        block = room.block(nodes)
        if block is None or asked is None:
            return self._score_with_care(cycle, nodes)
        balance = evenness(block[TAKEN] + asked, block[WHOLE])
        if self._by_gain:
            balance -= block[EVENNESS]
            balance *= HALF
        scores = balance.astype(np.int64)
        lacking = room.lacking(nodes)
        if lacking is not None:
            few = Nodes(nodes.table, nodes.positions()[lacking])
            scores[lacking] = self._score_with_care(cycle, few)
        return scores

    def _score_with_care(self, cycle: Cycle, nodes: Nodes) -> NDArray[np.int64]:
        """The general way: for other resources, for nodes that lack one, and for amounts that floats do not hold
        exactly."""
        request = cycle.pod.shape.request
        before: list[NDArray[np.float64]] = []
        after: list[NDArray[np.float64]] = []
        counts: list[NDArray[np.bool_]] = []
        for resource in self._scored(request):
            used = nodes.requested(resource)
            capacity, used = self._device_counts.amounts(cycle.cluster, nodes, resource, used)
            divisor = np.maximum(capacity, 1).astype(np.float64)
            before.append(np.minimum(1.0, used / divisor))
            after.append(np.minimum(1.0, (used + request.get(resource, 0)) / divisor))
            counts.append(capacity != 0)
        if not counts:
            return np.full(len(nodes), 75, dtype=np.int64)
        if not self._by_gain:
            return _balance(after, counts)
        gained = _balance(after, counts) - _balance(before, counts)
        return 50 + (50 + gained) // 2

    def score_row(self, cycle: Cycle, row: int) -> int:
        request, table = cycle.pod.shape.request, cycle.cluster.table
        if self._device_counts.possible and self._device_counts.epoch(cycle.cluster):
            return int(self._score_with_care(cycle, Nodes(table, np.array([row], dtype=np.int32)))[0])
        before: list[float] = []
        after: list[float] = []
        offered, taken = table.allocatable, table.requested
        for resource in self._resources:
            asked = request.get(resource, 0)
            counts = resource in offered and (resource in _PLAIN or _is_scored(resource, asked))
            capacity = offered[resource].item(row) if counts else 0
            if capacity:
                used = taken[resource].item(row) if resource in taken else 0
                wanted = used + asked
                before.append(used / capacity if used < capacity else 1.0)
                after.append(wanted / capacity if wanted < capacity else 1.0)
        if not self._by_gain:
            return _balance_of(after)
        return 50 + (50 + _balance_of(after) - _balance_of(before)) // 2


def _balance_of(fractions: list[float]) -> int:
    """`_balance` for one node."""
    if len(fractions) < 2:
        deviation = 0.0
    elif len(fractions) == 2:
        deviation = abs((fractions[0] - fractions[1]) / 2)
    else:
        total = 0.0
        for fraction in fractions:
            total += fraction
        mean = total / len(fractions)
        squares = 0.0
        for fraction in fractions:
            squares += (fraction - mean) * (fraction - mean)
        deviation = sqrt(squares / len(fractions))
    return int((1 - deviation) * 100)


def _balance(fractions: list[NDArray[np.float64]], counts: list[NDArray[np.bool_]]) -> NDArray[np.int64]:
    """How even the used fractions are: 100 less their standard deviation in percent. Floats are added in the original's
    order, because scores are compared for equality."""
    present = np.sum(counts, axis=0)
    if len(fractions) == 2 and bool((present == 2).all()):
        deviation = np.abs((fractions[0] - fractions[1]) / 2)
    else:
        deviation = _deviation(fractions, counts, present)
    return ((1 - deviation) * 100).astype(np.int64)


def _deviation(
    fractions: list[NDArray[np.float64]], counts: list[NDArray[np.bool_]], present: NDArray[np.int64]
) -> NDArray[np.float64]:
    size = np.maximum(present, 1)
    total = np.zeros(len(present))
    for fraction, counted in zip(fractions, counts, strict=True):
        total = total + np.where(counted, fraction, 0.0)
    mean = total / size
    squares = np.zeros(len(present))
    for fraction, counted in zip(fractions, counts, strict=True):
        squares = squares + np.where(counted, (fraction - mean) * (fraction - mean), 0.0)
    highest = np.max([np.where(c, f, -np.inf) for f, c in zip(fractions, counts, strict=True)], axis=0)
    lowest = np.min([np.where(c, f, np.inf) for f, c in zip(fractions, counts, strict=True)], axis=0)
    two = np.where(present == 2, (highest - lowest) / 2, 0.0)
    return np.where(present > 2, np.sqrt(squares / size), two)


def _both(amounts: Mapping[str, int], *, times: int = 1) -> NDArray[np.float64] | None:
    """Amounts of cpu and memory as a column for FreeAmounts; None if floats do not hold them exactly."""
    cpu, memory = amounts.get("cpu", 0), amounts.get("memory", 0)
    if max(cpu, memory) >= EXACT_BELOW:
        return None
    return np.array(((cpu * times,), (memory * times,)), dtype=np.float64)


def _is_scored(resource: str, asked: int) -> bool:
    """Whether a resource counts: cpu, memory and ephemeral-storage always, extended ones if requested, others never."""
    return resource in _PLAIN or (asked > 0 and is_scalar(resource))


def _used_column(table: NodeTable, resource: str) -> NDArray[np.int64]:
    """The amount in use per row, for scores: cpu and memory with the defaults for containers without requests."""
    if resource == "cpu":
        return table.nonzero_cpu
    if resource == "memory":
        return table.nonzero_memory
    return table.requested_column(resource)
