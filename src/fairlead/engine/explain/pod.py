"""Explanations of pods, from the records of their last attempts. Kept for a bounded number of pods, newest first.

The records are those that decided: the refusal codes of the attempt, and the scores of the chosen node and the
runner-up. Nothing is evaluated again. Pods of one template that fail together share one column of codes.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.framework.verdicts import FEASIBLE
from fairlead.model.explanation import Blocker, Explanation, ScoredNode, WaitingIn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.engine.cycle.placement import Placed, ScoredRow
    from fairlead.engine.queue.entry import Waiting
    from fairlead.framework.refusals import Refusals
    from fairlead.framework.verdicts import VerdictCodes
    from fairlead.model.pod import Pod
    from fairlead.state.table import NodeTable

_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class AttemptRefusals:
    """The refusals of one attempt, from which an Explanation is made when somebody asks."""

    codes: NDArray[np.int32]
    verdicts: VerdictCodes


@dataclass(slots=True)
class PlacedRecord:
    """A placement, from which an Explanation is made when somebody asks; for most pods nobody does."""

    pod: Pod
    placed: Placed
    at: float
    attempts: int
    node: str
    other: str
    total: int
    bound: bool = False

    @property
    def _scores_tell(self) -> bool:
        """Whether the scores were kept. Rounds do not keep them."""
        return self.placed.feasible == 1 or self.placed.runner_up is not None or bool(self.placed.chosen.scores)

    def explanation(self) -> Explanation:
        pod, placed = self.pod, self.placed
        return Explanation(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            scheduler=pod.scheduler_name,
            verdict="Scheduled" if self.bound else "Binding",
            at=self.at,
            attempts=self.attempts,
            node=self.node,
            total_nodes=self.total,
            feasible_nodes=placed.feasible,
            chosen=_scored(self.node, placed.chosen) if self._scores_tell else None,
            runner_up=_scored(self.other, placed.runner_up) if placed.runner_up else None,
        )


class Explanations:
    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._kept: OrderedDict[str, PlacedRecord | tuple[Explanation, AttemptRefusals | None]] = OrderedDict()
        self._last: AttemptRefusals | None = None

    def of(self, uid: str, waiting: Waiting | None = None) -> Explanation | None:
        """The Explanation of a pod's last attempt, with where it waits now."""
        found = self._kept.get(uid)
        if found is None:
            return None
        explanation, refused = (found.explanation(), None) if isinstance(found, PlacedRecord) else found
        if refused is not None:
            explanation = replace(explanation, blockers=explanation.blockers + self._blockers(refused))
        return replace(explanation, waiting=waiting_in(waiting)) if waiting is not None else explanation

    def forget(self, uid: str) -> None:
        self._kept.pop(uid, None)

    def placed(self, pod: Pod, placed: Placed, *, now: float, attempts: int) -> None:
        other = placed.runner_up
        landed = PlacedRecord(
            pod, placed, now, attempts,
            node=self._table.name(placed.row), other=self._table.name(other.row) if other else "",
            total=len(self._table),
        )  # fmt: skip
        self._keep(pod.uid, landed)

    def bound(self, uid: str) -> None:
        """A placement was confirmed."""
        found = self._kept.get(uid)
        if isinstance(found, PlacedRecord):
            found.bound = True

    def refused(
        self,
        pod: Pod,
        *,
        now: float,
        attempts: int,
        verdict: str,
        message: str,
        refusals: Refusals | None = None,
        nominated: str = "",
    ) -> None:
        explanation = Explanation(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            scheduler=pod.scheduler_name,
            verdict=verdict,
            message=message,
            at=now,
            attempts=attempts,
            nominated=nominated,
            total_nodes=len(self._table),
            blockers=_early_blockers(refusals) if refusals else (),
        )
        self._keep(pod.uid, (explanation, self._shared(refusals) if refusals else None))

    def _keep(self, uid: str, kept: PlacedRecord | tuple[Explanation, AttemptRefusals | None]) -> None:
        self._kept[uid] = kept
        self._kept.move_to_end(uid)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def _shared(self, refusals: Refusals) -> AttemptRefusals:
        last = self._last
        if (
            last is None
            or last.verdicts is not refusals.evaluator.codes
            or not np.array_equal(last.codes, refusals.codes)
        ):
            self._last = last = AttemptRefusals(refusals.codes, refusals.evaluator.codes)
        return last

    def _blockers(self, refused: AttemptRefusals) -> tuple[Blocker, ...]:
        """Verdicts with their nodes, the most common first."""
        found = []
        for code in np.unique(refused.codes):
            if code > FEASIBLE:
                verdict = refused.verdicts.verdict(int(code))
                rows = np.flatnonzero(refused.codes == code)
                names = tuple(name for row in rows if row < self._table.high and (name := self._table.name(int(row))))
                found.append(Blocker(verdict.plugin, verdict.reasons, len(rows), verdict.final, names))
        return tuple(sorted(found, key=lambda blocker: -blocker.count))


def _early_blockers(refusals: Refusals) -> tuple[Blocker, ...]:
    """Refusals that ended the search before any node was evaluated."""
    early = refusals.diagnosis.early
    if early is None:
        return ()
    return (Blocker(early.plugin, early.reasons, refusals.diagnosis.total, final=True),)


def waiting_in(waiting: Waiting) -> WaitingIn:
    return WaitingIn(
        queue=waiting.queue,
        since=waiting.since,
        attempts=waiting.attempts,
        plugins=waiting.plugins,
        wakes_on=waiting.wakes_on,
        retried_at=waiting.retried_at,
    )


def _scored(node: str, candidate: ScoredRow) -> ScoredNode:
    return ScoredNode(node, candidate.total, dict(candidate.scores))
