"""PodMode: the attempts of kube profiles, one pod or one gang after the other.

step: Turns.next ─▶ attempt ─▶ BindingDriver      the next pods, as many as one slice allows
                           └─▶ Backlog             those that found no place
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import replace
from typing import TYPE_CHECKING

from fairlead.core.engine.cycle.attempt import Committed, Rescue, attempt, refused_on_node
from fairlead.core.engine.cycle.evictions import Evictions
from fairlead.core.engine.cycle.placement import LastSearch, Search
from fairlead.core.engine.explain.gang import GangExplanations, explain_gang
from fairlead.core.engine.explain.plugin_gangs import explain_plugin_gang
from fairlead.core.engine.gangs.driver import GangDriver
from fairlead.core.engine.modes import SchedulingMode
from fairlead.core.engine.queue.promised import Promised
from fairlead.core.engine.turns import Turns
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.model.events import ASSIGNED_POD_DELETE
from fairlead.core.state.cluster import PodPlace

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.cycle.outcome import Failure
    from fairlead.core.engine.modes import LacksOf, SchedulerParts
    from fairlead.core.engine.queue.entry import Entry
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.flow import Change, Reply, Write
    from fairlead.core.model.gang_explanation import GangExplanation
    from fairlead.core.model.pod import Pod

_PENDING = PodPlace.PENDING
"""A constant of the module: before Python 3.12 an attribute of an Enum is ten times slower."""


class PodMode(SchedulingMode):
    def __init__(self, parts: SchedulerParts) -> None:
        self._parts = parts
        self._cluster, self._backlog, self._output = parts.cluster, parts.backlog, parts.output
        self._profiles: Mapping[str, Profile] = {}
        self.evaluators: Mapping[str, Evaluator] = {}
        self._last_search = LastSearch()
        self._promised = Promised(parts.backlog.nominator, parts.cluster.table)
        self.evictions = Evictions(parts.cluster, parts.backlog, parts.recorder, parts.bindings)
        self._gang_explanations = GangExplanations(parts.cluster.table)
        self.gangs = GangDriver(
            parts,
            self,
            self.evictions,
            explanations=self._gang_explanations,
            last_search=self._last_search,
            promised=self._promised,
        )
        self._turns = Turns(parts)

    def serves(self, profile: Profile) -> bool:
        return profile.mode is None

    def reconfigure(self, profiles: Sequence[Profile]) -> None:
        self._profiles = {profile.name: profile for profile in profiles}
        self.evaluators = {profile.name: Evaluator(profile) for profile in profiles}
        self.gangs.reconfigure(self._profiles, self.evaluators)
        self._turns.reconfigure(profiles)

    # ---- a step ----

    def take_replies(self, replies: Sequence[Reply], now: float) -> None:
        self._output.add(self.evictions.take_replies(replies, now))
        # victims that had a place and no bind yet
        self._parts.binding_driver.look_after(self._parts.bindings.ended())

    def look_after(self, now: float) -> None:
        self._parts.guard.do("looking after gangs", self._look_after, now)

    def _look_after(self, now: float) -> None:
        self._output.add(self.gangs.look_after(now) + self.evictions.repeat(now))

    def step(self, now: float, changes: Sequence[Change], interrupted_by: Sized) -> None:
        bindings, turns = self._parts.bindings, self._turns
        for _ in range(self._parts.options.slice):
            entry = None if bindings.is_full else turns.next(now)
            if entry is None:
                break
            self._try(entry)
            if interrupted_by:
                break

    def wake_at(self, now: float) -> float | None:
        times = [self.gangs.wake_at(), self.evictions.wake_at()]
        if not self._parts.bindings.is_full:  # otherwise an answer is what wakes us
            times.append(now if self._turns.go_on else None)
            times.append(self._backlog.wake_at(now))
        return min([at for at in times if at is not None], default=None)

    def unanswered(self) -> list[Write]:
        return self.evictions.unanswered()

    # ---- one attempt ----

    def _try(self, entry: Entry) -> None:
        failure = self._parts.guard.attempt(entry, self._output.now, self._schedule)
        if failure is not None and entry.gang is None:
            self._fail(entry, failure)
        elif failure is not None:
            self.gangs.fail(entry, failure, self._output.now)

    def _schedule(self, entry: Entry) -> None:
        if entry.gang is not None:
            self._output.add(self.gangs.schedule(entry, self._output.now))
            return
        pod = self._backlog.nominator.as_nominated(entry.pod)
        profile = self._profiles.get(pod.scheduler_name)
        if profile is None or self._is_beyond_scheduling(pod):
            self._backlog.done(pod.uid)
            return
        cycle = self._cycle(pod, profile)
        self._conclude(entry, cycle, self._attempt(entry, cycle))

    def _cycle(self, pod: Pod, profile: Profile) -> Cycle:
        parts = self._parts
        return Cycle(
            pod=pod, cluster=self._cluster, profile=profile, now=self._output.now, rng=parts.rng, effects=parts.effects
        )

    def _conclude(self, entry: Entry, cycle: Cycle, outcome: Committed | Failure | Rescue) -> None:
        if isinstance(outcome, Committed):
            self._parts.binding_driver.begin(entry, cycle, outcome, self)
        elif isinstance(outcome, Rescue):
            self._make_room(entry, outcome)
        else:
            self._fail(entry, outcome)

    def _attempt(self, entry: Entry, cycle: Cycle, preferred_row: int = -1) -> Committed | Failure | Rescue:
        evaluator, meter = self.evaluators[cycle.profile.name], self._output.meter
        promised = self._promised
        search = Search(self._last_search, promised.while_placing(cycle.pod), promised.log, preferred_row=preferred_row)
        if meter is None:
            return attempt(cycle, evaluator, search)
        cycle.meter = meter.for_next_cycle()
        entry.began = meter.clock()
        outcome = attempt(cycle, evaluator, search)
        scored = isinstance(outcome, Committed) and outcome.placed.runner_up is not None
        meter.attempted(cycle, meter.clock() - entry.began, scored=scored)
        return outcome

    def _is_beyond_scheduling(self, pod: Pod) -> bool:
        pod_state = self._cluster.pods.get(pod.uid)
        if pod_state is None or pod_state.place is not _PENDING:
            return True
        if pod_state.seen.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._output.event(pod, kind="Warning", reason="FailedScheduling", action="Scheduling", note=note)
            return True
        return False

    def _fail(self, entry: Entry, failure: Failure) -> None:
        pod_state = self._cluster.pods.get(entry.pod.uid)
        if pod_state is None or pod_state.seen.node_name:
            self._backlog.done(entry.pod.uid)
            return
        pod = entry.pod = pod_state.seen
        entry.refuse(failure.unschedulable_plugins, failure.pending_plugins, message=failure.message)
        self._backlog.put_back(entry, self._output.now)
        self._output.refused(entry, pod, failure)

    def _make_room(self, entry: Entry, rescue: Rescue) -> None:
        """Evictions begin; the pod goes back to the queue with the promise of a node."""
        rescued = rescue.rescued
        assert rescued.nominated
        self._output.add(self.evictions.begin(entry.pod, rescued.nominated, rescued.victims, self._output.now))
        self._fail(entry, rescue.failure)
        self._parts.binding_driver.look_after(self._parts.bindings.ended())

    # ---- bindings ----

    def holds(self, binding: Binding) -> bool:
        return self.gangs.holds(binding, self._output.now)

    def permitted(self, binding: Binding) -> None:
        self.gangs.permitted(binding)

    def failed(self, binding: Binding, freed: Pod | None) -> None:
        """The pod waits again. The place that it gives up is news for others, and for this pod unless it was
        refused."""
        assert binding.status is not None
        rejected, now = binding.status.code.rejected, self._output.now
        if freed is not None and not rejected:
            self._backlog.move(ASSIGNED_POD_DELETE, freed, None, now)
        failure = replace(refused_on_node(binding.status), announced=binding.announced)
        promised = not rejected and self._backlog.nominator.has_promised(binding.pod.uid)
        keeps = binding.ending.keeps_nomination or promised
        self._fail(binding.entry, replace(failure, nominated=None) if keeps else failure)
        if freed is not None and rejected:
            self._backlog.move(ASSIGNED_POD_DELETE, freed, None, now, only=_missed(binding, keeps=keeps))
        self.gangs.refused(binding)

    def try_again(self, binding: Binding) -> None:
        """A gang's member whose bind failed: the same place once more if it still fits, before anybody else comes."""
        entry, pod = binding.entry, binding.pod
        self._parts.bindings.end(binding)
        self._parts.binding_driver.give_back(binding)
        pod_state = self._cluster.pods.get(pod.uid)
        profile = self._profiles.get(pod.scheduler_name)
        if pod_state is None or pod_state.place is not _PENDING or profile is None:
            self._backlog.done(pod.uid)  # it is gone, or it was bound after all
            return
        entry.pod = pod_state.seen
        cycle = self._cycle(pod_state.seen, profile)
        outcome = self._attempt(entry, cycle, preferred_row=binding.row)
        if isinstance(outcome, Committed):
            permission = self.gangs.rejoined(binding, outcome.permission)
            self._parts.binding_driver.begin(entry, cycle, Committed(outcome.placed, permission), self)
        else:
            self._conclude(entry, cycle, outcome)
            self.gangs.lost_place(pod_state.gang)

    # ---- explanations ----

    def about_group(self, namespace: str, name: str, lacks_of: LacksOf) -> GangExplanation | None:
        """All that is known about a gang: its last attempt, or what it waits for."""
        cluster = self._cluster
        for gang in cluster.gangs.named(namespace, name):
            places = (self._backlog.where(uid) for uid in gang.members)
            waiting = next((place for place in places if place is not None), None)
            return explain_gang(gang, self._gang_explanations.of(gang.key), waiting, cluster.table, lacks_of)
        return explain_plugin_gang(
            namespace, name, self._profiles.values(), cluster, self._output.explanations, lacks_of
        )

    def lack_explainers(self, scheduler_name: str) -> Sequence[object]:
        profile = self._profiles.get(scheduler_name)
        return () if profile is None else profile.plugins()

    def promised(self, priority: int) -> Iterator[tuple[int, Pod]]:
        """Nodes of pods that wait for their victims."""
        nominator, row_of = self._backlog.nominator, self._cluster.table.row_of
        for name in sorted(nominator.nodes):
            for pod in nominator.on_node(name) if name in row_of else ():
                if pod.priority >= priority:
                    yield row_of[name], pod


def _missed(binding: Binding, *, keeps: bool) -> Callable[[Entry], bool]:
    """Who may have missed the place that a refused pod gives back: every other pod. If a group gives the place back,
    only those whose last attempt found it taken or promised: two groups that each find half of their room would
    otherwise wake each other for ever."""
    together, gives_up_promise = binding.ending.together, bool(binding.cycle.pod.nominated_node) and not keeps
    since = binding.entry.cycle if together and not gives_up_promise else -1
    own = together | {binding.pod.uid}
    return lambda entry: entry.pod.uid not in own and entry.cycle > since
