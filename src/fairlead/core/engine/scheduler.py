"""Scheduler: the Controller that places pods. Read this file top to bottom to follow a pod from the watch to the bind.

    step: changes ─▶ Intake ─▶ Cluster, Backlog      what happened, and whom it wakes
          replies ─▶ BindingDriver                   what became of earlier writes
          Turns.next ─▶ attempt ─▶ BindingDriver ─▶ StepOutput      the next pods, as many as one slice allows

Changes are taken in only here, between attempts; that is the snapshot: while a pod is being placed nobody else writes,
so the table needs no copy. A slice is a count and not a duration, so a run is the same on a fast and a slow machine.
Nothing is logged; `decisions` is data for telemetry and whoever else reads it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Sized
from random import Random
from typing import TYPE_CHECKING

from fairlead.core.engine.binding_driver import BindingDriver
from fairlead.core.engine.cycle.attempt import Committed, Rescue, attempt, undo
from fairlead.core.engine.cycle.choice import FirstOfEquals
from fairlead.core.engine.cycle.events import EventRecorder
from fairlead.core.engine.cycle.evictions import Evictions
from fairlead.core.engine.cycle.placement import Placed, ScoredRow, Search
from fairlead.core.engine.cycle.under_way import BindingsUnderWay
from fairlead.core.engine.explain import answers
from fairlead.core.engine.explain.decisions import DecisionLog
from fairlead.core.engine.explain.eviction_ledger import EvictionLedger
from fairlead.core.engine.explain.gang import GangExplanations
from fairlead.core.engine.explain.pod import Explanations
from fairlead.core.engine.gangs.driver import GangDriver
from fairlead.core.engine.guard import Guard
from fairlead.core.engine.intake import Intake
from fairlead.core.engine.options import Options as Options
from fairlead.core.engine.queue.backlog import Backlog
from fairlead.core.engine.queue.entry import Entry
from fairlead.core.engine.queue.hints import interests_of_extenders
from fairlead.core.engine.queue.promised import Promised
from fairlead.core.engine.step_output import StepOutput
from fairlead.core.engine.turns import Turns
from fairlead.core.engine.upkeep import Upkeep
from fairlead.core.engine.watching import watches_of
from fairlead.core.framework.cycle import Cycle
from fairlead.core.framework.evaluate import Evaluator
from fairlead.core.framework.points import Permission
from fairlead.core.model import kinds
from fairlead.core.model.flow import Change, Reply, Watch, Write
from fairlead.core.state.cluster import Cluster, PodPlace
from fairlead.errors import NotFound, NotSent
from fairlead.volcano.rounds.driver import RoundDriver
from fairlead.volcano.rounds.tally import watched
from fairlead.volcano.rounds.writes import orphaned_layouts

if TYPE_CHECKING:
    from fairlead.core.engine.cycle.binding import Binding
    from fairlead.core.engine.cycle.outcome import Failure
    from fairlead.core.framework.meter import Meter
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.explanation import Explanation
    from fairlead.core.model.gang_explanation import GangExplanation
    from fairlead.core.model.pod import Pod
    from fairlead.volcano.records.queue_explanation import JobExplanation, QueueExplanation
    from fairlead.volcano.rounds.job import Task

_PENDING = PodPlace.PENDING
"""Asked for too often to be looked up on the Enum."""


class Scheduler:
    def __init__(self, profiles: Sequence[Profile], options: Options | None = None) -> None:
        self.options = options or Options()
        self.name = self.options.name
        self.watches: Sequence[Watch] = watches_of(profiles)
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
        self.explanations = Explanations(self.cluster.table)
        self.gang_explanations = GangExplanations(self.cluster.table)
        self.decisions = DecisionLog()
        self.meter: Meter | None = None
        """Whoever wants times measured brings a clock."""
        self.bindings = BindingsUnderWay()
        self.guard = Guard(self.cluster, self.bindings, self.backlog.complaints)
        self._recorder = EventRecorder(self.options.instance, announces=self.options.announces)
        self.evictions = Evictions(self.cluster, self.backlog, self._recorder, self.bindings)
        self.output = StepOutput(self._recorder, self.explanations, self.decisions, self.backlog.nominator)
        self.binding_driver = BindingDriver(
            self.cluster, self.backlog, self.bindings, self.guard, output=self.output, explanations=self.explanations,
            fail=self._fail, try_again=self._try_again, notice_rounds=self._notice_rounds,
        )  # fmt: skip
        self.intake = Intake(
            self.cluster, self.backlog, serves=self._serves, assumed_pod_goes=self.binding_driver.assumed_pod_goes
        )
        self._search = Search()
        self._promised = Promised(self.backlog.nominator, self.cluster.table)
        self._rng = FirstOfEquals() if self.options.first_of_equals else Random(self.options.seed)
        self.drivers: list[RoundDriver] = []
        self._follow_rounds(profiles)
        self.gangs = GangDriver(
            self.cluster, self.backlog, self.bindings, self.evictions,
            explanations=self.gang_explanations, recorder=self._recorder, search=self._search, promised=self._promised,
            rng=self._rng, binding_driver=self.binding_driver, output=self.output,
        )  # fmt: skip
        self.binding_driver.gangs = self.gangs
        self.gangs.reconfigure(self.profiles, self.evaluators)
        self.turns = Turns(profiles, self.cluster, self.backlog, self.bindings, self.binding_driver.look_after)
        self.upkeep = Upkeep(profiles, self.cluster)
        self.ledger = EvictionLedger(self.options.evictions_in)
        self.interrupted_by: Sized = ()
        """While this holds something, a step makes one more attempt at most. A runtime puts its questions here."""
        self._now = 0.0

    # ---- the Controller ----

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        """Whatever raises in here costs one object its turn; see guard.py."""
        self._now = now
        self.output.meter = self.meter
        self.output.begin(now)
        self.guard.take_in(changes, now, self.intake.take)
        self._hear(replies)
        if self._needs_owners():
            return self.output.writes
        self.backlog.flush(now)
        if changes:
            self.binding_driver.look_after(self.bindings.preparing())
        self.guard.do("looking after gangs", self._look_after_gangs)
        self.binding_driver.look_after(self.bindings.due(now, self.cluster.table.alive))
        self.guard.do("looking after statuses", self.upkeep.step, now, self.output.writes)
        for _ in range(self.options.slice):
            entry = None if self._is_held_up() else self.turns.next(now)
            if entry is None:
                break
            self._try(entry)
            if self.interrupted_by:
                break
        if self.drivers and not self._is_held_up():
            self.guard.do("rounds", self._run_rounds, changes)
        self.guard.tick(now)
        if self.cluster.to_write:
            self.output.writes += self.cluster.to_write
            self.cluster.to_write = []
        self.output.writes += self.ledger.note(self.output.writes, self.cluster, now)
        return self.output.writes

    def _look_after_gangs(self) -> None:
        self.output.writes += self.gangs.look_after(self._now) + self.evictions.repeat(self._now)

    def _is_held_up(self) -> bool:
        """Whether so many binds have no answer yet that more placements would only wait in line."""
        most = self.options.unanswered_binds
        return len(self.bindings) >= most and self.bindings.unanswered >= most

    def _needs_owners(self) -> bool:
        """Whether pods came that are a gang because of an owner of a kind that nobody watches yet. Nobody is placed
        before its objects have been seen: a gang that is half bound comes first, and owners know which is."""
        wanted = self.cluster.gangs.owned.wanted
        if len(wanted) == self._owners:
            return False
        self.watches = (*self.watches, *(Watch(kind, optional=True) for kind in wanted[self._owners :]))
        self._owners = len(wanted)
        return True

    def wake_at(self) -> float | None:
        times = [self.bindings.wake_at(), self.gangs.wake_at(), self.evictions.wake_at(), self.upkeep.wake_at()]
        if not self._is_held_up():  # otherwise an answer is what wakes us
            times.append(self._now if self.turns.go_on else None)
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

    @property
    def now(self) -> float:
        """The time of the last step."""
        return self._now

    def unanswered(self) -> list[Write]:
        """Writes of bindings and evictions that have no reply yet."""
        return [*self.binding_driver.unanswered(), *self.evictions.unanswered()]

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
        self.turns.reconfigure(profiles)
        self.upkeep.reconfigure(profiles)
        known = {watch.kind for watch in self.watches}
        self.watches = (*self.watches, *(watch for watch in watches_of(profiles) if watch.kind not in known))
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
        self.output.writes += orphaned_layouts(changes, self.cluster.object_index.of(kinds.VC_NUMATOPOLOGY))
        for driver in self.drivers:
            driver.meter = self.meter
            if self.meter is not None:
                self.meter.lapses.extend(watched(changes, driver.rounds.scheduler_names, self._now))
            if changes:
                driver.noticed(self._now)
            placed, writes = driver.step(self._now, self.interrupted_by)
            self.output.writes += writes
            for task, row in placed:
                self._bind_placed(driver, task, row)

    def _bind_placed(self, driver: RoundDriver, task: Task, row: int) -> None:
        """A pod that a round placed goes the way of any other."""
        cycle = driver.cycle_of(task, self.cluster, self._now, self._rng)
        entry = Entry(task.pod, self._now, attempts=1, first_attempt=self._now)
        placed = Placed(
            row, feasible=driver.fitting(task), judged=len(self.cluster.table), chosen=ScoredRow(row, 0, ())
        )
        self.binding_driver.begin(entry, cycle, Committed(placed, Permission()))

    # ---- one attempt ----

    def _try(self, entry: Entry) -> None:
        failure = self.guard.attempt(entry, self._now, self._schedule)
        if failure is not None and entry.gang is None:
            self._fail(entry, failure)
        elif failure is not None:
            self.gangs.fail(entry, failure, self._now)

    def _schedule(self, entry: Entry) -> None:
        if entry.gang is not None:
            self.output.writes += self.gangs.schedule(entry, self._now, self.meter)
            return
        pod = self.backlog.nominator.as_nominated(entry.pod)
        profile = self.profiles.get(pod.scheduler_name)
        if profile is None or self._is_beyond_scheduling(pod):
            self.backlog.done(pod.uid)
            return
        cycle = Cycle(pod=pod, cluster=self.cluster, profile=profile, now=self._now, rng=self._rng)
        self._search.nominated, self._search.promises = self._promised.while_placing(pod), self._promised.log
        self._conclude(entry, cycle, self._attempt(entry, cycle))

    def _conclude(self, entry: Entry, cycle: Cycle, outcome: Committed | Failure | Rescue) -> None:
        if isinstance(outcome, Committed):
            self.binding_driver.begin(entry, cycle, outcome)
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
        if pod_state is None or pod_state.place is not _PENDING:
            return True
        if pod_state.seen.terminating:
            note = f"skip schedule deleting pod: {pod.key}"
            self.output.event(pod, kind="Warning", reason="FailedScheduling", action="Scheduling", note=note)
            return True
        return False

    # ---- failure ----

    def _fail(self, entry: Entry, failure: Failure) -> None:
        pod_state = self.cluster.pods.get(entry.pod.uid)
        if pod_state is None or pod_state.seen.node_name:
            self.backlog.done(entry.pod.uid)
            return
        pod = entry.pod = pod_state.seen
        entry.refuse(failure.unschedulable_plugins, failure.pending_plugins, message=failure.message)
        self.backlog.put_back(entry, self._now)
        self.output.refused(entry, pod, failure)

    def _make_room(self, entry: Entry, rescue: Rescue) -> None:
        """Evictions begin; the pod goes back to the queue with the promise of a node."""
        rescued = rescue.rescued
        assert rescued.nominated
        self.output.writes += self.evictions.begin(entry.pod, rescued.nominated, rescued.victims, self._now)
        self._fail(entry, rescue.failure)
        self.binding_driver.look_after(self.bindings.ended())

    # ---- bindings that are under way ----

    def _hear(self, replies: Sequence[Reply]) -> None:
        self.binding_driver.hear(replies)
        self.ledger.hear(replies)
        self.output.writes += self.evictions.hear(replies, self._now)
        self.binding_driver.look_after(self.bindings.ended())  # victims that had a place and no bind yet
        if self.drivers:
            self._hear_of_rounds(replies)

    def _hear_of_rounds(self, replies: Sequence[Reply]) -> None:
        for reply in replies:
            if reply.error is not None:
                for driver in self.drivers:
                    driver.failed(reply.write)
        if any(_is_worth_another_look(reply) for reply in replies):
            self._notice_rounds()

    def _notice_rounds(self) -> None:
        for driver in self.drivers:
            driver.noticed(self._now)

    def _try_again(self, binding: Binding) -> None:
        """A gang's member whose bind failed: the same place once more if it still fits, before anybody else comes."""
        entry, pod = binding.entry, binding.pod
        self.bindings.end(binding)
        undo(binding.cycle, binding.row)
        pod_state = self.cluster.pods.get(pod.uid)
        profile = self.profiles.get(pod.scheduler_name)
        if pod_state is None or pod_state.place is not _PENDING or profile is None:
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
            self.binding_driver.begin(entry, cycle, Committed(outcome.placed, permission))
        else:
            self._conclude(entry, cycle, outcome)
            self.gangs.lost_place(pod_state.gang)


def _is_worth_another_look(reply: Reply) -> bool:
    """Whether a write failed that a round would ask for again: no change will tell it to."""
    ordinary = reply.error is None or isinstance(reply.error, NotFound | NotSent)
    return not ordinary and reply.write.subresource != "binding"
