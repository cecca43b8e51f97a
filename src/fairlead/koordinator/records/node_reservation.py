"""What Koordinator's annotation node.koordinator.sh/reservation keeps of a node for things that are no pods.

    {"resources": {"cpu": "2", "memory": "4Gi"}, "reservedCPUs": "0-1", "applyPolicy": "Default"}

CPUs that are listed count in place of an amount of cpu. Unless the policy is ReservedCPUsOnly, the amounts are taken
off what the node can allocate. An annotation that cannot be read keeps nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from fairlead.core.model.documents import ModelError, read_units
from fairlead.koordinator.records.bands import BATCH_CPU, BATCH_MEMORY
from fairlead.koordinator.records.cpu_topology import NODE_RESERVATION, parse_cpus

_TAKES_OFF = ("", "Default")
_REDUCED_ALREADY = frozenset({BATCH_CPU, BATCH_MEMORY})
"""Koordinator's manager writes these without what is reserved."""


def reserved_amounts(annotations: Mapping[str, str]) -> dict[str, int]:
    """What is kept, in base units, whatever the policy."""
    return _read(annotations)[0]


def less_reserved(allocatable: dict[str, int], annotations: Mapping[str, str]) -> dict[str, int]:
    """What a node can allocate without what is kept of it; the same object if nothing is."""
    if not annotations.get(NODE_RESERVATION):
        return allocatable
    reserved, policy = _read(annotations)
    if policy not in _TAKES_OFF:
        return allocatable
    return {
        name: amount if name in _REDUCED_ALREADY else max(0, amount - reserved.get(name, 0))
        for name, amount in allocatable.items()
    }


def _read(annotations: Mapping[str, str]) -> tuple[dict[str, int], str]:
    try:
        written = json.loads(annotations.get(NODE_RESERVATION) or "{}") or {}
        found = dict(read_units(written.get("resources"), NODE_RESERVATION))
        if written.get("reservedCPUs"):
            found["cpu"] = 1000 * len(parse_cpus(written["reservedCPUs"]))
        return found, written.get("applyPolicy") or ""
    except (ValueError, AttributeError, TypeError, ModelError):
        return {}, ""
