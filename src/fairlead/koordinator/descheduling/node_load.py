"""How much nodes are used, against thresholds: which are used little, which too much.

A node's use is what its system and all pods on its metric use; its prod use is what prod pods use. Both are compared
with thresholds of their own. A use that equals a threshold is not over it, and counts as low at the low threshold.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING

from fairlead.koordinator.descheduling.facts import ClusterFacts, raw_allocatable
from fairlead.koordinator.records.bands import PROD, band_of

if TYPE_CHECKING:
    from fairlead.core.model.node import Node
    from fairlead.core.model.pod import Pod
    from fairlead.koordinator.descheduling.settings import NodePool, Thresholds

Amounts = dict[str, int]
_ALL, _NONE = 100.0, 0.0


class LoadClass(Enum):
    """`LOW` nodes take pods of any band, `PROD_LOW` nodes prod pods, `BOTH_LOW` nodes either; pods leave `HIGH` nodes,
    and prod pods `PROD_HIGH` ones."""

    LOW = "low"
    BOTH_LOW = "both low"
    HIGH = "high"
    PROD_LOW = "prod low"
    PROD_HIGH = "prod high"
    MIDDLE = "between"


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The thresholds of a node in amounts."""

    low: Mapping[str, int]
    high: Mapping[str, int]
    prod_low: Mapping[str, int]
    prod_high: Mapping[str, int]

    def top(self, *, prod: bool) -> Mapping[str, int]:
        return self.prod_high if prod else self.high


@dataclass(slots=True)
class NodeUse:
    """What a node uses; amounts change as a pass books pods away from it and onto it."""

    node: Node
    capacity: Mapping[str, int]
    pods: list[Pod]
    prod_pods: list[Pod]
    used: Amounts
    prod_used: Amounts
    by_pod: Mapping[str, Mapping[str, int]]
    limits: LoadLimits = field(default_factory=lambda: LoadLimits({}, {}, {}, {}))

    def use(self, *, prod: bool) -> Amounts:
        return self.prod_used if prod else self.used

    def over(self, *, prod: bool) -> Amounts:
        """What is used of each resource that is over its high threshold."""
        used = self.use(prod=prod)
        return {name: used[name] for name, most in self.limits.top(prod=prod).items() if used.get(name, 0) > most}

    def percent(self, name: str, *, prod: bool) -> float:
        capacity = self.capacity.get(name, 0)
        return 100 * self.use(prod=prod)[name] / capacity if capacity else 0.0


@dataclass(frozen=True, slots=True)
class PoolThresholds:
    low: Thresholds
    high: Thresholds
    prod_low: Thresholds
    prod_high: Thresholds


def filled(pool: NodePool) -> PoolThresholds:
    """The thresholds of a pool for every resource that one of them names, and memory. A resource without a low
    threshold is never over or above low, whatever its high threshold says; 0 stands for that with deviations."""
    low, high, prod_low, prod_high = (dict(one) for one in (pool.low, pool.high, pool.prod_low, pool.prod_high))
    fill = _NONE if pool.by_deviation else _ALL
    for name in dict.fromkeys((*low, *high, *prod_low, *prod_high, "memory")):
        if name not in low:
            low[name] = high[name] = fill
        if name not in prod_low:
            prod_low[name] = prod_high[name] = fill
    return PoolThresholds(low, high, prod_low, prod_high)


def measure(
    facts: ClusterFacts, nodes: Iterable[Node], names: Iterable[str], *, now: float, expiration: float
) -> dict[str, NodeUse]:
    """What nodes use of these resources, by name. A node without a fresh metric is left out."""
    uses, wanted = {}, tuple(names)
    for node in sorted(nodes, key=lambda one: one.name):
        metric = facts.metrics.get(node.name)
        if metric is None or metric.usage is None or metric.updated is None:
            continue
        if expiration > 0 and now - metric.updated >= expiration:
            continue
        pods = facts.running_on(node.name)
        prod_pods = [pod for pod in pods if band_of(pod) == PROD]
        prod_keys = {pod.key for pod in prod_pods}
        by_pod = {key: one.usage for key, one in metric.pods.items()}
        used = {name: metric.system.get(name, 0) + sum(one.get(name, 0) for one in by_pod.values()) for name in wanted}
        prod_used = {name: sum(one.get(name, 0) for key, one in by_pod.items() if key in prod_keys) for name in wanted}
        used["pods"], prod_used["pods"] = len(pods), len(prod_pods)
        uses[node.name] = NodeUse(node, raw_allocatable(node), pods, prod_pods, used, prod_used, by_pod)
    return uses


def set_limits(uses: Mapping[str, NodeUse], thresholds: PoolThresholds, *, by_deviation: bool) -> None:
    """Give every node its thresholds in amounts; those that are deviations count from the mean of all nodes."""
    means = [_mean(uses, prod=prod) if by_deviation else None for prod in (False, True)]
    for use in uses.values():
        capacity = use.capacity
        use.limits = LoadLimits(
            *_amounts(capacity, thresholds.low, thresholds.high, means[0]),
            *_amounts(capacity, thresholds.prod_low, thresholds.prod_high, means[1]),
        )


def _amounts(
    capacity: Mapping[str, int], low: Thresholds, high: Thresholds, mean: Mapping[str, float] | None
) -> tuple[Amounts, Amounts]:
    lows, highs = {}, {}
    for name, percent in low.items():
        whole, top = capacity.get(name, 0), high.get(name, 0.0)
        if mean is None:
            lows[name], highs[name] = _share(percent, whole), _share(top, whole)
        elif percent == _NONE:
            lows[name] = highs[name] = whole
        else:
            lows[name] = _share(_clipped(mean.get(name, 0.0) - percent), whole)
            highs[name] = _share(_clipped(mean.get(name, 0.0) + top), whole)
    return lows, highs


def _share(percent: float, whole: int) -> int:
    return int(percent * 0.01 * whole)


def _clipped(percent: float) -> float:
    return min(_ALL, max(_NONE, percent))


def _mean(uses: Mapping[str, NodeUse], *, prod: bool) -> dict[str, float]:
    """The mean percentage of nodes, by resource; a node without the resource adds nothing but counts."""
    total: dict[str, float] = {}
    for use in uses.values():
        for name, amount in use.use(prod=prod).items():
            whole = use.capacity.get(name, 0)
            if whole:
                total[name] = total.get(name, 0.0) + amount / whole * 100.0
    return {name: percent / len(uses) for name, percent in total.items()}


def classify(use: NodeUse) -> LoadClass:
    """What a node's use makes of it."""
    prod_high = bool(use.over(prod=True))
    prod_low = not use.node.unschedulable and _is_low(use.prod_used, use.limits.prod_low)
    if not use.node.unschedulable and _is_low(use.used, use.limits.low):
        return LoadClass.PROD_HIGH if prod_high else LoadClass.BOTH_LOW if prod_low else LoadClass.LOW
    if use.over(prod=False):
        return LoadClass.HIGH
    return LoadClass.PROD_HIGH if prod_high else LoadClass.PROD_LOW if prod_low else LoadClass.MIDDLE


def _is_low(used: Mapping[str, int], limits: Mapping[str, int]) -> bool:
    return all(used.get(name, 0) <= limit for name, limit in limits.items())


def weighted_use(use: NodeUse, weights: Mapping[str, int], *, prod: bool) -> int:
    """How much a node is used, from 0 to 1000, all resources together."""
    total = weight_sum = 0
    for name, amount in use.use(prod=prod).items():
        weight, whole = weights.get(name, 0), use.capacity.get(name, 0)
        total += weight * (min(amount, whole) * 1000 // whole if whole else 0)
        weight_sum += weight
    return total // weight_sum if weight_sum else 0
