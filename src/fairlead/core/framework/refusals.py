"""Refusals: why no node was found, row by row, which `post_filter` gets; and trials of a row.

A trial judges a row again as if some pods had left it or others had come, on the table itself, and takes that back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from fairlead.core.framework.verdicts import FEASIBLE
from fairlead.core.model.reasons import Code
from fairlead.core.model.records import record
from fairlead.core.state.statement import Statement
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.model.pod import Pod
    from fairlead.core.model.reasons import Diagnosis
    from fairlead.core.state.touchlog import TouchLog

UNJUDGED = -1


@record(frozen=True, slots=True, eq=False)
class Refusals:
    """`codes` is the verdict on each row of the table: -1 if it was not judged, 0 if it was feasible, else a code of
    `evaluator.codes`. `nominated` are the pods nominated to rows while this attempt ran; `promises` is the log of rows
    whose nominations changed, if one is kept."""

    diagnosis: Diagnosis
    codes: NDArray[np.int32]
    evaluator: Evaluator
    nominated: Mapping[int, Sequence[Pod]]
    promises: TouchLog | None = None

    def where_room_could_help(self) -> NDArray[np.bool_]:
        """Of each row, whether evicting pods could help: its refusal is not final. Rows that were not judged count if
        the refusal that excluded them is not final."""
        hopeful = self.evaluator.codes.hopeful[self.codes] & (self.codes > FEASIBLE)
        absent = self.diagnosis.absent
        if absent is not None and absent.code is Code.UNSCHEDULABLE:
            hopeful |= self.codes == UNJUDGED
        return hopeful

    def is_final(self, row: int) -> bool:
        """Whether a row was refused for a reason that no eviction can change."""
        code = int(self.codes[row])
        return code > FEASIBLE and self.evaluator.codes.verdict(code).final


def trial_statement(trial: Cycle) -> Statement:
    """A Statement that notifies plugins of its placements (`add_pod`, `remove_pod`). `trial` is a copy of the cycle, so
    that their notes of the attempt stay as they are."""
    adders = [p for p in trial.profile.at("add_pod") if p.name not in trial.no_filter]
    removers = [p for p in trial.profile.at("remove_pod") if p.name not in trial.no_filter]

    def added(pod: Pod, row: int) -> None:
        for plugin in adders:
            try:
                plugin.add_pod(trial, pod, row)
            except Exception as error:
                raise FairleadError(f'running AddPod on PreFilter plugin "{plugin.name}": {error}') from error

    def removed(pod: Pod, row: int) -> None:
        for plugin in removers:
            try:
                plugin.remove_pod(trial, pod, row)
            except Exception as error:
                raise FairleadError(f'running RemovePod on PreFilter plugin "{plugin.name}": {error}') from error

    return Statement(trial.cluster, added=added, removed=removed)


def expected_on(nominated: Mapping[int, Sequence[Pod]], pod: Pod, row: int) -> list[Pod]:
    """The pods nominated to a row that this pod must leave room for: those of its priority or a higher one."""
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
    """The verdict on a row that must be feasible with the pods nominated to it and, as they may never come, without."""
    code = judge_with(cycle, evaluator, row, expected) if expected else FEASIBLE
    if code != FEASIBLE:
        return code
    return evaluator.judge_row(cycle, row)
