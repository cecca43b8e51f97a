"""What a round found out about a pod that waits, in the form in which any pod is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.outcome import RoomMade
from fairlead.core.model.explanation import Blocker, Explanation
from fairlead.volcano.explain.victims import EVICTING, who_might_go
from fairlead.volcano.records.tasks import TaskStatus

if TYPE_CHECKING:
    from fairlead.core.state.table import NodeTable
    from fairlead.volcano.rounds.closing import PodReport
    from fairlead.volcano.rounds.driver import RoundDriver
    from fairlead.volcano.rounds.fit import FitErrors
    from fairlead.volcano.rounds.round import Round, Task


def explained_by_round(driver: RoundDriver, report: PodReport) -> Explanation:
    task, round = report.task, driver.latest
    assert round is not None
    table = round.cluster.table
    errors = task.job.fit_errors.get(task.uid) if task.job is not None else None
    return Explanation(
        task.namespace,
        task.name,
        task.uid,
        task.pod.scheduler_name,
        "Unschedulable",
        message=report.message,
        nominated=report.nominated,
        total_nodes=len(table),
        blockers=_blockers(errors, table, _eviction(round, task)) if errors is not None else (),
        considered=who_might_go(driver, round, task.job) if task.job is not None else (),
    )


def _eviction(round: Round, task: Task) -> str:
    """What evictions came to for a pod that waits."""
    if not EVICTING & frozenset(round.settings.actions):
        return str(RoomMade.NOT_TRIED.value)
    return str((RoomMade.VICTIMS if task.status is TaskStatus.PIPELINED else RoomMade.IN_VAIN).value)


def _blockers(errors: FitErrors, table: NodeTable, eviction: str) -> tuple[Blocker, ...]:
    """Reasons with their nodes, the most common first; a reason that names no plugin is the round's own."""
    found = [
        Blocker("", (text,), len(rows), final, tuple(table.name(int(row)) for row in rows), "" if final else eviction)
        for text, final, rows in errors.parts
    ]
    return tuple(sorted(found, key=lambda blocker: -blocker.count))
