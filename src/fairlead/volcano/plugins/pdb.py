"""pdb: victims are chosen so that no disruption budget is exceeded.

No budget covers pods without labels, so they may be victims; in the original they never are
(`pdb_protects_unlabelled_pods`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from fairlead.core.model import kinds
from fairlead.volcano.rounds.tiers import TierPlugin

if TYPE_CHECKING:
    from fairlead.core.model.budgets import DisruptionBudget
    from fairlead.volcano.rounds.round import Round, Task


class DisruptionBudgets(TierPlugin):
    name = "pdb"
    protects = "a PodDisruptionBudget allows no further disruption"

    def open(self, round: Round) -> None:
        self._protects_unlabelled = round.quirks.pdb_protects_unlabelled_pods
        self._budgets: list[DisruptionBudget] = list(
            round.cluster.object_index.of(kinds.POD_DISRUPTION_BUDGET).values()
        )

    def preemptable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._within_budget(candidates)

    def reclaimable(self, evictor: Task, candidates: Sequence[Task]) -> list[Task]:
        return self._within_budget(candidates)

    def victim_tasks(self, tasks: Sequence[Task]) -> list[Task]:
        return self._within_budget(tasks)

    def _within_budget(self, candidates: Sequence[Task]) -> list[Task]:
        """The candidates that their budgets allow. Each one draws on all budgets that cover it, also if it is then not
        chosen."""
        left = [budget.disruptions_allowed for budget in self._budgets]
        victims = []
        for task in candidates:
            if not task.pod.labels and self._protects_unlabelled:
                continue
            covering = [at for at, budget in enumerate(self._budgets) if _covers(budget, task)]
            for at in covering:
                left[at] -= 1
            if all(left[at] >= 0 for at in covering):
                victims.append(task)
        return victims


def _covers(budget: DisruptionBudget, task: Task) -> bool:
    return budget.covers(task.namespace, task.pod.labels) and task.name not in budget.disrupted_pods
