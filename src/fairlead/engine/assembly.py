"""Assembly: one attempt at a whole gang. Every member is put on a row of the table, in one Statement; all of it is kept
or none of it.

    members in order ─▶ place ─▶ assign, reserve, permit ─▶ the first consent means: the gang is whole
         for each placement (a rack, a zone), if the group wants one; the best one that fits is taken
    not whole ─▶ undone in reverse; perhaps room can be made for all of it (rescue_gang)

The trial is the real thing: if the gang is whole, what lies on the table is committed as it is. If not, the table, the
reservations and the counts are as before, exactly. The rules are kube-scheduler's; what is ours is that nobody is
evicted for a gang that would not be whole then.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from fairlead.engine.attempt import Rescue, refused_on_node, rescue
from fairlead.engine.outcome import Failure
from fairlead.engine.placement import Blocked, Broken, Candidate, Placed, Search, place
from fairlead.errors import FairleadError
from fairlead.framework.cycle import Cycle
from fairlead.framework.gang import GangRescued, Placement, Proposal
from fairlead.framework.points import merge_permits, merge_reserved
from fairlead.framework.remember import asked
from fairlead.framework.verdicts import FEASIBLE
from fairlead.model.reasons import Code, Status, failed, unschedulable
from fairlead.state.statement import Statement

if TYPE_CHECKING:
    from random import Random

    from numpy.typing import NDArray

    from fairlead.framework.evaluate import Evaluator
    from fairlead.framework.gang import GangRules
    from fairlead.framework.meter import Meter
    from fairlead.framework.plugin import Rescued
    from fairlead.framework.points import Permission
    from fairlead.framework.refusals import Refusals
    from fairlead.model.pod import Pod
    from fairlead.state.cluster import Cluster
    from fairlead.state.gangs import Gang

UNSCHEDULABLE = "pod group is unschedulable"
WAITING_FOR_PREEMPTION = "pod group is waiting for preemption to complete"
NO_PLACEMENTS = "no feasible placements found"
NO_RESCUE = "default preemption plugin is not registered, workload aware preemption is disabled"
NO_RESCUE_IN_DOMAINS = "workload aware preemption is not supported for pod groups with scheduling constraints"


@dataclass(slots=True, eq=False)
class Member:
    """One member in one attempt: where it was put, or why not. With `rescued`, room has to be made there first."""

    pod: Pod
    cycle: Cycle
    placed: Placed | None = None
    permission: Permission | None = None
    failure: Failure | None = None
    rescued: Rescued | None = None


@dataclass(frozen=True, slots=True)
class Tried:
    """How many members a placement could take."""

    level: str
    name: str
    fits: int


@dataclass(slots=True, eq=False)
class Result:
    """`status` is None if the gang is whole. `waiting`: it will be when its victims are gone."""

    members: list[Member] = field(default_factory=list)
    status: Status | None = None
    waiting: bool = False
    needs_room: bool = False
    tried: tuple[Tried, ...] = ()
    placement: Placement | None = None
    rescue: GangRescued | None = None

    @property
    def placed(self) -> list[Member]:
        return [member for member in self.members if member.placed is not None]


class Assembly:
    """The means of one attempt; also what a rescue gets to work with (framework/gang.GangCase)."""

    def __init__(
        self,
        gang: Gang,
        pods: Sequence[Pod],
        *,
        cluster: Cluster,
        evaluator: Evaluator,
        rules: GangRules,
        search: Search,
        now: float,
        rng: Random,
        meter: Meter | None = None,
    ) -> None:
        self.gang = gang
        self.pods = pods
        self.cluster = cluster
        self.now = now
        self.rng = rng
        self._evaluator = evaluator
        self._profile = evaluator.profile
        self._rules = rules
        self._search = search
        self._meter = meter
        self._statement = Statement(cluster)

    def run(self) -> Result:
        try:
            result = self._somewhere()
            if result.status is not None and result.status.code is Code.UNSCHEDULABLE and not result.waiting:
                self._make_room(result)
            return result
        finally:
            self._search.within = None

    def commit(self) -> None:
        """Keep what lies on the table: members become ASSUMED."""
        self._statement.commit()
        self.gang.proposed = 0

    # ---- where ----

    def _somewhere(self) -> Result:
        placements = self._placements()
        if isinstance(placements, Status):
            return Result(status=placements)
        if placements is None:
            return self._assemble(None)
        if not placements:
            return Result(status=unschedulable(NO_PLACEMENTS))
        return self._in_the_best_of(placements)

    def _placements(self) -> Sequence[Placement] | Status | None:
        for plugin in self._profile.at("placements"):
            try:
                return plugin.placements(self.gang, self.cluster)
            except Exception as error:
                return failed(f'running PlacementGenerate plugin "{plugin.name}": {type(error).__name__}: {error}')
        return None

    def _in_the_best_of(self, placements: Sequence[Placement]) -> Result:
        """Try every placement, the most promising first; one that takes everybody and promised most is the best."""
        promising, certain = self._by_promise([placement for placement in placements if not placement.fallback])
        results: list[tuple[Placement, Result]] = []
        for placement in promising:
            result = self._assemble(placement)
            results.append((placement, result))
            if result.status is None and certain and len(result.placed) == len(self.pods):
                result.tried = _tried(results)
                return result
            if result.status is None:
                self._undo(result.members)
            elif not result.status.code.rejected:
                return result
        fitting = [(placement, result) for placement, result in results if result.status is None or result.waiting]
        if not fitting:
            return self._nowhere(placements, results)
        chosen = fitting[0] if len(fitting) == 1 else self._best(fitting)
        if isinstance(chosen, Status):
            return Result(status=chosen, tried=_tried(results))
        again = self._assemble(chosen[0])
        again.tried = _tried(results)
        return again

    def _by_promise(self, placements: list[Placement]) -> tuple[list[Placement], bool]:
        """Placements in the order of the score they would get if they took everybody; and whether that is the most they
        can get, so that nobody needs to look further once it is true."""
        plugins = self._profile.at("score_placements")
        everybody = tuple((pod, -1) for pod in self.pods)
        totals = self._totals([Proposal(placement, everybody) for placement in placements])
        if isinstance(totals, Status) or not all(plugin.scores_grow for plugin in plugins):
            return placements, False
        order = [*range(len(placements))]
        self.rng.shuffle(order)
        order.sort(key=lambda at: -int(totals[at]))
        return [placements[at] for at in order], True

    def _nowhere(self, placements: Sequence[Placement], results: list[tuple[Placement, Result]]) -> Result:
        fallback = next((placement for placement in placements if placement.fallback), None)
        if fallback is not None:
            result = self._assemble(fallback)
            result.tried = _tried(results)
            return result
        first = min(results, key=lambda tried: placements.index(tried[0]))[1]
        assert first.status is not None
        text = f"0/{len(results)} placements are available, first placement status: {first.status.reasons[0]}"
        first.status, first.tried = unschedulable(text), _tried(results)
        return first

    def _best(self, fitting: list[tuple[Placement, Result]]) -> tuple[Placement, Result] | Status:
        """The placement with the highest weighted total; among equals the seeded rng decides."""
        totals = self._totals([
            Proposal(placement, tuple((m.pod, m.placed.row) for m in result.members if m.placed is not None))
            for placement, result in fitting
        ])  # fmt: skip
        if isinstance(totals, Status):
            return totals
        ties = np.flatnonzero(totals == totals.max())
        return fitting[int(ties[self.rng.randrange(len(ties))] if len(ties) > 1 else ties[0])]

    def _totals(self, proposals: Sequence[Proposal]) -> NDArray[np.int64] | Status:
        totals = np.zeros(len(proposals), dtype=np.int64)
        for plugin in self._profile.at("score_placements"):
            scores = plugin.score_placements(self.gang, proposals, self.cluster)
            if isinstance(scores, Status):
                return failed(f'running PlacementScore plugin "{plugin.name}": {scores.message}')
            totals += np.array(scores, dtype=np.int64) * self._profile.weight(plugin)
        return totals

    # ---- all members, one after the other ----

    def _assemble(self, placement: Placement | None, *, rescuing: bool = True) -> Result:
        """Put members on rows. A whole gang is left on the table; anything else is undone."""
        rows = placement.rows if placement is not None else None
        self._search.within = rows
        result = Result(status=unschedulable(UNSCHEDULABLE), placement=placement)
        refused: dict[tuple[object, ...], tuple[int, Failure]] = {}
        for pod in self.pods:
            member = self._put(pod, refused, rescuing=rescuing)
            result.members.append(member)
            if member.placed is None:
                assert member.failure is not None
                if not member.failure.status.code.rejected:
                    words = f"failed to schedule other pod from a pod group: {member.failure.status.message}"
                    result.status, result.waiting = failed(words), False
                    break
                continue
            result.needs_room |= member.rescued is not None
            self._agree(result, member)
        if result.status is not None:
            self._undo(result.members)
        return result

    def _agree(self, result: Result, member: Member) -> None:
        """If everybody that permits consents, enough members have places."""
        if member.permission is None or any(plugin == self._rules.plugin for plugin, _ in member.permission.waits):
            return
        if result.needs_room:
            result.status, result.waiting = unschedulable(UNSCHEDULABLE, WAITING_FOR_PREEMPTION), True
        else:
            result.status = None

    def _put(self, pod: Pod, refused: dict[tuple[object, ...], tuple[int, Failure]], *, rescuing: bool) -> Member:
        member = Member(pod, self._cycle(pod))
        alike = (pod.shape, pod.namespace, id(pod.labels), pod.nominated_node)
        known = refused.get(alike)
        if known is not None and known[0] == self._statement.checkpoint() and not pod.shape.volumes:
            member.failure = known[1]
            return member
        answer = place(member.cycle, self._evaluator, self._search)
        if isinstance(answer, Broken):
            member.failure = Failure(answer.status, answer.status.message)
        elif isinstance(answer, Blocked):
            self._refused(member, answer.refusals, rescuing=rescuing)
            if member.failure is not None:
                refused[alike] = (self._statement.checkpoint(), member.failure)
        else:
            member.placed = answer
        if member.placed is not None:
            self._claim(member)
        return member

    def _cycle(self, pod: Pod) -> Cycle:
        cycle = Cycle(pod=pod, cluster=self.cluster, profile=self._profile, now=self.now, rng=self.rng)
        if self._meter is not None:
            cycle.meter = self._meter.for_next_cycle()
        return cycle

    def _refused(self, member: Member, refusals: Refusals, *, rescuing: bool) -> None:
        """Nothing fits. Where members are rescued one by one, a node that will be free counts as a place."""
        if not rescuing:
            message = refusals.diagnosis.message
            member.failure = Failure(unschedulable(message), message, refusals.diagnosis.unschedulable_plugins)
            return
        outcome = rescue(member.cycle, refusals)
        if isinstance(outcome, Rescue):
            row = self.cluster.table.row_of[outcome.rescued.nominated or ""]
            member.rescued, member.failure = outcome.rescued, outcome.failure
            member.placed = Placed(row, feasible=0, judged=0, chosen=Candidate(row, 0))
        else:
            member.failure = outcome

    def _claim(self, member: Member) -> None:
        """Assign, reserve, permit; a refusal leaves no trace."""
        assert member.placed is not None
        cycle, row = member.cycle, member.placed.row
        before = self._statement.checkpoint()
        self._statement.assign(member.pod, row)
        self.gang.proposed += 1
        try:
            refused = merge_reserved(self._profile.at("reserve"), lambda plugin: asked(plugin, "reserve", cycle, row))
            if refused is None:
                permits = self._profile.at("permit")
                member.permission = merge_permits(permits, lambda plugin: asked(plugin, "permit", cycle, row))
                refused = member.permission.status
        except FairleadError as error:
            refused = failed(str(error))
        if refused is not None:
            self._unreserve(member)
            self._statement.rollback(before)
            self.gang.proposed -= 1
            member.placed, member.permission, member.rescued = None, None, None
            member.failure = refused_on_node(refused)

    def _undo(self, members: Sequence[Member]) -> None:
        """Take all of it back, latest first. The members still say where they would have been."""
        for member in reversed(members):
            if member.placed is not None:
                self._unreserve(member)
        self._statement.rollback()
        self.gang.proposed = 0

    def _unreserve(self, member: Member) -> None:
        assert member.placed is not None
        for plugin in reversed(self._profile.at("reserve")):
            plugin.unreserve(member.cycle, member.placed.row)

    # ---- making room for all of it ----

    def _make_room(self, result: Result) -> None:
        if not self._rules.rescues_whole:
            return
        assert result.status is not None
        said = self._rescued()
        result.rescue = said
        if said.status.ok:
            result.waiting = True
            self._move_to(result, said.nominations)
        elif said.status.code.rejected:
            result.status = unschedulable(*result.status.reasons, said.status.message)
        else:
            result.status = said.status

    def _rescued(self) -> GangRescued:
        plugins = self._profile.at("rescue_gang")
        if not plugins:
            return GangRescued(unschedulable(NO_RESCUE))
        if self.gang.group is not None and self.gang.group.topology_key:
            return GangRescued(unschedulable(NO_RESCUE_IN_DOMAINS))
        try:
            return plugins[0].rescue_gang(self)
        except FairleadError as error:
            return GangRescued(failed(str(error)))

    def _move_to(self, result: Result, nominations: Sequence[tuple[Pod, int]]) -> None:
        """Members that would go somewhere are promised that place; the others keep their refusals."""
        rows = {pod.uid: row for pod, row in nominations}
        for member in result.members:
            row = rows.get(member.pod.uid)
            member.placed = Placed(row, feasible=0, judged=0, chosen=Candidate(row, 0)) if row is not None else None

    def fits(self) -> Sequence[tuple[Pod, int]] | Status:
        result = self._assemble(None, rescuing=False)
        if result.status is not None:
            return result.status
        self._undo(result.members)
        return [(member.pod, member.placed.row) for member in result.members if member.placed is not None]

    def still_fits(self, where: Sequence[tuple[Pod, int]], statement: Statement) -> bool:
        for pod, row in where:
            before = statement.checkpoint()
            statement.evict(pod, row)
            cycle = self._cycle(pod)
            fits = self._evaluator.prepare(cycle).status is None and self._passes(cycle, row)
            statement.rollback(before)
            if not fits:
                return False
        return True

    def _passes(self, cycle: Cycle, row: int) -> bool:
        rows: NDArray[np.int32] = np.array([row], dtype=np.int32)
        return int(self._evaluator.judge_rows(cycle, rows)[0]) == FEASIBLE


def _tried(results: Sequence[tuple[Placement, Result]]) -> tuple[Tried, ...]:
    return tuple(Tried(placement.level, placement.name, len(result.placed)) for placement, result in results)
