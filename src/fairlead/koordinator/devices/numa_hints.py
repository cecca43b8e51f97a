"""NUMA hints of devices: the sets of NUMA nodes whose devices can serve a pod.

Every set of NUMA nodes that have devices is tried. The narrowest that serve are preferred, and a set that gives the
same GPUs as all NUMA nodes together would give scores so much that it decides before what NodeNUMAResource scores.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

from fairlead.core.framework.numa_hints import NumaHint
from fairlead.core.model.reasons import Status, unresolvable
from fairlead.koordinator.records.cards import GPU

if TYPE_CHECKING:
    from collections.abc import Mapping

    from fairlead.core.framework.numa_hints import NumaNodes
    from fairlead.koordinator.devices.choice import DeviceChoice, Limits
    from fairlead.koordinator.devices.request import Amounts
    from fairlead.koordinator.devices.rows import Given
    from fairlead.koordinator.numa.merging import Hints

_AS_GOOD_AS_ANYWHERE = 500


def device_hints(choice: DeviceChoice, limits: Limits) -> Hints | Status:
    """The hints of one node by type of device; the refusal of all its NUMA nodes together if they refuse."""
    devices = [device for some in choice.devices.by_type.values() for device in some]
    numbers = sorted({device.numa for device in devices if device.numa is not None and device.numa != -1})
    if not numbers:
        return {}
    demands = choice.demands()
    if isinstance(demands, Status):
        return demands
    said: Given | Status = {}
    serving: list[tuple[NumaNodes, Given]] = []
    for size in range(1, len(numbers) + 1):
        for some in combinations(numbers, size):
            mask = frozenset(some)
            said = _served(choice, demands, replace(limits, numa=mask), mask)
            if not isinstance(said, Status):
                serving.append((mask, said))
    if isinstance(said, Status):  # what was tried last: all NUMA nodes
        return said
    narrowest = min(len(mask) for mask, _ in serving)
    best = _gpus(said)
    hints = [
        NumaHint(
            mask,
            preferred=len(mask) == narrowest,
            score=_AS_GOOD_AS_ANYWHERE if _gpus(given) == best else 0,
        )
        for mask, given in serving
    ]
    return dict.fromkeys(demands, hints)


def _served(
    choice: DeviceChoice, demands: Mapping[str, tuple[Amounts, int]], limits: Limits, mask: NumaNodes
) -> Given | Status:
    for kind, (_, count) in demands.items():
        there = sum(device.numa in mask for device in choice.devices.by_type.get(kind, ()))
        if 0 < there < count:
            return unresolvable("Insufficient NUMA Scoped Devices")
    return choice.choose(limits)


def _gpus(given: Given) -> frozenset[int]:
    return frozenset(device.minor for device in given.get(GPU, ()))
