"""Assembly: one attempt at a whole gang. All members are assigned to rows in one Statement, which is kept or rolled
back as a whole.

    members in order ─▶ place ─▶ assign, reserve, permit ─▶ the first consent means: the gang is whole
         for each placement (a rack, a zone), if the group wants one; the best one that fits is taken
    not whole ─▶ undone in reverse; perhaps room can be made for all of it (pod_group_post_filter)

If the gang is whole, the assignments are committed as they are. If not, the table, the reservations and the counts are
exactly as before. The rules are kube-scheduler's. One rule is ours: no pod is evicted for a gang that would not be
whole afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from fairlead.core.engine.cycle.attempt import Rescue, end_search, place, refused_on_node, rescue
from fairlead.core.engine.cycle.outcome import Failure
from fairlead.core.engine.cycle.placement import Blocked, Broken, Placed, ScoredRow, Search
from fairlead.core.engine.gangs.domain_search import DomainSearch, none_of
from fairlead.core.engine.gangs.result import MemberResult, Result
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.gang import GangDomain, PodGroupPostFilterResult
from fairlead.core.framework.points import merge_permit, merge_reserve, unreserve
from fairlead.core.framework.verdicts import FEASIBLE
from fairlead.core.model.reasons import Code, Status, failed, unschedulable
from fairlead.core.state.statement import Statement
from fairlead.errors import FairleadError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from fairlead.core.engine.modes import SchedulerParts
    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.framework.gang import GangRules
    from fairlead.core.framework.refusals import Refusals
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.gangs import Gang

UNSCHEDULABLE = "pod group is unschedulable"
WAITING_FOR_PREEMPTION = "pod group is waiting for preemption to complete"
NO_PLACEMENTS = "no feasible placements found"
NO_RESCUE = "default preemption plugin is not registered, workload aware preemption is disabled"
NO_RESCUE_IN_DOMAINS = "workload aware preemption is not supported for pod groups with scheduling constraints"


class Assembly:
    """The state of one attempt. It is also the GangCase (core/framework/gang.py) for `pod_group_post_filter`."""

    def __init__(
        self,
        gang: Gang,
        pods: Sequence[Pod],
        parts: SchedulerParts,
        *,
        evaluator: Evaluator,
        rules: GangRules,
        search: Search,
        now: float,
    ) -> None:
        self.gang = gang
        self.pods = pods
        self.cluster = cluster = parts.cluster
        self.now = now
        self.rng = parts.rng
        self.effects = parts.effects
        self._evaluator = evaluator
        self.profile = evaluator.profile
        self._rules = rules
        self._search = search
        self._meter = parts.output.meter
        self._statement = Statement(cluster)
        self._rescuing = True
        """Whether PostFilter is called for single members; not while `pod_group_post_filter` tries placements of the
        whole gang."""
        self._reserved: dict[str, MemberResult] = {}
        """Members for which Reserve was asked, by uid, in order."""
        self.trials = 0
        """The number of domains in which members were assigned to rows."""

    def run(self) -> Result:
        result = self._somewhere()
        if result.status is not None and result.status.code is Code.UNSCHEDULABLE and not result.waiting:
            self._make_room(result)
        return result

    def commit(self) -> None:
        """Keep the assignments: members become ASSUMED."""
        self._statement.commit()
        self.gang.end_proposals()

    def count_trials(self, trials: int) -> None:
        """So many domains were tried."""
        self.trials += trials

    # ---- where ----

    def _somewhere(self) -> Result:
        placements = self._placements()
        if isinstance(placements, Status):
            return Result(status=placements, blamed=self._divides)
        if placements is None:
            return self._anywhere()
        if not placements:
            return Result(status=unschedulable(NO_PLACEMENTS), blamed=self._divides)
        return DomainSearch(self, placements).run()

    def _anywhere(self) -> Result:
        """Try the whole cluster. If a plugin divides the cluster into domains, the messages call it a placement too."""
        result = self.assemble(None)
        if self._divides and result.status is not None and result.status.code.rejected and not result.waiting:
            result.status = none_of(1, result.status)
        return result

    @property
    def _divides(self) -> frozenset[str]:
        """The names of the plugins that divide the cluster into domains (PlacementGenerate)."""
        return frozenset(plugin.name for plugin in self.profile.at("placement_generate")[:1])

    def _placements(self) -> Sequence[GangDomain] | Status | None:
        for plugin in self.profile.at("placement_generate"):
            try:
                return plugin.placement_generate(self.gang, self.cluster)
            except Exception as error:
                return failed(f'running PlacementGenerate plugin "{plugin.name}": {type(error).__name__}: {error}')
        return None

    # ---- all members, one after the other ----

    def assemble(self, placement: GangDomain | None) -> Result:
        """Assign members to rows of a domain. A gang that is whole stays assigned; otherwise all assignments are
        undone."""
        rows = placement.rows if placement is not None else None
        self._search = replace(self._search, within=rows)
        result = Result(status=unschedulable(UNSCHEDULABLE), placement=placement)
        refused: dict[tuple[object, ...], tuple[int, Failure]] = {}
        for pod in self.pods:
            member = self._put(pod, refused)
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
            self.undo(result.members)
        return result

    def _agree(self, result: Result, member: MemberResult) -> None:
        """Look whether the gang is whole: it is once the gang plugin's Permit does not ask a member to wait."""
        permission = member.permission
        if permission is None or (permission.waits and self._rules.plugin in dict(permission.waits)):
            return
        if result.needs_room:
            result.status, result.waiting = unschedulable(UNSCHEDULABLE, WAITING_FOR_PREEMPTION), True
        else:
            result.status = None

    def _put(self, pod: Pod, refused: dict[tuple[object, ...], tuple[int, Failure]]) -> MemberResult:
        member = MemberResult(pod, self.cycle_of(pod))
        alike = (pod.shape, pod.namespace, id(pod.labels), pod.nominated_node)
        known = refused.get(alike)
        if (
            known is not None
            and known[0] == self._statement.checkpoint()
            and not (pod.shape.volumes or pod.shape.claims)
        ):
            member.failure = known[1]
            return member
        answer = place(member.cycle, self._evaluator, self._search)
        end_search(member.cycle)
        if isinstance(answer, Broken):
            member.failure = Failure(answer.status, answer.status.message)
        elif isinstance(answer, Blocked):
            self._refused(member, answer.refusals)
            if member.failure is not None:
                refused[alike] = (self._statement.checkpoint(), member.failure)
        else:
            member.placed = answer
        if member.placed is not None:
            self._claim(member)
        return member

    def cycle_of(self, pod: Pod) -> Cycle:
        cycle = Cycle(
            pod=pod, cluster=self.cluster, profile=self.profile, now=self.now, rng=self.rng, effects=self.effects
        )
        if self._meter is not None:
            cycle.meter = self._meter.for_next_cycle()
        return cycle

    def prepared(self, pod: Pod) -> Cycle | None:
        """A cycle of the pod after PreFilter; None if a plugin refused the pod there."""
        cycle = self.cycle_of(pod)
        try:
            return cycle if self._evaluator.pre_filter(cycle).status is None else None
        except FairleadError:
            return None

    def _refused(self, member: MemberResult, refusals: Refusals) -> None:
        """No row is feasible for a member. If PostFilter is called for single members, the node it nominates counts as
        the member's place."""
        if not self._rescuing:
            message = refusals.diagnosis.message
            member.failure = Failure(unschedulable(message), message, refusals.diagnosis.unschedulable_plugins)
            return
        outcome = rescue(member.cycle, refusals)
        if isinstance(outcome, Rescue):
            row = self.cluster.table.row_of[outcome.rescued.nominated or ""]
            member.rescued, member.failure = outcome.rescued, outcome.failure
            member.placed = Placed(row, feasible=0, judged=0, chosen=ScoredRow(row, 0))
        else:
            member.failure = outcome

    def _claim(self, member: MemberResult) -> None:
        """Assign a member to its row, then ask Reserve and Permit; a refusal undoes the assignment."""
        assert member.placed is not None
        cycle, row = member.cycle, member.placed.row
        before = self._statement.checkpoint()
        self._statement.assign(member.pod, row)
        self.gang.propose()
        self._reserved[member.pod.uid] = member
        try:
            refused = merge_reserve(cycle, row)
            if refused is None:
                member.permission = merge_permit(cycle, row)
                refused = member.permission.status
        except FairleadError as error:
            refused = failed(str(error))
        if refused is not None:
            self._unreserve(member)
            self._statement.rollback(before)
            self.gang.withdraw()
            member.placed, member.permission, member.rescued = None, None, None
            member.failure = refused_on_node(refused)

    def undo(self, members: Sequence[MemberResult]) -> None:
        """Undo the assignments, latest first. The members' results keep the rows that they had."""
        for member in reversed(members):
            if member.placed is not None:
                self._unreserve(member)
        self._statement.rollback()
        self.gang.end_proposals()

    def abandon(self) -> None:
        """Undo what stands of an attempt that raised."""
        try:
            for member in reversed([*self._reserved.values()]):
                with suppress(Exception):  # the attempt has raised already, and is reported
                    self._unreserve(member)
        finally:
            self._statement.rollback()
            self.gang.end_proposals()

    def _unreserve(self, member: MemberResult) -> None:
        assert member.placed is not None
        self._reserved.pop(member.pod.uid, None)
        unreserve(member.cycle, member.placed.row)

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

    def _rescued(self) -> PodGroupPostFilterResult:
        plugins = self.profile.at("pod_group_post_filter")
        if not plugins:
            return PodGroupPostFilterResult(unschedulable(NO_RESCUE))
        if self.gang.group is not None and not self.gang.group.may_preempt:
            return PodGroupPostFilterResult(unschedulable(NO_RESCUE_IN_DOMAINS))
        try:
            return plugins[0].pod_group_post_filter(self)
        except FairleadError as error:
            return PodGroupPostFilterResult(failed(str(error)))

    def _move_to(self, result: Result, nominations: Sequence[tuple[Pod, int]]) -> None:
        """Give members the rows that the rescue found for them; the others keep their refusals."""
        rows = {pod.uid: row for pod, row in nominations}
        for member in result.members:
            row = rows.get(member.pod.uid)
            member.placed = Placed(row, feasible=0, judged=0, chosen=ScoredRow(row, 0)) if row is not None else None

    def fits(self) -> Sequence[tuple[Pod, int]] | Status:
        self._rescuing = False
        try:
            result = self._somewhere()
        finally:
            self._rescuing = True
        if result.status is not None:
            return result.status
        self.undo(result.members)
        return [(member.pod, member.placed.row) for member in result.members if member.placed is not None]

    def still_fits(self, where: Sequence[tuple[Pod, int]], statement: Statement) -> bool:
        for pod, row in where:
            cycle = self.cycle_of(pod)
            if self._evaluator.pre_filter(cycle).status is not None or not self._passes(cycle, row):
                return False
            statement.assign(pod, row)
        return True

    def _passes(self, cycle: Cycle, row: int) -> bool:
        rows: NDArray[np.int32] = np.array([row], dtype=np.int32)
        return int(self._evaluator.judge_rows(cycle, rows)[0]) == FEASIBLE
