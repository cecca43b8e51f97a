"""cdp: cooldown protection. A running pod that was placed a short while ago is not evicted yet.

How short is the pod's own label, or else its annotation. The time counts from when its condition PodScheduled became
true; a pod that has none, or does not run, is not protected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.model.durations import parse_duration
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Round, Task

_COOLDOWN = "volcano.sh/cooldown-time"


class CooldownProtection(TierPlugin):
    name = "cdp"
    protects = "its cooldown time is not over"
    timed = True

    def open(self, round: Round) -> None:
        self._now = round.now

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return [task for task in candidates if not self._is_protected(task)]

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self.preemptable(evictor, candidates)

    def _is_protected(self, task: Task) -> bool:
        pod = task.pod
        text = pod.labels.get(_COOLDOWN, pod.annotations.get(_COOLDOWN))
        if text is None or pod.phase != "Running" or pod.scheduled_since is None:
            return False
        try:
            return pod.scheduled_since + parse_duration(text) > self._now
        except ValueError:
            return False
