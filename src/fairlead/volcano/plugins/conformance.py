"""conformance: pods that the cluster itself needs are never evicted.

These are pods in kube-system, and pods whose priority class has the name of a critical one; the number of the priority
does not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.priorities import SYSTEM_PRIORITIES
from fairlead.volcano.rounds.tiers import GangEvictionContext, TierPlugin

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Task

_SYSTEM_NAMESPACE = "kube-system"


class Conformance(TierPlugin):
    name = "conformance"
    protects = "it is critical: of kube-system or of a system priority class"

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return _evictable(candidates)

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return _evictable(candidates)

    def unified_evictable(self, eviction: GangEvictionContext, candidates: Sequence[Task]) -> list[Task]:
        return _evictable(candidates)


def _evictable(candidates: Sequence[Task]) -> list[Task]:
    return [task for task in candidates if not _is_critical(task)]


def _is_critical(task: Task) -> bool:
    return task.namespace == _SYSTEM_NAMESPACE or task.pod.shape.priority_class in SYSTEM_PRIORITIES
