"""Explanations of pods, from the records of their last attempts. Kept for a bounded number of pods, newest first.

The records are those that decided: the refusal codes of the attempt, and the scores of the chosen node and the
runner-up. Nothing is evaluated again. Pods of one template that fail together share one column of codes.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.cycle.outcome import RoomMade
from fairlead.core.framework.extender import answers_of
from fairlead.core.framework.verdicts import FEASIBLE
from fairlead.core.model.explanation import Blocker, Explanation, ProtectedPod, ScoredNode, WaitingIn

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.cycle.outcome import Failure
    from fairlead.core.engine.cycle.placement import Placed, ScoredRow
    from fairlead.core.engine.queue.entry import Entry, Waiting
    from fairlead.core.framework.cycle import Cycle
    from fairlead.core.framework.extender import ExtenderAnswers
    from fairlead.core.framework.raised import RaisedErrors
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.framework.verdicts import VerdictCodes
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.table import NodeTable

_KEPT = 20_000
_EXTENDED_KEPT = 1_000
"""Of how many pods the answers of extenders are kept."""
_NAMED = 100
"""How many victims are named."""


@dataclass(frozen=True, slots=True)
class AttemptRefusals:
    """The refusals of one attempt, from which an Explanation is made on request."""

    codes: NDArray[np.int32]
    verdicts: VerdictCodes
    room: RoomMade = RoomMade.NOT_TRIED


@dataclass(slots=True)
class PlacedRecord:
    """A placement, from which an Explanation is made on request; for most pods nobody does."""

    pod: Pod
    placed: Placed
    at: float
    attempts: int
    waited: float | None
    node: str
    other: str
    total: int
    sequence: int
    victims: tuple[ProtectedPod, ...] = ()
    extended: tuple[ExtenderAnswers, ...] = ()
    bound: bool = False

    @property
    def _scores_are_known(self) -> bool:
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
            waited=self.waited,
            node=self.node,
            total_nodes=self.total,
            feasible_nodes=placed.feasible,
            chosen=_scored(self.node, placed.chosen) if self._scores_are_known else None,
            runner_up=_scored(self.other, placed.runner_up) if placed.runner_up else None,
            considered=self.victims,
            sequence=self.sequence,
            extenders=tuple(answers.to_document() for answers in self.extended),
        )


class Explanations:
    def __init__(self, table: NodeTable, raised: RaisedErrors) -> None:
        """`raised` knows where plugins raised."""
        self._table, self._raised = table, raised
        self._kept: OrderedDict[str, PlacedRecord | tuple[Explanation, AttemptRefusals | None]] = OrderedDict()
        self._last: AttemptRefusals | None = None
        self._placements = 0
        self._extended: deque[str] = deque()

    def of(self, uid: str, waiting: Waiting | None = None) -> Explanation | None:
        """The Explanation of a pod's last attempt, with where it waits now."""
        found = self._kept.get(uid)
        if found is None:
            return None
        explanation, refused = (found.explanation(), None) if isinstance(found, PlacedRecord) else found
        if refused is not None:
            blockers = self._blockers(refused, explanation.nominated)
            explanation = replace(explanation, blockers=explanation.blockers + blockers)
        return replace(explanation, waiting=waiting_in(waiting)) if waiting is not None else explanation

    def forget(self, uid: str) -> None:
        self._kept.pop(uid, None)

    def placed(self, entry: Entry, placed: Placed, cycle: Cycle, *, node: str, now: float) -> None:
        """A pod was placed on a row, that of the node of this name."""
        pod, other, table = entry.pod, placed.runner_up, self._table
        self._placements += 1
        landed = PlacedRecord(
            pod,
            placed,
            now,
            entry.attempts,
            _waited(entry, now),
            node,
            "" if other is None else table.name(other.row),
            len(table.row_of),
            self._placements,
        )
        if pod.uid in self._kept:
            landed.victims = self._victims_of(pod.uid)
        if cycle.profile.extenders:
            landed.extended = answers_of(cycle)
        self._keep(pod.uid, landed, extended=bool(landed.extended))

    def _victims_of(self, uid: str) -> tuple[ProtectedPod, ...]:
        """Who was evicted for a pod in an earlier attempt."""
        found = self._kept.get(uid)
        if found is None:
            return ()
        return found.victims if isinstance(found, PlacedRecord) else found[0].considered

    def bound(self, uid: str) -> None:
        """A placement was confirmed."""
        found = self._kept.get(uid)
        if isinstance(found, PlacedRecord):
            found.bound = True

    def refused(self, entry: Entry, pod: Pod, failure: Failure, *, now: float, nominated: str = "") -> None:
        refusals = failure.refusals
        evicted = tuple(ProtectedPod(victim.key, victim.priority, "evicted") for victim in failure.victims[:_NAMED])
        explanation = Explanation(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            scheduler=pod.scheduler_name,
            verdict="Unschedulable" if failure.status.code.rejected else "Error",
            message=failure.message,
            at=now,
            attempts=entry.attempts,
            waited=_waited(entry, now),
            nominated=nominated,
            total_nodes=len(self._table),
            blockers=_early_blockers(refusals) if refusals else (),
            considered=evicted or (self._victims_of(pod.uid) if nominated else ()),
            sequence=self._placements,
            extenders=tuple(answers.to_document() for answers in failure.extended),
            traceback="" if failure.status.code.rejected else self._raised.about(failure.message),
        )
        shared = self._shared(refusals, failure.room) if refusals else None
        self._keep(pod.uid, (explanation, shared), extended=bool(explanation.extenders))

    def _keep(
        self, uid: str, kept: PlacedRecord | tuple[Explanation, AttemptRefusals | None], *, extended: bool
    ) -> None:
        self._kept[uid] = kept
        self._kept.move_to_end(uid)
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)
        if extended:
            self._extended.append(uid)
            if len(self._extended) > _EXTENDED_KEPT:
                self._drop_answers(self._extended.popleft())

    def _drop_answers(self, uid: str) -> None:
        """Forget what extenders said about a pod: they may have spoken of every node."""
        found = self._kept.get(uid)
        if isinstance(found, PlacedRecord):
            found.extended = ()
        elif found is not None:
            self._kept[uid] = replace(found[0], extenders=()), found[1]

    def _shared(self, refusals: Refusals, room: RoomMade) -> AttemptRefusals:
        last = self._last
        if (
            last is None
            or last.room is not room
            or last.verdicts is not refusals.evaluator.codes
            or not np.array_equal(last.codes, refusals.codes)
        ):
            self._last = last = AttemptRefusals(refusals.codes, refusals.evaluator.codes, room)
        return last

    def _blockers(self, refused: AttemptRefusals, nominated: str) -> tuple[Blocker, ...]:
        """Verdicts with their nodes, the most common first."""
        found = []
        for code in np.unique(refused.codes):
            if code > FEASIBLE:
                verdict = refused.verdicts.verdict(int(code))
                rows = np.flatnonzero(refused.codes == code)
                names = tuple(name for row in rows if row < self._table.high and (name := self._table.name(int(row))))
                eviction = _eviction(refused.room, final=verdict.final, promised=nominated in names)
                found.append(Blocker(verdict.plugin, verdict.reasons, len(rows), verdict.final, names, eviction))
        return tuple(sorted(found, key=lambda blocker: -blocker.count))


def _eviction(room: RoomMade, *, final: bool, promised: bool) -> str:
    """Whether evictions help against a refusal. Where victims were found, the search may have ended before it came to
    the other nodes."""
    if final:
        return "cannot help"
    if room is RoomMade.VICTIMS and not promised:
        return "may help"
    return room.value


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


def _waited(entry: Entry, now: float) -> float | None:
    return None if entry.first_attempt is None else now - entry.first_attempt


def _scored(node: str, candidate: ScoredRow) -> ScoredNode:
    scores: Counter[str] = Counter()
    for plugin, score in candidate.scores:
        scores[plugin] += score
    return ScoredNode(node, candidate.total, scores)
