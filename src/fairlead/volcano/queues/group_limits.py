"""How much of each group of nodes a queue may have: an annotation of the queue, `{group: {resource: amount}}`.

Volcano has it since 1.16. Only queues with the annotation are counted. A queue whose annotation cannot be read may have
nothing, because a limit that silently does not hold is worse.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fairlead.core.model.documents import ModelError, read_units
from fairlead.volcano.records.amounts import EPSILON, Amounts
from fairlead.volcano.records.tasks import ALLOCATED_CLASS

if TYPE_CHECKING:
    from fairlead.volcano.rounds.round import Round, Task

ANNOTATION = "volcano.sh/nodegroup-resource-limits"


class GroupLimits:
    """The limits of all queues of a round, and what their tasks have in each group. `label` is the nodes' label."""

    def __init__(self, round: Round, label: str) -> None:
        self._round = round
        self._label = label
        self._limits: dict[str, dict[str, dict[str, float]]] = {}
        self._held: dict[tuple[str, str], Amounts] = {}
        self.unreadable: set[str] = set()
        """Queues whose annotation makes no sense."""
        for name, queue in round.queues.items():
            text = queue.queue.annotations.get(ANNOTATION)
            if text:
                self._read(name, text)
        for job in round.jobs.values():
            for task in job.in_status(*ALLOCATED_CLASS) if job.queue in self._limits else ():
                self.count(task, 1.0)

    def _read(self, queue: str, text: str) -> None:
        try:
            given = json.loads(text)
            self._limits[queue] = {group: _amounts(listed) for group, listed in given.items()}
        except (ValueError, AttributeError, TypeError, ModelError):
            self.unreadable.add(queue)

    def count(self, task: Task, by: float) -> None:
        """A task gets a node, or loses it."""
        if task.job is None or task.job.queue not in self._limits or task.row < 0:
            return
        node = self._round.cluster.table.nodes[task.row]
        group = node.labels.get(self._label) if node is not None else None
        if group is not None:
            self._held.setdefault((task.job.queue, group), Amounts()).add(task.request * by)

    def exceeded(self, queue: str, request: Amounts) -> list[str]:
        """The groups in which a queue would have more than it may."""
        return [
            group
            for group, limit in self._limits.get(queue, {}).items()
            if _is_above((self._held.get((queue, group)) or Amounts()) + request, limit)
        ]


def _amounts(listed: dict[str, object]) -> dict[str, float]:
    limit = Amounts.of(read_units(listed, ANNOTATION))
    return {name: limit.get(name) for name in listed}


def _is_above(used: Amounts, limit: dict[str, float]) -> bool:
    return any(used.get(name) - most >= EPSILON for name, most in limit.items())
