"""conformance: nobody evicts what the cluster itself needs to run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.framework.tiers import Eviction, TierPlugin

if TYPE_CHECKING:
    from fairlead.framework.round import Task

_SYSTEM_NAMESPACE = "kube-system"
_SYSTEM_CRITICAL = 2_000_000_000
"""The least priority of the classes system-cluster-critical and system-node-critical, which no other class may have."""


class Conformance(TierPlugin):
    name = "conformance"

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return _evictable(candidates)

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return _evictable(candidates)

    def unified_evictable(self, eviction: Eviction, candidates: Sequence[Task]) -> list[Task]:
        return _evictable(candidates)


def _evictable(candidates: Sequence[Task]) -> list[Task]:
    return [task for task in candidates if task.namespace != _SYSTEM_NAMESPACE and task.pod.priority < _SYSTEM_CRITICAL]
