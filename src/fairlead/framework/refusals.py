"""Refusals: why no node was found, row by row; and the trial in which a rescue finds out what would help.

This is what `rescue` gets: the diagnosis, the verdict on every row, and the means to judge a row again after pretending
that some pods were gone or others had come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from fairlead.framework.verdicts import FEASIBLE
from fairlead.model.reasons import Code
from fairlead.state.statement import Statement

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.framework.cycle import Cycle
    from fairlead.framework.evaluate import Evaluator
    from fairlead.model.pod import Pod
    from fairlead.model.reasons import Diagnosis
    from fairlead.state.touchlog import TouchLog

UNJUDGED = -1


@dataclass(frozen=True, slots=True, eq=False)
class Refusals:
    """`codes` is the verdict on each row of the table: -1 if it was not judged, 0 if it was feasible, else a number
    that `evaluator.codes` knows. `nominated` are the pods promised to rows while this attempt ran; `promises` is the
    log of rows where that changed, if somebody keeps one."""

    diagnosis: Diagnosis
    codes: NDArray[np.int32]
    evaluator: Evaluator
    nominated: Mapping[int, Sequence[Pod]]
    promises: TouchLog | None = None

    def where_room_could_help(self) -> NDArray[np.bool_]:
        """Of each row, whether its refusal is not final. Rows that were not judged count if what kept them from being
        judged is not final."""
        hopeful = self.evaluator.codes.hopeful[self.codes] & (self.codes > FEASIBLE)
        absent = self.diagnosis.absent
        if absent is not None and absent.code is Code.UNSCHEDULABLE:
            hopeful |= self.codes == UNJUDGED
        return hopeful


def trial_statement(trial: Cycle) -> Statement:
    """A Statement whose placements the trial's plugins hear of, through `added` and `removed`. `trial` is a copy of the
    cycle, so that what they note stays in the trial."""
    adders = [p for p in trial.profile.at("added") if p.name not in trial.no_filter]
    removers = [p for p in trial.profile.at("removed") if p.name not in trial.no_filter]

    def added(pod: Pod, row: int) -> None:
        for plugin in adders:
            plugin.added(trial, pod, row)

    def removed(pod: Pod, row: int) -> None:
        for plugin in removers:
            plugin.removed(trial, pod, row)

    return Statement(trial.cluster, added=added, removed=removed)


def expected_on(nominated: Mapping[int, Sequence[Pod]], pod: Pod, row: int) -> list[Pod]:
    """Pods that are promised to a row and that this pod must leave room for: of its priority or a higher one."""
    return [other for other in nominated.get(row, ()) if other.priority >= pod.priority and other.uid != pod.uid]


def judge_with(cycle: Cycle, evaluator: Evaluator, row: int, expected: Sequence[Pod]) -> int:
    """The verdict on a row if some pods were there too."""
    trial = cycle.copy()
    statement = trial_statement(trial)
    for pod in expected:
        statement.assign(pod, row)
    try:
        return evaluator.judge_row(trial, row)
    finally:
        statement.rollback()


def judge_twice(cycle: Cycle, evaluator: Evaluator, row: int, expected: Sequence[Pod]) -> int:
    """The verdict on a row that must pass with the pods promised to it and, as they may never come, without them."""
    code = judge_with(cycle, evaluator, row, expected) if expected else FEASIBLE
    if code != FEASIBLE:
        return code
    return evaluator.judge_row(cycle, row)
