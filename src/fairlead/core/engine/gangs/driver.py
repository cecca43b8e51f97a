"""GangDriver: a gang from its turn in the queue to its last bind.

    entry ─▶ Assembly ─▶ whole: bindings of all members begin, and no bind is sent before enough are permitted
                      ─▶ not:   every member gets the reason; the gang waits as one entry

A gang that has started members is to become whole. So a member whose bind failed keeps its place (HELD) and is tried
again there first, and a gang that is half bound, after a restart or because a member was lost, is the first in the
queue. If it is still incomplete after its timeout, that is reported, or its started members are evicted, as the profile
says; held places are given up then.

Invariant: between attempts a gang holds places for at least its minimum, or only those that its members run on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.attempt import Committed, refused_on_node
from fairlead.core.engine.cycle.binding import Binding, BindingStage
from fairlead.core.engine.cycle.events import EventText
from fairlead.core.engine.cycle.outcome import Failure, group_patch
from fairlead.core.engine.cycle.placement import Search
from fairlead.core.engine.gangs.assembly import UNSCHEDULABLE, Assembly
from fairlead.core.engine.queue.entry import Entry
from fairlead.core.framework.points import PERMITTED, Permission
from fairlead.core.model.group import GroupPolicy
from fairlead.core.model.pod import NATIVE_GROUP_API
from fairlead.core.model.reasons import Status, failed, unschedulable
from fairlead.core.state.pod_states import PodPlace

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.evictions import Evictions
    from fairlead.core.engine.cycle.placement import LastSearch
    from fairlead.core.engine.explain.gang import GangExplanations
    from fairlead.core.engine.gangs.result import MemberResult, Result
    from fairlead.core.engine.modes import Placer, SchedulerParts
    from fairlead.core.engine.queue.promised import Promised
    from fairlead.core.framework.evaluate import Evaluator
    from fairlead.core.framework.gang import GangRules
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Write
    from fairlead.core.model.pod import Pod
    from fairlead.core.state.gangs import Gang

NOT_WHOLE = "the gang lost members and cannot be whole any more"
FIRST_RETRY, LAST_RETRY = 1.0, 30.0
"""Seconds until a held place is tried again: the first time, and at most; doubled each time."""


class GangDriver:
    def __init__(
        self,
        parts: SchedulerParts,
        placer: Placer,
        evictions: Evictions,
        *,
        explanations: GangExplanations,
        last_search: LastSearch,
        promised: Promised,
    ) -> None:
        """`placer` is the mode whose gangs these are."""
        self._parts = parts
        self._cluster = parts.cluster
        self._placer = placer
        self._evictions = evictions
        self._explanations = explanations
        self._last_search = last_search
        self._promised = promised
        self._profiles: Mapping[str, Profile] = {}
        self._evaluators: Mapping[str, Evaluator] = {}
        self._incomplete: dict[str, float] = {}
        """By key, since when a gang has started members and lacks others, or holds places for some."""
        self._in_permit: dict[str, None] = {}
        """Keys of the gangs that have members which wait in Permit until enough of them are permitted."""
        self.domains_tried = 0
        """The number of trials in a rack, a zone or a HyperNode."""
        self._writes: list[Write] = []
        self._now = 0.0
        self._starting = False
        """True while the bindings of a gang that waits for permission begin, when not all of them can be counted
        yet."""

    def reconfigure(self, profiles: Mapping[str, Profile], evaluators: Mapping[str, Evaluator]) -> None:
        """Use other profiles from now on."""
        self._profiles, self._evaluators = profiles, evaluators

    # ---- one attempt ----

    def schedule(self, entry: Entry, now: float) -> list[Write]:
        """Make one attempt at a gang; returns its writes, apart from those of its bindings."""
        self._now, self._writes = now, []
        gang = entry.gang
        assert gang is not None
        pods = self._parts.backlog.members(entry)
        profile = self._profiles.get(entry.pod.scheduler_name)
        if not pods or profile is None or profile.gangs is None:
            self._put_back(entry, [], Failure(unschedulable(UNSCHEDULABLE), UNSCHEDULABLE))
            return self._writes
        strangers = next((pod for pod in pods if pod.scheduler_name != pods[0].scheduler_name), None)
        if strangers is not None:
            self._refuse_mixture(entry, pods, strangers)
            return self._writes
        assembly = Assembly(
            gang,
            pods,
            self._parts,
            evaluator=self._evaluators[profile.name],
            rules=profile.gangs,
            search=Search(self._last_search, self._promised.while_placing_many(pods)),
            now=now,
        )
        try:
            result = assembly.run()
        except Exception:
            assembly.abandon()
            raise
        self.domains_tried += assembly.trials
        if result.status is None:
            assembly.commit()
            self._start(entry, gang, result, profile.gangs)
        else:
            self._refuse(entry, gang, pods, result)
        self._report_group(gang, result)
        self._explanations.keep(gang, result, now=now, attempts=entry.attempts, scheduler=profile.name)
        return self._writes

    def fail(self, entry: Entry, failure: Failure, now: float) -> None:
        """An attempt that did not come to an end: all members that wait get the reason."""
        self._now = now
        assert entry.gang is not None
        for pod in entry.gang.pending():
            self._parts.output.refused(entry, pod, failure)
        self._put_back(entry, [], failure)

    def _refuse_mixture(self, entry: Entry, pods: Sequence[Pod], stranger: Pod) -> None:
        words = (
            "all pods in a single pod group should have the same .spec.schedulerName set, "
            f'got: "{stranger.scheduler_name}" and "{pods[0].scheduler_name}"'
        )
        failure = Failure(failed(words), words)
        for pod in pods:
            self._parts.output.refused(entry, pod, failure)
        self._put_back(entry, [], failure)

    # ---- a whole gang ----

    def _start(self, entry: Entry, gang: Gang, result: Result, rules: GangRules) -> None:
        placed = result.placed
        held_back = self._waits(gang, placed, rules)
        self._starting = bool(held_back)
        if gang.group is not None and gang.group.policy is GroupPolicy.GANG:
            gang.placed_whole(member.pod.uid for member in placed)
        for member in placed:
            assert member.placed is not None
            assert member.permission is not None
            waits = tuple([wait for wait in member.permission.waits if wait[0] != rules.plugin]) + held_back
            permission = Permission(waits=waits) if waits else PERMITTED
            own = Entry(
                member.pod,
                entry.since,
                entry.serial,
                entry.attempts,
                first_attempt=entry.first_attempt,
                began=entry.began,
                place=entry.place,
            )
            self._parts.backlog.in_flight.begin(own)
            self._parts.binding_driver.begin(own, member.cycle, Committed(member.placed, permission), self._placer)
        self._starting = False
        if held_back:
            self._in_permit[gang.key] = None
        self._put_back(entry, [member for member in result.members if member.placed is None])

    def _waits(self, gang: Gang, placed: Sequence[MemberResult], rules: GangRules) -> tuple[tuple[str, float], ...]:
        """The wait that all members get while other Permit plugins keep so many waiting that fewer than the minimum are
        permitted; members that were placed earlier and still wait count too."""
        waiting = sum(1 for member in placed if member.permission and _others(member.permission, rules.plugin))
        waiting += len(self._waiting(gang))
        if not waiting or gang.scheduled - waiting >= gang.minimum:
            return ()
        return ((rules.plugin, self._timeout(gang, rules)),)

    def rejoined(self, binding: Binding, permission: Permission) -> Permission:
        """The permission of a member whose bind had failed and that has been placed again. While too few members are
        permitted, it waits for the others, and those that wait already wait for it."""
        gang, rules = self._gang_of(binding)
        if gang is None or rules is None or gang.group is None:
            return permission
        waits = tuple(wait for wait in permission.waits if wait[0] != rules.plugin)
        waiting = self._waiting(gang)
        if gang.scheduled - len(waiting) - bool(waits) >= gang.minimum:
            return permission
        timeout = self._timeout(gang, rules)
        self._in_permit[gang.key] = None
        for other in waiting:
            other.waiting_for.setdefault(rules.plugin, (self._now + timeout, timeout))
        return Permission(waits=(*waits, (rules.plugin, timeout)))

    def permitted(self, binding: Binding) -> None:
        """Look whether enough members are permitted, now that one may wait for nothing but the gang; if so, allow
        all."""
        gang, rules = self._gang_of(binding)
        if gang is None or rules is None or self._starting:
            return
        waiting = [b for b in self._waiting(gang) if rules.plugin in b.waiting_for]
        if not waiting:
            return
        undecided = sum(1 for b in waiting if len(b.waiting_for) > 1)
        if gang.scheduled - undecided >= gang.minimum:
            self._in_permit.pop(gang.key, None)
            for other in waiting:
                other.allow(rules.plugin)
            for other in waiting:
                self._parts.binding_driver.advance(other)

    def _waiting(self, gang: Gang) -> list[Binding]:
        """Members that have a place and are not permitted yet."""
        members = [b for uid in gang.members if (b := self._parts.bindings.get(uid)) is not None]
        return [b for b in members if b.stage is BindingStage.WAITING and b.waiting_for]

    def refused(self, binding: Binding) -> None:
        """A member was refused while it waited for permission: refuse the others if the gang cannot be whole without
        it."""
        gang, rules = self._gang_of(binding)
        if gang is not None and rules is not None and not gang.is_whole:
            self._reject_waiting(gang, rules)

    def _refuse_those_in_permit(self) -> None:
        """Refuse the members that wait for others in Permit if their gang is not whole any more. A bound member that
        goes has no binding whose end would notify."""
        for key in list(self._in_permit):
            gang = self._cluster.gangs.get(key)
            rules = self._rules(gang) if gang is not None else None
            if gang is None or rules is None:
                del self._in_permit[key]
            elif not gang.is_whole:
                self._reject_waiting(gang, rules)

    def _reject_waiting(self, gang: Gang, rules: GangRules) -> None:
        self._in_permit.pop(gang.key, None)
        for uid in list(gang.members):
            other = self._parts.bindings.get(uid)
            if other is not None and rules.plugin in other.waiting_for and other.reject(rules.plugin, NOT_WHOLE):
                self._parts.binding_driver.end(other)

    # ---- not whole ----

    def _refuse(self, entry: Entry, gang: Gang, pods: Sequence[Pod], result: Result) -> None:
        """Write to the members that were tried why they have no node, and put the gang back. Gated members get a
        message from their gate."""
        status = result.status
        assert status is not None
        failures = {id(member.pod): self._failure_of(member, result, status) for member in result.members}
        missing = Failure(status, status.message)
        for pod in pods:
            self._parts.output.refused(entry, pod, failures.get(id(pod), missing))
        self._put_back(entry, result.members, missing, blamed=result.blamed)
        if result.waiting:
            self._evict(gang, entry.pod, result)
        if gang.is_half_bound:
            self._incomplete.setdefault(gang.key, self._now)

    def _failure_of(self, member: MemberResult, result: Result, status: Status) -> Failure:
        """The failure of one member: its own refusal, the gang's, or its nomination if it waits for victims."""
        if not status.code.rejected:
            own = member.failure
            return own if own is not None and not own.status.code.rejected else Failure(status, status.message)
        if member.placed is not None and result.waiting:
            node = self._cluster.table.name(member.placed.row)
            words = member.failure.message if member.failure is not None and member.rescued else status.message
            return Failure(status, words, nominated=node)
        if member.failure is not None and member.rescued is None:
            return member.failure
        permit = member.permission.message if member.permission is not None else ""
        words = f"{UNSCHEDULABLE}, {permit}" if permit else UNSCHEDULABLE
        return Failure(unschedulable(words), words)

    def _evict(self, gang: Gang, pod: Pod, result: Result) -> None:
        victims = list(result.rescue.victims) if result.rescue is not None else []
        for member in result.members:
            victims += member.rescued.victims if member.rescued is not None else ()
        distinct = {victim.uid: victim for victim in victims}
        self._writes += self._evictions.begin_for_gang(gang, pod, list(distinct.values()), self._now)
        for binding in [b for uid in distinct if (b := self._parts.bindings.get(uid)) is not None]:
            if binding.stage is BindingStage.ENDED:
                self._parts.binding_driver.end(binding)

    def _put_back(
        self,
        entry: Entry,
        members: Sequence[MemberResult],
        failure: Failure | None = None,
        *,
        blamed: frozenset[str] = frozenset(),
    ) -> None:
        """Put the gang's entry back into the queue. It blames the plugins that refused its members; if there are none,
        the gang plugin, so that a new member wakes it."""
        gang = entry.gang
        assert gang is not None
        face = self._parts.backlog.gangs.face(gang)
        if face is None:
            self._parts.backlog.done(entry.uid)
            return
        entry.pod = face
        failures = [member.failure for member in members if member.failure is not None]
        blamed = blamed.union(*(failure.unschedulable_plugins for failure in failures))
        pending = frozenset[str]().union(*(failure.pending_plugins for failure in failures))
        is_error = failure is not None and not failure.status.code.rejected
        if not blamed and not is_error:
            profile = self._profiles.get(face.scheduler_name)
            blamed = frozenset({profile.gangs.plugin}) if profile is not None and profile.gangs is not None else blamed
        words = failure.message if failure is not None else (failures[0].message if failures else "")
        entry.refuse(frozenset() if is_error else blamed, frozenset() if is_error else pending, message=words)
        self._parts.backlog.put_back(entry, self._now)

    def _report_group(self, gang: Gang, result: Result) -> None:
        """Write the condition of a native group. Once it says scheduled it stays so, also while the watch has not shown
        that write yet."""
        if gang.group is None or gang.api != NATIVE_GROUP_API:
            return
        if result.status is None:
            gang.report_scheduled()
        elif gang.is_reported_scheduled:
            return
        patch = group_patch(gang.group, result.status, now=self._now)
        if patch is not None:
            self._writes.append(patch)

    # ---- a gang that has started ----

    def holds(self, binding: Binding, now: float) -> bool:
        """Hold the place of a member whose bind failed, if its group must be whole, still can be, and the pod may still
        have the place. Returns whether it is held."""
        gang, rules = self._gang_of(binding)
        if gang is None or rules is None or not binding.past_permit or binding.status is None:
            return False
        group = gang.group
        if group is None or group.policy is not GroupPolicy.GANG or binding.ending.preempted:
            return False
        if not _could_be_whole(gang):
            return False
        pod_state = self._cluster.pods.get(binding.pod.uid)
        if pod_state is None or pod_state.place is not PodPlace.ASSUMED or pod_state.seen.terminating:
            return False
        entry = binding.entry
        entry.error_count += 1
        delay = min(LAST_RETRY, FIRST_RETRY * 2 ** (entry.error_count - 1))
        self._parts.output.refused(entry, pod_state.seen, replace(refused_on_node(binding.status), nominated=None))
        binding.hold(now + delay)
        self._incomplete.setdefault(gang.key, now)
        return True

    def look_after(self, now: float) -> list[Write]:
        """Look after incomplete gangs: give up those that cannot be whole, and those whose timeout is over."""
        self._now, self._writes = now, []
        self._refuse_those_in_permit()
        for key, since in list(self._incomplete.items()):
            gang = self._cluster.gangs.get(key)
            rules = self._rules(gang) if gang is not None else None
            if gang is None or rules is None:
                del self._incomplete[key]
                continue
            if self._is_complete(gang):
                if self._held(gang):  # a place is held for a member beyond the minimum
                    self._incomplete[key] = now
                else:
                    del self._incomplete[key]
                continue
            if not _could_be_whole(gang):
                self._let_go(gang, failed(NOT_WHOLE))
                self._reject_waiting(gang, rules)
            self._hurry_those_without_a_node(gang)
            if now >= since + self._timeout(gang, rules):
                self._incomplete[key] = now
                self._time_is_up(gang, rules)
        return self._writes

    def wake_at(self) -> float | None:
        if not self._incomplete:
            return None
        moments = []
        for key, since in self._incomplete.items():
            gang = self._cluster.gangs.get(key)
            rules = self._rules(gang) if gang is not None else None
            if gang is not None and rules is not None:
                moments.append(since + self._timeout(gang, rules))
        return min(moments, default=None)

    def _time_is_up(self, gang: Gang, rules: GangRules) -> None:
        bound = [pod_state.seen for pod_state in gang.seated() if pod_state.place is PodPlace.BOUND]
        words = f"{len(bound)} of {gang.minimum} members started, and no more within {self._timeout(gang, rules):g}s"
        waiting = [pod_state.seen for pod_state in gang.members.values() if not pod_state.seen.node_name]
        for pod in bound if rules.evicts else waiting:
            self._writes += self._parts.recorder.record(
                pod,
                EventText(
                    kind="Warning",
                    reason="GangIncomplete",
                    action="Evicting" if rules.evicts else "Waiting",
                    note=words,
                ),
                now=self._now,
                controller=pod.scheduler_name,
            )
        if not rules.evicts:
            return
        del self._incomplete[gang.key]
        gang.evict(pod.uid for pod in bound)
        for pod in bound:
            self._writes += self._evictions.evict(pod, words, self._now)
        self._let_go(gang, failed(words))

    def lost_place(self, gang: Gang | None) -> None:
        """A member did not get its held place again: give up the other held places if the gang cannot be whole."""
        if gang is not None and not _could_be_whole(gang):
            self._let_go(gang, failed(NOT_WHOLE))

    def _hurry_those_without_a_node(self, gang: Gang) -> None:
        """Try members at once whose held place is on a deleted node, before the others bind."""
        alive = self._cluster.table.alive
        for binding in self._held(gang):
            if not alive[binding.row]:
                binding.hold(self._now)

    def _held(self, gang: Gang) -> list[Binding]:
        bindings = (self._parts.bindings.get(uid) for uid in gang.members)
        return [binding for binding in bindings if binding is not None and binding.stage is BindingStage.HELD]

    def _let_go(self, gang: Gang, why: Status) -> None:
        """Give up the places that are held for members."""
        for binding in self._held(gang):
            binding.give_up(why)
            self._parts.binding_driver.end(binding)

    def _is_complete(self, gang: Gang) -> bool:
        """Whether the minimum of members is bound, or no member is bound or assumed."""
        bound = gang.counts[PodPlace.BOUND]
        return bound >= gang.minimum or (bound == 0 and not gang.counts[PodPlace.ASSUMED])

    # ---- rules ----

    def _timeout(self, gang: Gang, rules: GangRules) -> float:
        return (gang.group.timeout if gang.group is not None else None) or rules.timeout

    def _gang_of(self, binding: Binding) -> tuple[Gang | None, GangRules | None]:
        return self._cluster.gangs.of(binding.pod), binding.cycle.profile.gangs

    def _rules(self, gang: Gang) -> GangRules | None:
        pod_state = next(iter(gang.members.values()), None)
        profile = self._profiles.get(pod_state.seen.scheduler_name) if pod_state is not None else None
        return profile.gangs if profile is not None else None


def _could_be_whole(gang: Gang) -> bool:
    """Whether bound members and those with a place reach the minimum, evicted ones not counted."""
    return gang.counts[PodPlace.BOUND] + gang.counts[PodPlace.ASSUMED] - len(gang.sent_away) >= gang.minimum


def _others(permission: Permission, plugin: str) -> bool:
    return any(name != plugin for name, _ in permission.waits)
