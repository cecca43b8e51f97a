"""What a round found out about a pod that waits, in the form in which any pod is explained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.model.explanation import Blocker, Explanation

if TYPE_CHECKING:
    from fairlead.engine.rounds.closing import PodReport
    from fairlead.framework.fit import FitErrors
    from fairlead.state.table import NodeTable


def explained_by_round(report: PodReport, table: NodeTable) -> Explanation:
    task = report.task
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
        blockers=_blockers(errors, table) if errors is not None else (),
    )


def _blockers(errors: FitErrors, table: NodeTable) -> tuple[Blocker, ...]:
    """Reasons with their nodes, the most common first; a reason that names no plugin is the round's own."""
    found = [
        Blocker("", (text,), len(rows), final, tuple(table.name(int(row)) for row in rows))
        for text, final, rows in errors.parts
    ]
    return tuple(sorted(found, key=lambda blocker: -blocker.count))
