"""How a Scheduler works, apart from its profiles."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """`slice` is how many attempts one step makes; times are in seconds."""

    name: str = "scheduler"
    instance: str = "fairlead"
    seed: int = 0
    slice: int = 512
    initial_backoff: float = 1.0
    max_backoff: float = 10.0
    unschedulable_limit: float = 300.0
    pops_from_backoff: bool = True
    """Whether a pod is tried before its backoff ends when no other waits; the gate SchedulerPopFromBackoffQ."""
    unanswered_binds: int = 1000
    """Pods are not placed while so many binds have no answer."""
    evictions_in: tuple[str, str] | None = None
    """Namespace and name of the ConfigMap in which evictions are written down; None for none."""
    announces: bool = True
    """Whether Events are written; those that are not are counted by their reasons."""
    first_of_equals: bool = False
    """Of equally good nodes the first of the table is taken, instead of any: packing policies leave less idle so."""
