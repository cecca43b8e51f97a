"""Scheduler: the Controller that places pods. Read this file top to bottom to follow a pod from the watch to the bind.

    step: changes ─▶ Intake ─▶ Cluster, Backlog      what happened, and whom it wakes
          replies ─▶ BindingDriver, modes            what became of earlier writes
          modes ─▶ BindingDriver ─▶ StepOutput       the next pods, as many as one slice allows

PodMode (pod_mode.py) makes the attempts of kube profiles; profiles may bring other modes (modes.py). Changes are taken
in only here, between attempts; that is the snapshot: while a pod is being placed nobody else writes, so the table needs
no copy. A slice is a count and not a duration, so a run is the same on a fast and a slow machine. Nothing is logged;
`decisions` is data for telemetry and other readers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence, Sized
from random import Random
from typing import TYPE_CHECKING

from fairlead.core.engine.binding_driver import BindingDriver
from fairlead.core.engine.cycle.choice import FirstOfEquals
from fairlead.core.engine.cycle.events import EventRecorder
from fairlead.core.engine.cycle.under_way import BindingsUnderWay
from fairlead.core.engine.explain import answers
from fairlead.core.engine.explain.decisions import DecisionLog
from fairlead.core.engine.explain.eviction_ledger import EvictionLedger
from fairlead.core.engine.explain.pod import Explanations
from fairlead.core.engine.guard import Guard
from fairlead.core.engine.intake import Intake
from fairlead.core.engine.modes import SchedulerParts, SchedulingMode, missing_modes
from fairlead.core.engine.options import Options as Options
from fairlead.core.engine.pod_mode import PodMode
from fairlead.core.engine.queue.backlog import Backlog
from fairlead.core.engine.queue.hints import interests_of_extenders
from fairlead.core.engine.step_output import StepOutput
from fairlead.core.engine.upkeep import Upkeep
from fairlead.core.engine.watching import watches_of
from fairlead.core.framework.effects import Effects
from fairlead.core.model.flow import Change, OutsideWork, Reply, Watch, Write
from fairlead.core.state.cluster import Cluster, PodPlace
from fairlead.core.state.object_index import MODES

if TYPE_CHECKING:
    from fairlead.core.framework.meter import Meter
    from fairlead.core.framework.profile import Profile
    from fairlead.core.model.explanation import Explained, Explanation


class Scheduler:
    def __init__(self, profiles: Sequence[Profile], options: Options | None = None) -> None:
        options = options or Options()
        self.name = options.name
        self.watches: Sequence[Watch] = watches_of(profiles)
        self.profiles: Mapping[str, Profile] = {profile.name: profile for profile in profiles}
        self.cluster = cluster = Cluster()
        self.backlog = Backlog(
            self.profiles,
            cluster,
            initial_backoff=options.initial_backoff,
            max_backoff=options.max_backoff,
            unschedulable_limit=options.unschedulable_limit,
            pops_early=options.pops_from_backoff,
            extra_interests=interests_of_extenders(profiles),
        )
        bindings = BindingsUnderWay(options.unanswered_binds)
        effects = Effects()
        self.guard = Guard(cluster, bindings, self.backlog.complaints, effects.raised)
        recorder = EventRecorder(options.instance, announces=options.announces)
        explanations = Explanations(cluster.table, effects.raised)
        self.output = StepOutput(recorder, explanations, DecisionLog(), self.backlog.nominator)
        self.binding_driver = BindingDriver(cluster, self.backlog, bindings, self.guard, self.output)
        self.intake = Intake(cluster, self.backlog, self.binding_driver)
        self.parts = SchedulerParts(
            options,
            cluster,
            self.backlog,
            bindings,
            self.binding_driver,
            self.guard,
            self.output,
            recorder,
            effects,
            FirstOfEquals() if options.first_of_equals else Random(options.seed),
        )
        self.pods = PodMode(self.parts)
        self.modes: tuple[SchedulingMode, ...] = (self.pods,)
        """PodMode, then those of profiles that name another; they have their turns in this order."""
        self._follow(profiles)
        self.upkeep = Upkeep(profiles, cluster)
        self.ledger = EvictionLedger(options.evictions_in)
        self.interrupted_by: Sized = ()
        """While this holds something, a step makes one more attempt at most. A runtime puts its questions here."""

    # ---- the Controller ----

    def step(self, now: float, changes: Sequence[Change], replies: Sequence[Reply]) -> list[Write]:
        """Whatever raises in here costs one object its turn; see guard.py."""
        output, modes, look_after, bindings = self.output, self.modes, self.binding_driver.look_after, self.bindings
        output.begin(now)
        self.guard.take_in(changes, now, self.intake.take)
        self.binding_driver.take_replies(replies)
        self.ledger.take_replies(replies)
        for mode in modes:
            mode.take_replies(replies, now)
        if self._needs_owners():
            return output.writes
        self.backlog.flush(now)
        if changes:
            look_after(bindings.preparing())
        for mode in modes:
            mode.look_after(now)
        look_after(bindings.due(now, self.cluster.table.alive))
        self.guard.do("looking after statuses", self.upkeep.step, now, output)
        for mode in modes:
            if not mode.is_held:
                mode.step(now, changes, self.interrupted_by)
        self.guard.tick(now)
        output.add(self.parts.effects.take_writes())
        output.add(self.ledger.note(output.writes, self.cluster, now))
        return output.writes

    def _needs_owners(self) -> bool:
        """Whether pods came that are a gang because of an owner of a kind that nobody watches yet. Nobody is placed
        before its objects have been seen: a gang that is half bound comes first, and owners know which is."""
        unwatched = self.cluster.gangs.owned.take_unwatched()
        if unwatched:
            self.watches = (*self.watches, *(Watch(kind, optional=True) for kind in unwatched))
        return bool(unwatched)

    def hold(self, parts: Collection[str]) -> None:
        """Let these parts wait from now on: nobody may read what they need."""
        for mode in self.modes[1:]:
            mode.hold(MODES in parts)

    def wake_at(self) -> float | None:
        modes = [mode for mode in self.modes if not mode.is_held]
        times = [self.bindings.wake_at(), self.upkeep.wake_at(), *(mode.wake_at(self.now) for mode in modes)]
        return min([at for at in times if at is not None], default=None)

    def unanswered(self) -> list[Write]:
        """Writes of bindings and evictions that have no reply yet."""
        return [*self.binding_driver.unanswered(), *(write for mode in self.modes for write in mode.unanswered())]

    def reconfigure(
        self, profiles: Sequence[Profile], *, initial_backoff: float | None = None, max_backoff: float | None = None
    ) -> None:
        """Other policies from now on. Pods keep their places in the queue and on nodes; those of a name that was not
        served before join the queue, as at a takeover."""
        served = {name for name in self.profiles if self.backlog.serves(name)}
        self.profiles = {profile.name: profile for profile in profiles}
        self.backlog.reconfigure(
            self.profiles,
            self.now,
            initial_backoff=initial_backoff,
            max_backoff=max_backoff,
            extra_interests=interests_of_extenders(profiles),
        )
        self._follow(profiles)
        self._offer({name for name in self.profiles if self.backlog.serves(name)} - served)
        self.upkeep.reconfigure(profiles)
        known = {watch.kind for watch in self.watches}
        self.watches = (*self.watches, *(watch for watch in watches_of(profiles) if watch.kind not in known))

    def _offer(self, names: Collection[str]) -> None:
        """Queue the pods of these scheduler names that wait."""
        for pod_state in self.cluster.pods.values() if names else ():
            pod = pod_state.seen
            if pod_state.place is PodPlace.PENDING and pod.scheduler_name in names:
                self.backlog.add(pod, self.now)

    def _follow(self, profiles: Sequence[Profile]) -> None:
        self.modes += missing_modes(profiles, self.parts, self.modes)
        for mode in self.modes:
            mode.reconfigure(profiles)

    def measure(self, meter: Meter | None) -> None:
        """Measure times from now on, with this clock."""
        self.output.measure(meter)

    def go_alone(self) -> None:
        """Be neither interrupted nor measured by anybody from now on, because this is a copy of a scheduler."""
        self.interrupted_by = ()
        self.measure(None)

    # ---- what others read of it ----

    @property
    def now(self) -> float:
        """The time of the last step."""
        return self.output.now

    @property
    def bindings(self) -> BindingsUnderWay:
        return self.parts.bindings

    @property
    def outside(self) -> Sequence[OutsideWork]:
        """What plugins and extenders do in threads."""
        return self.upkeep.outside

    @property
    def meter(self) -> Meter | None:
        return self.output.meter

    @property
    def decisions(self) -> DecisionLog:
        return self.output.decisions

    @property
    def explanations(self) -> Explanations:
        return self.output.explanations

    def explain(self, namespace: str, name: str) -> Explanation | None:
        """All that is known about one pod: its last attempt, and where it is now."""
        return answers.about_pod(self, namespace, name)

    def explain_group(self, namespace: str, name: str) -> Explained | None:
        """All that is known about one group, of whatever API: its last attempt, or what it waits for."""
        return answers.about_group(self, namespace, name)

    def explain_queue(self, name: str) -> Explained | None:
        """What a queue holds and may hold, as its mode counted it last."""
        return answers.about_queue(self, name)
