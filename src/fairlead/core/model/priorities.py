"""The record of a PriorityClass, and the two classes that every cluster has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fairlead.core.model.documents import compiler

CLUSTER_CRITICAL = "system-cluster-critical"
NODE_CRITICAL = "system-node-critical"
SYSTEM_PRIORITIES: Mapping[str, int] = {CLUSTER_CRITICAL: 2_000_000_000, NODE_CRITICAL: 2_000_001_000}
"""Values of the classes that the API server creates itself."""
HIGHEST_PRIORITY = 1_000_000_000
"""The highest value that a class of a user may have."""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    name: str
    value: int
    global_default: bool
    preemption_policy: str


@compiler("PriorityClass")
def compile_priority_class(document: Mapping[str, Any]) -> PriorityClass:
    return PriorityClass(
        name=document["metadata"]["name"],
        value=document.get("value") or 0,
        global_default=bool(document.get("globalDefault")),
        preemption_policy=document.get("preemptionPolicy") or "PreemptLowerPriority",
    )
