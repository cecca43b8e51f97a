"""Scheduler: the Controller that places pods. Read this file top to bottom to follow a pod from the watch to the bind.

    step: changes ─▶ Intake ─▶ Cluster, Backlog      what happened, and whom it wakes
          replies ─▶ Bindings                        what became of earlier writes
          Backlog.pop ─▶ attempt ─▶ Binding ─▶ writes      the next pods, as many as one slice allows

Changes are taken in only here, between attempts; that is the snapshot: while a pod is being placed nobody else writes,
so the table needs no copy. A slice is a count and not a duration, so a run is the same on a fast and a slow machine.
Nothing is logged; `decisions` is data for telemetry and whoever else reads it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Sized
from random import Random
from typing import TYPE_CHECKING

from fairlead.engine.cycle.attempt import Committed, Rescue, attempt, refused_on_node, undo
from fairlead.engine.cycle.binding import Binding, BindingStage, told_after_binding
from fairlead.engine.cycle.events import EventRecorder
from fairlead.engine.cycle.evictions import Evictions
from fairlead.engine.cycle.outcome import Failure, status_patch
from fairlead.engine.cycle.placement import Placed, ScoredRow, Search
from fairlead.engine.cycle.under_way import BindingsUnderWay
from fairlead.engine.explain import answers
from fairlead.engine.explain.decisions import DecisionLog
from fairlead.engine.explain.gang import GangExplanations
from fairlead.engine.explain.pod import Explanations
from fairlead.engine.gangs.driver import GangDriver
from fairlead.engine.guard import Guard
from fairlead.engine.intake import Intake
from fairlead.engine.options import Options as Options
from fairlead.engine.queue.backlog import Backlog
from fairlead.engine.queue.entry import Entry
from fairlead.engine.queue.hints import interests_of_extenders
from fairlead.engine.queue.promised import Promised
from fairlead.engine.rounds.driver import RoundDriver
from fairlead.engine.rounds.tally import bound, watched
from fairlead.engine.rounds.writes import orphaned_layouts
from fairlead.errors import NotFound, NotSent
from fairlead.framework.cycle import Cycle
from fairlead.framework.evaluate import Evaluator
from fairlead.framework.points import Permission
from fairlead.model import kinds
from fairlead.model.events import ASSIGNED_POD_DELETE
from fairlead.model.figures import Decision
from fairlead.model.flow import Change, Reply, Watch, Write
from fairlead.state.cluster import Cluster, PodPlace
from fairlead.state.object_index import indexed_watches

if TYPE_CHECKING:
    from fairlead.framework.job import Task
    from fairlead.framework.meter import Meter
    from fairlead.framework.profile import Profile
    from fairlead.model.explanation import Explanation
    from fairlead.model.gang_explanation import GangExplanation
    from fairlead.model.pod import Pod
    from fairlead.model.queue_explanation import JobExplanation, QueueExplanation

LIVING_PODS = Watch(kinds.POD, field_selector="status.phase!=Succeeded,status.phase!=Failed")
"""A pod that ends arrives as a deletion."""


class Scheduler:
    def __init__(self, profiles: Sequence[Profile], options: Options | None = None) -> None:
        self.options = options or Options()
        self.name = self.options.name
        rounds = any(profile.rounds for profile in profiles)
        pods = Watch(kinds.POD) if rounds else LIVING_PODS
        self.watches: Sequence[Watch] = (pods, Watch(kinds.NODE), *indexed_watches(rounds=rounds))
        self._owners = 0
        """How many kinds of owners are watched."""
        self.cluster = Cluster()
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}
        self.evaluators = {profile.name: Evaluator(profile) for profile in profiles}
        self.backlog = Backlog(
            self.profiles,
            self.cluster,
            initial_backoff=self.options.initial_backoff,
            max_backoff=self.options.max_backoff,
            unschedulable_limit=self.options.unschedulable_limit,
            extra_interests=interests_of_extenders(profiles),
        )
        self.intake = Intake(
            self.cluster,
            self.backlog,
            serves=self._serves,
            assumed_pod_goes=self._assumed_pod_goes,
        )
        self.explanations = Explanations(self.cluster.table)
        self.gang_explanations = GangExplanations(self.cluster.table)
        self.decisions = DecisionLog()
        self.meter: Meter | None = None
        """Whoever wants times measured brings a clock."""
        self.bindings = BindingsUnderWay()
        self.guard = Guard(self.cluster, self.bindings, self.backlog.complaints)
        self._binding_of_write: dict[Write, Binding] = {}
        self._recorder = EventRecorder(self.options.instance)
        self.evictions = Evictions(self.cluster, self.backlog, self._recorder, self.bindings)
        self._search = Search()
        self._promised = Promised(self.backlog.nominator, self.cluster.table)
        self._rng = Random(self.options.seed)
        self.drivers: list[RoundDriver] = []
        self._follow_rounds(profiles)
        self.gangs = GangDriver(
            self.cluster, self.backlog, self.bindings, self.evictions,
            explanations=self.gang_explanations, recorder=self._recorder, search=self._search, promised=self._promised,
            rng=self._rng, begin=self._begin_binding, advance=self._advance, end=self._end_binding, report=self._report,
        )  # fmt: skip
        self.gangs.reconfigure(self.profiles, self.evaluators)
        self.interrupted_by: Sized = ()
        """While this holds something, a step makes one more attempt at most. A runtime puts its questions here."""
        self._writes: list[Write] = []
        self._now = 0.0

    # ---- the Controller ----

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        """Whatever raises in here costs one object its turn; see guard.py."""
        self._now, self._writes = now, []
        self.guard.take_in(changes, now, self.intake.take)
        self._hear(replies)
        if self._needs_owners():
            return self._writes
        self.backlog.flush(now)
        if changes:
            self._look_after_bindings(self.bindings.preparing())
        self.guard.do("looking after gangs", self._look_after_gangs)
        self._look_after_bindings(self.bindings.due(now, self.cluster.table.alive))
        for _ in range(self.options.slice):
            entry = None if self._is_held_up() else self.backlog.pop(now)
            if entry is None:
                break
            self._try(entry)
            if self.interrupted_by:
                break
        if not self._is_held_up():
            self.guard.do("rounds", self._run_rounds, changes)
        self.guard.tick(now)
        if self.cluster.to_write:
            self._writes += self.cluster.to_write
            self.cluster.to_write = []
        return self._writes

    def _look_after_gangs(self) -> None:
        self._writes += self.gangs.look_after(self._now) + self.evictions.repeat(self._now)

    def _is_held_up(self) -> bool:
        """Whether so many binds have no answer yet that more placements would only wait in line."""
        most = self.options.unanswered_binds
        return len(self.bindings) >= most and self.bindings.unanswered >= most

    def _needs_owners(self) -> bool:
        """Whether pods came that are a gang because of an owner of a kind that nobody watches yet. Nobody is placed
        before its objects have been seen: a gang that is half bound comes first, and owners know which is."""
        wanted = self.cluster.gangs.owned.wanted
        more = [Watch(kind, optional=True) for kind in wanted[self._owners :]]
        self._owners = len(wanted)
        self.watches = (*self.watches, *more)
        return bool(more)

    def wake_at(self) -> float | None:
        times = [self.bindings.wake_at(), self.gangs.wake_at(), self.evictions.wake_at()]
        if not self._is_held_up():  # otherwise an answer is what wakes us
            times.append(self.backlog.wake_at(self._now))
            times += [driver.wake_at(self._now) for driver in self.drivers]
        return min([at for at in times if at is not None], default=None)

    def explain(self, namespace: str, name: str) -> Explanation | None:
        """All that is known about one pod: its last attempt, and where it is now."""
        return answers.about_pod(self, namespace, name)

    def explain_group(self, namespace: str, name: str) -> GangExplanation | JobExplanation | None:
        """All that is known about one group, of whatever API: its last attempt, or what it waits for."""
        return answers.about_group(self, namespace, name)

    def explain_queue(self, name: str) -> QueueExplanation | None:
        """What a queue holds and may hold, as the last round counted it."""
        return answers.about_queue(self, name)

    def reconfigure(
        self, profiles: Sequence[Profile], *, initial_backoff: float | None = None, max_backoff: float | None = None
    ) -> None:
        """Other policies from now on. Pods keep their places in the queue and on nodes."""
        self.profiles = {profile.name: profile for profile in profiles}
        self.evaluators = {profile.name: Evaluator(profile) for profile in profiles}
        self.backlog.reconfigure(
            self.profiles,
            self._now,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            extra_interests=interests_of_extenders(profiles),
        )
        self.gangs.reconfigure(self.profiles, self.evaluators)
        self._follow_rounds(profiles)

    # ---- rounds ----

    def _serves(self, scheduler_name: str) -> bool:
        """Whether pods of this name queue here one by one."""
        profile = self.profiles.get(scheduler_name)
        return profile is not None and profile.rounds is None

    def _follow_rounds(self, profiles: Sequence[Profile]) -> None:
        """One driver per profile that works in rounds; a round that is under way ends as it began."""
        known = {driver.profile.name: driver for driver in self.drivers}
        self.drivers = []
        for profile in profiles:
            if profile.rounds is None:
                continue
            driver = known.get(profile.name)
            if driver is None:
                driver = RoundDriver(
                    profile, self.cluster, self._recorder, self._rng, self.backlog.complaints, self.guard.quarantine
                )
            else:
                driver.reconfigure(profile)
            self.drivers.append(driver)

    def _run_rounds(self, changes: Sequence[Change]) -> None:
        if self.drivers:
            self._writes += orphaned_layouts(changes, self.cluster.object_index.of(kinds.VC_NUMATOPOLOGY))
        for driver in self.drivers:
            driver.meter = self.meter
            if self.meter is not None:
                self.meter.lapses.extend(watched(changes, driver.rounds.scheduler_names, self._now))
            if changes:
                driver.noticed(self._now)
            placed, writes = driver.step(self._now, self.interrupted_by)
            self._writes += writes
            for task, row in placed:
                self._bind_placed(driver, task, row)

    def _bind_placed(self, driver: RoundDriver, task: Task, row: int) -> None:
        """A pod that a round placed goes the way of any other."""
        cycle = driver.cycle_of(task, self.cluster, self._now, self._rng)
        entry = Entry(task.pod, self._now, attempts=1, first_attempt=self._now)
        placed = Placed(
            row, feasible=driver.fitting(task), judged=len(self.cluster.table), chosen=ScoredRow(row, 0, ())
        )
        self._begin_binding(entry, cycle, Committed(placed, Permission()))

    # ---- one attempt ----

    def _try(self, entry: Entry) -> None:
        failure = self.guard.attempt(entry, self._now, self._schedule)
        if failure is not None and entry.gang is None:
            self._fail(entry, failure)
        elif failure is not None:
            self.gangs.fail(entry, failure, self._now)

    def _schedule(self, entry: Entry) -> None:
        if entry.gang is not None:
            self._writes += self.gangs.schedule(entry, self._now, self.meter)
            return
        pod = entry.pod
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None or self._is_beyond_scheduling(pod):
            self.backlog.done(pod.uid)
            return
        cycle = Cycle(pod=pod, cluster=self.cluster, profile=profile, now=self._now, rng=self._rng)
        self._search.nominated, self._search.promises = self._promised.while_placing(pod), self._promised.log
        self._conclude(entry, cycle, self._attempt(entry, cycle))

    def _conclude(self, entry: Entry, cycle: Cycle, outcome: Committed | Failure | Rescue) -> None:
        if isinstance(outcome, Committed):
            self._begin_binding(entry, cycle, outcome)
        elif isinstance(outcome, Rescue):
            self._make_room(entry, outcome)
        else:
            self._fail(entry, outcome)

    def _attempt(self, entry: Entry, cycle: Cycle) -> Committed | Failure | Rescue:
        evaluator, meter = self.evaluators[cycle.profile.name], self.meter
        if meter is None:
            return attempt(cycle, evaluator, self._search)
        cycle.meter = meter.for_next_cycle()
        entry.began = meter.clock()
        outcome = attempt(cycle, evaluator, self._search)
        scored = isinstance(outcome, Committed) and outcome.placed.runner_up is not None
        meter.attempted(cycle, meter.clock() - entry.began, scored=scored)
        return outcome

    def _is_beyond_scheduling(self, pod: Pod) -> bool:
        pod_state = self.cluster.pods.get(pod.uid)
        if pod_state is None or pod_state.place is not PodPlace.PENDING:
            return True
        if pod_state.seen.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self._record(pod, kind="Warning", reason="FailedScheduling", action="Scheduling", note=note)
            return True
        return False

    # ---- success ----

    def _begin_binding(self, entry: Entry, cycle: Cycle, committed: Committed) -> None:
        pod = entry.pod
        self.backlog.nominator.clear(pod.uid)
        binding = Binding(entry, cycle, committed.placed, committed.permission, now=self._now)
        self.bindings[pod.uid] = binding
        self.explanations.placed(entry, committed.placed, cycle, now=self._now)
        if binding.open():
            patch = status_patch(pod, now=self._now, nominated=binding.node_name)
            if patch is not None:
                self._writes.append(patch)
        self._advance(binding)

    def _advance(self, binding: Binding, replies: Sequence[Reply] = ()) -> None:
        before = binding.past_permit
        writes = binding.advance(self._now, replies)
        for write in writes:
            self._binding_of_write[write] = binding
        self._writes += writes
        if binding.past_permit and not before:
            self.backlog.done(binding.pod.uid)
        if binding.stage is BindingStage.ENDED:
            self._end_binding(binding)
            return
        self.bindings.attend(binding)
        if binding.stage is BindingStage.WAITING and binding.entry.pod.group_ref is not None:
            self.gangs.permitted(binding)

    def _end_binding(self, binding: Binding) -> None:
        pod = binding.pod
        if binding.status is not None:
            if self.gangs.holds(binding, self._now):
                self.bindings.attend(binding)
            else:
                self.bindings.end(binding)
                self._binding_failed(binding)
                self.gangs.refused(binding)
            return
        self.bindings.end(binding)
        self.backlog.done(pod.uid)
        note = f"Successfully assigned {pod.key} to {binding.node_name}"
        self._record(pod, kind="Normal", reason="Scheduled", action="Binding", note=note)
        if self.meter is not None and binding.cycle.profile.rounds is not None:
            self.meter.lapses.extend(bound(binding, self._now))
        self.explanations.bound(pod.uid)
        told_after_binding(binding.cycle, binding.row)
        self._decide(binding.entry, pod, "scheduled", node=binding.node_name)

    def _binding_failed(self, binding: Binding) -> None:
        """The place is given up; that is news for others, and for this pod unless it was refused."""
        assert binding.status is not None
        pod, rejected = binding.pod, binding.status.code.rejected
        freed = undo(binding.cycle, binding.row)
        if binding.cycle.profile.rounds is not None:
            self._give_up(binding)
            return
        if freed is not None and not rejected:
            self.backlog.move(ASSIGNED_POD_DELETE, freed, None, self._now)
        self._fail(binding.entry, refused_on_node(binding.status))
        if freed is not None and rejected:
            self.backlog.move(ASSIGNED_POD_DELETE, freed, None, self._now, only=lambda other: other.uid != pod.uid)

    def _give_up(self, binding: Binding) -> None:
        """A placement by a round that did not come to be: the pod waits for the next round."""
        assert binding.status is not None
        message = f"failed to bind to node {binding.node_name}: {binding.status.message}"
        self._record(binding.pod, kind="Warning", reason="FailedScheduling", action="Binding", note=message)
        pod_state = self.cluster.pods.get(binding.pod.uid)
        if pod_state is not None and not pod_state.seen.node_name:
            patch = status_patch(pod_state.seen, now=self._now, reason="SchedulerError", message=message)
            if patch is not None:
                self._writes.append(patch)
        for driver in self.drivers:  # the patch may say nothing new, and then no change wakes the next round
            driver.noticed(self._now)
        self._decide(binding.entry, binding.pod, "error", message=message)

    # ---- failure ----

    def _fail(self, entry: Entry, failure: Failure) -> None:
        pod_state = self.cluster.pods.get(entry.pod.uid)
        if pod_state is None or pod_state.seen.node_name:
            self.backlog.done(entry.pod.uid)
            return
        pod = entry.pod = pod_state.seen
        entry.refuse(failure.unschedulable_plugins, failure.pending_plugins, message=failure.message)
        self.backlog.put_back(entry, self._now)
        self._report(entry, pod, failure)

    def _report(self, entry: Entry, pod: Pod, failure: Failure) -> None:
        """Say everywhere why a pod has no node: on itself, in an event, in its explanation."""
        self.backlog.nominator.nominate(pod, failure.nominated)
        self._record(pod, kind="Warning", reason="FailedScheduling", action="Scheduling", note=failure.message)
        patch = status_patch(
            pod, now=self._now, reason=failure.reason, message=failure.message, nominated=failure.nominated
        )
        if patch is not None:
            self._writes.append(patch)
        rejected = failure.status.code.rejected
        nominated = self.backlog.nominator.node_of(pod.uid)
        self.explanations.refused(entry, pod, failure, now=self._now, nominated=nominated)
        self._decide(entry, pod, "unschedulable" if rejected else "error", message=failure.message)

    def _make_room(self, entry: Entry, rescue: Rescue) -> None:
        """Evictions begin; the pod goes back to the queue with the promise of a node."""
        rescued = rescue.rescued
        assert rescued.nominated
        self._writes += self.evictions.begin(entry.pod, rescued.nominated, rescued.victims, self._now)
        self._fail(entry, rescue.failure)
        self._look_after_bindings(self.bindings.ended())

    def _assumed_pod_goes(self, pod: Pod) -> Pod | None:
        """A pod that is on its way to a node was deleted. If it still waits for permission it is refused; otherwise
        its place is forgotten, and the API will refuse the binding. Returns the pod as it was placed."""
        binding = self.bindings.get(pod.uid)
        if binding is not None and binding.reject("", "removed"):
            self._end_binding(binding)
            return None
        return self.cluster.forget(pod.uid)

    # ---- bindings that are under way ----

    def _hear(self, replies: Sequence[Reply]) -> None:
        heard: dict[Binding, list[Reply]] = {}
        for reply in replies:
            binding = self._binding_of_write.pop(reply.write, None)
            if binding is not None:
                heard.setdefault(binding, []).append(reply)
        for binding, own in heard.items():
            if binding.stage is not BindingStage.ENDED:
                self._follow(binding, self._advance, own)
        self._writes += self.evictions.hear(replies, self._now)
        if self.drivers and any(_is_worth_another_look(reply) for reply in replies):
            for driver in self.drivers:
                driver.noticed(self._now)

    def _look_after_bindings(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            if self.bindings.get(binding.pod.uid) is binding:  # otherwise it ended with another of its gang
                self._follow(binding, self._look_after)

    def _look_after(self, binding: Binding) -> None:
        if binding.stage is BindingStage.ENDED:
            self._end_binding(binding)
        elif binding.stage is BindingStage.HELD:
            self._try_again(binding)
        else:
            self._advance(binding, ())

    def _follow(self, binding: Binding, work: Callable[..., None], *arguments: object) -> None:
        """A binding's next step. If that raises, the binding ends as one that was refused."""
        if (
            not self.guard.follow(binding, self._now, work, *arguments)
            and self.bindings.get(binding.pod.uid) is binding
        ):
            self.bindings.end(binding)
            self.guard.do("ending a binding", self._binding_failed, binding)

    def _try_again(self, binding: Binding) -> None:
        """A gang's member whose bind failed: the same place once more if it still fits, before anybody else comes."""
        entry, pod = binding.entry, binding.pod
        self.bindings.end(binding)
        undo(binding.cycle, binding.row)
        pod_state = self.cluster.pods.get(pod.uid)
        profile = self.profiles.get(pod.scheduler_name)
        if pod_state is None or pod_state.place is not PodPlace.PENDING or profile is None:
            self.backlog.done(pod.uid)  # it is gone, or it was bound after all
            return
        entry.pod = pod_state.seen
        cycle = Cycle(pod=pod_state.seen, cluster=self.cluster, profile=profile, now=self._now, rng=self._rng)
        self._search.nominated, self._search.promises = self._promised.while_placing(binding.pod), self._promised.log
        self._search.wish = binding.row
        outcome = self._attempt(entry, cycle)
        self._search.wish = -1
        if isinstance(outcome, Committed):
            permission = self.gangs.rejoined(binding, outcome.permission)
            self._begin_binding(entry, cycle, Committed(outcome.placed, permission))
        else:
            self._conclude(entry, cycle, outcome)
            self.gangs.lost_place(pod_state.gang)

    # ---- telling ----

    def _record(self, pod: Pod, *, kind: str, reason: str, action: str, note: str) -> None:
        self._writes += self._recorder.record(
            pod, now=self._now, controller=pod.scheduler_name, kind=kind, reason=reason, action=action, note=note
        )

    def _decide(self, entry: Entry, pod: Pod, result: str, *, node: str = "", message: str = "") -> None:
        waited = self._now - (entry.first_attempt if entry.first_attempt is not None else self._now)
        decision = Decision(
            self._now, pod.scheduler_name, pod.key, pod.uid, result,
            node=node, message=message, attempts=entry.attempts, waited=waited,
            took=None if self.meter is None else self.meter.clock() - entry.began,
        )  # fmt: skip
        self.decisions.append(decision)


def _is_worth_another_look(reply: Reply) -> bool:
    """Whether a write failed that a round would ask for again: no change will tell it to."""
    ordinary = reply.error is None or isinstance(reply.error, NotFound | NotSent)
    return not ordinary and reply.write.subresource != "binding"
