"""conformance: nobody evicts what the cluster itself needs to run.

That is what is in kube-system, or says by the name of its priority class that it is critical; numbers do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.framework.tiers import GangEvictionContext, TierPlugin
from fairlead.model.priorities import SYSTEM_PRIORITIES

if TYPE_CHECKING:
    from fairlead.framework.round import Task

_SYSTEM_NAMESPACE = "kube-system"


class Conformance(TierPlugin):
    name = "conformance"

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
