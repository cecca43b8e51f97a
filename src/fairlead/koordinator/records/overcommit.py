"""Batch and mid resources: how much of a node's idle capacity may be handed out a second time, by Koordinator's rules.

    batch = capacity - margin - max(system, reserved) - what pods of higher bands use
    mid   = min(min(prod reclaimable, unused) + unallocated * percent, capacity * threshold)

Amounts are base units: thousandths of a core and bytes. A node whose metric is older than the strategy allows gives
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from fairlead.koordinator.records.bands import BATCH, BATCH_CPU, BATCH_MEMORY, FREE, MID, MID_CPU, MID_MEMORY

USAGE, REQUEST, MAX_USAGE_REQUEST = "usage", "request", "maxUsageRequest"
RESOURCES = ("cpu", "memory")

Amounts = Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ColocationStrategy:
    """Koordinator's defaults. `policy` of cpu is usage or maxUsageRequest, of memory also request; the thresholds of
    batch resources bound nothing while they are None. `mid_static_percent` gives mid resources as a share of the
    capacity, whatever is used. Nothing is given of a node whose strategy is not enabled."""

    reclaim_percent: Amounts
    policy: Mapping[str, str]
    batch_threshold: Mapping[str, int | None]
    mid_threshold: Amounts
    mid_unallocated_percent: int = 0
    degrade_after: float = 15 * 60.0
    update_after: float = 300.0
    update_difference: float = 0.1
    mid_static_percent: Amounts | None = None
    enabled: bool = True


DEFAULT_STRATEGY = ColocationStrategy(
    reclaim_percent={"cpu": 60, "memory": 65},
    policy={"cpu": USAGE, "memory": USAGE},
    batch_threshold={"cpu": None, "memory": None},
    mid_threshold={"cpu": 100, "memory": 100},
)


@dataclass(frozen=True, slots=True)
class PodLoad:
    """What a pod requests and uses. `usage` is None if it was not measured."""

    band: str
    service_class: str
    request: Amounts
    usage: Amounts | None


@dataclass(frozen=True, slots=True)
class NodeLoad:
    """What a node has and what was measured there. `vanished` is what pods used that are gone by now."""

    capacity: Amounts
    system: Amounts
    reserved: Amounts
    used: Amounts
    prod_reclaimable: Amounts
    pods: tuple[PodLoad, ...]
    vanished: Amounts


def batch_resources(load: NodeLoad, strategy: ColocationStrategy = DEFAULT_STRATEGY) -> dict[str, int]:
    """What pods of the band koord-batch may request. A pod of higher bands that was not measured counts by its
    request under every policy; the original forgets it under maxUsageRequest."""
    found = {}
    higher = [pod for pod in load.pods if pod.band not in (BATCH, FREE)]
    for name, own in (("cpu", BATCH_CPU), ("memory", BATCH_MEMORY)):
        capacity = load.capacity.get(name, 0)
        margin = capacity * (100 - strategy.reclaim_percent[name]) // 100
        reserved = load.reserved.get(name, 0)
        system = max(load.system.get(name, 0), reserved)
        policy = strategy.policy[name]
        left = capacity - margin - (reserved if policy == REQUEST else system)
        left -= sum(_counted(pod, name, policy) for pod in higher)
        if policy != REQUEST:
            left -= load.vanished.get(name, 0)
        threshold = strategy.batch_threshold[name]
        if threshold is not None:
            left = min(left, capacity * threshold // 100)
        found[own] = max(0, left)
    return found


def _counted(pod: PodLoad, name: str, policy: str) -> int:
    asked = pod.request.get(name, 0)
    if policy == REQUEST or pod.usage is None:
        return asked
    used = pod.usage.get(name, 0)
    if policy == MAX_USAGE_REQUEST:
        return max(asked, used)
    return asked if name == "cpu" and pod.service_class == "LSE" else used


def mid_resources(load: NodeLoad, strategy: ColocationStrategy = DEFAULT_STRATEGY) -> dict[str, int]:
    """What pods of the band koord-mid may request."""
    found = {}
    prod = [pod for pod in load.pods if pod.band not in (MID, BATCH, FREE)]
    for name, own in (("cpu", MID_CPU), ("memory", MID_MEMORY)):
        capacity = load.capacity.get(name, 0)
        system = max(load.system.get(name, 0), load.reserved.get(name, 0))
        unallocated = max(0, capacity - system - sum(pod.request.get(name, 0) for pod in prod))
        unused = capacity - load.used.get(name, 0)
        reclaimable = max(0, min(load.prod_reclaimable.get(name, 0), unused))
        reclaimable += unallocated * strategy.mid_unallocated_percent // 100
        if strategy.mid_static_percent is not None:
            reclaimable = capacity * strategy.mid_static_percent[name] // 100
        found[own] = min(reclaimable, capacity * strategy.mid_threshold[name] // 100)
    return found


def differs(old: Amounts, new: Amounts, strategy: ColocationStrategy = DEFAULT_STRATEGY) -> bool:
    """Whether a value moved so far that it is to be written before its time."""
    return any(name not in old or abs(new[name] - old[name]) > old[name] * strategy.update_difference for name in new)


def total(amounts: Iterable[Amounts]) -> dict[str, int]:
    found: dict[str, int] = {}
    for one in amounts:
        for name, amount in one.items():
            found[name] = found.get(name, 0) + amount
    return found
